/* SPDX-License-Identifier: Apache-2.0 */
/* The row cache against the rows that were put into it, over random groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/rows/row_cache.h"
#include "tests/unit/descriptors.h"

static struct row_cache *cache;
static unsigned seed = 1;

static bool same(const struct row *a, const struct row *b)
{
	return a->start == b->start && a->end == b->end && a->cfa == b->cfa && a->cfa_reg == b->cfa_reg &&
	       a->is_signal_frame == b->is_signal_frame && a->is_guess == b->is_guess && a->is_followed == b->is_followed &&
	       a->is_behind_syscall == b->is_behind_syscall && a->is_end == b->is_end && a->wrong_cnt == b->wrong_cnt &&
	       a->cfa_off == b->cfa_off && a->cfa_off2 == b->cfa_off2 && !memcmp(a->saved, b->saved, sizeof(a->saved));
}

/* Each member of a rule but for those that other tests set, by number. */
static void set_one_more(struct row *row, unsigned which)
{
	row->cfa_reg = which == 0;
	row->is_signal_frame = which == 1;
	row->is_guess = which == 2;
	row->is_followed = which == 3;
	row->is_behind_syscall = which == 4;
	row->wrong_cnt = which == 6;
	row->cfa_off2 = which == 7;
	row->saved[0] = which == 8;
	row->saved[SAVED_MAX - 1] = which == 9;
}

/* Sorted rows in the group at @base, of few rules, with gaps; all of one byte when @is_dense. Their number. */
static size_t make_rows(uint64_t base, bool is_dense, struct row *rows)
{
	uint64_t at = base;
	size_t n = 0;

	while (at < base + ROW_GROUP_BYTES) {
		uint64_t len = is_dense ? 1 : 1 + (unsigned)rand_r(&seed) % 200;

		if (len > base + ROW_GROUP_BYTES - at)
			len = base + ROW_GROUP_BYTES - at;
		if (is_dense || rand_r(&seed) % 4) {
			memset(&rows[n], 0, sizeof(rows[n]));
			rows[n].start = at;
			rows[n].end = at + len;
			rows[n].cfa = ROW_CFA_REG;
			rows[n].cfa_off = is_dense ? (int32_t)(at & 2047) : rand_r(&seed) % 50 * 8;
			if (!is_dense)
				set_one_more(&rows[n], (unsigned)rand_r(&seed) % 12);
			n++;
		}
		at += len;
	}
	return n;
}

static void check(uint32_t file, uint64_t base, const struct row *rows, size_t count)
{
	struct row found, block[CODE_BLOCK_BYTES];
	size_t next = 0, n = 0, i = 0;

	assert_true(row_cache_has(cache, file, base + 17));
	for (uint64_t at = base; at < base + ROW_GROUP_BYTES; at++) {
		while (next < count && rows[next].end <= at)
			next++;
		if (next == count || rows[next].start > at) {
			assert_false(row_cache_find(cache, file, at, &found));
		} else {
			assert_true(row_cache_find(cache, file, at, &found));
			assert_true(same(&found, &rows[next]));
		}
		if (at % CODE_BLOCK_BYTES)
			continue;
		for (i = 0; i < count && rows[i].end <= at; i++)
			;
		n = row_cache_block(cache, file, at + 5, block);
		for (size_t k = 0; k < n; k++)
			assert_true(same(&block[k], &rows[i + k]));
		assert_true(i + n == count || rows[i + n].start >= at + CODE_BLOCK_BYTES);
	}
}

static void test_random(void **state)
{
	static struct row rows[ROW_GROUP_BYTES];

	(void)state;
	assert_int_equal(row_cache_new(&cache), 0);
	for (uint32_t i = 0; i < 60; i++) {
		uint64_t base = (uint64_t)rand_r(&seed) % 100000 * ROW_GROUP_BYTES;
		size_t count = make_rows(base, i % 20 == 0, rows);

		assert_int_equal(row_cache_put(cache, 1 + i % 3, base + 99, rows, count), 0);
		check(1 + i % 3, base, rows, count);
		for (int k = 0; k < 30 && count; k++) { /* what is learned stays, of this row alone */
			struct row *row = &rows[(size_t)rand_r(&seed) % count];

			row->wrong_cnt++;
			assert_int_equal(row_cache_learn(cache, 1 + i % 3, row->end - 1, row), 0);
		}
		check(1 + i % 3, base, rows, count);
		row_cache_forget(cache, 7);
		assert_true(row_cache_has(cache, 1 + i % 3, base));
		row_cache_forget(cache, 1 + i % 3);
		assert_false(row_cache_has(cache, 1 + i % 3, base));
	}
	row_cache_free(cache);
}

static void test_places(void **state)
{
	struct row row = { .start = 0, .end = 5, .cfa = ROW_CFA_ROOT }, found;

	(void)state;
	assert_int_equal(row_cache_new(&cache), 0);
	assert_false(row_cache_find(cache, 1, 0, &found));
	assert_int_equal(row_cache_put(cache, 1, 0, &row, 1), 0);
	assert_int_equal(row_cache_put(cache, 2, 0, NULL, 0), 0);
	assert_true(row_cache_has(cache, 2, 0));
	assert_false(row_cache_find(cache, 2, 0, &found));
	assert_true(row_cache_find(cache, 1, 4, &found));
	assert_false(row_cache_find(cache, 1, 5, &found));
	assert_int_equal(row_cache_learn(cache, 1, 5, &row), 0); /* there is none */
	for (uint64_t group = 1; group < 100000; group++)	 /* others take its place sooner or later */
		assert_int_equal(row_cache_put(cache, 1, group * ROW_GROUP_BYTES, NULL, 0), 0);
	assert_false(row_cache_has(cache, 1, 0));
	row_cache_free(cache);
}

