/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8. Most text is ASCII, which is passed over in words of eight bytes; only the rest is looked at byte by byte. Pure
 * functions; any thread.
 */
#include "base/text/utf8.h"

#include <string.h>

#define TOP_BITS 0x8080808080808080 /* the top bits of the bytes of a word, not set in ASCII */

enum { WORD_BYTES = 8 };

size_t utf8_sequence(const void *data, size_t len, size_t *skip_ret)
{
	const unsigned char *s = data;
	unsigned char low = 0x80, high = 0xbf;
	size_t want, have = 1;

	if (s[0] < 0x80)
		return 1;
	want = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	*skip_ret = 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	if (s[0] == 0xe0) /* no longer form of a shorter sequence ... */
		low = 0xa0;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xed) /* ... no surrogates ... */
		high = 0x9f;
	else if (s[0] == 0xf4) /* ... and nothing above U+10FFFF */
		high = 0x8f;
	for (; have < want && have < len && s[have] >= low && s[have] <= high; have++) {
		low = 0x80;
		high = 0xbf;
	}
	*skip_ret = have;
	return have == want ? want : 0;
}

static uint64_t word_at(const unsigned char *s)
{
	uint64_t word;

	memcpy(&word, s, sizeof(word));
	return word;
}

static bool is_ascii(const unsigned char *s, size_t len)
{
	uint64_t bits = 0;

	if (len < WORD_BYTES) {
		for (size_t i = 0; i < len; i++)
			bits |= s[i];
		return bits < 0x80;
	}
	for (size_t at = 0; at < len - WORD_BYTES; at += WORD_BYTES)
		bits |= word_at(s + at);
	return !((bits | word_at(s + len - WORD_BYTES)) & TOP_BITS); /* the last word may overlap the one before it */
}

/* How many bytes at the start of @s are UTF-8; if fewer than @len, then *@skip_ret bytes follow that are not. */
static size_t valid_prefix(const unsigned char *s, size_t len, size_t *skip_ret)
{
	size_t at = 0, n;

	while (at < len) {
		if (len - at >= WORD_BYTES && !(word_at(s + at) & TOP_BITS)) {
			at += WORD_BYTES;
			continue;
		}
		n = utf8_sequence(s + at, len - at, skip_ret);
		if (!n)
			break;
		at += n;
	}
	return at;
}

bool utf8_is_valid(const void *data, size_t len)
{
	size_t skip;

	return is_ascii(data, len) || valid_prefix(data, len, &skip) == len;
}

size_t utf8_cut(const void *data, size_t len, size_t max)
{
	const unsigned char *s = data;

	if (len <= max)
		return len;
	while (max && (s[max] & 0xc0) == 0x80)
		max--;
	return max;
}

void utf8_append_clean(struct buf *out, const void *data, size_t len)
{
	const unsigned char *s = data;
	size_t skip = 0;

	for (size_t at = 0; at < len; at += skip) {
		size_t n = valid_prefix(s + at, len - at, &skip);

		buf_append(out, s + at, n);
		at += n;
		if (at == len)
			return;
		buf_puts(out, "\xef\xbf\xbd");
	}
}
