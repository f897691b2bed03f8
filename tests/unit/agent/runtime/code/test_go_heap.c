/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/unit/agent/runtime/code/fake_go_heap.h"

static struct fake fake;
static struct buf reply;

static int make(void **state)
{
	(void)state;
	fake_make(&fake);
	buf_reset(&reply);
	return 0;
}

static int destroy(void **state)
{
	(void)state;
	buf_fini(&reply);
	reply = BUF_EMPTY;
	return 0;
}

static struct code_memory memory_of(uint32_t reads, int (*read)(void *arg, uint64_t addr, void *dst, size_t len))
{
	return (struct code_memory){
		.read = read, .arg = &fake, .reads_left = reads, .bytes_left = CODE_MAX_BYTES, .end_ns = UINT64_MAX
	};
}

static int ask(const struct go_heap_request *request)
{
	struct code_memory m = memory_of(CODE_MAX_READS, fake_read);
	int error;

	buf_reset(&reply);
	error = go_heap_read(&m, request, &reply);
	if (!error)
		assert_true(go_heap_is_sound(reply.data, reply.len));
	return error;
}

static const struct go_heap_head *head(void)
{
	return (const void *)reply.data;
}

/* Bucket number @n of the reply. */
static const struct go_heap_bucket *bucket(uint32_t n)
{
	const struct go_heap_bucket *b = (const void *)(head() + 1);

	while (n--)
		b = (const void *)((const uint8_t *)(b + 1) + b->stack_cnt * sizeof(uint64_t));
	return b;
}

static void assert_bucket(uint32_t n, uint64_t size, uint32_t depth, uint64_t allocs, uint64_t old_allocs, uint64_t frees)
{
	const struct go_heap_bucket *b = bucket(n);
	const uint64_t *stack = (const void *)(b + 1);

	assert_int_equal(b->size, size);
	assert_int_equal(b->stack_cnt, depth);
	assert_int_equal(b->allocs, allocs);
	assert_int_equal(b->old_allocs, old_allocs);
	assert_int_equal(b->frees, frees);
	for (uint32_t i = 0; i < depth; i++)
		assert_int_equal(stack[i], 0x401000 + 16 * i);
}

static void test_list(void **state)
{
	struct go_heap_request request = fake_request();

	(void)state;
	assert_int_equal(ask(&request), 0);
	assert_int_equal(head()->rate, FAKE_RATE);
	assert_int_equal(head()->next, 0);
	assert_int_equal(head()->count, 3);
	assert_bucket(0, 4096, 1, 1, 0, 0);
	assert_bucket(1, 1 << 20, 5, 7, 7, 0);
	assert_bucket(2, 64, 3, 12, 10, 4);
}

/* Stacks are told once: new buckets come before those that are known. */
static void test_known(void **state)
{
	struct go_heap_request request = fake_request();

	(void)state;
	request.known = fake.newest;
	fake_bucket(&fake, 32, 2, 1, 1, 0);
	assert_int_equal(ask(&request), 0);
	assert_int_equal(head()->count, 4);
	assert_true(head()->is_known);
	assert_bucket(0, 32, 2, 1, 1, 1);
	assert_bucket(1, 4096, 0, 1, 0, 0);
	assert_bucket(3, 64, 0, 12, 10, 4);
}

static void test_nothing(void **state)
{
	struct go_heap_request request = fake_request();

	(void)state;
	fake_word(&fake, FAKE_BUCKETS_AT, 0);
	assert_int_equal(ask(&request), 0);
	assert_int_equal(head()->count, 0);
	fake_word(&fake, FAKE_BUCKETS_AT, FAKE_BASE + FAKE_FIRST);
	fake_word(&fake, FAKE_RATE_AT, 0);
	assert_int_equal(ask(&request), 0);
	assert_true(!head()->rate && !head()->count);
	request.rate = 8;
	assert_int_equal(ask(&request), -EFAULT);
}

