/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 keeps the lengths of its bytecodes, with their operands, as a row of bytes for each of three scales. The first
 * bytecodes are the same in V8 9.4 to 14.6: those that give the next one wider operands, and those that debuggers put into
 * code, which have lengths of all kinds. An operand that grows with the scale has 1, 2, 4 bytes, another one always as many:
 * so the third row is as far from the second as twice the second from the first, for every bytecode. Files have copies of
 * the table.
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/runtime/file/v8_bytecodes.h"
#include "agent/runtime/file/v8_layout.h"
#include "symbols/elf_image.h"

enum { FEWEST = 128, LONGEST = 32, FIRST = 11, MAX_TABLES = 64 };

static const uint8_t first_rows[V8_SCALES][FIRST] = { { 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 6 },
						      { 1, 1, 1, 1, 1, 3, 5, 7, 9, 7, 9 },
						      { 1, 1, 1, 1, 1, 5, 9, 13, 17, 11, 15 } };

/* Are the rows of @count bytes each at @p such lengths? */
static bool are_lengths(const uint8_t *p, uint32_t count)
{
	for (uint32_t i = 0; i < V8_SCALES; i++)
		if (memcmp(p + (size_t)i * count, first_rows[i], FIRST) != 0)
			return false;
	for (uint32_t i = 0; i < count; i++) {
		const int one = p[i], two = p[count + i], four = p[2 * (size_t)count + i];

		if (!one || one > LONGEST || two < one || four - two != 2 * (two - one))
			return false;
	}
	return true;
}

/* How many bytecodes the table at @p, in front of @len bytes, has; 0: it is none. */
static uint32_t count_of(const uint8_t *p, size_t len)
{
	for (uint32_t count = FEWEST; count <= V8_MAX_BYTECODES && (size_t)count * V8_SCALES <= len; count++)
		if (are_lengths(p, count))
			return count;
	return 0;
}

bool v8_bytecodes_find(const struct elf_image *im, struct v8_layout *l)
{
	const uint8_t *found = NULL;
	uint32_t found_cnt = 0, tables = 0;
	uint64_t addr = 0;
	Elf64_Phdr ph;

	for (uint32_t i = 0; elf_image_header(im, i, &ph); i++) {
		const uint8_t *data = ph.p_type == PT_LOAD ? elf_image_loaded(im, ph.p_vaddr, ph.p_filesz) : NULL;
		const uint8_t *end = data ? data + ph.p_filesz : NULL, *at = data;

		for (; at < end && (at = memmem(at, (size_t)(end - at), first_rows[0], FIRST)); at++) {
			uint32_t count = ++tables < MAX_TABLES ? count_of(at, (size_t)(end - at)) : 0;

			if (!count)
				continue;
			if (found && (count != found_cnt || memcmp(at, found, (size_t)count * V8_SCALES) != 0))
				return false;
			if (found)
				continue;
			found = at;
			found_cnt = count;
			addr = ph.p_vaddr + (uint64_t)(at - data);
		}
	}
	if (!found)
		return false;
	l->bytecode_lengths = addr;
	l->bytecode_cnt = found_cnt;
	return true;
}
