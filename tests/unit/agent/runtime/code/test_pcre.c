/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of PCRE2's code: chunks, blocks and their tokens, rows by an instruction's place, names, and memory that lies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "bpf/event.h"
#include "tests/unit/agent/runtime/code/fake_pcre.h"
#include "tests/unit/agent/runtime/code/reader_dump.h"

#define FIRST  FAKE_BASE + FAKE_FIRST + FAKE_HEAD
#define SECOND FAKE_BASE + FAKE_SECOND + FAKE_HEAD
#define THIRD  FAKE_BASE + FAKE_THIRD + FAKE_HEAD

static struct fake fake;
static _Alignas(16) uint8_t reader[CODE_STATE_BYTES];

static struct code_memory memory_of(void)
{
	return (struct code_memory){ .read = fake_read,
				     .arg = &fake,
				     .reads_left = CODE_MAX_READS,
				     .bytes_left = CODE_MAX_BYTES,
				     .end_ns = UINT64_MAX };
}

/* Ranges out of the pieces of memory [@start, @end) and [@end, the end of all). */
static int ranges_of(uint64_t start, uint64_t end, struct code_range ranges[static CODE_RANGES])
{
	struct code_memory m = memory_of();

	ranges[0] = (struct code_range){ FAKE_BASE + start, FAKE_BASE + end };
	ranges[1] = (struct code_range){ FAKE_BASE + end, FAKE_BASE + FAKE_BYTES };
	return code_pcre.ranges(reader, &m, 2, ranges);
}

static int begin(void **state)
{
	struct code_range ranges[CODE_RANGES];
	struct code_memory m = memory_of();

	(void)state;
	fake_make(&fake);
	memset(reader, 0, sizeof(reader));
	assert_int_equal(code_pcre.open(reader, &m, &fake.facts, 0), 0);
	assert_int_equal(ranges_of(0, FAKE_BYTES, ranges), 1);
	assert_true(ranges[0].start == FAKE_BASE && ranges[0].end == FAKE_BASE + FAKE_BYTES);
	return 0;
}

static int block_at(uint64_t pc, struct code_block *b)
{
	struct code_memory m = memory_of();

	return code_pcre.block(reader, &m, pc, b);
}

/* --- chunks --- */

static void memory_with_chunks_is_known_by_its_heads(void **state)
{
	struct code_range ranges[CODE_RANGES];
	struct code_block b;

	(void)state;
	assert_int_equal(ranges_of(0, FAKE_CHUNK, ranges), 2);
	assert_int_equal(ranges_of(FAKE_HEAD, FAKE_CHUNK, ranges), 1); /* no chunk begins at the first */
	assert_true(ranges[0].start == FAKE_BASE + FAKE_SECOND);
	assert_int_equal(ranges_of((uint64_t)-0x3000, FAKE_CHUNK, ranges), 2); /* behind memory of another kind, and a gap */
	assert_int_equal(block_at(FIRST, &b), 0);
	assert_true(b.start == FIRST);
	fake_head(&fake, FAKE_SECOND, FAKE_BLOCK + 4, 0); /* no size of sljit's */
	assert_int_equal(ranges_of(FAKE_HEAD, FAKE_CHUNK, ranges), 0);
	fake_head(&fake, FAKE_SECOND, FAKE_CHUNK + 8, 0); /* beyond the memory */
	assert_int_equal(ranges_of(FAKE_HEAD, FAKE_CHUNK, ranges), 0);
}

