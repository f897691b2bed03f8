/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for whom among questions, with a store whose answers take as long as the test wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <string.h>

#include "backend/api/query_thread.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "tests/unit/backend/api/bare_store.h"

static _Atomic bool is_held;   /* long questions do not end by themselves */
static _Atomic unsigned begun; /* long ones */

static int tell_kinds(struct store *s, const struct store_selection *sel,
		      int (*fn)(void *arg, const struct store_kind *kind), void *arg)
{
	(void)s;
	(void)sel;
	(void)fn;
	(void)arg;
	return 0;
}

/* From the second 7 on it takes long. */
static int tell_labels(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const char *label),
		       void *arg)
{
	int err = 0;

	(void)s;
	if (sel->from_ns == 7 * NSEC_PER_SEC) {
		begun++;
		while (is_held && !err)
			err = store_selection_check(sel);
	}
	return err ? err : fn(arg, "k");
}

static const struct store_read_ops shared_ops = {
	.kinds = tell_kinds, .labels = tell_labels, .status = tell_status, .reader = share
};
static const struct store_write_ops no_write;
static const struct store_maintain_ops no_tasks;
static struct store store = { .read = &shared_ops, .write = &no_write, .maintain = &no_tasks, .close = keep_open };

struct question {
	struct query_job job;
	struct query_param items[2];
	bool is_done;
};

static struct loop *loop;
static struct query_thread *thread;

static void on_done(struct query_job *job)
{
	((struct question *)job)->is_done = true;
}

static void ask(struct question *q, const char *from, const char *to)
{
	*q = (struct question){ .items = { { "from", from }, { "to", to } } };
	q->job.path = "/api/v1/labels";
	q->job.params = (struct query_params){ q->items, ARRAY_LEN(q->items) };
	q->job.symbols_fd = -1;
	q->job.done = on_done;
	assert_int_equal(query_thread_ask(thread, &q->job), 0);
}

static bool wait_for(const struct question *q, uint64_t most_ns)
{
	const uint64_t end_ns = clock_mono_ns() + most_ns;

	while (!q->is_done && clock_mono_ns() < end_ns)
		loop_step(loop, 10);
	return q->is_done;
}

static void wait_until_begun(unsigned count)
{
	while (begun < count)
		loop_step(loop, 1);
}

/* @q, whose asker has left, ends. */
static void assert_given_up(struct question *q)
{
	assert_true(wait_for(q, 10 * NSEC_PER_SEC));
	assert_int_equal(q->job.answer.status, 503);
	buf_fini(&q->job.answer.body);
}

static void setup(void)
{
	const struct api_config config = { .store = &store };
	struct api *api;

	is_held = true;
	begun = 0;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(api_new(&config, &api), 0);
	assert_int_equal(query_thread_new(api, loop, 16, &thread), 0);
}

static void teardown(struct question *questions, size_t count)
{
	is_held = false;
	for (size_t i = 0; i < count; i++) {
		assert_true(wait_for(&questions[i], 60 * NSEC_PER_SEC));
		assert_int_equal(questions[i].job.answer.status, 200);
		assert_string_equal(buf_text(&questions[i].job.answer.body), "{\"labels\":[\"k\"]}");
		buf_fini(&questions[i].job.answer.body);
	}
	query_thread_free(thread);
	loop_free(loop);
}

/* A question that takes its time, and then three more of them, hold up no short one, and are answered in the end. */
static void test_short_ones_pass(void **state)
{
	static const char *const ends[] = { "9", "10", "11", "12" };
	struct question q[6];

	(void)state;
	setup();
	for (size_t i = 0; i < 4; i++)
		ask(&q[i], "7", ends[i]);
	ask(&q[4], "1", "9");
	assert_true(wait_for(&q[4], 20 * NSEC_PER_SEC)); /* behind three that have a second each */
	ask(&q[5], "1", "9");
	assert_true(wait_for(&q[5], 10 * NSEC_PER_SEC));
	for (size_t i = 0; i < 4; i++)
		assert_false(q[i].is_done);
	assert_int_equal(begun, 4);
	teardown(q, ARRAY_LEN(q));
}

/* A question whose asker has left ends soon, though it is being answered; one that waits is not asked at all. */
static void test_nobody_waits(void **state)
{
	struct question q[2];

	(void)state;
	setup();
	ask(&q[0], "7", "9");
	wait_until_begun(1);
	assert_false(query_thread_cancel(thread, &q[0].job));
	assert_given_up(&q[0]);
	ask(&q[1], "1", "9");
	teardown(&q[1], 1);
}

/* Equal questions that wait are asked once, and all are answered; one that is being answered is not waited for, as what was
 * stored since would be missing. */
static void test_equal_ones(void **state)
{
	struct question q[5];

	(void)state;
	setup();
	ask(&q[0], "7", "9");
	wait_until_begun(1);
	for (size_t i = 1; i < 4; i++)
		ask(&q[i], "7", "10"); /* one begins on the second thread and has a second there */
	ask(&q[4], "1", "9");
	assert_true(wait_for(&q[4], 20 * NSEC_PER_SEC));
	for (size_t i = 0; i < 4; i++)
		assert_false(q[i].is_done);
	teardown(q, ARRAY_LEN(q));
	assert_in_range(begun, 3, 5); /* 7 if each were asked: the second thread may begin before it sees all three */
}

/* Those that wait for the same answer as one whose asker leaves are answered all the same. */
static void test_asker_of_many_leaves(void **state)
{
	struct question q[4];

	(void)state;
	setup();
	ask(&q[1], "7", "9");
	wait_until_begun(1);
	ask(&q[0], "7", "9");
	ask(&q[2], "7", "9");
	ask(&q[3], "7", "9");
	wait_until_begun(2);
	query_thread_cancel(thread, &q[0].job);
	assert_given_up(&q[0]);
	assert_false(q[2].is_done || q[3].is_done);
	teardown(&q[1], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_ones_pass),
		cmocka_unit_test(test_nobody_waits),
		cmocka_unit_test(test_equal_ones),
		cmocka_unit_test(test_asker_of_many_leaves),
	};

	return cmocka_run_group_tests_name("query thread", tests, NULL, NULL);
}
