/* SPDX-License-Identifier: Apache-2.0 */
/* A YAML document as a tree: places, merging, setting, writing, and bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/tree.h"

static struct tree parse(const char *text)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct tree t;

	if (tree_parse("c", text, strlen(text), &t, &error))
		fail_msg("%s", buf_text(&error));
	return t;
}

static void writes(const struct tree *t, const char *expected)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	tree_write(t, 0, &out);
	assert_string_equal(buf_text(&out), expected);
}

static void test_read(void **state)
{
	struct tree t = parse("a: 1\nb:\n  - x\n  - [y, {z: '2'}]\nc: ~\nd: &d {e: \"\\n\"}\nf: *d\n");

	(void)state;
	assert_int_equal(tree_find(&t, "b")->line, 2);
	assert_int_equal(tree_find(&t, "b")->items[1].line, 4);
	assert_true(tree_find(&t, "a")->is_plain);
	assert_false(tree_at(&t, "d.e")->is_plain);
	assert_string_equal(tree_at(&t, "f.e")->text, "\n");
	assert_null(tree_at(&t, "d.e.g"));
	assert_null(tree_at(&t, "nothing"));
	writes(&t, "a: 1\nb:\n  - x\n  -\n    - y\n    -\n      z: 2\nc:\nd:\n  e: \"\\x0a\"\nf:\n  e: \"\\x0a\"\n");
	tree_fini(&t);
}

/* An empty map stays a map, an empty list a list, on their own as in others; nothing stays nothing. */
static void test_write_empty(void **state)
{
	static const char *const texts[] = { "{}\n", "[]\n", "\n", "a: {}\n", "- []\n" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct tree t = parse(texts[i]);

		writes(&t, texts[i]);
		tree_fini(&t);
	}
}

/* What one document says goes over what those before it said, key by key. */
static void test_merge(void **state)
{
	struct tree t = parse("a: {b: 1, c: [1, 2]}\nd: 3\n"), over = parse("a: {c: [5], e: 6}\nd: {f: 7}\n"),
		    none = parse("");

	(void)state;
	assert_int_equal(tree_merge(&t, &over), 0);
	assert_int_equal(tree_merge(&t, &none), 0);
	writes(&t, "a:\n  b: 1\n  c:\n    - 5\n  e: 6\nd:\n  f: 7\n");
	tree_fini(&t);
}

static void test_equal(void **state)
{
	static const char *const texts[] = { "a: 1\nb: [x, { y: z }]\n",
					     "a: 1\nb: [x, { y: z, w: }]\n",
					     "a: 1\n",
					     "b: [{ y: z }, x]\na: 1\n",
					     "a: 1\nb: [x, { y: zz }]\n",
					     "a: 1\nc: [x, { y: z }]\n",
					     "a: { b: 1 }\n",
					     "a: [1]\n",
					     "" };
	struct tree trees[ARRAY_LEN(texts)], other = parse("b: [x, { 'y': z }]\n\na: '1'\n");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		trees[i] = parse(texts[i]);
	assert_true(tree_equal(&trees[0], &other) &&
		    tree_equal(&other, &trees[0])); /* keys have no order, quotes say nothing */
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (size_t k = 0; k < ARRAY_LEN(texts); k++)
			assert_int_equal(tree_equal(&trees[i], &trees[k]), i == k);
	assert_true(tree_equal(NULL, NULL));
	assert_false(tree_equal(&trees[0], NULL) || tree_equal(NULL, &trees[8]));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		tree_fini(&trees[i]);
	tree_fini(&other);
}

static void test_set(void **state)
{
	struct tree t = TREE_EMPTY, one = parse("5s"), two = parse("[x]"), bad = parse("1");

	(void)state;
	assert_int_equal(tree_set(&t, "a.b.c", ".", &one), 0);
	assert_int_equal(tree_set(&t, "a::d", "::", &two), 0);
	assert_int_equal(tree_set(&t, "a..c", ".", &bad), -EINVAL);
	writes(&t, "a:\n  b:\n    c: 5s\n  d:\n    - x\n");
	tree_fini(&t);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "a: 1\na: 2\n", "c:2: 'a' stands here twice" },
		{ "[a]: 1\n", "c:1: a key is a word, such as freq" },
		{ "a: \"1\\0\"\n", "c:1: the value of 'a' has a zero byte" },
		{ "a: [1\n", "c:2: not YAML: did not find expected ',' or ']'" },
		{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
		  "c:1: too many levels" },
		/* a billion laughs */
		{ "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
		  "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: "
		  "[*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
		  "c:1: too many values" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		struct tree t;

		assert_int_equal(tree_parse("c", cases[i].text, strlen(cases[i].text), &t, &error), -EINVAL);
		assert_string_equal(buf_text(&error), cases[i].error);
		assert_int_equal(t.kind, TREE_NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),  cmocka_unit_test(test_write_empty), cmocka_unit_test(test_merge),
		cmocka_unit_test(test_equal), cmocka_unit_test(test_set),	  cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
