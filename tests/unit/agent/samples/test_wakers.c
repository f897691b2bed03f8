/* SPDX-License-Identifier: Apache-2.0 */
/* Who ended waits: found by thread and moment, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/samples/wakers.h"

static void add(struct wakers *w, uint32_t woken_tid, uint64_t woken_ns, uint32_t tid)
{
	const struct waker waker = { .woken_tid = woken_tid, .woken_ns = woken_ns, .tid = tid };

	assert_int_equal(wakers_add(w, &waker), 0);
}

static void test_found_by_thread_and_moment(void **state)
{
	struct wakers *w = wakers_new();

	(void)state;
	add(w, 7, 100, 70);
	add(w, 8, 100, 80);
	add(w, 7, 200, 90);
	assert_int_equal(wakers_count(w), 3);
	assert_int_equal(wakers_use(w, 8, 100), 1);
	assert_int_equal(wakers_use(w, 7, 200), 2);
	assert_int_equal(wakers_use(w, 7, 100), 0);
	assert_int_equal(wakers_get(w, 0)->tid, 70);
	assert_int_equal(wakers_get(w, 2)->tid, 90);
	wakers_free(w);
}

static void test_used_once(void **state)
{
	struct wakers *w = wakers_new();

	(void)state;
	add(w, 7, 100, 70);
	assert_false(wakers_get(w, 0)->is_used);
	assert_int_equal(wakers_use(w, 7, 100), 0);
	assert_true(wakers_get(w, 0)->is_used);
	assert_true(wakers_use(w, 7, 100) == UINT32_MAX);
	wakers_free(w);
}

static void test_nobody(void **state)
{
	struct wakers *w = wakers_new();

	(void)state;
	assert_true(wakers_use(w, 7, 100) == UINT32_MAX);
	add(w, 7, 100, 70);
	assert_true(wakers_use(w, 7, 101) == UINT32_MAX);
	assert_true(wakers_use(w, 8, 100) == UINT32_MAX);
	assert_int_equal(wakers_use(w, 7, 100), 0);
	wakers_free(w);
	wakers_free(NULL);
}

/* Moments that are as far apart as threads' numbers are: the later of the two is found, and is taken for no other. */
static void test_alike(void **state)
{
	const uint64_t apart = (uint64_t)(7 ^ 8) << 40;
	struct wakers *w = wakers_new();

	(void)state;
	add(w, 7, 100, 70);
	add(w, 8, 100 ^ apart, 80);
	assert_true(wakers_use(w, 7, 100) == UINT32_MAX);
	assert_int_equal(wakers_use(w, 8, 100 ^ apart), 1);
	wakers_free(w);
}

static void test_forgotten(void **state)
{
	struct wakers *w = wakers_new();
	size_t empty = wakers_memory_bytes(w);

	(void)state;
	add(w, 7, 100, 70);
	assert_true(wakers_memory_bytes(w) >= empty + sizeof(struct waker));
	wakers_reset(w);
	assert_int_equal(wakers_count(w), 0);
	assert_true(wakers_use(w, 7, 100) == UINT32_MAX);
	add(w, 9, 300, 90);
	assert_int_equal(wakers_use(w, 9, 300), 0);
	wakers_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_by_thread_and_moment),
		cmocka_unit_test(test_used_once),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