static void blocks_are_found_by_their_heads(void **state)
{
	static const struct {
		uint64_t pc, start;
		int error;
	} cases[] = {
		{ FIRST, FIRST, 0 },
		{ FAKE_BASE + FAKE_FIRST + FAKE_BLOCK - 1, FIRST, 0 },
		{ FAKE_BASE + FAKE_FIRST + FAKE_BLOCK, 0, -ENOENT }, /* free */
		{ FAKE_BASE + FAKE_FIRST, 0, -ENOENT },		     /* a head */
		{ FAKE_BASE + 0x100, 0, -ENOENT },		     /* free */
		{ FAKE_BASE + FAKE_CHUNK - 1, 0, -ENOENT },	     /* the end's head */
		{ SECOND + 5, SECOND, 0 },
		{ THIRD, THIRD, 0 },
		{ FAKE_BASE + FAKE_BYTES - FAKE_HEAD - 1, THIRD, 0 },
		{ FAKE_BASE - 1, 0, -ENOENT },
		{ FAKE_BASE + FAKE_BYTES, 0, -ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct code_block b;

		assert_int_equal(block_at(cases[i].pc, &b), cases[i].error);
		if (cases[i].error)
			continue;
		assert_true(b.start == cases[i].start && b.end > cases[i].pc);
		assert_true(tokens_hold(memory_of(), &b));
	}
}

static void tokens_tell_that_a_block_went(void **state)
{
	struct code_block b;

	(void)state;
	assert_int_equal(block_at(SECOND, &b), 0);
	fake_free(&fake, FAKE_SECOND, FAKE_BLOCK, 0);
	assert_false(tokens_hold(memory_of(), &b));
	fake_make(&fake);
	fake_put(&fake, SECOND + 14, 0x90, 1); /* another one with a larger frame in its place */
	assert_false(tokens_hold(memory_of(), &b));
	fake_make(&fake);
	assert_true(tokens_hold(memory_of(), &b));
}

static void blocks_of_broken_chains_are_none(void **state)
{
	struct code_block b;

	(void)state;
	fake_head(&fake, FAKE_THIRD, 0x1000, FAKE_BLOCK + 8); /* another one should be before it */
	assert_int_equal(block_at(THIRD, &b), -ENOENT);
	assert_int_equal(block_at(SECOND, &b), 0);
	fake_make(&fake);
	fake_head(&fake, FAKE_THIRD, FAKE_CHUNK, FAKE_BLOCK); /* it would reach beyond the memory */
	assert_int_equal(block_at(THIRD, &b), -EBADMSG);
	fake_make(&fake);
	fake_head(&fake, FAKE_CHUNK - FAKE_HEAD, 2, 0); /* no end, so that no chunk begins behind it */
	assert_int_equal(block_at(SECOND, &b), -ENOENT);
	assert_int_equal(block_at(FIRST, &b), 0);
}

/* --- rows --- */

static void rows_are_told_by_instructions(void **state)
{
	enum { PUSHED = 40 };
	static const struct {
		uint32_t at;
		int32_t cfa; /* above rsp */
	} cases[] = {
		{ 0, 8 },
		{ IN_PUSHES, 8 + 16 },
		{ IN_FRAME - 1, 8 + PUSHED },
		{ IN_FRAME, 8 + PUSHED + FAKE_FRAME },
		{ IN_CALL, 8 + PUSHED + FAKE_FRAME },
		{ IN_CALL + 4, 8 + PUSHED + FAKE_FRAME },
		{ IN_END, 8 + PUSHED + FAKE_FRAME },
		{ IN_POPS, 8 + PUSHED },
		{ IN_RETURN, 8 },
		{ IN_CALLED, 16 + PUSHED + FAKE_FRAME },
		{ IN_CALLED_NEXT, 8 + PUSHED + FAKE_FRAME },
		{ IN_CALLED_RET, 16 + PUSHED + FAKE_FRAME },
		{ IN_OTHER, 16 + PUSHED + FAKE_FRAME },
		{ IN_OTHER_NEXT, 8 + PUSHED + FAKE_FRAME },
		{ IN_BEHIND, 8 + PUSHED + FAKE_FRAME },
		{ IN_CODE_END - 1, 8 + PUSHED + FAKE_FRAME },
	};
	struct code_memory m = memory_of();
	struct code_block b;
	struct row *rows;
	size_t count;

	(void)state;
	assert_int_equal(block_at(SECOND, &b), 0);
	assert_int_equal(code_pcre.rows(reader, &m, &b, &rows, &count), 0);
	assert_true(rows[0].start == SECOND && rows[count - 1].end == SECOND + IN_CODE_END);
	for (size_t i = 0, k = 0; i < ARRAY_LEN(cases); i++) {
		while (k + 1 < count && rows[k + 1].start <= SECOND + cases[i].at)
			k++;
		assert_int_equal(rows[k].cfa, ROW_CFA_REG);
		assert_int_equal(rows[k].cfa_reg, REG_SP);
		if (rows[k].cfa_off != cases[i].cfa)
			fail_msg("at %u: %d", cases[i].at, rows[k].cfa_off);
		assert_int_equal(rows[k].saved[SAVED_RA], -8);
		if (cases[i].at >= IN_FRAME && cases[i].at <= IN_END) {
			assert_int_equal(rows[k].saved[SAVED_RBX], -16);
			assert_int_equal(rows[k].saved[SAVED_R15], -24);
			assert_int_equal(rows[k].saved[SAVED_FP], -48);
		}
	}
	free(rows);
}

static void code_of_another_form_has_no_rows(void **state)
{
	static const uint8_t others[][24] = {
		{ 0xc3 },				   /* ret */
		{ 0x06 },				   /* no instruction */
		{ 0x48, 0x81, 0xec, FAKE_FRAME, 0, 0, 0 }, /* a frame, but nothing was saved */
		{ 0x53, 0xe8, 0, 0, 0, 0 },		   /* a call before there is a frame */
		{ 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
		  0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		struct code_memory m = memory_of();
		struct code_block b;
		struct row *rows;
		size_t count;

		memcpy(fake_at(&fake, SECOND), others[i], sizeof(others[i]));
		assert_int_equal(block_at(SECOND, &b), 0);
		assert_int_equal(code_pcre.rows(reader, &m, &b, &rows, &count), -EBADMSG);
		assert_null(rows);
	}
}

/* --- all --- */

static void the_reader_is_as_written(void **state)
{
	static struct dumped what;

	(void)state;
	fake_make(&fake);
	what = (struct dumped){ .reader = &code_pcre,
				.facts = &fake.facts,
				.from = FAKE_BASE,
				.to = FAKE_BASE + FAKE_BYTES,
				.memory = { FAKE_BASE, FAKE_BASE + FAKE_BYTES },
				.read = fake_read,
				.arg = &fake };
	reader_is_as_written(&what, "code_pcre.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(memory_with_chunks_is_known_by_its_heads, begin),
		cmocka_unit_test_setup(blocks_are_found_by_their_heads, begin),
		cmocka_unit_test_setup(tokens_tell_that_a_block_went, begin),
		cmocka_unit_test_setup(blocks_of_broken_chains_are_none, begin),
		cmocka_unit_test_setup(rows_are_told_by_instructions, begin),
		cmocka_unit_test_setup(code_of_another_form_has_no_rows, begin),
		cmocka_unit_test(the_reader_is_as_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
