/* SPDX-License-Identifier: Apache-2.0 */
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
