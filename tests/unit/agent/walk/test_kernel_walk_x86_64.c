/* SPDX-License-Identifier: Apache-2.0 */
/* Where the kernel's walk (bpf/walk.bpf.h, on the host by tests/judge/kernel.c) finds its rows, and what it misses, over a
 * memory made up here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/samples/reorder.h"
#include "base/cleanup.h"
#include "bpf/deep.h"
#include "tests/judge/kernel.c"
#include "tests/unit/descriptors.h"

enum {
	PAGE = 4096,
	STACK = 0x200000,
	STACK_BYTES = 64 * PAGE,
	FILE_ID = 7,
	CODE = 0x45000000, /* of the mapping */
	BIAS = 0x44000000,
};

struct memory {
	uint64_t words[STACK_BYTES / 8];
	uint64_t unreadable; /* a page */
	uint32_t reads;
};

static struct memory m;

int memory_read(struct memory *memory, uint64_t addr, void *dst, size_t len_bytes)
{
	memory->reads++;
	if (len_bytes > STACK_BYTES || addr - STACK > STACK_BYTES - len_bytes)
		return -1;
	if (memory->unreadable && addr / PAGE <= memory->unreadable / PAGE &&
	    (addr + len_bytes - 1) / PAGE >= memory->unreadable / PAGE)
		return -1;
	memcpy(dst, (const uint8_t *)memory->words + (addr - STACK), len_bytes);
	return 0;
}

/* --- a walk --- */

static struct {
	uint64_t pcs[MAX_USER_FRAMES];
	uint32_t count, end;
} walked;

static void note(void *arg, const struct record *record)
{
	struct pending_sample s;

	(void)arg;
	if (record->kind == RECORD_STACK_CHUNK)
		return;
	assert_int_equal(record_parse(record, &s), 0);
	walked.count = s.user_cnt;
	walked.end = s.record->end;
	memcpy(walked.pcs, s.user, s.user_cnt * sizeof(*walked.pcs));
}

/* From @pc with a stack pointer at word @word. Returns how many entries of the caches were looked up. */
static uint32_t walk_of(uint32_t asid, uint64_t pc, uint32_t word, bool by_tail_calls)
{
	const struct kernel_thread thread = { .regs = { [REG_PC] = pc, [REG_SP] = STACK + 8 * word },
					      .fs_base = 8,
					      .area_end = STACK + STACK_BYTES,
					      .asid = asid,
					      .by_tail_calls = by_tail_calls };
	uint32_t before = held.lookups;

	memset(&walked, 0, sizeof(walked));
	held.cpu.chunk_tokens_ns = 0;
	kernel_sample(&m, &thread, false, note, NULL);
	return held.lookups - before;
}

static uint32_t walk(uint64_t pc)
{
	return walk_of(1, pc, 0, false);
}

static struct mapping_value *map_code(uint64_t start, uint64_t end, enum mapping_kind kind, uint16_t shift)
{
	struct mapping_value value = { .asid = 1,
				       .piece = start >> shift,
				       .start = start,
				       .end = end,
				       .bias = BIAS,
				       .file = FILE_ID,
				       .kind = (uint16_t)kind,
				       .shift = shift };

	sampler_set_mapping(NULL, &value);
	return map_get(&held.mappings, hash_mapping(1, shift, value.piece));
}

/* Rows of the block of @pc: a frame of 8 bytes from @row_start on, and before it an end of all walks. */
static struct unwind_block *add_block(uint64_t pc, uint16_t part, uint16_t end, uint32_t row_start)
{
	struct unwind_block block = { .file = FILE_ID,
				      .block = (uint32_t)((pc - BIAS) / CODE_BLOCK_BYTES),
				      .part = part,
				      .end = end,
				      .rows = { ROW(0, RULE_ROOT, 0, 0, 0), ROW(row_start, RULE_CFA, BASE_SP, 0, 8) },
				      .row_cnt = 2 };

	sampler_set_block(NULL, &block);
	return map_get(&held.blocks, hash_block(FILE_ID, block.block, part));
}

static void begin(void)
{
	kernel_reset();
	memset(&m, 0, sizeof(m));
	memset(&held.cpu, 0, sizeof(held.cpu));
}

/* --- tests --- */

