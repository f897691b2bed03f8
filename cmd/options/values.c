/* SPDX-License-Identifier: Apache-2.0 */
/* Parses one value of an option from text into its field of struct config, or makes a message that says what would have been
 * right. */
#include "cmd/options/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/nearest.h"
#include "base/text/parse.h"
#include "cmd/options/config_file.h"
#include "cmd/options/foreign.h"

enum { CHOICE_BYTES = 32 };

/* A bound as a user would write it. */
static void print_bound(enum option_kind kind, uint64_t v, struct buf *out)
{
	static const char *const size_units[] = { "", "K", "M", "G", "T" };
	size_t unit = 0;

	if (kind == OPTION_DURATION && v % NSEC_PER_SEC)
		buf_printf(out, "%" PRIu64 "ms", (uint64_t)(v / NSEC_PER_MSEC));
	else if (kind == OPTION_DURATION)
		buf_printf(out, "%" PRIu64 "s", (uint64_t)(v / NSEC_PER_SEC));
	else if (kind == OPTION_SIZE) {
		for (; v >= 1024 && v % 1024 == 0 && unit < 4; unit++)
			v /= 1024;
		buf_printf(out, "%" PRIu64 "%s", v, size_units[unit]);
	} else
		buf_printf(out, "%" PRIu64, v);
}

static int out_of_bounds(const struct option_spec *spec, const char *text, const char *origin, bool is_too_small,
			 struct buf *error)
{
	buf_printf(error, "%s: '%s' is too %s; the %s is ", origin, text, is_too_small ? "small" : "large",
		   is_too_small ? "least" : "most");
	print_bound(spec->kind, is_too_small ? spec->least : spec->most, error);
	return -EINVAL;
}

static int set_number(const struct option_spec *spec, const char *text, const char *origin, uint64_t *field,
		      struct buf *error)
{
	static const struct {
		int (*parse)(const char *text, uint64_t *ret);
		const char *is_not;
	} forms[] = {
		[OPTION_U64] = { parse_u64, "a number; give a whole number such as" },
		[OPTION_FREQ] = { parse_u64, "a number; give a whole number or max, such as" },
		[OPTION_DURATION] = { parse_duration, "a time; give one such as 500ms, 2m or" },
		[OPTION_SIZE] = { parse_size, "a size; give one such as 64K, 4MiB or" },
	};
	uint64_t v = UINT64_MAX;
	int err = forms[spec->kind].parse(text, &v);

	if (err == -EINVAL) {
		buf_printf(error, "%s: '%s' is not %s ", origin, text, forms[spec->kind].is_not);
		if (spec->default_text[0])
			buf_puts(error, spec->default_text);
		else
			buf_puts(error, spec->kind == OPTION_DURATION ? "30s" : "1M");
		return -EINVAL;
	}
	if (err || v > spec->most)
		return out_of_bounds(spec, text, origin, false, error);
	if (v < spec->least)
		return out_of_bounds(spec, text, origin, true, error);
	*field = v;
	return 0;
}

static int set_double(const struct option_spec *spec, const char *text, const char *origin, double *field, struct buf *error)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !isfinite(v)) {
		buf_printf(error, "%s: '%s' is not a number; give one such as %s", origin, text, spec->default_text);
		return -EINVAL;
	}
	if (v < (double)spec->least || v > (double)spec->most)
		return out_of_bounds(spec, text, origin, v < (double)spec->least, error);
	*field = v;
	return 0;
}

static int set_string(const char *text, const char *origin, const char **field, struct buf *error)
{
	if (!*text) {
		buf_printf(error, "%s: the value is empty", origin);
		return -EINVAL;
	}
	*field = text;
	return 0;
}

/* Offers the values of @choices, '|' between them, to @nearest, and copies the one that is best into @best. Whether one of
 * them is @text itself. */
static bool is_choice(const char *choices, const char *text, char best[static CHOICE_BYTES])
{
	struct nearest nearest = nearest_to(text);
	char word[CHOICE_BYTES];
	size_t len;

	best[0] = '\0';
	for (const char *p = choices; *p; p += len + (p[len] == '|')) {
		len = strcspn(p, "|");
		snprintf(word, sizeof(word), "%.*s", (int)len, p);
		if (!strcmp(word, text))
			return true;
		nearest.best = NULL;
		nearest_offer(&nearest, word);
		if (nearest.best)
			memcpy(best, word, sizeof(word));
	}
	return false;
}

static int set_choice(const struct option_spec *spec, const char *text, const char *origin, const char **field,
		      struct buf *error)
{
	const char *answer = strcmp(spec->name, "format") ? NULL : foreign_answer(FOREIGN_FORMAT, spec->commands, text);
	char best[CHOICE_BYTES];

	if (is_choice(spec->argument, text, best)) {
		*field = text;
		return 0;
	}
	if (answer)
		buf_printf(error, "%s: there is no '%s': %s", origin, text, answer);
	else if (best[0])
		buf_printf(error, "%s: there is no '%s'; did you mean %s?", origin, text, best);
	else
		buf_printf(error, "%s: '%s' is none of %s", origin, text, spec->argument);
	return -EINVAL;
}

