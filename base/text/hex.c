/* SPDX-License-Identifier: Apache-2.0 */
/* Two digits are a byte. */
#include "base/text/hex.h"

void hex_encode(char *out, const uint8_t *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		*out++ = digits[data[i] >> 4];
		*out++ = digits[data[i] & 15];
	}
	*out = '\0';
}

bool hex_decode(const char *text, size_t len, uint8_t *out, size_t *len_ret)
{
	if (len % 2)
		return false;
	for (size_t i = 0; i < len; i += 2) {
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i / 2] = (uint8_t)(high << 4 | low);
	}
	*len_ret = len / 2;
	return true;
}
