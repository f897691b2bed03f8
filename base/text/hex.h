/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as hexadecimal text. Stateless. */
#ifndef HEARTH_BASE_TEXT_HEX_H
#define HEARTH_BASE_TEXT_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a digit of either case; -1: it is none. */
static inline int hex_digit(char c)
{
	char low = (char)(c | 0x20);

	if (c >= '0' && c <= '9')
		return c - '0';
	return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* Writes @len bytes in lower case into @out (2 * len + 1 chars). */
void hex_encode(char *out, const uint8_t *data, size_t len);

/* Decodes the @len characters of @text, of either case, into @out: *@len_ret = @len / 2 bytes. False: it is no hex. */
bool hex_decode(const char *text, size_t len, uint8_t *out, size_t *len_ret);

#endif
