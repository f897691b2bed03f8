/* SPDX-License-Identifier: Apache-2.0 */
/* Root rows for start code that no table covers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/rows_entry.h"
#include "base/cleanup.h"

enum { MAX = 4 };

struct span {
	uint64_t start, end;
};

/* All in the block [0x1000, 0x1100). What comes out is in order; the one that is not among @rows is the root row. */
static const struct {
	const char *name;
	uint64_t entry;
	size_t count;
	struct span rows[MAX];
	struct span root; /* empty: none is added */
} cases[] = {
	{ "nothing is covered", 0x1010, 0, { { 0 } }, { 0x1010, 0x1090 } },
	{ "up to the block's end", 0x10f0, 0, { { 0 } }, { 0x10f0, 0x1100 } },
	{ "the rest of an entry in the block before", 0xff0, 0, { { 0 } }, { 0x1000, 0x1070 } },
	{ "an entry too far before", 0xf80, 0, { { 0 } }, { 0 } },
	{ "an entry in the next block", 0x1100, 0, { { 0 } }, { 0 } },
	{ "up to the next row", 0x1010, 1, { { 0x1020, 0x1040 } }, { 0x1010, 0x1020 } },
	{ "between two rows", 0x1010, 2, { { 0x1000, 0x1010 }, { 0x1030, 0x1100 } }, { 0x1010, 0x1030 } },
	{ "behind the last row", 0x1050, 2, { { 0x1000, 0x1010 }, { 0x1030, 0x1050 } }, { 0x1050, 0x10d0 } },
	{ "a row far behind", 0x1010, 1, { { 0x10f0, 0x1100 } }, { 0x1010, 0x1090 } },
	{ "covered", 0x1010, 1, { { 0x1000, 0x1020 } }, { 0 } },
	{ "covered from its first byte", 0x1010, 1, { { 0x1010, 0x1020 } }, { 0 } },
	{ "no room", 0x10f0, 4, { { 0x1000, 0x1001 }, { 0x1001, 0x1002 }, { 0x1002, 0x1003 }, { 0x1003, 0x1004 } }, { 0 } },
	{ "no such address", UINT64_MAX - 3, 0, { { 0 } }, { 0 } },
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool has_root = cases[i].root.end > 0;
		struct row rows[MAX] = { 0 };
		size_t count, old = 0, roots = 0;

		print_message("%s\n", cases[i].name);
		for (size_t k = 0; k < cases[i].count; k++)
			rows[k] = (struct row){ .start = cases[i].rows[k].start,
						.end = cases[i].rows[k].end,
						.cfa = ROW_CFA_REG,
						.cfa_off = 8 };
		count = rows_add_entry(cases[i].entry, 0x1000, 0x1100, rows, cases[i].count, MAX);
		assert_int_equal(count, cases[i].count + has_root);
		for (size_t k = 0; k < count; k++) {
			const struct span *expected = rows[k].cfa == ROW_CFA_ROOT ? &cases[i].root : &cases[i].rows[old];

			roots += rows[k].cfa == ROW_CFA_ROOT;
			old += rows[k].cfa == ROW_CFA_REG;
			assert_true(rows[k].start == expected->start && rows[k].end == expected->end);
			assert_true(!k || rows[k].start >= rows[k - 1].end);
		}
		assert_true(roots == has_root && old == cases[i].count);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
