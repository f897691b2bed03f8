/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats, and what their readers and writers share. */
#include "proto/formats/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "proto/profiles_builder.h"
#include "proto/sums/timeline.h"

#define FORMAT_ADDRESS(name) &name,
static const struct format *const formats[] = { FORMATS(FORMAT_ADDRESS) };

static size_t suffix_len(const char *path, const char *suffix)
{
	size_t len = strlen(path), suffix_len = strlen(suffix);

	return len > suffix_len && !strcmp(path + len - suffix_len, suffix) ? suffix_len : 0;
}

const struct format *format_by_path(const char *path)
{
	const struct format *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		for (const char *const *s = formats[i]->suffixes; *s; s++) {
			size_t len = suffix_len(path, *s);

			if (len > best_len) {
				best = formats[i];
				best_len = len;
			}
		}
	}
	return best;
}

const struct format *format_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (!strcmp(formats[i]->name, name))
			return formats[i];
	return NULL;
}

const struct format *format_by_content(const uint8_t *data, size_t len)
{
	const struct format *best = NULL;

	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (formats[i]->fits && (!best || formats[i]->sign < best->sign) && formats[i]->fits(data, len))
			best = formats[i];
	return best;
}

void format_list_names(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		buf_printf(out, "%s%s", i ? "|" : "", formats[i]->name);
}

void format_list_suffixes(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		for (const char *const *s = formats[i]->suffixes; *s; s++)
			buf_printf(out, "%s%s", i || s != formats[i]->suffixes ? ", " : "", *s);
}

void format_list_readers(struct buf *out)
{
	const char *separator = "";

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (!formats[i]->fits)
			continue;
		buf_printf(out, "%s%s", separator, formats[i]->title);
		separator = ", ";
	}
}

/* --- writing --- */

int format_write(const struct profiles *p, const struct format *format, struct buf *out, struct buf *left_out)
{
	void *sum;
	int err;

	if (format->write)
		return format->write(p, out, left_out);
	sum = format->sum->make();
	err = sum ? format->sum->add(sum, p) : -ENOMEM;
	if (!err)
		err = format->sum->write(sum, format, out, left_out);
	format->sum->free(sum);
	return err;
}

int format_write_timeline(const struct profiles *p, int (*write)(struct timeline *t, struct buf *out), const char *unsaid,
			  struct buf *out, struct buf *left_out)
{
	struct timeline *t = NULL;
	int err = timeline_new(p, &t);

	if (!err)
		err = write(t, out);
	if (!err) {
		buf_puts(left_out, unsaid);
		format_tell(left_out, t->sum.other_events, "samples of further kinds");
	}
	timeline_free(t);
	return err;
}

void format_tell(struct buf *left_out, uint64_t count, const char *what)
{
	if (count)
		buf_printf(left_out, "%s%s (%" PRIu64 ")", left_out->len ? ", " : "", what, count);
}

/* --- reading --- */

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
