/* SPDX-License-Identifier: Apache-2.0 */
/* The bounded queue: order, its bound, closing, deadlines, and nothing lost or doubled between threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/queue.h"
#include "tests/unit/descriptors.h"

static char items[8];

static void test_order_and_bound(void **state)
{
	struct queue *q = queue_new(3);

	(void)state;
	for (int round = 0; round < 5; round++) { /* the ring wraps at different places */
		assert_int_equal(queue_push(q, &items[0]), 0);
		assert_int_equal(queue_push(q, &items[1]), 0);
		assert_int_equal(queue_push(q, &items[2]), 0);
		assert_int_equal(queue_push(q, &items[3]), -EAGAIN);
		assert_int_equal(queue_count(q), 3);
		assert_ptr_equal(queue_steal_oldest(q), &items[0]);
		assert_int_equal(queue_push(q, &items[3]), 0);
		for (int i = 1; i < 4; i++)
			assert_ptr_equal(queue_pop(q, UINT64_MAX), &items[i]);
		assert_null(queue_steal_oldest(q));
		assert_int_equal(queue_push(q, &items[4]), 0);
		assert_ptr_equal(queue_pop(q, 0), &items[4]);
	}
	queue_free(q);
}

static void test_deadline(void **state)
{
	struct queue *q = queue_new(1);
	uint64_t start = clock_mono_ns();

	(void)state;
	assert_null(queue_pop(q, 0));
	assert_true(clock_mono_ns() - start < 5 * NSEC_PER_SEC);
	start = clock_mono_ns();
	assert_null(queue_pop(q, start + 30 * NSEC_PER_MSEC));
	assert_in_range(clock_mono_ns() - start, 30 * NSEC_PER_MSEC, 10 * NSEC_PER_SEC);
	queue_free(q);
}

static void test_close(void **state)
{
	struct queue *q = queue_new(2);

	(void)state;
	queue_push(q, &items[0]);
	queue_close(q);
	assert_int_equal(queue_push(q, &items[1]), -EPIPE);
	assert_ptr_equal(queue_pop(q, UINT64_MAX), &items[0]);
	assert_null(queue_pop(q, UINT64_MAX));
	queue_free(q);
}

static void test_no_room(void **state)
{
	struct queue *q = queue_new(0);

	(void)state;
	assert_int_equal(queue_push(q, items), -EAGAIN);
	assert_null(queue_pop(q, 0));
	queue_free(q);
	assert_null(queue_new(SIZE_MAX / 4));
}

struct popper {
	struct queue *queue;
	_Atomic pid_t tid;
};

static void *pop_for_ever(void *arg)
{
	struct popper *p = arg;

	p->tid = (pid_t)syscall(SYS_gettid);
	return queue_pop(p->queue, UINT64_MAX);
}

/* Until that thread of this process sleeps. */
static void wait_until_asleep(const _Atomic pid_t *tid)
{
	char path[64], line[128], state = 'R';

	for (int ms = 0; state != 'S' && ms < 10000; ms++) {
		FILE *stat;

		usleep(1000);
		if (!*tid)
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", *tid);
		stat = fopen(path, "re");
		assert_non_null(stat);
		assert_non_null(fgets(line, sizeof(line), stat));
		fclose(stat);
		state = strrchr(line, ')')[2];
	}
	assert_int_equal(state, 'S');
}

static void test_close_wakes(void **state)
{
	struct queue *q = queue_new(1);
	struct popper poppers[2] = { { .queue = q }, { .queue = q } };
	pthread_t threads[2];
	void *got = items;

	(void)state;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, pop_for_ever, &poppers[i]);
	for (int i = 0; i < 2; i++)
		wait_until_asleep(&poppers[i].tid);
	queue_close(q);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &got);
		assert_null(got);
	}
	queue_free(q);
}

enum { PRODUCERS = 2, CONSUMERS = 2, ITEMS_EACH = 20000 };

static atomic_uint seen[PRODUCERS * ITEMS_EACH];
static atomic_uint out_of_order;
static struct queue *shared;

static void *produce(void *arg)
{
	size_t first = (size_t)(uintptr_t)arg * ITEMS_EACH;

	for (size_t i = first; i < first + ITEMS_EACH; i++) {
		while (queue_push(shared, &seen[i]) == -EAGAIN)
			sched_yield();
	}
	return NULL;
}

static void *consume(void *arg)
{
	ptrdiff_t last[PRODUCERS] = { -1, -1 };
	atomic_uint *item;

	(void)arg;
	while ((item = queue_pop(shared, UINT64_MAX))) {
		ptrdiff_t i = item - seen;

		atomic_fetch_add(item, 1);
		if (i <= last[i / ITEMS_EACH])
			atomic_fetch_add(&out_of_order, 1);
		last[i / ITEMS_EACH] = i;
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t producers[PRODUCERS], consumers[CONSUMERS];

	(void)state;
	shared = queue_new(16);
	for (uintptr_t i = 0; i < CONSUMERS; i++)
		pthread_create(&consumers[i], NULL, consume, NULL);
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		pthread_create(&producers[i], NULL, produce, (void *)i);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	queue_close(shared);
	for (int i = 0; i < CONSUMERS; i++)
		pthread_join(consumers[i], NULL);
	for (size_t i = 0; i < PRODUCERS * ITEMS_EACH; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(out_of_order, 0);
	queue_free(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_bound), cmocka_unit_test(test_deadline),    cmocka_unit_test(test_close),
		cmocka_unit_test(test_no_room),		cmocka_unit_test(test_close_wakes), cmocka_unit_test(test_threads),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
