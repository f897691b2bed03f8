/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's life with parts that only tell: the sources of events, what starts it, and when it reports. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/agent/parts_told.h"
#include "tests/unit/descriptors.h"

/* --- sources of events --- */

static void test_watches(void **state)
{
	const int before = open_descriptors();

	(void)state;
	assert_int_equal(watch_count, 7);
	assert_int_equal(a.side_band_watch->fd, SIDE_BAND_FD);
	assert_int_equal(a.ring_watch->fd, RING_FD);
	assert_int_equal(a.clock_watch->fd, a.clock_fd);
	a.clock_watch->on_fd(&a, a.clock_fd, 1);
	assert_called("refresh ");
	agent_unwatch(&a);
	assert_called("drop-extra ");
	for (unsigned i = 0; i < 7; i++)
		assert_true(watches[i].is_removed);
	assert_int_equal(open_descriptors(), before - 1);
	for (unsigned i = 1; i <= 7; i++) {
		watch_count = 0;
		watch_fails_at = i;
		memset(watches, 0, sizeof(watches));
		a = (struct agent){ .in.sampler = a_sampler, .loop = a_loop, .clock_fd = -1 };
		assert_int_equal(agent_watch(&a), -ENOSPC);
		assert_int_equal(watch_count, i - 1);
		agent_unwatch(&a);
		for (unsigned k = 0; k < i - 1; k++)
			assert_true(watches[k].is_removed);
	}
	assert_int_equal(open_descriptors(), before - 1);
	a.clock_fd = -1;
}

static void test_intake(void **state)
{
	(void)state;
	a.ring_watch->on_fd(&a, RING_FD, 1);
	assert_called("run ");
	assert_int_equal(a.settle_timer->set_cnt, 0);
	rounds = 2;
	a.ring_watch->on_fd(&a, RING_FD, 1);
	assert_called("run ");
	assert_int_equal(a.settle_timer->first_ns, 3 * NSEC_PER_MSEC);
	assert_int_equal(a.settle_timer->interval_ns, 0);
	a.side_band_watch->on_fd(&a, SIDE_BAND_FD, 1); /* the rest can wait for that timer */
	assert_called("side-band ");
	a.settle_timer->on_time(&a);
	assert_called("run ");
	assert_int_equal(a.settle_timer->set_cnt, 1);
	a.side_band_watch->on_fd(&a, SIDE_BAND_FD, 1);
	assert_called("run ");
	assert_int_equal(a.code_timer->set_cnt, 0);
	code_is_used = true;
	a.side_band_watch->on_fd(&a, SIDE_BAND_FD, 1);
	a.side_band_watch->on_fd(&a, SIDE_BAND_FD, 1);
	assert_called("run run ");
	assert_int_equal(a.code_timer->set_cnt, 1);
	assert_int_equal(a.code_timer->first_ns, 250 * NSEC_PER_MSEC);
	assert_int_equal(a.code_timer->interval_ns, 250 * NSEC_PER_MSEC);
	a.code_timer->on_time(&a);
	assert_called("run code ");
}

static void test_hooks(void **state)
{
	(void)state;
	wait_hook_run(&code_hook);
	wait_hook_run(&files_hook);
	assert_called("ahead ahead ");
	wait_hook_run(&opener_hook);
	wait_hook_run(&proc_hook);
	assert_called("keep keep ");
	a.in.sampler = NULL; /* there is none yet */
	wait_hook_run(&opener_hook);
	assert_called("");
	a.in.sampler = a_sampler;
}

static void test_cpus(void **state)
{
	(void)state;
	a.cpu_timer->on_time(&a);
	assert_called("cpus side-band ");
	a.pids.is_ours = false;
	a.cpu_timer->on_time(&a);
	assert_called("cpus reread publish-10 side-band ");
	failing = "cpus";
	failure = -EMFILE;
	a.cpu_timer->on_time(&a);
	assert_true(is_said_last("a CPU is not sampled: Too many open files"));
}

/* --- starting --- */

static void test_start(void **state)
{
	struct agent_error error;

	(void)state;
	assert_int_equal(agent_start(&a, &error), 0);
	assert_called("enable ");
	assert_string_equal(error.message, "");
	assert_int_equal(a.interval_start_ns, now_ns);
	assert_int_equal(a.rows_saved_ns, now_ns);
	assert_int_equal(a.report_timer->first_ns, 5 * NSEC_PER_SEC);
	assert_int_equal(a.report_timer->interval_ns, 0);
	assert_int_equal(a.cpu_timer->first_ns, NSEC_PER_SEC);
	assert_int_equal(a.cpu_timer->interval_ns, NSEC_PER_SEC);
	a.paused = true;
	a.heaps = (struct heaps *)&calls;
	assert_int_equal(agent_start(&a, &error), 0);
	assert_called("heaps-begin ");
	a.heaps = NULL;
	failing = "enable";
	failure = -EPERM;
	assert_int_equal(agent_pause(&a, false), -EPERM);
	assert_false(a.paused);
	assert_int_equal(agent_start(&a, &error), -EPERM);
	assert_string_equal(error.message, "cannot enable the sampling events: Operation not permitted");
	failing = "timer";
	failure = -EIO;
	assert_int_equal(agent_start(&a, &error), -EIO);
	failing = NULL;
	buf_reset(&calls);
	assert_int_equal(agent_pause(&a, true), 0);
	assert_true(a.paused);
	assert_int_equal(agent_pause(&a, false), 0);
	assert_int_equal(agent_add_pid(&a, 77), 0);
	assert_called("disable enable add-pid ");
}

/* Intervals are drawn anew each time, within their bounds. */
static void test_jitter(void **state)
{
	uint64_t least = UINT64_MAX, most = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		agent_set_interval(&a, 10 * NSEC_PER_SEC, 0.25);
		least = a.report_timer->first_ns < least ? a.report_timer->first_ns : least;
		most = a.report_timer->first_ns > most ? a.report_timer->first_ns : most;
	}
	assert_in_range(least, 7500 * NSEC_PER_MSEC, 8000 * NSEC_PER_MSEC);
	assert_in_range(most, 12000 * NSEC_PER_MSEC, 12500 * NSEC_PER_MSEC);
	agent_set_interval(&a, 3 * NSEC_PER_SEC, 0);
	assert_int_equal(a.report_timer->first_ns, 3 * NSEC_PER_SEC);
	assert_int_equal(a.report_due_ns, now_ns + 3 * NSEC_PER_SEC);
}

/* An interval begins when the one before was due, however late that was reported. */
static void test_due(void **state)
{
	const uint64_t began = now_ns;

	(void)state;
	agent_set_interval(&a, 5 * NSEC_PER_SEC, 0);
	now_ns = began + 7 * NSEC_PER_SEC;
	a.report_timer->on_time(&a);
	assert_int_equal(a.report_due_ns, began + 10 * NSEC_PER_SEC);
	assert_int_equal(a.report_timer->first_ns, 3 * NSEC_PER_SEC);
	now_ns = began + 40 * NSEC_PER_SEC;
	a.report_timer->on_time(&a);
	assert_int_equal(a.report_due_ns, now_ns + 1); /* at once */
	assert_int_equal(a.report_timer->first_ns, 1);
	now_ns = a.report_due_ns + 5 * NSEC_PER_SEC; /* the next is due just now */
	a.report_timer->on_time(&a);
	assert_int_equal(a.report_timer->first_ns, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_watches), TEST(test_intake), TEST(test_hooks), TEST(test_cpus),
		TEST(test_start),   TEST(test_jitter), TEST(test_due),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
