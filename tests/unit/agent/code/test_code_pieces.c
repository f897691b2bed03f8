/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of generated code: their rows with the gaps between them, what is read again, and what is taken out when one goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/agent/code/made_code.h"

enum { WORD = 0x7000 };

static struct row row_of(uint64_t start, uint64_t end, int32_t cfa_off)
{
	return (struct row){ .start = CODE_AT + start, .end = CODE_AT + end, .cfa = ROW_CFA_REG, .cfa_off = cfa_off };
}

static struct made_block block_of(uint64_t start, uint64_t end)
{
	return (struct made_block){ .start = CODE_AT + start, .end = CODE_AT + end, .token = WORD, .value = 5 };
}

static struct file *file;

static int begin(void **state)
{
	made_begin(state);
	assert_true(code_spaces_meet(spaces, &process));
	file = address_space_find(process.as, CODE_AT)->file;
	made.words[0].addr = WORD;
	made.words[0].value = 5;
	made.blocks[0] = block_of(0x100, 0x200);
	made.blocks[0].row_cnt = 3;
	made.blocks[0].rows[0] = row_of(0x110, 0x120, 8);
	made.blocks[0].rows[1] = row_of(0x120, 0x130, 8); /* the same rule */
	made.blocks[0].rows[2] = row_of(0x140, 0x180, 16);
	made.blocks[1] = block_of(0x200, 0x900);
	made.blocks[1].row_cnt = 1;
	made.blocks[1].rows[0] = row_of(0x200, 0x900, 24);
	return 0;
}

/* The row at @va: 0 with what it says, 1 or -ENOENT. */
static int row_at(uint64_t va, uint64_t start, uint64_t end, int32_t cfa_off)
{
	struct code_piece_range piece;
	struct row row = { 0 };
	int result = code_row(spaces, &process, file, va, made.now_ns, &row, &piece);

	if (result == 0) {
		assert_int_equal(row.start, start);
		assert_int_equal(row.end, end);
		assert_int_equal(row.cfa, ROW_CFA_REG);
		assert_int_equal(row.cfa_off, cfa_off);
		assert_false(row.is_signal_frame || row.is_guess || row.is_followed || row.is_behind_syscall || row.is_end);
		assert_int_equal(row.wrong_cnt, 0);
	}
	if (result >= 0)
		assert_true(piece.start <= va && va < piece.end);
	return result;
}

static void rows_are_those_of_the_piece(void **state)
{
	struct code_piece_range piece;
	struct row row;

	(void)state;
	assert_int_equal(code_row(spaces, &process, file, 0x115, made.now_ns, &row, &piece), 0);
	assert_true(piece.is_new && piece.start == 0x100 && piece.end == 0x200);
	assert_int_equal(made.request.addr, CODE_AT + 0x115);
	assert_int_equal(code_row(spaces, &process, file, 0x115, made.now_ns, &row, &piece), 0);
	assert_false(piece.is_new);
	assert_int_equal(row_at(0x110, 0x110, 0x130, 8), 0);
	assert_int_equal(row_at(0x12f, 0x110, 0x130, 8), 0);
	assert_int_equal(row_at(0x140, 0x140, 0x180, 16), 0);
	assert_int_equal(row_at(0x17f, 0x140, 0x180, 16), 0);
	assert_int_equal(row_at(0x10f, 0, 0, 0), 1); /* no rule: before, between, behind */
	assert_int_equal(row_at(0x100, 0, 0, 0), 1);
	assert_int_equal(row_at(0x130, 0, 0, 0), 1);
	assert_int_equal(row_at(0x13f, 0, 0, 0), 1);
	assert_int_equal(row_at(0x180, 0, 0, 0), 1);
	assert_int_equal(row_at(0x1ff, 0, 0, 0), 1);
	assert_int_equal(made.calls[CODE_OP_BLOCK], 1);
	assert_int_equal(row_at(0x200, 0x200, 0x900, 24), 0);
	assert_int_equal(row_at(0x8ff, 0x200, 0x900, 24), 0);
	assert_int_equal(made.calls[CODE_OP_BLOCK], 2);
	assert_int_equal(row_at(0x900, 0, 0, 0), -ENOENT);
	assert_int_equal(row_at(0xff, 0, 0, 0), -ENOENT);
	assert_int_equal(metric_of("hearth_code_pieces_read_total"), 2);
	assert_int_equal(metric_of("hearth_code_refused_total"), 2);
	assert_int_equal(spaces->piece_cnt, 2);
	assert_int_equal(code_of_process()->ranges[0]->pieces[0]->row_cnt, 5);
}