/* A budget that does not reach leaves the rest for another request. */
static void test_budget(void **state)
{
	struct go_heap_request request = fake_request();
	struct code_memory m = memory_of(64 + 8, fake_read);
	uint64_t next;

	(void)state;
	assert_int_equal(go_heap_read(&m, &request, &reply), 0);
	assert_in_range(head()->count, 1, 2);
	next = head()->next;
	assert_true(next);
	request.from = next;
	assert_int_equal(ask(&request), 0);
	assert_int_equal(head()->next, 0);
	assert_bucket(head()->count - 1, 64, 3, 12, 10, 4);
}

static void test_nonsense(void **state)
{
	const struct {
		uint64_t at, value;
		int error;
	} changes[] = {
		{ FAKE_BUCKETS_AT, FAKE_BASE + FAKE_FIRST + 4, -EBADMSG }, /* not aligned */
		{ FAKE_BUCKETS_AT, FAKE_BASE + FAKE_BYTES, -EFAULT },
		{ FAKE_FIRST + 16, 2, -EBADMSG },		  /* another profile's bucket */
		{ FAKE_FIRST + 40, GO_HEAP_STACK + 1, -EBADMSG }, /* too many frames */
		{ FAKE_FIRST + 32, UINT64_MAX, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		struct go_heap_request request = fake_request();

		fake_make(&fake);
		fake_word(&fake, changes[i].at, changes[i].value);
		assert_int_equal(ask(&request), changes[i].error);
	}
}

/* A list that goes round ends with the budget. */
static void test_circle(void **state)
{
	struct go_heap_request request = fake_request();

	(void)state;
	fake_word(&fake, FAKE_FIRST + 8, fake.newest);
	assert_int_equal(ask(&request), 0);
	assert_true(head()->next && head()->count > 3);
}

/* Memory in which a record is changed: its bytes are not its number times the size, until the third time it is looked at. */
static uint32_t looks;

static int read_changing(void *arg, uint64_t addr, void *dst, size_t len)
{
	uint64_t record = FAKE_BASE + FAKE_FIRST + 48 + 3 * 8;
	int error = fake_read(arg, addr, dst, len);

	if (!error && addr == record && len == 128 && looks && looks--)
		((uint64_t *)dst)[0]++;
	return error;
}

static void test_torn(void **state)
{
	struct go_heap_request request = fake_request();
	struct code_memory m = memory_of(CODE_MAX_READS, read_changing);

	(void)state;
	looks = 2;
	assert_int_equal(go_heap_read(&m, &request, &reply), 0);
	assert_true(head()->count == 3 && !head()->torn_cnt && !looks);
	assert_bucket(2, 64, 3, 12, 10, 4);
	looks = 100;
	buf_reset(&reply);
	assert_int_equal(go_heap_read(&m, &request, &reply), 0);
	assert_true(head()->count == 2 && head()->torn_cnt == 1);
}

/* Replies that no honest reader makes. */
static void test_sound(void **state)
{
	struct go_heap_request request = fake_request();
	struct go_heap_head *h;
	struct go_heap_bucket *b;

	(void)state;
	assert_int_equal(ask(&request), 0);
	h = (void *)reply.data;
	b = (void *)(h + 1);
	assert_false(go_heap_is_sound(reply.data, reply.len - 8));
	assert_false(go_heap_is_sound(reply.data, sizeof(*h) - 1));
	h->count++;
	assert_false(go_heap_is_sound(reply.data, reply.len));
	h->count--;
	b->stack_cnt = GO_HEAP_STACK + 1;
	assert_false(go_heap_is_sound(reply.data, reply.len));
	b->stack_cnt = 1;
	assert_true(go_heap_is_sound(reply.data, reply.len));
	b->frees = b->old_allocs + 1;
	assert_false(go_heap_is_sound(reply.data, reply.len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_list, make, destroy),
		cmocka_unit_test_setup_teardown(test_known, make, destroy),
		cmocka_unit_test_setup_teardown(test_nothing, make, destroy),
		cmocka_unit_test_setup_teardown(test_budget, make, destroy),
		cmocka_unit_test_setup_teardown(test_nonsense, make, destroy),
		cmocka_unit_test_setup_teardown(test_circle, make, destroy),
		cmocka_unit_test_setup_teardown(test_torn, make, destroy),
		cmocka_unit_test_setup_teardown(test_sound, make, destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
