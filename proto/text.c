/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for people. The names come out of other people's files and processes: nothing of them reaches a terminal but
 * printable characters. A column is a character; wide ones are few in function names.
 */
#include "proto/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/text/utf8.h"

/* The bytes of the UTF-8 character at @s; *printable is false for control characters and for a byte that starts none. */
static size_t character(const char *s, bool *printable)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t skip, len = utf8_sequence(s, strnlen(s, 4), &skip);

	*printable = len == 1 ? *u >= 0x20 && *u != 0x7f
			      : len && !(u[0] == 0xc2 && u[1] < 0xa0); /* U+0080 to U+009F are controls */
	return len ? len : 1;
}

unsigned text_columns(const char *name)
{
	unsigned columns = 0;
	bool printable;

	for (; *name; name += character(name, &printable))
		columns++;
	return columns;
}

/* Appends the first @head and the last @tail of the characters of @name, and an ellipsis for what lies between. */
static void put(struct buf *out, const char *name, unsigned head, unsigned tail)
{
	unsigned columns = text_columns(name), at = 0;
	bool printable;

	for (size_t len; *name; name += len, at++) {
		len = character(name, &printable);
		if (at == head && at + tail < columns)
			buf_puts(out, "…");
		if (at >= head && at + tail < columns)
			continue;
		if (printable)
			buf_append(out, name, len);
		else
			buf_putc(out, '?');
	}
}

unsigned text_name(struct buf *out, const char *name, unsigned max_columns)
{
	unsigned columns = text_columns(name);

	if (!max_columns || columns <= max_columns) {
		put(out, name, columns, 0);
		return columns;
	}
	put(out, name, max_columns / 2, max_columns - max_columns / 2 - 1);
	return max_columns;
}

void text_line(struct buf *out, const char *line, unsigned max_columns)
{
	unsigned columns = text_columns(line);

	put(out, line, columns <= max_columns ? columns : max_columns - 1, 0);
}

void text_padded(struct buf *out, const char *name, unsigned columns)
{
	for (unsigned used = text_name(out, name, columns); used < columns; used++)
		buf_putc(out, ' ');
}

void text_count(struct buf *out, uint64_t n)
{
	if (n >= 1000) {
		text_count(out, n / 1000);
		buf_printf(out, ",%03" PRIu64, n % 1000);
	} else {
		buf_printf(out, "%" PRIu64, n);
	}
}

void text_duration(struct buf *out, uint64_t ns)
{
	uint64_t s = (uint64_t)(ns / NSEC_PER_SEC + (ns % NSEC_PER_SEC >= NSEC_PER_SEC / 2));

	if (ns < NSEC_PER_SEC)
		buf_printf(out, "%.0f ms", (double)ns / (double)NSEC_PER_MSEC);
	else if (s < 100)
		buf_printf(out, "%.1f s", (double)ns / (double)NSEC_PER_SEC);
	else if (s < 3600)
		buf_printf(out, "%" PRIu64 " m %02" PRIu64 " s", s / 60, s % 60);
	else
		buf_printf(out, "%" PRIu64 " h %02" PRIu64 " m", s / 3600, s % 3600 / 60);
}

void text_tone(struct buf *out, bool colour, enum text_tone tone)
{
	static const char *const codes[] = {
		[TONE_PLAIN] = "0", [TONE_HEAD] = "1",	  [TONE_HOT] = "1;31", [TONE_WARM] = "33",
		[TONE_FAINT] = "2", [TONE_KERNEL] = "36", [TONE_MORE] = "31",  [TONE_LESS] = "34",
	};

	if (colour)
		buf_printf(out, "\033[%sm", codes[tone]);
}

enum text_tone text_heat(double percent)
{
	return percent >= 5 ? TONE_HOT : percent >= 1 ? TONE_WARM : TONE_PLAIN;
}

double text_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}