/* A row that is as long as the piece, none at all, and captures by the kernel's numbers. */
static void rows_may_fill_a_piece_or_be_none(void **state)
{
	struct code_piece_range piece;
	struct row row;

	(void)state;
	code_of_process()->classes[1] = 9;
	made.blocks[1].rows[0].capture = 2;
	assert_int_equal(code_row(spaces, &process, file, 0x300, made.now_ns, &row, &piece), 0);
	assert_int_equal(row.capture, 9);
	assert_int_equal(code_of_process()->ranges[0]->pieces[0]->row_cnt, 1);
	made.blocks[2] = block_of(0x1000, 0x1100);
	assert_int_equal(row_at(0x1080, 0, 0, 0), 1);
	assert_int_equal(code_of_process()->ranges[0]->pieces[1]->row_cnt, 1);
	assert_int_equal(code_row(spaces, &process, file, 0x300, made.now_ns, &row, &piece), 0);
	assert_int_equal(row.cfa_off, 24);
}

static void pieces_lie_inside_of_their_range(void **state)
{
	(void)state;
	made.blocks[0] = block_of(0, 0x10); /* the first bytes, and the last */
	made.blocks[1] = block_of(CODE_BYTES - 0x10, CODE_BYTES);
	assert_int_equal(row_at(0, 0, 0, 0), 1);
	assert_int_equal(row_at(CODE_BYTES - 1, 0, 0, 0), 1);
	made.blocks[2] = block_of(0x20, 0x30);
	made.blocks[2].start = CODE_AT - 1;
	made.blocks[3] = block_of(0x40, CODE_BYTES + 1);
	assert_int_equal(row_at(0x20, 0, 0, 0), -ENOENT);
	assert_int_equal(row_at(0x50, 0, 0, 0), -ENOENT);
	assert_int_equal(spaces->piece_cnt, 2);
	assert_int_equal(metric_of("hearth_code_pieces_read_total"), 2);
	assert_int_equal(metric_of("hearth_code_refused_total"), 0);
}

static void blocks_have_all_rows_that_touch_them(void **state)
{
	static const struct {
		uint64_t start, end;
		uint8_t cfa;
	} wanted[] = {
		{ 0, 0x100, ROW_CFA_UNASKED },	{ 0x100, 0x110, ROW_CFA_NONE }, { 0x110, 0x130, ROW_CFA_REG },
		{ 0x130, 0x140, ROW_CFA_NONE }, { 0x140, 0x180, ROW_CFA_REG },	{ 0x180, 0x200, ROW_CFA_NONE },
		{ 0x200, 0x900, ROW_CFA_REG },
	};
	struct row rows[CODE_BLOCK_BYTES];

	(void)state;
	assert_int_equal(code_block_rows(spaces, file, 0x123, rows), 1);
	assert_true(rows[0].start == 0 && rows[0].end == CODE_BLOCK_BYTES && rows[0].cfa == ROW_CFA_UNASKED);
	assert_int_equal(row_at(0x115, 0x110, 0x130, 8), 0);
	assert_int_equal(row_at(0x300, 0x200, 0x900, 24), 0);
	assert_int_equal(code_block_rows(spaces, file, CODE_BLOCK_BYTES - 1, rows), ARRAY_LEN(wanted));
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		assert_int_equal(rows[i].start, wanted[i].start);
		assert_int_equal(rows[i].end, wanted[i].end);
		assert_int_equal(rows[i].cfa, wanted[i].cfa);
	}
	assert_int_equal(code_block_rows(spaces, file, CODE_BLOCK_BYTES, rows), 1); /* in the midst of it */
	assert_true(rows[0].start == 0x200 && rows[0].end == 0x900 && rows[0].cfa_off == 24);
	assert_int_equal(code_block_rows(spaces, file, 2 * CODE_BLOCK_BYTES, rows), 2);
	assert_true(rows[1].start == 0x900 && rows[1].end == 3 * CODE_BLOCK_BYTES && rows[1].cfa == ROW_CFA_UNASKED);
	assert_int_equal(code_block_rows(spaces, file, 3 * CODE_BLOCK_BYTES, rows), 1);
	assert_int_equal(rows[0].cfa, ROW_CFA_UNASKED);
}

/* --- death --- */

/* What a sample of @time_ns had at @va, as far as the piece that is there now tells. */
static enum code_then then_at(uint64_t va, uint64_t time_ns)
{
	const struct code_range_state *range = code_range_of(file);