/* A mapping covers its piece from its first to its last byte, in any of the three sizes. */
static void test_pieces(void **state)
{
	static const uint16_t shifts[] = { MAPPING_HUGE_SHIFT, MAPPING_BIG_SHIFT, MAPPING_PAGE_SHIFT };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(shifts); i++) {
		begin();
		map_code(CODE + 0x100, CODE + 0x900, MAPPING_FP, shifts[i]);
		walk(CODE + 0x100);
		assert_int_equal(walked.end, END_ROOT); /* no frame pointer */
		walk(CODE + 0x8ff);
		assert_int_equal(walked.end, END_ROOT);
		walk(CODE + 0xff);
		assert_int_equal(walked.end, END_MISS_MAPPING);
		walk(CODE + 0x900);
		assert_int_equal(walked.end, END_MISS_MAPPING);
		walk_of(2, CODE + 0x100, 0, false);
		assert_int_equal(walked.end, END_MISS_MAPPING); /* another address space's */
	}
	begin();
	map_code(CODE, CODE + PAGE, MAPPING_NOT_CODE, MAPPING_PAGE_SHIFT);
	walk(CODE);
	assert_int_equal(walked.end, END_NO_MAPPING);
}

/* Two mappings beside each other: a walk that comes from one to the other leaves it behind, upwards and down. */
static void test_neighbours(void **state)
{
	(void)state;
	begin();
	map_code(CODE + PAGE, CODE + 2 * PAGE, MAPPING_ROWS, MAPPING_PAGE_SHIFT);
	add_block(CODE + PAGE, 0, CODE_BLOCK_BYTES, 0);
	add_block(CODE, 0, CODE_BLOCK_BYTES, 0x400); /* of the same file, if it were mapped there */
	add_block(CODE + 2 * PAGE, 0, CODE_BLOCK_BYTES, 0x400);
	for (int above = 0; above < 2; above++) {
		map_code(CODE + (above ? 2 * PAGE : 0), CODE + (above ? 3 * PAGE : PAGE), MAPPING_NOT_CODE,
			 MAPPING_PAGE_SHIFT);
		m.words[0] = CODE + (above ? 2 * PAGE : 0) + 0x11;
		walk(CODE + PAGE);
		assert_int_equal(walked.count, 2);
		assert_int_equal(walked.end, END_NO_MAPPING);
	}
}

/* An entry that changes while it is read, or that is another's by now, is a miss, and counted. */
static void test_torn(void **state)
{
	struct mapping_value *mapping;
	struct unwind_block *block;

	(void)state;
	for (int i = 0; i < 9; i++) {
		begin();
		mapping = map_code(CODE, CODE + PAGE, MAPPING_ROWS, MAPPING_PAGE_SHIFT);
		block = add_block(CODE, 0, CODE_BLOCK_BYTES, 0x10);
		mapping->seq_head += i == 1;
		mapping->piece += i == 2;
		mapping->asid += i == 3;
		mapping->shift += i == 4;
		block->seq_head += i == 5;
		block->file += i == 6;
		block->block += i == 7;
		block->part += i == 8;
		walk(CODE);
		assert_int_equal(walked.end, !i ? END_ROOT : i < 5 ? END_MISS_MAPPING : END_MISS_BLOCK);
		assert_int_equal(held.cpu.counters[COUNTER_TORN], i > 0);
		assert_int_equal(held.cpu.counters[COUNTER_MISSES], i > 0);
	}
}

/* Code too dense for one block goes on in further parts, each from where the one before ends. */
static void test_parts(void **state)
{
	(void)state;
	begin();
	map_code(CODE, CODE + PAGE, MAPPING_ROWS, MAPPING_PAGE_SHIFT);
	walk(CODE);
	assert_int_equal(walked.end, END_MISS_BLOCK);
	add_block(CODE, 0, 0x100, 0x400); /* ends all walks */
	walk(CODE + 0xff);
	assert_int_equal(walked.end, END_ROOT);
	walk(CODE + 0x100);
	assert_int_equal(walked.end, END_MISS_BLOCK);
	add_block(CODE, 1, CODE_BLOCK_BYTES, 0x100);
	m.words[0] = CODE + 1;
	walk(CODE + 0x100);
	assert_int_equal(walked.count, 2);
	assert_int_equal(walked.end, END_ROOT);
	walk(CODE + 0x400); /* the next block */
	assert_int_equal(walked.end, END_MISS_BLOCK);
}

/* The frames of a walk: the leaf's address is exact, that of a caller is the one behind its call. */
static void test_frames(void **state)
{
	(void)state;
	for (int by_tail_calls = 0; by_tail_calls < 2; by_tail_calls++) {
		begin();
		map_code(CODE, CODE + PAGE, MAPPING_ROWS, MAPPING_PAGE_SHIFT);
		add_block(CODE, 0, CODE_BLOCK_BYTES, 0x100);
		m.words[0] = CODE + 0x101; /* behind a call at its first row's last byte would be 0x100: the second row's */
		m.words[1] = CODE + 0x100; /* the last of the first row called */
		walk_of(1, CODE + 0x100, 0, by_tail_calls);
		assert_int_equal(walked.count, 3);
		assert_int_equal(walked.end, END_ROOT);
		assert_int_equal(walked.pcs[0], (CODE + 0x100) | FRAME_EXACT);
		assert_int_equal(walked.pcs[1], CODE + 0x101);
		assert_int_equal(walked.pcs[2], CODE + 0x100);
	}
}

