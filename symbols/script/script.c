/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/utf8.h"
#include "symbols/script/script.h"

int script_open(const void *content, size_t len, struct script *ret)
{
	const uint8_t *at = content;
	struct script_head *h = &ret->head;

	if (len < sizeof(*h))
		return -EBADMSG;
	memcpy(h, at, sizeof(*h));
	at += sizeof(*h);
	len -= sizeof(*h);
	if ((uint64_t)h->name_bytes + h->file_bytes + h->line_bytes != len)
		return -EBADMSG;
	ret->name = (const char *)at;
	ret->file = ret->name + h->name_bytes;
	ret->line_table = at + h->name_bytes + h->file_bytes;
	return 0;
}

void script_write(const struct script *s, struct buf *out)
{
	buf_append(out, &s->head, sizeof(s->head));
	buf_append(out, s->name, s->head.name_bytes);
	buf_append(out, s->file, s->head.file_bytes);
	buf_append(out, s->line_table, s->head.line_bytes);
}

/* --- lines --- */

static uint32_t sound_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* The last pair goes on to the end of the code. */
static uint32_t find_lnotab(const struct script *s, uint64_t place)
{
	int64_t line = s->head.first_line;
	uint64_t at = 0;

	for (uint32_t i = 0; i + 1 < s->head.line_bytes; i += 2) {
		at += s->line_table[i];
		if (at > place)
			return sound_line(line);
		line += (int8_t)s->line_table[i + 1];
	}
	return s->head.is_cut ? 0 : sound_line(line);
}

static uint32_t find_linetable(const struct script *s, uint64_t place)
{
	int64_t line = s->head.first_line;
	uint64_t end = 0;

	for (uint32_t i = 0; i + 1 < s->head.line_bytes; i += 2) {
		int8_t delta = (int8_t)s->line_table[i + 1];

		end += s->line_table[i];
		if (delta != INT8_MIN)
			line += delta;
		if (place < end)
			return delta != INT8_MIN ? sound_line(line) : 0;
	}
	return 0;
}

/* A number of the location table: six bits a byte, the lowest first, 0x40 where more follow. CPython's have 32 bits; no
 * table is long enough to make lines that do not fit from these. */
static uint64_t take_number(const struct script *s, uint32_t *at)
{
	uint64_t value = 0;

	for (unsigned shift = 0; *at < s->head.line_bytes; shift += 6) {
		uint8_t byte = s->line_table[(*at)++];

		if (shift < 36)
			value |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64))
			return value;
	}
	*at = UINT32_MAX; /* the table ends in the middle of it */
	return 0;
}

