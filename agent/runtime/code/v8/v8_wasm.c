/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms of code as V8 9.4 to 14.6 wrote them (node 16 to 26, seen with gdb and objdump): a function, and a wrapper of a
 * function of JavaScript, begins at a multiple of 32 bytes with push %rbp; mov %rsp,%rbp; push $TYPE, the type of its frame.
 * Calls go through tables of jumps (src/wasm/jump-table-assembler.h): lines of 64 bytes with 12 jumps of 5 bytes and 4 of
 * int3; far jumps of 16 bytes; and, for what is not compiled yet, a push of the function's number with a jump behind it.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/runtime/code/v8/v8_wasm.h"

enum {
	BORDER = 32,
	PAGE = 4096,
	MOST_BYTES = 1 << 20, /* of one function */
	FIRST_BYTES = 6,
	LINE_BYTES = 64,
	JUMP_BYTES = 5,
	LINE_JUMPS = 12,
	FAR_BYTES = 16,
	FAR_CODE_BYTES = 8,
	JMP = 0xe9,
	PUSH = 0x68,
	INT3 = 0xcc,
	MOST_FUNCTIONS = 1000000, /* of a module: kV8MaxWasmFunctions */
};

/* A type is a Smi of 32 bits that are shifted by 1; there are some forty. */
static bool begins_function(const uint8_t *code)
{
	static const uint8_t first[] = { 0x55, 0x48, 0x89, 0xe5, 0x6a };

	uint8_t type = code[FIRST_BYTES - 1];

	return !memcmp(code, first, sizeof(first)) && type && !(type & 1) && type < 128;
}

/* --- jumps --- */

/* Is the line of 64 bytes one of a table, with a jump at @at in it? */
static bool is_jump(const uint8_t *line, uint32_t at)
{
	if (at >= LINE_JUMPS * JUMP_BYTES || line[at - at % JUMP_BYTES] != JMP)
		return false;
	for (uint32_t i = 0; i < LINE_BYTES; i += JUMP_BYTES)
		if (line[i] != INT3 && (line[i] != JMP || i >= LINE_JUMPS * JUMP_BYTES))
			return false;
	for (uint32_t i = LINE_JUMPS * JUMP_BYTES; i < LINE_BYTES; i++)
		if (line[i] != INT3)
			return false;
	return true;
}

static bool is_far_jump(const uint8_t *code)
{
	static const uint8_t jump[FAR_CODE_BYTES] = { 0xff, 0x25, 2, 0, 0, 0, 0x66, 0x90 }; /* to the address behind it */

	return !memcmp(code, jump, sizeof(jump));
}

/* Does @code push a function's number and jump? */
static bool is_late(const uint8_t *code)
{
	uint32_t number;

	memcpy(&number, code + 1, sizeof(number));
	return code[0] == PUSH && code[JUMP_BYTES] == JMP && number < MOST_FUNCTIONS;
}

/* The jump without a frame at @pc. -ENOENT: there is none. */
static int find_jump(struct code_memory *m, uint64_t pc, struct v8_wasm *ret)
{
	const uint64_t line = pc - pc % LINE_BYTES, far = pc - pc % FAR_BYTES;
	uint8_t code[LINE_BYTES];
	uint32_t at = (uint32_t)(pc - line);

	*ret = (struct v8_wasm){ 0 };
	if (code_read(m, line, code, sizeof(code)))
		return m->is_spent ? -EDQUOT : -ENOENT;
	if (is_jump(code, at)) {
		ret->start = pc - at % JUMP_BYTES;
		ret->end = ret->start + JUMP_BYTES;
		return 0;
	}
	if (pc - far < FAR_CODE_BYTES && is_far_jump(code + (far - line))) {
		ret->start = far;
		ret->end = far + FAR_CODE_BYTES;
		return 0;
	}
	for (uint64_t before = 0; before <= JUMP_BYTES; before += JUMP_BYTES) {
		uint8_t late[2 * JUMP_BYTES];

		if (code_read(m, pc - before, late, sizeof(late)) || !is_late(late))
			continue;
		ret->start = pc - before;
		ret->end = ret->start + sizeof(late);
		return 0;
	}
	return m->is_spent ? -EDQUOT : -ENOENT;
}

/* --- functions --- */

/* The last border from @low on, up to @pc, where a function begins; 0: none. */
static uint64_t last_start(struct code_memory *m, uint64_t low, uint64_t pc)
{
	uint64_t at = pc - pc % BORDER;

	while (at >= low) {
		uint64_t page = at - at % PAGE;
		uint8_t code[PAGE];

		if (code_read(m, page, code, sizeof(code)))
			return 0; /* the memory begins behind it */
		for (;; at -= BORDER) {
			if (begins_function(code + (at - page)))
				return at;
			if (at == page)
				break;
		}
		at -= BORDER;
	}
	return 0;
}

/* Is the line of BORDER bytes room that no code was put into yet? */
static bool is_free(const uint8_t *line)
{
	return (line[0] == 0 || line[0] == INT3) && !memcmp(line, line + 1, BORDER - 1);
}

/* The first border behind @start where another function begins, where there is room for one, or memory ends. */
static uint64_t end_of(struct code_memory *m, uint64_t start)
{
	uint64_t at = start + BORDER;

	while (at - start < MOST_BYTES) {
		uint64_t page = at - at % PAGE;
		uint8_t code[PAGE];

		if (code_read(m, page, code, sizeof(code)))
			return at;
		for (; at < page + PAGE; at += BORDER)
			if (begins_function(code + (at - page)) || is_free(code + (at - page)))
				return at;
	}
	return at;
}

int v8_wasm_find(struct code_memory *m, uint64_t pc, struct v8_wasm *ret)
{
	int error;

	if (pc < MOST_BYTES || pc > INT64_MAX)
		return -ENOENT;
	error = find_jump(m, pc, ret);
	if (error != -ENOENT)
		return error;
	ret->start = last_start(m, pc - MOST_BYTES, pc);
	if (ret->start) {
		ret->end = end_of(m, ret->start);
		ret->frame = code_read_u8(m, ret->start + FIRST_BYTES - 1) >> 1;
	}
	if (m->is_spent)
		return -EDQUOT;
	return ret->frame && pc < ret->end ? 0 : -ENOENT;
}
