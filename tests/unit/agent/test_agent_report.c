/* SPDX-License-Identifier: Apache-2.0 */
/* An agent's reports, with parts that only tell: which samples are counted as delivered and which as lost, intervals that
 * wait for names, and the last one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/agent/parts_told.h"
#include "tests/unit/descriptors.h"

/* Whose names come later. */
static struct file slow = { .index = &coming };

/* --- reports --- */

static void test_report(void **state)
{
	(void)state;
	a.interval_start_ns = 995 * NSEC_PER_SEC;
	a.rows_saved_ns = now_ns;
	agent_report(&a);
	assert_called("asleep run " SETTLED);
	assert_int_equal(a.interval_start_ns, now_ns);
	now_ns += 5 * NSEC_PER_SEC;
	add_event(&first, 0, 2, 100);
	add_event(&first, 0, 2, 10);
	add_event(&first, 1, 0, 7);
	add_event(&first, 0, 3, 5);
	a.heaps = (struct heaps *)&calls;
	expired = 2;
	agent_report(&a);
	assert_called(
		"asleep run heaps runtimes look-10 look-11 first 1000-1005 build consume put settle=1005 expire filter-10 "
		"forget-11 filter-11 facts expire-files settle-rings memory ");
	a.heaps = NULL;
	expired = 0;
	assert_false(procs[0].context_is_fresh || procs[1].context_is_fresh);
	assert_int_equal(first.event_count, 0);
	assert_int_equal(a.delivered[2].samples, 2);
	assert_int_equal(a.delivered[2].value, 110);
	assert_int_equal(a.delivered[0].samples, 1);
	assert_int_equal(a.delivered[0].value, 7);
	assert_int_equal(a.delivered[3].value, 5);
	/* a sample of before the interval's begin */
	add_event(&first, 0, 0, 1);
	a.in.oldest_ns = 1003 * NSEC_PER_SEC;
	now_ns += 5 * NSEC_PER_SEC;
	agent_report(&a);
	assert_called("asleep run runtimes look-10 first 1003-1010 build consume put settle=1010 " SETTLED);
	assert_int_equal(a.in.oldest_ns, 0);
	add_event(&first, 0, 0, 1);
	a.in.oldest_ns = 1012 * NSEC_PER_SEC;
	now_ns += 5 * NSEC_PER_SEC;
	agent_report(&a);
	assert_called("asleep run runtimes look-10 first 1010-1015 build consume put settle=1015 " SETTLED);
}

static void test_losses(void **state)
{
	(void)state;
	a.rows_saved_ns = now_ns;
	add_event(&first, 0, 1, 30);
	add_event(&first, 0, 1, 40);
	failing = "build";
	failure = -ENOMEM;
	agent_report(&a);
	assert_called("asleep run runtimes look-10 first 0-1000 build settle=1000 " SETTLED);
	assert_int_equal(a.in.counts.lost[LOSS_MEMORY][1].samples, 2);
	assert_int_equal(a.in.counts.lost[LOSS_MEMORY][1].value, 70);
	for (int i = 0; i < 2; i++) {
		failing = "consume";
		failure = i ? -EIO : -EAGAIN;
		add_event(&first, 0, 2, 50);
		agent_report(&a);
		assert_int_equal(a.in.counts.lost[LOSS_SINK][2].samples, i + 1);
		assert_int_equal(a.in.counts.lost[LOSS_SINK][2].value, 50 * (i + 1));
		assert_int_equal(a.sink_error, i ? -EIO : 0);
	}
	assert_int_equal(a.delivered[1].samples + a.delivered[2].samples, 0);
	failing = NULL;
	first.wakers[0] = (struct waker){ .kind = 4, .value = 9 };
	first.wakers[1] = (struct waker){ .kind = 4, .value = 90, .is_used = true };
	first.waker_count = 2;
	agent_report(&a); /* also where there is nothing else */
	assert_int_equal(a.in.counts.lost[LOSS_ALONE][4].samples, 1);
	assert_int_equal(a.in.counts.lost[LOSS_ALONE][4].value, 9);
	assert_int_equal(first.waker_count, 0);
}

/* Rows are kept each ten minutes. */
static void test_rows(void **state)
{
	(void)state;
	a.rows_saved_ns = now_ns - 600 * NSEC_PER_SEC;
	agent_report(&a);
	assert_called("asleep run " SETTLED);
	now_ns++;
	failing = "save-rows";
	failure = -ENOSPC;
	agent_report(&a);
	assert_called("asleep run " EXPIRE "save-rows settle-rings memory ");
	assert_true(is_said_last("unwind rows are not kept: No space left on device"));
	assert_int_equal(a.rows_saved_ns, now_ns);
	agent_report(&a);
	assert_called("asleep run " SETTLED);
}