/* The lowest bit is the sign. */
static int64_t take_signed(const struct script *s, uint32_t *at)
{
	uint64_t value = take_number(s, at);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

enum {				   /* codes of entries */
       LOCATION_SHORT_MAX = 9,	   /* and below: the same line, one more byte */
       LOCATION_ONE_LINE_MAX = 12, /* 10 to 12: line + code - 10, two more bytes */
       LOCATION_NO_COLUMNS = 13,
       LOCATION_LONG = 14,
       LOCATION_NONE = 15,
};

/* Goes over the entry at *@at, changes *@line. Returns how many bytes of code it covers. */
static uint32_t take_location(const struct script *s, uint32_t *at, int64_t *line, bool *has_line)
{
	uint8_t first = s->line_table[(*at)++];
	unsigned code = first >> 3 & 15;

	*has_line = code != LOCATION_NONE;
	if (code <= LOCATION_SHORT_MAX) {
		*at += 1;
	} else if (code <= LOCATION_ONE_LINE_MAX) {
		*line += code - 10;
		*at += 2;
	} else if (code != LOCATION_NONE) {
		*line += take_signed(s, at);
		for (int i = 0; code == LOCATION_LONG && i < 3; i++)
			(void)take_number(s, at);
	}
	return ((first & 7) + 1) * 2;
}

static uint32_t find_location(const struct script *s, uint64_t place)
{
	int64_t line = s->head.first_line;
	uint64_t end = 0;

	for (uint32_t at = 0; at < s->head.line_bytes;) {
		bool has_line;

		end += take_location(s, &at, &line, &has_line);
		if (place < end)
			return has_line && at <= s->head.line_bytes ? sound_line(line) : 0;
	}
	return 0;
}

static uint32_t find_pair(const struct script *s, uint64_t place)
{
	uint32_t from = 0, to = s->head.line_bytes / sizeof(struct script_line_pair);
	struct script_line_pair pair;

	while (from < to) { /* the first behind @place */
		uint32_t middle = from + (to - from) / 2;

		memcpy(&pair, s->line_table + middle * sizeof(pair), sizeof(pair));
		if (pair.place > place)
			to = middle;
		else
			from = middle + 1;
	}
	if (!from)
		return 0;
	memcpy(&pair, s->line_table + (from - 1) * sizeof(pair), sizeof(pair));
	return sound_line(pair.line);
}

uint32_t script_line(const struct script *s, uint32_t place)
{
	int64_t off = (int32_t)(place - s->head.code_offset); /* both may be of addresses, and wrap around */
	uint64_t at = (uint64_t)off * s->head.scale;

	if (s->head.lines == SCRIPT_LINES_NONE)
		return sound_line(place);
	if (s->head.lines == SCRIPT_LINES_PAIRS)
		return off < -1 ? 0 : find_pair(s, off < 0 ? 0 : (uint64_t)off);
	/* Before its first instruction a frame stands at -1, or before the first place: CPython takes that for the first
	 * line. */
	if (off < 0)
		return sound_line(s->head.first_line);
	switch ((enum script_lines)s->head.lines) {
	case SCRIPT_LINES_NONE:
	case SCRIPT_LINES_PAIRS:
		break;
	case SCRIPT_LINES_LNOTAB:
		return find_lnotab(s, at);
	case SCRIPT_LINES_LINETABLE:
		return find_linetable(s, at);
	case SCRIPT_LINES_LOCATIONS:
		return find_location(s, at);
	}
	return 0;
}

/* --- texts --- */

static void put_character(uint32_t c, struct buf *out)
{
	if (c < 0x20 || c == 0x7f) {
		buf_putc(out, '?');
	} else if (c < 0x80) {
		buf_putc(out, (char)c);
	} else if (c < 0x800) {
		buf_putc(out, (char)(0xc0 | c >> 6));
		buf_putc(out, (char)(0x80 | (c & 63)));
	} else if ((c >= 0xd800 && c < 0xe000) || c > 0x10ffff) {
		buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD */
	} else if (c < 0x10000) {
		buf_putc(out, (char)(0xe0 | c >> 12));
		buf_putc(out, (char)(0x80 | (c >> 6 & 63)));
		buf_putc(out, (char)(0x80 | (c & 63)));
	} else {
		buf_putc(out, (char)(0xf0 | c >> 18));
		buf_putc(out, (char)(0x80 | (c >> 12 & 63)));
		buf_putc(out, (char)(0x80 | (c >> 6 & 63)));
		buf_putc(out, (char)(0x80 | (c & 63)));
	}
}

void script_text(const void *bytes, size_t len, unsigned width, struct buf *out)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; width && i + width <= len; i += width) {
		uint32_t c = 0;

		for (unsigned k = 0; k < width && k < 4; k++)
			c |= (uint32_t)at[i + k] << 8 * k;
		put_character(c, out);
	}
}

void script_utf8(const void *bytes, size_t len, struct buf *out)
{
	const uint8_t *text = bytes;

	for (size_t i = 0; i < len;) {
		size_t skip = 1, sequence = utf8_sequence(text + i, len - i, &skip);

		if (sequence == 1)
			put_character(text[i], out);
		else if (sequence)
			buf_append(out, text + i, sequence);
		else
			buf_puts(out, "\xef\xbf\xbd");
		i += sequence ? sequence : skip;
	}
}
