/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/probe/code_check.h"

bool code_begins_at(const uint8_t *file, size_t len_bytes, uint64_t from, uint64_t at)
{
	(void)file;
	return from <= at && at < len_bytes && at % 4 == 0;
}

size_t code_go_check_bytes(const uint8_t *code, size_t len_bytes)
{
	(void)code, (void)len_bytes;
	return 0;
}

/* Arm ARM, C6.2: B, BTI. */
bool code_is_jump(const uint8_t *code, size_t len_bytes)
{
	enum { BTI_C = 0xd503245f };
	uint32_t words[2] = { 0 };

	memcpy(words, code, len_bytes < sizeof(words) ? len_bytes : sizeof(words));
	return words[words[0] == BTI_C] >> 26 == 5;
}