/* A signal's trampoline was called by nobody; whom it interrupted stands at an exact address as well. */
static void test_signal_frame(void **state)
{
	struct unwind_block *block;

	(void)state;
	begin();
	map_code(CODE, CODE + PAGE, MAPPING_ROWS, MAPPING_PAGE_SHIFT);
	add_block(CODE, 0, CODE_BLOCK_BYTES, 0);
	block = add_block(CODE + CODE_BLOCK_BYTES, 0, CODE_BLOCK_BYTES, 0x200);
	block->rows[0] = ROW(0, RULE_SIGNAL, 0, 0, 0);
	block->rows[1] = ROW(0x200, RULE_ROOT, 0, 0, 0);
	m.words[0] = CODE + CODE_BLOCK_BYTES + 4;
	m.words[1 + SIGNAL_PC / 8] = CODE + CODE_BLOCK_BYTES + 0x200;
	m.words[1 + SIGNAL_SP / 8] = STACK + 0x400;
	walk(CODE + 8);
	assert_int_equal(walked.count, 3);
	assert_int_equal(walked.end, END_ROOT);
	assert_int_equal(walked.pcs[1], (CODE + CODE_BLOCK_BYTES + 4) | FRAME_EXACT);
	assert_int_equal(walked.pcs[2], (CODE + CODE_BLOCK_BYTES + 0x200) | FRAME_EXACT);
}

/* Addresses that no program has: the page of vsyscalls, which is a frame, and others, which end a walk. */
static void test_high_addresses(void **state)
{
	(void)state;
	begin();
	walk(0xffffffffff600400);
	assert_int_equal(walked.end, END_ROOT);
	assert_int_equal(walked.count, 1);
	m.words[0] = 1ull << CPU_USER_BITS;
	walk(0xffffffffff600400);
	assert_int_equal(walked.end, END_NO_MAPPING);
	assert_int_equal(walked.count, 2);
	walk(0xffffffffff601000);
	assert_int_equal(walked.end, END_NO_MAPPING);
	walk((1ull << CPU_USER_BITS) - 1);
	assert_int_equal(walked.end, END_MISS_MAPPING);
}

/* A stack of @frames frames, the leaf with them, that return to @places places in turn. */
static void walk_deep(uint32_t frames, uint32_t places)
{
	begin();
	map_code(CODE, CODE + PAGE, MAPPING_ROWS, MAPPING_PAGE_SHIFT);
	add_block(CODE, 0, CODE_BLOCK_BYTES, 0);
	for (uint32_t i = 0; i + 1 < frames; i++)
		m.words[i] = CODE + 0x10 + i % places;
	walk(CODE);
}

/* As many frames as a sample has. */
static void test_depth(void **state)
{
	(void)state;
	for (uint32_t frames = MAX_USER_FRAMES - 1; frames <= MAX_USER_FRAMES + 1; frames++) {
		walk_deep(frames, 2);
		assert_int_equal(walked.count, frames < MAX_USER_FRAMES ? frames : MAX_USER_FRAMES);
		assert_int_equal(walked.end, frames <= MAX_USER_FRAMES ? END_ROOT : END_DEPTH);
		assert_int_equal(held.cpu.counters[COUNTER_FOLDED], 0);
	}
}