static int list_append(struct string_list *list, const char *text)
{
	char **items = reallocarray(list->items, list->count + 2, sizeof(*items));

	if (!items)
		return -ENOMEM;
	list->items = items;
	items[list->count] = strdup(text);
	items[list->count + 1] = NULL;
	return items[list->count] ? (list->count++, 0) : -ENOMEM;
}

static int pids_append(struct pid_list *pids, uint32_t pid)
{
	uint32_t *items = reallocarray(pids->items, pids->count + 1, sizeof(*items));

	if (!items)
		return -ENOMEM;
	pids->items = items;
	items[pids->count++] = pid;
	return 0;
}

static int set_words(const char *text, const char *origin, struct string_list *list, struct buf *error)
{
	AUTO_FREE char *copy = strdup(text);
	char *rest = copy, *word;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (word = strsep(&rest, ","))) {
		if (!*word) {
			buf_printf(error, "%s: '%s' has an empty value; give values with commas between them", origin, text);
			return -EINVAL;
		}
		err = list_append(list, word);
	}
	return err;
}

/* "99", "99Hz" and "99 Hz" are the same. */
static int set_freq(const struct option_spec *spec, const char *text, const char *origin, uint64_t *field, struct buf *error)
{
	size_t len = strlen(text);
	char number[24];

	if (!strcmp(text, "max")) {
		*field = 0;
		return 0;
	}
	if (len < 3 || len >= sizeof(number) || strcasecmp(text + len - 2, "hz"))
		return set_number(spec, text, origin, field, error);
	for (len -= 2; len && text[len - 1] == ' '; len--)
		;
	memcpy(number, text, len);
	number[len] = '\0';
	return set_number(spec, number, origin, field, error);
}

static int set_pids(const char *text, const char *origin, struct pid_list *pids, struct buf *error)
{
	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		char word[16] = "";
		uint64_t pid = 0;
		int err;

		if (len < sizeof(word))
			memcpy(word, p, len);
		if (parse_u64(word, &pid) || !pid || pid > INT32_MAX) {
			buf_printf(error, "%s: '%.*s' is not a process id; give numbers with commas between them, 123,456",
				   origin, (int)len, p);
			if (isalpha((unsigned char)*p))
				buf_printf(error, ", or a name: --comm %.*s", (int)len, p);
			return -EINVAL;
		}
		err = pids_append(pids, (uint32_t)pid);
		if (err)
			return err;
		p += len;
		if (!*p)
			return 0;
	}
}

static int set_flag(const char *text, const char *origin, bool *field, struct buf *error)
{
	if (!text) {
		*field = true;
		return 0;
	}
	if (!parse_bool(text, field))
		return 0;
	buf_printf(error, "%s: '%s' is neither yes nor no", origin, text);
	return -EINVAL;
}

int option_set(const struct option_spec *spec, const char *text, const char *origin, struct config *config,
	       struct buf *error)
{
	void *field = (char *)config + spec->offset;
	const char *checked = NULL;
	int err;

	switch (spec->kind) {
	case OPTION_FLAG:
		return set_flag(text, origin, field, error);
	case OPTION_U64:
	case OPTION_DURATION:
	case OPTION_SIZE:
		return set_number(spec, text, origin, field, error);
	case OPTION_DOUBLE:
		return set_double(spec, text, origin, field, error);
	case OPTION_STRING:
		return set_string(text, origin, field, error);
	case OPTION_CHOICE:
		return set_choice(spec, text, origin, field, error);
	case OPTION_LIST:
		err = set_string(text, origin, &checked, error);
		return err ? err : list_append(field, checked);
	case OPTION_WORDS:
		return set_words(text, origin, field, error);
	case OPTION_FREQ:
		return set_freq(spec, text, origin, field, error);
	case OPTION_PIDS:
		return set_pids(text, origin, field, error);
	}
	return -EINVAL;
}

bool option_is_set(const struct option_spec *spec, const struct config *config)
{
	const void *field = (const char *)config + spec->offset;

	switch (spec->kind) {
	case OPTION_FLAG:
		return *(const bool *)field;
	case OPTION_U64:
	case OPTION_DURATION:
	case OPTION_SIZE:
	case OPTION_FREQ:
		return *(const uint64_t *)field;
	case OPTION_DOUBLE:
		return *(const double *)field > 0;
	case OPTION_STRING:
	case OPTION_CHOICE:
		return *(const char *const *)field;
	case OPTION_LIST:
	case OPTION_WORDS:
		return ((const struct string_list *)field)->count;
	case OPTION_PIDS:
		return ((const struct pid_list *)field)->count;
	}
	return false;
}

void option_clear(const struct option_spec *spec, struct config *config)
{
	void *field = (char *)config + spec->offset;

	if (spec->kind == OPTION_PIDS) {
		free(((struct pid_list *)field)->items);
		*(struct pid_list *)field = (struct pid_list){ 0 };
	} else if (spec->kind == OPTION_LIST || spec->kind == OPTION_WORDS) {
		struct string_list *list = field;

		for (size_t k = 0; k < list->count; k++)
			free(list->items[k]);
		free(list->items);
		*list = (struct string_list){ 0 };
	}
}

void config_fini(struct config *config)
{
	size_t count;
	const struct option_spec *specs = options_table(&count);

	for (size_t i = 0; i < count; i++)
		option_clear(&specs[i], config);
	config_file_free(config->file);
	*config = (struct config){ 0 };
}
