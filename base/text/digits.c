/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal text of more than eight digits: the last eight behind all the others. */
#include "base/text/digits.h"

char *digits_long(char *at, uint64_t v)
{
	uint64_t text = htole64(digits_word((uint32_t)(v % DIGITS_WORD_END)) | DIGITS_ZEROS);

	at = digits_u64(at, v / DIGITS_WORD_END);
	memcpy(at, &text, sizeof(text));
	return at + sizeof(text);
}