/* --- names that come later --- */

static void test_held(void **state)
{
	struct file known = { .index = NULL };

	(void)state;
	a.rows_saved_ns = a.interval_start_ns = now_ns;
	now_ns += 5 * NSEC_PER_SEC;
	add_event(&first, 0, 0, 1);
	add_frame(&first, &known);
	add_frame(&first, &slow);
	agent_report(&a);
	assert_called("asleep run runtimes look-10 " SETTLED);
	assert_ptr_equal(a.held, &first);
	assert_ptr_equal(a.in.traces, &second);
	assert_int_equal(a.held_named, 1); /* the first frame's come no more */
	on_names(names_arg);
	assert_called("");
	coming.state = FILE_INDEX_DONE;
	on_names(names_arg);
	assert_called("first 1000-1005 build consume put settle=1005 ");
	assert_int_equal(a.held->event_count, 0);

	/* until the next interval ends, at most; then it goes before that one */
	coming.state = FILE_INDEX_COMING;
	for (int i = 0; i < 2; i++) {
		struct traces *t = a.in.traces;

		add_event(t, i ? 2 : 1, 0, 1);
		if (!i)
			add_frame(t, &slow);
		now_ns += 5 * NSEC_PER_SEC;
		agent_report(&a);
	}
	assert_called(
		"asleep run runtimes look-11 " SETTLED
		"asleep run runtimes look-12 second 1005-1010 build consume put settle=1010 first 1010-1015 build consume "
		"put settle=1015 " SETTLED);
	add_event(a.in.traces, 0, 0, 1);
	add_frame(a.in.traces, &slow);
	agent_report(&a);
	buf_reset(&calls);
	agent_hand_over_held(&a);
	assert_called("first 1015-1015 build consume put settle=1015 ");
}

/* --- the end --- */

static void test_stop(void **state)
{
	(void)state;
	a.interval_start_ns = a.rows_saved_ns = now_ns;
	rounds = 3;
	a.heaps = (struct heaps *)&calls;
	a.report_timer->first_ns = a.cpu_timer->first_ns = 1;
	add_event(&first, 0, 0, 1);
	failing = "consume";
	failure = -EIO;
	assert_int_equal(agent_stop(&a, now_ns + NSEC_PER_SEC), -EIO);
	assert_called(
		"drop-extra asleep disable always-wait run-all run-all run-all heaps-end tell-indexes runtimes look-10 "
		"first 1000-1000 build consume put settle=1000 " SETTLED "save-rows misses ");
	assert_int_equal(a.report_timer->first_ns, 0);
	assert_int_equal(a.cpu_timer->first_ns, 0);
	assert_int_equal(agent_stop(&a, 0), 0); /* once */
	assert_called("");
}

/* The last samples wait for their names until the deadline, and that is said when it is long. */
static void test_last_names(void **state)
{
	const uint64_t began = now_ns;

	(void)state;
	log_warn("nothing else");
	add_event(&first, 0, 0, 1);
	add_frame(&first, &slow);
	names_come_ns = began + 990 * NSEC_PER_MSEC;
	assert_int_equal(agent_stop(&a, began + 60 * NSEC_PER_SEC), 0);
	assert_int_equal(now_ns, began + NSEC_PER_SEC);
	assert_int_equal(last_slice_ms, 50);
	assert_non_null(
		strstr(buf_text(&calls), "tell-indexes runtimes look-10 first 0-1001 build consume put settle=1001 "));
}

static void test_late_names(void **state)
{
	const uint64_t began = now_ns;

	(void)state;
	add_event(&second, 0, 0, 1); /* that of the interval before, which is held */
	add_frame(&second, &slow);
	a.held_start_ns = 990 * NSEC_PER_SEC;
	a.held_end_ns = 995 * NSEC_PER_SEC;
	log_warn("nothing else");
	assert_int_equal(agent_stop(&a, began + 900 * NSEC_PER_MSEC), 0);
	assert_true(is_said_last("nothing else"));
	assert_int_equal(now_ns, began + 900 * NSEC_PER_MSEC); /* and no longer */
	assert_non_null(strstr(buf_text(&calls), "second 990-995 build consume put settle=995 "));
	a.stopped = false;
	add_event(&second, 0, 0, 1);
	add_frame(&second, &slow);
	a.held_named = 0;
	assert_int_equal(agent_stop(&a, now_ns + 2500 * NSEC_PER_MSEC), 0);
	assert_int_equal(now_ns, began + 3400 * NSEC_PER_MSEC);
	assert_true(is_said_last("waiting for the names of 5 files, 2.5 s at most"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_report), TEST(test_losses),	  TEST(test_rows),	 TEST(test_held),
		TEST(test_stop),   TEST(test_last_names), TEST(test_late_names),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