	return code_piece_then(range, code_piece_find(range, va), va, time_ns);
}

static void pieces_that_have_gone_leave_all_caches(void **state)
{
	struct code_piece_range piece;
	struct row row;
	uint32_t asid;

	(void)state;
	process.is_known = true;
	assert_int_equal(row_at(0x115, 0x110, 0x130, 8), 0);
	made.blocks[1].token = 0; /* stays as it is */
	assert_int_equal(row_at(0x300, 0x200, 0x900, 24), 0);
	asid = process.as->asid;
	code_settle(&process);
	assert_int_equal(process.as->asid, asid);
	assert_int_equal(row_at(0x115, 0x110, 0x130, 8), 0);
	assert_int_equal(row_at(0x300, 0x200, 0x900, 24), 0);
	assert_int_equal(code_of_process()->watched_cnt, 2);
	made.words[0].value = 6; /* another is in its place */
	made.blocks[0].value = 6;
	made.blocks[0].rows[0] = row_of(0x110, 0x120, 48);
	made.now_ns += 1000;
	assert_int_equal(code_row(spaces, &process, file, 0x118, made.now_ns, &row, &piece), 0);
	assert_true(piece.is_new && row.cfa_off == 48);
	assert_int_equal(metric_of("hearth_code_pieces_gone_total"), 1);
	assert_int_equal(metric_of("hearth_code_checks_total"), 1);
	assert_int_equal(code_of_process()->watched_cnt, 1);
	assert_int_not_equal(process.as->asid, asid);
	assert_int_equal(made.published_cnt, 2);
	assert_int_equal(made.dropped_cnt, 1);
	assert_int_equal(made.dropped[0].file, file->id);
	assert_int_equal(made.dropped[0].block, 0);
	assert_int_equal(spaces->piece_cnt, 2 + 1); /* the one that went is kept for a while */
	assert_int_equal(then_at(0x118, made.now_ns), CODE_ITSELF);
	assert_int_equal(then_at(0x118, made.now_ns - 1), CODE_ANOTHER);
	assert_int_equal(then_at(0x300, made.now_ns - 1), CODE_ITSELF);
	assert_int_equal(row_at(0x300, 0x200, 0x900, 24), 0);
	assert_int_equal(made.calls[CODE_OP_BLOCK], 3);
}

/* A block of stubs is known up to an address that was asked for, and found longer later: at the addresses that it had before
 * it is what it was. */
static void a_piece_that_has_grown_is_what_it_was(void **state)
{
	const uint64_t first_ns = made.now_ns;

	(void)state;
	made.blocks[1].start = made.blocks[1].end; /* room */
	assert_int_equal(row_at(0x115, 0x110, 0x130, 8), 0);
	made.now_ns += 1000;
	made.blocks[0].end += 0x40;
	made.blocks[0].rows[1] = row_of(0x120, 0x130, 32); /* not all of it */
	assert_int_equal(row_at(made.blocks[0].end - CODE_AT - 8, 0, 0, 0), 1);
	assert_int_equal(then_at(0x118, made.now_ns), CODE_ITSELF);
	assert_int_equal(then_at(0x118, first_ns), CODE_ITS_LIKE);
	assert_int_equal(then_at(0x12c, first_ns), CODE_ANOTHER);
	assert_int_equal(then_at(made.blocks[0].end - CODE_AT - 8, first_ns), CODE_UNSEEN);
	assert_int_equal(then_at(0x118, first_ns - 1), CODE_UNSEEN);
}

