/* SPDX-License-Identifier: Apache-2.0 */
/* The JIT's tables of shared code, as libstdc++ lays them out: found in any order, named by number, and lies do no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/beam/beam_state.h"

#define FAKE_BASE 0x7f0000000000ull

enum { FAKE_BYTES = 1 << 18 };

struct fake {
	uint8_t bytes[FAKE_BYTES];
	uint32_t used;
};

#include "tests/unit/agent/runtime/code/fake_memory.h"

static struct fake fake;
static struct beam beam;
static uint64_t table, last, tree;

static int begin(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	memset(&beam, 0xff, sizeof(beam));
	fake.used = 64; /* nothing has the address 0 in it */
	table = fake_take(&fake, 56);
	tree = fake_take(&fake, 48);
	last = 0;
	return 0;
}

/* Adds code number @number at @start to the table. */
static void add(uint32_t number, uint64_t start)
{
	const uint64_t node = fake_take(&fake, 24);
	uint64_t count;

	fake_put(&fake, node + 8, number, 4);
	fake_put(&fake, node + 16, start, 8);
	fake_put(&fake, last ? last : table + 16, node, 8);
	last = node;
	memcpy(&count, fake_at(&fake, table + 24), 8);
	fake_put(&fake, table + 24, count + 1, 8);
}

/* A node of the tree of names. */
static uint64_t name(uint32_t number, const char *text)
{
	const uint64_t node = fake_take(&fake, 72), at = fake_take(&fake, (uint32_t)strlen(text) + 1);

	memcpy(fake_at(&fake, at), text, strlen(text));
	fake_put(&fake, node + 32, number, 4);
	fake_put(&fake, node + 40, at, 8);
	fake_put(&fake, node + 48, strlen(text), 8);
	return node;
}

static void link_to(uint64_t parent, uint64_t left, uint64_t right)
{
	fake_put(&fake, parent + 16, left, 8);
	fake_put(&fake, parent + 24, right, 8);
}

static void read_all(bool with_names)
{
	struct code_memory m = {
		.read = fake_read, .arg = &fake, .reads_left = 100000, .bytes_left = CODE_MAX_BYTES, .end_ns = UINT64_MAX
	};

	beam_fragments_read(&beam, &m, table, with_names ? tree : 0);
}

static void check(uint32_t i, uint64_t start, uint32_t number, const char *text)
{
	assert_true(i < beam.fragment_cnt);
	assert_int_equal(beam.fragments[i].start, start);
	assert_int_equal(beam.fragments[i].number, number);
	if (text)
		assert_string_equal(beam.fragments[i].name, text);
}

static void test_by_address(void **state)
{
	(void)state;
	add(7, 0x3000);
	add(2, 0x1000);
	add(5, 0x2000);
	read_all(false);
	assert_int_equal(beam.fragment_cnt, 3);
	check(0, 0x1000, 2, NULL);
	check(1, 0x2000, 5, NULL);
	check(2, 0x3000, 7, NULL);
}

/* Names are found on both sides of the tree, and by number. */
static void test_names(void **state)
{
	uint64_t root = name(5, "five"), two = name(2, "two"), seven = name(7, "seven"), eight = name(8, "nobody's");

	(void)state;
	add(7, 0x3000);
	add(2, 0x1000);
	add(5, 0x2000);
	fake_put(&fake, tree + 16, root, 8);
	link_to(root, two, seven);
	link_to(seven, 0, eight);
	read_all(true);
	check(0, 0x1000, 2, "two");
	check(1, 0x2000, 5, "five");
	check(2, 0x3000, 7, "seven");
}

