/* SPDX-License-Identifier: Apache-2.0 */
/* Samples with frames in the code of made_code.h: two pieces of it, f and g, and one without a name. */
#ifndef HEARTH_TESTS_MADE_FRAMES_H
#define HEARTH_TESTS_MADE_FRAMES_H

#include "agent/samples/reorder.h"
#include "tests/unit/agent/code/made_code.h"

enum { WORD = 0x7000, OTHER_WORD = 0x8000, FRAMES = 8 };

static struct file *file;
static uint64_t frames[FRAMES];
static enum walk_end walk_end;
static const uint64_t *captures;
static uint32_t capture_cnt;

static struct made_block block_of(uint64_t start, uint64_t end, uint64_t token, const char *name)
{
	return (struct made_block){
		.start = CODE_AT + start, .end = CODE_AT + end, .token = token, .value = 5, .name = name
	};
}

static int begin(void **state)
{
	made_begin(state);
	made.ranges.captures[0] = (struct code_capture){ .count = 2 };
	made.ranges.captures[2] = (struct code_capture){ .count = 3 };
	assert_true(code_spaces_meet(spaces, &process));
	file = address_space_find(process.as, CODE_AT)->file;
	made.words[0].addr = WORD;
	made.words[1].addr = OTHER_WORD;
	made.words[0].value = made.words[1].value = 5;
	made.blocks[0] = block_of(0x100, 0x200, WORD, "f");
	made.blocks[1] = block_of(0x200, 0x300, OTHER_WORD, "g");
	made.blocks[2] = block_of(0x300, 0x400, OTHER_WORD, NULL);
	captures = NULL;
	capture_cnt = 0;
	return 0;
}

/* Reads the piece at @va, as a walk does. */
static const struct code_piece *meet(uint64_t va)
{
	struct code_piece_range piece;
	struct row row;

	(void)code_row(spaces, &process, file, va, made.now_ns, &row, &piece);
	assert_non_null(code_piece_find(code_range_of(file), va));
	return code_piece_find(code_range_of(file), va);
}

/* Frames of a sample of @time_ns that the kernel walked, or did not. */
static uint32_t name(const uint64_t *user, uint32_t count, uint64_t time_ns, bool is_kernels)
{
	static const struct sample_regs regs;
	const struct sample_record record = { .hdr = { .time_ns = time_ns } };
	const struct pending_sample s = { .record = &record, .regs = is_kernels ? NULL : &regs };

	assert_true(count <= FRAMES);
	walk_end = END_ROOT;
	memset(frames, 0xee, sizeof(frames));
	return code_frames(spaces, &process, &s, user, count, captures, capture_cnt, frames, &walk_end);
}

static uint64_t frame_of(uint64_t va, uint32_t place)
{
	return FRAME_OF_SCRIPT(code_piece_find(code_range_of(file), va)->thing.names->id, place);
}

#endif
