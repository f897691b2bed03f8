/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies: their room, and that it is claimed first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "backend/ingest/body.h"

enum { LARGEST = 300000 };

static struct loop *loop;
static struct budget budget;
static unsigned granted_count;

static int setup(void **state)
{
	(void)state;
	granted_count = 0;
	if (loop_new(&loop))
		return -1;
	budget_init(&budget, loop, 2 * LARGEST, LARGEST);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	loop_free(loop);
	return 0;
}

static void on_granted(struct claim *claim)
{
	(void)body_of_claim(claim);
	granted_count++;
}

static void test_announced(void **state)
{
	static const uint8_t bytes[LARGEST + 1];
	struct body b;
	(void)state;

	body_init(&b, &budget, on_granted);
	assert_int_equal(body_room(&b, 1000), 0);
	assert_int_equal(budget.used_bytes, 1000);
	assert_int_equal(body_append(&b, bytes, 999), 999);
	assert_int_equal(body_append(&b, bytes, 2), 1);
	assert_int_equal(body_append(&b, bytes, 1), 0);
	assert_int_equal(b.len, 1000);
	assert_int_equal(body_room(&b, 500), 0);
	assert_int_equal(b.cap, 1000);
	body_fini(&b);
	body_fini(&b);
	assert_int_equal(budget.used_bytes, 0);
}

static void test_of_unknown_length(void **state)
{
	static uint8_t bytes[LARGEST];
	struct body b;
	size_t len = 0;
	(void)state;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * i >> 3);
	body_init(&b, &budget, on_granted);
	claim_open(&b.claim);
	while (len < LARGEST) {
		size_t taken = body_append(&b, bytes + len, LARGEST - len);
		len += taken;
		if (len == LARGEST)
			break;
		size_t cap = body_next_cap(&b, LARGEST);
		assert_true(cap > b.cap);
		assert_int_equal(body_room(&b, cap), 0);
		assert_int_equal(budget.used_bytes, cap);
	}
	assert_int_equal(body_next_cap(&b, LARGEST), b.cap);
	assert_memory_equal(b.data, bytes, LARGEST);
	body_fini(&b);
	assert_int_equal(budget.growing_bytes, 0);
}

static void test_waits(void **state)
{
	struct body a, b;
	(void)state;

	body_init(&a, &budget, on_granted);
	body_init(&b, &budget, on_granted);
	assert_int_equal(body_room(&a, 2 * LARGEST - 10), 0);
	assert_int_equal(body_room(&b, 11), -EINPROGRESS);
	assert_null(b.data);
	body_fini(&a);
	assert_int_equal(granted_count, 0);
	assert_int_equal(loop_step(loop, 1000), 0);
	assert_int_equal(granted_count, 1);
	assert_int_equal(body_room(&b, 11), 0);
	assert_int_equal(b.cap, 11);
	body_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_announced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_unknown_length, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waits, setup, teardown),
	};
	return cmocka_run_group_tests_name("body", tests, NULL, NULL);
}
