/* SPDX-License-Identifier: Apache-2.0 */
/* Call trees: a path is one node however often it comes, few children or many; sums go up, siblings come in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/sums/call_tree.h"

static int make(void **state)
{
	static struct call_tree tree;

	*state = &tree;
	return call_tree_init(&tree);
}

static int drop(void **state)
{
	call_tree_fini(*state);
	return 0;
}

/* The child, which was there before or was not. */
static uint32_t child(struct call_tree *t, uint32_t parent, uint64_t key, int is_new)
{
	uint32_t node = UINT32_MAX;

	assert_int_equal(call_tree_child(t, parent, key, &node), is_new);
	assert_true(node < t->count);
	assert_int_equal(t->nodes[node].parent, parent);
	assert_int_equal(t->nodes[node].key, key);
	return node;
}

static void test_children(void **state)
{
	enum { MANY = 5000 };
	struct call_tree *t = *state;
	uint32_t first = child(t, 0, 7, 1), second, below;

	assert_int_equal(first, 1);
	assert_int_equal(child(t, 0, 7, 0), first);
	below = child(t, first, 7, 1);
	assert_int_equal(child(t, first, 7, 0), below);
	second = child(t, 0, 8, 1);
	assert_int_equal(child(t, 0, 8, 0), second);
	assert_int_equal(child(t, 0, 7, 0), first);
	for (uint64_t key = 100; key < 100 + MANY; key++)
		(void)child(t, second, key, 1);
	for (uint64_t key = 100; key < 100 + MANY; key++)
		(void)child(t, second, key, 0);
	assert_int_equal(child(t, first, 7, 0), below);
	assert_int_equal(t->count, 4 + MANY);
	assert_true(call_tree_memory_bytes(t) >= t->count * sizeof(*t->nodes));
}

static bool by_key(void *arg, const struct call_node *a, const struct call_node *b)
{
	(void)arg;
	return a->key < b->key;
}

static void test_sums(void **state)
{
	static const uint64_t keys[] = { 5, 1, 4, 2, 3 };
	struct call_tree *t = *state;
	const struct call_node *n;
	uint32_t depth = 0, count = 0;

	for (size_t i = 0; i < 5; i++) {
		uint32_t node = child(t, 0, keys[i], 1), leaf = child(t, node, 9, 1);

		t->nodes[node].self[0] = 10;
		t->nodes[leaf].self[1] = (int64_t)keys[i];
	}
	for (int times = 0; times < 2; times++) { /* may be called again */
		call_tree_sum(t, by_key, NULL);
		assert_int_equal(t->nodes[0].total[0], 50);
		assert_int_equal(t->nodes[0].total[1], 15);
		n = call_child(t->nodes, t->nodes);
		for (uint64_t key = 1; key <= 5; key++) {
			assert_non_null(n);
			assert_int_equal(n->key, key);
			assert_int_equal(n->total[0], 10);
			assert_int_equal(call_weight(n), 10 + (int64_t)key);
			assert_ptr_equal(call_parent(t->nodes, n), t->nodes);
			n = call_sibling(t->nodes, n);
		}
		assert_null(n);
	}
	assert_null(call_parent(t->nodes, t->nodes));
	for (n = t->nodes; n; n = call_next(t->nodes, n, &depth)) {
		assert_int_equal(depth, count % 2 ? 1 : count ? 2 : 0);
		count++;
	}
	assert_int_equal(count, 11);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_children, make, drop),
		cmocka_unit_test_setup_teardown(test_sums, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
