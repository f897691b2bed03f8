/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in generated code that changes: which samples had which code, and which are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/agent/code/made_frames.h"

/* The kernel's walk counts up to the first frame in code that has gone, or that came after the sample. */
static void walks_through_other_code_are_cut(void **state)
{
	const uint64_t user[] = { RUNTIME_AT + 1, CODE_AT + 0x181, CODE_AT + 0x281, RUNTIME_AT + 2 };
	const uint64_t before = made.now_ns;

	(void)state;
	meet(0x180);
	made.now_ns += 10;
	meet(0x280);
	made.now_ns += 10;
	assert_int_equal(name(user, 4, before + 10, true), 4);
	assert_int_equal(walk_end, END_ROOT);
	assert_int_equal(name(user, 4, before + 9, true), 3); /* younger than the sample */
	assert_int_equal(walk_end, END_STALE);
	assert_true(frames[2] == frame_of(0x280, 0x80 | CODE_PLACE_RETURN));
	assert_int_equal(name(user, 4, before + 9, false), 4); /* was walked here, by what was read */
	assert_int_equal(walk_end, END_ROOT);
	assert_int_equal(name(user, 4, before - 1, true), 2);
	made.words[0].value = 6; /* has gone */
	made.blocks[0].end = made.blocks[0].start;
	assert_int_equal(name(user, 4, made.now_ns + 1, true), 2);
	assert_int_equal(walk_end, END_STALE);
	assert_true(frames[1] == user[1]);
	made.words[0].value = 5; /* for good */
	assert_int_equal(name(user, 4, made.now_ns + 1, false), 4);
	assert_true(frames[1] == user[1]);
	assert_int_equal(name(&(uint64_t){ CODE_AT + 0x900 }, 1, made.now_ns, true), 1);
	assert_int_equal(walk_end, END_STALE);
}

/* Of a place where there was another piece not long ago older samples may be of that. */
static void second_pieces_are_not_for_older_samples(void **state)
{
	const uint64_t user[] = { CODE_AT + 0x181, CODE_AT + 0x182 };
	uint64_t born;

	(void)state;
	meet(0x180);
	made.words[0].value = made.blocks[0].value = 6;
	made.blocks[0].name = "h";
	made.now_ns += 100;
	born = made.now_ns;
	assert_int_equal(code_piece_then(code_range_of(file), meet(0x180), 0x180, born - 1), CODE_ANOTHER);
	made.now_ns += 100;
	assert_int_equal(name(user, 2, born - 1, false), 1);
	assert_int_equal(walk_end, END_STALE);
	assert_true(frames[0] == user[0]);
	assert_int_equal(name(user, 2, born, false), 2);
	assert_true(frames[0] == frame_of(0x180, 0x80 | CODE_PLACE_RETURN));
}

/* Code that is what it was, though its tokens changed, is told from other code, also where the kernel walked through it. */
static void walks_through_the_same_code_go_on(void **state)
{
	const uint64_t user[] = { CODE_AT + 0x181, CODE_AT + 0x281 };
	const uint64_t born_ns = made.now_ns;

	(void)state;
	meet(0x180);
	meet(0x280);
	made.now_ns += 100;
	made.words[0].value = made.blocks[0].value = 6;
	assert_int_equal(name(user, 2, born_ns + 50, true), 2);
	assert_int_equal(walk_end, END_ROOT);
	assert_int_equal(metric_of("hearth_code_pieces_gone_total"), 1);
	assert_true(frames[0] == frame_of(0x180, 0x80 | CODE_PLACE_RETURN));
	assert_true(frames[1] == frame_of(0x280, 0x80 | CODE_PLACE_RETURN));
	assert_int_equal(name(user, 2, born_ns - 1, true), 1); /* nobody had seen any then */
	assert_int_equal(walk_end, END_STALE);
	made.now_ns += 100;
	made.words[0].value = made.blocks[0].value = 7;
	made.blocks[0].name = "h";
	assert_int_equal(name(user, 2, made.now_ns - 50, true), 1);
	assert_int_equal(walk_end, END_STALE);
	assert_true(frames[0] == user[0]);
	assert_int_equal(name(user, 2, made.now_ns, true), 2);
	assert_true(frames[0] == frame_of(0x180, 0x80 | CODE_PLACE_RETURN));
}

