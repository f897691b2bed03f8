/* SPDX-License-Identifier: Apache-2.0 */
/* Three bytes are four letters. Not GnuTLS's: that allocates for each value, and knows neither URLs' letters nor text
 * without padding. */
#include "base/text/base64.h"

#include "base/buf.h"

void base64_append(struct buf *out, const void *data, size_t len)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *in = data;
	char *at;

	if (buf_reserve(out, (len + 2) / 3 * 4))
		return;
	at = (char *)out->data + out->len;
	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t bits = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
				(left > 2 ? in[i + 2] : 0);

		*at++ = letters[bits >> 18];
		*at++ = letters[bits >> 12 & 63];
		*at++ = left > 1 ? letters[bits >> 6 & 63] : '=';
		*at++ = left > 2 ? letters[bits & 63] : '=';
	}
	out->len = (size_t)(at - (char *)out->data);
}

static int digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

bool base64_decode(const char *text, size_t len, uint8_t *out, size_t *len_ret)
{
	size_t chars = len, bytes = 0;
	uint32_t bits = 0;
	unsigned have = 0;

	while (chars && len - chars < 2 && text[chars - 1] == '=')
		chars--;
	if (chars % 4 == 1 || (chars != len && len % 4))
		return false;
	for (size_t i = 0; i < chars; i++) {
		int digit = digit_of(text[i]);

		if (digit < 0)
			return false;
		bits = bits << 6 | (uint32_t)digit;
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[bytes++] = (uint8_t)(bits >> have);
		}
	}
	*len_ret = bytes;
	return true;
}
