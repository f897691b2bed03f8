/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats, most telling first, and what their readers share. */
#include "proto/read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/profiles_builder.h"

static const struct read_format formats[] = {
	{ "speedscope", speedscope_fits, speedscope_read },
	{ "pprof", pprof_fits, pprof_read },
	{ "perf script", perf_script_fits, perf_script_read },
	{ "folded stacks", folded_fits, folded_read },
};

const struct read_format *read_format_of(const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (formats[i].fits(data, len))
			return &formats[i];
	}
	return NULL;
}

int read_fail(struct otlp_error *error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(error->message, sizeof(error->message), fmt, args);
	va_end(args);
	return -EBADMSG;
}

/* Over the string whose content begins at @p: to its closing quote, or NULL. */
static const char *string_end(const char *p, const char *end)
{
	for (; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p : NULL;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int read_json_key(const uint8_t *data, size_t len, const char *const *keys)
{
	const char *p = (const char *)data, *end = p + len, *start;
	size_t depth = 0;

	while (p < end && is_space(*p))
		p++;
	if (p == end || *p != '{')
		return -1;
	for (; p < end; p++) {
		depth += *p == '{' || *p == '[';
		depth -= *p == '}' || *p == ']';
		if (!depth)
			return -1;
		if (*p != '"')
			continue;
		start = p + 1;
		p = string_end(start, end);
		if (!p)
			return -1;
		for (int i = 0; depth == 1 && keys[i]; i++) {
			if (str_is((struct str){ start, (uint32_t)(p - start) }, keys[i]))
				return i;
		}
	}
	return -1;
}

bool read_line(struct read_lines *lines, struct str *ret)
{
	const char *newline;
	size_t len;

	if (lines->at >= lines->end)
		return false;
	newline = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
	len = (size_t)((newline ? newline : lines->end) - lines->at);
	*ret = (struct str){ lines->at, (uint32_t)(len < UINT32_MAX ? len : UINT32_MAX) };
	if (ret->len && ret->data[ret->len - 1] == '\r')
		ret->len--;
	lines->at += len + (newline != NULL);
	lines->number++;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct str read_trimmed(struct str s)
{
	while (s.len && is_blank(s.data[0])) {
		s.data++;
		s.len--;
	}
	while (s.len && is_blank(s.data[s.len - 1]))
		s.len--;
	return s;
}

bool read_number(struct str s, int64_t *ret)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < s.len; i++) {
		if (s.data[i] < '0' || s.data[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, s.data[i] - '0', &n))
			return false;
	}
	*ret = n;
	return s.len > 0;
}

int read_freeze(struct builder *b, bool failed, uint64_t start_ns, uint64_t end_ns, struct profiles **ret)
{
	int err = failed ? -ENOMEM : builder_freeze(b, start_ns, end_ns, ret);

	builder_free(b);
	return err;
}
