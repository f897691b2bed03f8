/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/probe/code_check.h"
#include "agent/rows/code/insn_x86_64.h"

bool code_begins_at(const uint8_t *file, size_t len_bytes, uint64_t from, uint64_t at)
{
	while (from < at && at < len_bytes) {
		uint32_t bytes = insn_bytes(file + from, len_bytes - from);

		if (!bytes)
			return false;
		from += bytes;
	}
	return from == at;
}

static bool is(const uint8_t *code, size_t len_bytes, size_t at, const char *bytes, size_t count)
{
	return at + count <= len_bytes && !memcmp(code + at, bytes, count);
}

/* cmd/internal/obj/x86/obj6.go, stacksplit: cmp 16(r14), rsp, or lea and cmp with r12 where the frame is large; then jbe. */
size_t code_go_check_bytes(const uint8_t *code, size_t len_bytes)
{
	size_t at = 0;

	if (is(code, len_bytes, 0, "\x49\x3b\x66\x10", 4))
		at = 4;
	else if (is(code, len_bytes, 0, "\x4c\x8d\x64\x24", 4) && is(code, len_bytes, 5, "\x4d\x3b\x66\x10", 4))
		at = 9;
	else if (is(code, len_bytes, 0, "\x4c\x8d\xa4\x24", 4) && is(code, len_bytes, 8, "\x4d\x3b\x66\x10", 4))
		at = 12;
	if (at && is(code, len_bytes, at, "\x76", 1))
		return at + 2;
	return at && is(code, len_bytes, at, "\x0f\x86", 2) ? at + 6 : 0;
}

bool code_is_jump(const uint8_t *code, size_t len_bytes)
{
	size_t at = is(code, len_bytes, 0, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0; /* endbr64 */

	return is(code, len_bytes, at, "\xe9", 1) || is(code, len_bytes, at, "\xeb", 1);
}