/* Of @rows, whose bytes in @ends are ends: each byte says what it said, and is an end or not. */
static void check_ends(const struct row *rows, size_t count, const bool *ends)
{
	struct row found, block[CODE_BLOCK_BYTES];

	for (uint64_t at = 0, next = 0, n; at < ROW_GROUP_BYTES; at++) {
		bool is_in, was_in;

		while (next < count && rows[next].end <= at)
			next++;
		was_in = next < count && rows[next].start <= at;
		is_in = row_cache_find(cache, 1, at, &found);
		assert_int_equal(is_in, was_in || ends[at]);
		if (!is_in)
			continue;
		assert_int_equal(found.is_end, ends[at]);
		assert_int_equal(found.cfa, was_in ? rows[next].cfa : ROW_CFA_NONE);
		assert_int_equal(found.cfa_off, was_in ? rows[next].cfa_off : 0);
		assert_true(found.start <= at && at < found.end);
		assert_true(!ends[at] || found.end - found.start == 1);
		n = row_cache_block(cache, 1, at, block);
		for (uint64_t i = 1; i < n; i++)
			assert_true(block[i - 1].end <= block[i].start);
	}
}

/* Where stacks end: the byte stays in its row, or is a row of its own, and stays when the group is put again. */
static void test_ends(void **state)
{
	static struct row rows[ROW_GROUP_BYTES];
	bool ends[ROW_GROUP_BYTES];

	(void)state;
	assert_int_equal(row_cache_new(&cache), 0);
	assert_int_equal(row_cache_end(cache, 1, 5), 0); /* nothing is known there */
	assert_false(row_cache_has(cache, 1, 5));
	for (int round = 0; round < 40; round++) {
		size_t count = make_rows(0, round % 20 == 19, rows);

		memset(ends, 0, sizeof(ends));
		row_cache_forget(cache, 1);
		assert_int_equal(row_cache_put(cache, 1, 0, rows, count), 0);
		for (int i = 0; i < 30; i++) {
			uint64_t at = (uint64_t)rand_r(&seed) % ROW_GROUP_BYTES;

			if (i % 3 == 0 && count) { /* where rows begin and end, too */
				const struct row *row = &rows[(size_t)rand_r(&seed) % count];

				at = i % 2 ? row->start : row->end - 1;
			}
			assert_int_equal(row_cache_end(cache, 1, at), 0);
			ends[at] = true;
		}
		check_ends(rows, count, ends);
		count = make_rows(0, false, rows);
		assert_int_equal(row_cache_put(cache, 1, 0, rows, count), 0);
		check_ends(rows, count, ends);
	}
	row_cache_free(cache);
}

/* More places than are kept: what is used again and again stays, and memory is bounded. */
static void test_bound(void **state)
{
	static struct row rows[ROW_GROUP_BYTES];
	enum { DENSE_GROUPS = 1200, MOST_BYTES = 6 << 20 };
	struct row found;
	size_t count;

	(void)state;
	assert_int_equal(row_cache_new(&cache), 0);
	for (uint64_t group = 0; group < DENSE_GROUPS; group++) {
		count = make_rows(group * ROW_GROUP_BYTES, true, rows);
		assert_int_equal(count, ROW_GROUP_BYTES);
		assert_int_equal(row_cache_put(cache, 1, group * ROW_GROUP_BYTES, rows, count), 0);
		assert_true(row_cache_find(cache, 1, 77, &found)); /* of the first group */
		assert_true(row_cache_memory_bytes(cache) < MOST_BYTES);
	}
	check(1, (DENSE_GROUPS - 1) * (uint64_t)ROW_GROUP_BYTES, rows, count);
	assert_false(row_cache_has(cache, 1, ROW_GROUP_BYTES));
	for (uint64_t group = count = 0; group < DENSE_GROUPS; group++)
		count += row_cache_has(cache, 1, group * ROW_GROUP_BYTES);
	assert_true(count > 100); /* not everything went at once */
	row_cache_free(cache);
}

/* More rules than are numbered: what was learned is known, or its group is forgotten, but no row is another's. */
static void test_rules(void **state)
{
	enum { RULES = 1 << 16 };
	struct row row = { .start = 0, .end = 5, .cfa = ROW_CFA_REG }, found;
	unsigned forgotten = 0;

	(void)state;
	assert_int_equal(row_cache_new(&cache), 0);
	for (row.cfa_off = 0; row.cfa_off < RULES + 99; row.cfa_off++) {
		if (!row_cache_has(cache, 1, 0)) {
			forgotten += row.cfa_off > 0;
			assert_int_equal(row_cache_put(cache, 1, 0, &row, 1), 0);
		}
		assert_int_equal(row_cache_learn(cache, 1, 2, &row), 0);
		if (row_cache_find(cache, 1, 2, &found))
			assert_true(same(&found, &row));
		assert_true(row_cache_rule_count(cache) <= RULES);
	}
	assert_int_equal(forgotten, 1);
	row_cache_free(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_random), cmocka_unit_test(test_places),
						   cmocka_unit_test(test_ends), cmocka_unit_test(test_bound),
						   cmocka_unit_test(test_rules) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