/* A piece that overlaps others shows that these have gone. */
static void a_piece_takes_the_place_of_others(void **state)
{
	const struct code_range_state *range;

	(void)state;
	assert_int_equal(row_at(0x115, 0x110, 0x130, 8), 0);
	assert_int_equal(row_at(0x300, 0x200, 0x900, 24), 0);
	made.blocks[2] = block_of(0x1000, 0x1100);
	assert_int_equal(row_at(0x1080, 0, 0, 0), 1);
	memset(made.blocks, 0, sizeof(made.blocks));
	made.blocks[0] = block_of(0x8ff, 0x1001);
	assert_int_equal(row_at(0x950, 0, 0, 0), 1);
	range = code_range_of(file);
	assert_int_equal(range->count, 2);
	assert_int_equal(range->pieces[0]->start, 0x100);
	assert_int_equal(range->pieces[1]->start, 0x8ff);
	assert_int_equal(then_at(0x950, made.now_ns - 1), CODE_ANOTHER);
	assert_int_equal(range->buried_cnt, 2);
	assert_int_equal(metric_of("hearth_code_pieces_gone_total"), 2);
	/* blocks of 0x200 to 0x900, and of 0x1000 to 0x1100 */
	assert_int_equal(made.dropped_cnt, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(made.dropped[i].block, ((const uint32_t[]){ 0, 1, 2, 4 })[i]);
	/* neighbours that only touch stay */
	made.now_ns++;
	made.blocks[1] = block_of(0x1001, 0x1100);
	made.blocks[2] = block_of(0x200, 0x8ff);
	assert_int_equal(row_at(0x1050, 0, 0, 0), 1);
	assert_int_equal(row_at(0x250, 0, 0, 0), 1);
	assert_int_equal(range->count, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(range->pieces[i]->start, ((const uint32_t[]){ 0x100, 0x200, 0x8ff, 0x1001 })[i]);
	assert_int_equal(metric_of("hearth_code_pieces_gone_total"), 2);
}

/* Blocks that end where another begins are none of it. */
static void blocks_of_a_piece_end_with_it(void **state)
{
	static const struct {
		uint64_t start, end;
		uint32_t first, count;
	} cases[] = { { 0x400, 0x800, 1, 1 }, { 0x3ff, 0x801, 0, 3 }, { 0x7ff, 0x800, 1, 1 }, { 0x800, 0x801, 2, 1 } };

	(void)state;
	memset(made.blocks, 0, sizeof(made.blocks));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		made.blocks[0] = block_of(cases[i].start, cases[i].end);
		made.blocks[0].value = made.words[0].value;
		made.dropped_cnt = 0;
		assert_int_equal(row_at(cases[i].start, 0, 0, 0), 1);
		made.words[0].value++;
		made.now_ns++;
		made.blocks[0].end = made.blocks[0].start;
		assert_int_equal(row_at(cases[i].start, 0, 0, 0), -ENOENT);
		assert_int_equal(made.dropped_cnt, cases[i].count);
		for (uint32_t k = 0; k < cases[i].count; k++)
			assert_int_equal(made.dropped[k].block, cases[i].first + k);
	}
}

/* Reads a piece, which then goes: the time it was found to have gone is made.now_ns. */
static void live_and_die(uint64_t start, uint64_t end)
{
	made.blocks[0] = block_of(start, end);
	made.blocks[0].value = made.words[0].value;
	assert_int_equal(row_at(start, 0, 0, 0), 1);
	made.words[0].value++;
	made.now_ns += 10;
	made.blocks[0].end = made.blocks[0].start;
	made.dropped_cnt = 0;
	assert_int_equal(row_at(start, 0, 0, 0), -ENOENT);
}

/* It is remembered of the last pieces that went where they were, and when. */
static void graves_are_kept_for_a_while(void **state)
{
	const uint64_t starts[] = { 0x4f0, 0x50f, 0x510 };
	uint64_t gone_ns;

	(void)state;
	memset(made.blocks, 0, sizeof(made.blocks));
	live_and_die(0x500, 0x510);
	gone_ns = made.now_ns;
	made.now_ns += 10;
	made.blocks[1] = block_of(0x4f0, 0x500);
	made.blocks[2] = block_of(0x50f, 0x510);
	made.blocks[3] = block_of(0x510, 0x520);
	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		made.blocks[i + 1].token = 0;
		assert_int_equal(row_at(starts[i], 0, 0, 0), 1);
		assert_int_equal(then_at(starts[i], gone_ns - 1), i == 1 ? CODE_ANOTHER : CODE_UNSEEN);
		assert_int_equal(then_at(starts[i], gone_ns), CODE_UNSEEN);
		assert_int_equal(then_at(starts[i], made.now_ns), CODE_ITSELF);
	}
	assert_null(code_piece_find(code_range_of(file), 0x50e));
	for (uint32_t i = 1; i < BURIED_KEPT; i++)
		live_and_die(0x800, 0x810);
	assert_int_equal(then_at(0x50f, gone_ns - 1), CODE_ANOTHER);
	live_and_die(0x800, 0x810);
	assert_int_equal(then_at(0x50f, gone_ns - 1), CODE_UNSEEN);
}