/* Deep recursion: frames that return to the same place are passed over, and the root is reached. */
static void test_deep_recursion(void **state)
{
	const uint64_t callers[] = { CODE + 0x20, CODE + 0x21, CODE + 0x20, CODE + 0x22, CODE + 0x22 };
	const uint32_t most = MAX_WALKED_FRAMES;

	(void)state;
	for (uint32_t frames = DEEP_FRAMES; frames <= FOLD_FRAMES; frames += FOLD_FRAMES - DEEP_FRAMES) {
		walk_deep(frames, 1);
		assert_int_equal(walked.count, frames);
		assert_int_equal(walked.end, END_ROOT);
		assert_int_equal(held.cpu.counters[COUNTER_FOLDED], 0);
	}
	for (uint32_t frames = FOLD_FRAMES + 1; frames <= most; frames *= 2) {
		walk_deep(frames, 1);
		assert_int_equal(walked.count, DEEP_FRAMES);
		assert_int_equal(walked.end, END_ROOT);
		assert_int_equal(held.cpu.counters[COUNTER_FOLDED], frames - DEEP_FRAMES);
	}
	walk_deep(most, 1);
	memcpy(&m.words[most - 8], callers, sizeof(callers));
	m.words[most - 3] = 0;
	walk(CODE);
	assert_int_equal(walked.end, END_ROOT);
	assert_int_equal(walked.count, DEEP_FRAMES + 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(walked.pcs[DEEP_FRAMES + i], callers[i]);
	assert_int_equal(walked.pcs[DEEP_FRAMES - 1], CODE + 0x10);
	walk_deep(most + 1, 1);
	assert_int_equal(walked.end, END_DEPTH);
	assert_int_equal(walked.count, DEEP_FRAMES);
}

/* The stack is read a page at a time; a word that lies across two pages is read by itself. Where not even the first can be
 * read, and the thread may be behind the system call that made it, user space is asked. */
static void test_window(void **state)
{
	uint8_t *bytes = (uint8_t *)m.words;
	const uint64_t next = CODE + 0x10;
	struct kernel_thread thread = { .regs = { [REG_PC] = CODE }, .fs_base = 8, .asid = 1 };

	(void)state;
	for (uint32_t at = PAGE - 16; at <= PAGE + 8; at++) {
		begin();
		map_code(CODE, CODE + PAGE, MAPPING_ROWS, MAPPING_PAGE_SHIFT);
		add_block(CODE, 0, CODE_BLOCK_BYTES, 0);
		memcpy(bytes + at, &next, 8);
		thread.regs[REG_SP] = STACK + at;
		kernel_sample(&m, &thread, false, note, NULL);
		assert_int_equal(walked.end, END_ROOT);
		assert_int_equal(walked.count, 2);
		m.unreadable = STACK + PAGE;
		for (uint64_t result = 0; result < 2; result++) {
			thread.regs[0] = result;
			kernel_sample(&m, &thread, false, note, NULL);
			assert_int_equal(walked.end, at + 16 <= PAGE		? END_ROOT
						     : at + 8 <= PAGE || result ? END_BAD_MEMORY
										: END_USER_RULE);
		}
	}
	begin();
	map_code(CODE, CODE + PAGE, MAPPING_ROWS, MAPPING_PAGE_SHIFT);
	add_block(CODE, 0, CODE_BLOCK_BYTES, 0);
	for (uint32_t i = 0; i < 100; i++)
		m.words[i] = next;
	walk(CODE);
	assert_int_equal(walked.count, 101);
	assert_int_equal(m.reads, 1);
}

/* The next walk finds its rows where the last one left them: none is looked up again, nor by one that is a little different.
 * Another address space's are not its own, and a rule that user space evaluates is asked for each time. */
static void test_memory_of_rows(void **state)
{
	struct unwind_block *block;

	(void)state;
	for (int by_tail_calls = 0; by_tail_calls < 2; by_tail_calls++) {
		begin();
		map_code(CODE, CODE + PAGE, MAPPING_ROWS, MAPPING_PAGE_SHIFT);
		add_block(CODE, 0, CODE_BLOCK_BYTES, 0);
		for (uint32_t i = 0; i < 20; i++)
			m.words[i] = CODE + 0x10 + i;
		assert_true(walk_of(1, CODE, 0, by_tail_calls) > 20);
		assert_int_equal(walked.count, 21);
		assert_int_equal(walk_of(1, CODE, 0, by_tail_calls), 0);
		assert_int_equal(walked.count, 21);
		assert_int_equal(walked.end, END_ROOT);
		assert_int_equal(walk_of(1, CODE, 5, by_tail_calls), 0);
		assert_int_equal(walked.count, 16);
		walk_of(2, CODE, 0, by_tail_calls);
		assert_int_equal(walked.end, END_MISS_MAPPING);
	}
	memset(held.first_level, 0, sizeof(held.first_level)); /* the memo alone */
	walk(CODE);
	memset(held.first_level, 0, sizeof(held.first_level));
	assert_int_equal(walk(CODE), 0);
	memset(held.first_level, 0, sizeof(held.first_level));
	assert_int_equal(walk(CODE), 0); /* the other half */
	memset(held.first_level, 0, sizeof(held.first_level));
	assert_true(walk_of(1, CODE, 5, false) < 16); /* frames that only the last walk had are passed by */
	assert_int_equal(walked.count, 16);
	begin();
	map_code(CODE, CODE + PAGE, MAPPING_ROWS, MAPPING_PAGE_SHIFT);
	block = add_block(CODE, 0, CODE_BLOCK_BYTES, 0);
	block->rows[1] = ROW(0, RULE_USER, 0, 0, 0);
	walk(CODE);
	assert_int_equal(walked.end, END_USER_RULE);
	block->rows[1] = ROW(0, RULE_ROOT, 0, 0, 0); /* user space learned better */
	walk(CODE);
	assert_int_equal(walked.end, END_ROOT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),	       cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_torn),	       cmocka_unit_test(test_parts),
		cmocka_unit_test(test_frames),	       cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_high_addresses), cmocka_unit_test(test_depth),
		cmocka_unit_test(test_deep_recursion), cmocka_unit_test(test_window),
		cmocka_unit_test(test_memory_of_rows),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
