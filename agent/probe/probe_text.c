/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config.h"
#include "agent/probe/probe_text.h"
#include "base/cleanup.h"

#define X(name, word, is_user, is_return) { word, is_user, is_return },
const struct probe_type_info probe_types[PROBE_TYPE_MAX] = { PROBE_TYPES(X) };
#undef X

/* The type that @text begins with; PROBE_TYPE_MAX: none. */
static enum probe_type find_type(const char *text, size_t *len_ret)
{
	for (int i = 0; i < PROBE_TYPE_MAX; i++) {
		size_t len = strlen(probe_types[i].word);

		if (strncmp(text, probe_types[i].word, len) || text[len] != ':')
			continue;
		*len_ret = len + 1;
		return (enum probe_type)i;
	}
	return PROBE_TYPE_MAX;
}

bool probe_is_text(const char *text)
{
	size_t len;

	return find_type(text, &len) != PROBE_TYPE_MAX;
}

bool probe_is_pattern(const char *name)
{
	return strpbrk(name, "*?[");
}

bool probe_name_matches(const char *wanted, const char *name)
{
	return !strcmp(wanted, name) || (probe_is_pattern(wanted) && !fnmatch(wanted, name, 0));
}

static int wrong(const char *text, const char *form, struct agent_error *err)
{
	snprintf(err->message, sizeof(err->message), "'%.200s' is no probe: it is written %s ('hearth help events')", text,
		 form);
	return -EINVAL;
}

/* Decimal, or hexadecimal with 0x, to the end of @text. */
static bool parse_number(const char *text, uint64_t *ret)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
	return !*end && !errno;
}

/* Copies @len bytes of @text. False: there are none, or they do not fit. */
static bool take(const char *text, size_t len, char *out, size_t size)
{
	if (!len || len >= size)
		return false;
	memcpy(out, text, len);
	out[len] = '\0';
	return true;
}

/* FUNCTION, FUNCTION+OFFSET or 0xADDRESS. */
static bool parse_function(const char *text, struct probe_text *ret)
{
	const char *plus = strrchr(text, '+');

	if (!strncmp(text, "0x", 2) && parse_number(text, &ret->offset))
		return true;
	if (plus && plus > text && parse_number(plus + 1, &ret->offset))
		return take(text, (size_t)(plus - text), ret->name, sizeof(ret->name));
	return take(text, strlen(text), ret->name, sizeof(ret->name));
}

static bool parse_usdt(const char *text, struct probe_text *ret)
{
	const char *name = strrchr(text, ':');

	if (!name)
		return take(text, strlen(text), ret->name, sizeof(ret->name));
	return take(text, (size_t)(name - text), ret->provider, sizeof(ret->provider)) &&
	       take(name + 1, strlen(name + 1), ret->name, sizeof(ret->name));
}

static const char *form_of(enum probe_type type)
{
	static const char *const forms[PROBE_TYPE_MAX] = {
		[PROBE_UPROBE] = "uprobe:FILE:FUNCTION, or FUNCTION+OFFSET, or 0xADDRESS",
		[PROBE_URETPROBE] = "uretprobe:FILE:FUNCTION",
		[PROBE_USDT] = "usdt:FILE:PROVIDER:NAME",
		[PROBE_KPROBE] = "kprobe:FUNCTION, or FUNCTION+OFFSET",
		[PROBE_KRETPROBE] = "kretprobe:FUNCTION",
		[PROBE_FENTRY] = "fentry:FUNCTION",
		[PROBE_FEXIT] = "fexit:FUNCTION",
	};

	return forms[type];
}

/* A function returns to one place, and a trampoline stands at its begin. */
static bool may_have_offset(enum probe_type type)
{
	return type == PROBE_UPROBE || type == PROBE_KPROBE;
}

/* Takes ":arg0" and ":ret" off the end of @text. False: there are too many. */
static bool take_arguments(char *text, struct probe_text *ret)
{
	char *last;

	while ((last = strrchr(text, ':')) && last > text && last[-1] != ':') {
		bool is_return = !strcmp(last, ":ret");

		if (!is_return && (strncmp(last, ":arg", 4) || last[4] < '0' || last[4] > '9' || last[5]))
			break;
		if (ret->arg_cnt == PROBE_ARGS)
			return false;
		memmove(ret->args + 1, ret->args, ret->arg_cnt);
		ret->args[0] = is_return ? PROBE_ARG_RETURN : (uint8_t)(last[4] - '0');
		ret->arg_cnt++;
		*last = '\0';
	}
	return true;
}

/* At a function's begin its arguments are in registers, at its end what it returns is. */
static bool may_have_arguments(const struct probe_text *t)
{
	bool is_return = probe_types[t->type].is_return;

	for (uint32_t i = 0; i < t->arg_cnt; i++)
		if (t->type == PROBE_FENTRY || t->type == PROBE_FEXIT || is_return != (t->args[i] == PROBE_ARG_RETURN))
			return false;
	return true;
}

int probe_text_parse(const char *text, struct probe_text *ret, struct agent_error *err)
{
	AUTO_FREE char *copy = strdup(text);
	size_t len = 0, file;
	const char *rest;
	bool is_sound;

	*ret = (struct probe_text){ .type = find_type(text, &len) };
	if (ret->type == PROBE_TYPE_MAX)
		return wrong(text, "uprobe:FILE:FUNCTION, usdt:FILE:PROVIDER:NAME, kprobe:FUNCTION", err);
	if (!copy)
		return -ENOMEM;
	if (!take_arguments(copy, ret))
		return wrong(text, "with four arguments at most", err);
	rest = strlen(copy) > len ? copy + len : "";
	if (!may_have_arguments(ret))
		return wrong(text,
			     "with :arg0 to :arg9 where a function begins, with :ret where it returns, without at fentry "
			     "and fexit",
			     err);
	if (probe_types[ret->type].is_user) {
		file = strcspn(rest, ":");
		if (!rest[file] || !take(rest, file, ret->file, sizeof(ret->file)))
			return wrong(text, form_of(ret->type), err);
		rest += file + 1;
	}
	is_sound = ret->type == PROBE_USDT ? parse_usdt(rest, ret) : parse_function(rest, ret);
	if (is_sound && !may_have_offset(ret->type) && ret->offset)
		is_sound = false;
	if (is_sound && !ret->name[0] && ret->type != PROBE_UPROBE)
		is_sound = false;
	if (is_sound && ret->offset && probe_is_pattern(ret->name) && !strstr(ret->name, "operator"))
		is_sound = false;
	return is_sound ? 0 : wrong(text, form_of(ret->type), err);
}