/* The objects that tell of code move, and the code is what it was. */
static void a_piece_may_be_like_the_one_before(void **state)
{
	struct code_range_state *range = code_range_of(file);
	const uint64_t born_ns = made.now_ns += 100;
	const struct code_piece *gone;

	(void)state;
	made.blocks[0].name = "f";
	assert_int_equal(row_at(0x115, 0x110, 0x130, 8), 0);
	gone = code_piece_find(range, 0x115);
	made.now_ns += 100;
	made.words[0].value = made.blocks[0].value = 6;
	assert_int_equal(row_at(0x115, 0x110, 0x130, 8), 0);
	assert_int_equal(then_at(0x115, born_ns - 1), CODE_UNSEEN);
	assert_int_equal(then_at(0x115, born_ns), CODE_ITS_LIKE);
	assert_int_equal(then_at(0x115, made.now_ns - 1), CODE_ITS_LIKE);
	assert_int_equal(then_at(0x115, made.now_ns), CODE_ITSELF);
	/* it was looked at when it was born, and not again */
	assert_ptr_equal(code_piece_known(range, 0x115, born_ns), gone);
	assert_ptr_equal(code_piece_known(range, 0x115, born_ns + 1), code_piece_find(range, 0x115));
	assert_ptr_equal(code_piece_known(range, 0x115, born_ns - 1), code_piece_find(range, 0x115));
	assert_null(code_piece_known(range, 0x9ff, born_ns));
	made.now_ns += 100;
	made.words[0].value = made.blocks[0].value = 7;
	made.blocks[0].name = "g";
	assert_int_equal(row_at(0x115, 0x110, 0x130, 8), 0);
	assert_int_equal(then_at(0x115, made.now_ns - 1), CODE_ANOTHER);
	made.now_ns += 100;
	made.words[0].value = made.blocks[0].value = 8;
	made.blocks[0].rows[0] = row_of(0x110, 0x120, 48);
	assert_int_equal(row_at(0x115, 0x110, 0x120, 48), 0);
	assert_int_equal(then_at(0x115, made.now_ns - 1), CODE_ANOTHER);
}

static void names_are_kept_as_objects(void **state)
{
	const struct code_piece *piece;

	(void)state;
	made.blocks[0].name = "f";
	assert_int_equal(row_at(0x115, 0x110, 0x130, 8), 0);
	piece = code_piece_find(code_range_of(file), 0x115);
	assert_non_null(piece->thing.names);
	assert_int_equal(piece->thing.names->runtime, OBJECT_OF_CODE + CODE_V8);
	assert_int_equal(piece->thing.born_ns, made.now_ns);
	assert_int_equal(piece->thing.tokens[0].addr, WORD);
	assert_int_equal(objects_count(objects), 1);
	assert_true(spaces->bytes >= sizeof(*piece) + 5 * sizeof(piece->rows[0]));
}

/* Before the kernel is listened to, and when all ends, nobody is told. */
static void without_a_sampler_nobody_is_told(void **state)
{
	(void)state;
	code_spaces_attach(spaces, NULL);
	assert_int_equal(row_at(0x115, 0x110, 0x130, 8), 0);
	made.words[0].value = 6;
	made.now_ns++;
	assert_int_equal(row_at(0x115, 0x110, 0x130, 8), 0);
	assert_int_equal(metric_of("hearth_code_pieces_gone_total"), 1);
	assert_int_equal(made.dropped_cnt, 0);
	assert_int_equal(made.published_cnt, 1); /* before */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_are_those_of_the_piece, begin, made_end),
		cmocka_unit_test_setup_teardown(rows_may_fill_a_piece_or_be_none, begin, made_end),
		cmocka_unit_test_setup_teardown(pieces_lie_inside_of_their_range, begin, made_end),
		cmocka_unit_test_setup_teardown(blocks_have_all_rows_that_touch_them, begin, made_end),
		cmocka_unit_test_setup_teardown(pieces_that_have_gone_leave_all_caches, begin, made_end),
		cmocka_unit_test_setup_teardown(a_piece_takes_the_place_of_others, begin, made_end),
		cmocka_unit_test_setup_teardown(a_piece_that_has_grown_is_what_it_was, begin, made_end),
		cmocka_unit_test_setup_teardown(blocks_of_a_piece_end_with_it, begin, made_end),
		cmocka_unit_test_setup_teardown(graves_are_kept_for_a_while, begin, made_end),
		cmocka_unit_test_setup_teardown(a_piece_may_be_like_the_one_before, begin, made_end),
		cmocka_unit_test_setup_teardown(names_are_kept_as_objects, begin, made_end),
		cmocka_unit_test_setup_teardown(without_a_sampler_nobody_is_told, begin, made_end),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