/* A sample from before code was seen for the last time had that code, whatever is there by now. */
static void code_that_went_since_has_its_name(void **state)
{
	const uint64_t user[] = { CODE_AT + 0x181, CODE_AT + 0x281 };
	const uint64_t born_ns = made.now_ns;
	uint64_t frame;

	(void)state;
	meet(0x180);
	meet(0x280);
	made.now_ns += 100;
	frame = frame_of(0x180, 0x80 | CODE_PLACE_RETURN);
	assert_int_equal(name(user, 2, born_ns + 50, true), 2); /* looks at both */
	made.words[0].value = made.blocks[0].value = 6;
	made.blocks[0].name = "h";
	made.now_ns += 100;
	assert_int_equal(name(user, 2, made.now_ns, true), 2); /* finds that one has gone, and what is there instead */
	assert_true(frames[0] != frame && frames[0] == frame_of(0x180, 0x80 | CODE_PLACE_RETURN));
	for (int is_kernels = 0; is_kernels < 2; is_kernels++) {
		assert_int_equal(name(user, 2, born_ns + 60, is_kernels), 2);
		assert_int_equal(walk_end, END_ROOT);
		assert_true(frames[0] == frame);
		assert_int_equal(name(user, 2, born_ns + 101, is_kernels), 1);
		assert_int_equal(walk_end, END_STALE);
	}
}

static bool kernel_asks(uint64_t va)
{
	struct row rows[CODE_BLOCK_BYTES];
	size_t count = code_block_rows(spaces, file, va, rows);

	for (size_t i = 0; i < count; i++)
		if (rows[i].start <= va && va < rows[i].end)
			return rows[i].cfa == ROW_CFA_UNASKED;
	return false;
}

/* The kernel has no rows of code that no sample was in for long, as nobody looks whether it is still there. */
static void idle_code_is_looked_at_before_it_is_walked(void **state)
{
	const uint64_t user[] = { CODE_AT + 0x181, CODE_AT + 0x281 };
	struct code_piece_range piece;
	struct row row;
	uint32_t asks;

	(void)state;
	meet(0x180);
	meet(0x280);
	assert_int_equal(name(user, 2, made.now_ns, true), 2);
	made.now_ns += 20 * NSEC_PER_SEC;
	assert_int_equal(name(&user[1], 1, made.now_ns, true), 1);
	made.now_ns += 11 * NSEC_PER_SEC;
	assert_false(kernel_asks(0x180) || kernel_asks(0x280));
	code_spaces_look(spaces);
	code_settle(&process);
	assert_true(kernel_asks(0x180) && !kernel_asks(0x280));

	/* It is there still: its words are looked at, and nothing is read anew. */
	asks = made.calls[CODE_OP_BLOCK];
	assert_int_equal(code_row(spaces, &process, file, 0x180, made.now_ns, &row, &piece), 1); /* no rule there */
	assert_true(piece.is_new && !kernel_asks(0x180));
	assert_int_equal(code_row(spaces, &process, file, 0x180, made.now_ns, &row, &piece), 1); /* no rule there */
	assert_false(piece.is_new);
	assert_int_equal(made.calls[CODE_OP_BLOCK], asks);

	/* Next time there is other code, nobody knows since when: as where none was known. */
	made.now_ns += 31 * NSEC_PER_SEC;
	code_spaces_look(spaces);
	code_settle(&process);
	assert_true(kernel_asks(0x180) && kernel_asks(0x280));
	made.words[0].value = made.blocks[0].value = 6;
	made.blocks[0].name = "h";
	made.now_ns += 100;
	meet(0x180);
	assert_int_equal(made.calls[CODE_OP_BLOCK], asks + 1);
	assert_int_equal(name(user, 1, made.now_ns - 50, false), 1);
	assert_int_equal(walk_end, END_ROOT);
	assert_true(frames[0] == frame_of(0x180, 0x80 | CODE_PLACE_RETURN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(walks_through_other_code_are_cut, begin, made_end),
		cmocka_unit_test_setup_teardown(second_pieces_are_not_for_older_samples, begin, made_end),
		cmocka_unit_test_setup_teardown(walks_through_the_same_code_go_on, begin, made_end),
		cmocka_unit_test_setup_teardown(code_that_went_since_has_its_name, begin, made_end),
		cmocka_unit_test_setup_teardown(idle_code_is_looked_at_before_it_is_walked, begin, made_end),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