/* A name that is longer than the room for it is cut; one that cannot be read is none. */
static void test_long_and_broken_names(void **state)
{
	char text[100];
	uint64_t root, broken;

	(void)state;
	memset(text, 'n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	root = name(1, text);
	broken = name(2, "broken");
	fake_put(&fake, broken + 40, FAKE_BASE + FAKE_BYTES, 8);
	fake_put(&fake, tree + 16, root, 8);
	link_to(root, 0, broken);
	add(1, 0x1000);
	add(2, 0x2000);
	read_all(true);
	text[BEAM_FRAGMENT_NAME - 1] = '\0';
	check(0, 0x1000, 1, text);
	check(1, 0x2000, 2, "");
}

/* The map is found in the object that has it, by its look; nothing else is taken for it. */
static void test_find(void **state)
{
	static const struct {
		uint32_t at, bytes;
		uint64_t value;
	} lies[] = { { 8, 8, 1 },	   { 24, 8, 3 }, { 24, 8, 1 }, { 24, 8, 0 }, { 24, 8, BEAM_MAX_FRAGMENTS + 1 },
		     { 32, 4, 0x40000000 } };
	struct code_memory m = {
		.read = fake_read, .arg = &fake, .reads_left = 1000000, .bytes_left = CODE_MAX_BYTES, .end_ns = UINT64_MAX
	};
	const uint64_t object = table - 48;

	(void)state;
	beam.normal_exit = 0x2000;
	assert_int_equal(beam_fragments_find(&beam, &m, object), 0);
	add(7, 0x3000);
	add(2, 0x1000);
	fake_put(&fake, table + 8, 2, 8);
	fake_put(&fake, table + 32, 0x3f800000, 4); /* 1 as a float */
	assert_int_equal(beam_fragments_find(&beam, &m, object), table);
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		uint64_t truth;

		memcpy(&truth, fake_at(&fake, table + lies[i].at), 8);
		fake_put(&fake, table + lies[i].at, lies[i].value, lies[i].bytes);
		assert_int_equal(beam_fragments_find(&beam, &m, object), 0);
		fake_put(&fake, table + lies[i].at, truth, 8);
	}
	beam.normal_exit = 0x3000 + 0x80000000ull; /* further away than a call reaches */
	assert_int_equal(beam_fragments_find(&beam, &m, object), 0);
	beam.normal_exit = 0x1000 + 0x7fffffffull;
	assert_int_equal(beam_fragments_find(&beam, &m, object), table);
	fake_put(&fake, last + 16, 0x5000000000ull, 8); /* labels, perhaps */
	assert_int_equal(beam_fragments_find(&beam, &m, object), 0);
}

static void test_nothing(void **state)
{
	(void)state;
	read_all(true);
	assert_int_equal(beam.fragment_cnt, 0);
}

/* The number of nodes counts, not where the list ends; and the list's end, where it comes before. */
static void test_counts_that_do_not_fit(void **state)
{
	(void)state;
	add(1, 0x1000);
	add(2, 0x2000);
	fake_put(&fake, table + 24, 1, 8);
	read_all(false);
	assert_int_equal(beam.fragment_cnt, 1);
	check(0, 0x1000, 1, NULL);
	fake_put(&fake, table + 24, 100, 8);
	read_all(false);
	assert_int_equal(beam.fragment_cnt, 2);
}

/* A list that leads back to itself ends, and so does such a tree. */
static void test_circles(void **state)
{
	(void)state;
	add(1, 0x1000);
	fake_put(&fake, last, last, 8);
	fake_put(&fake, table + 24, UINT64_MAX, 8);
	read_all(false);
	assert_int_equal(beam.fragment_cnt, BEAM_MAX_FRAGMENTS);
	check(0, 0x1000, 1, NULL);
	check(BEAM_MAX_FRAGMENTS - 1, 0x1000, 1, NULL);
}

static void test_circles_of_names(void **state)
{
	uint64_t root = name(1, "one");

	(void)state;
	add(1, 0x1000);
	fake_put(&fake, tree + 16, root, 8);
	link_to(root, root, root);
	read_all(true);
	assert_int_equal(beam.fragment_cnt, 1);
	check(0, 0x1000, 1, "one");
}

/* A tree deeper than there is room for is read as far as that. */
static void test_deep_tree(void **state)
{
	uint64_t node = name(1, "one");

	(void)state;
	fake_put(&fake, tree + 16, node, 8);
	for (uint32_t i = 2; i <= 200; i++) {
		uint64_t next = name(i, i == 200 ? "last" : "other");

		link_to(node, 0, next);
		node = next;
	}
	add(1, 0x1000);
	add(200, 0x2000);
	read_all(true);
	check(0, 0x1000, 1, "one");
	check(1, 0x2000, 200, "last"); /* one way alone needs no room */
}

#define FRAGMENT_TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRAGMENT_TEST(test_by_address),
		FRAGMENT_TEST(test_names),
		FRAGMENT_TEST(test_long_and_broken_names),
		FRAGMENT_TEST(test_find),
		FRAGMENT_TEST(test_nothing),
		FRAGMENT_TEST(test_counts_that_do_not_fit),
		FRAGMENT_TEST(test_circles),
		FRAGMENT_TEST(test_circles_of_names),
		FRAGMENT_TEST(test_deep_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
