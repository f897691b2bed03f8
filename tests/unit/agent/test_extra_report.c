/* SPDX-License-Identifier: Apache-2.0 */
/* Reports out of turn: when each is made, when its stacks go out without names, and that each timer is given back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/agent_state.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"

/* --- the loop, the clock and the agent --- */

enum { TIMERS = 4 };

static struct timer {
	void (*fn)(void *arg);
	void *arg;
	uint64_t ns, every_ns;
	bool is_there;
} timers[TIMERS];

static uint64_t told_ns;
static int add_error, set_error;
static unsigned reports, handed_over;

static int add_timer(void (*fn)(void *arg), void *arg, struct loop_watch **ret)
{
	if (add_error)
		return add_error;
	for (size_t i = 0; i < TIMERS; i++) {
		if (timers[i].is_there)
			continue;
		timers[i] = (struct timer){ .fn = fn, .arg = arg, .is_there = true };
		*ret = (struct loop_watch *)(void *)&timers[i];
		return 0;
	}
	return -ENOMEM;
}

static int set_timer(struct loop_watch *watch, uint64_t ns, uint64_t every_ns)
{
	struct timer *t = (struct timer *)(void *)watch;

	assert_true(t->is_there);
	t->ns = ns;
	t->every_ns = every_ns;
	return set_error;
}

static void remove_timer(struct loop_watch *watch)
{
	struct timer *t = (struct timer *)(void *)watch;

	assert_true(t->is_there);
	t->is_there = false;
}

#define loop_add_timer(loop, fn, arg, ret)  add_timer(fn, arg, ret)
#define loop_set_timer(watch, ns, every_ns) set_timer(watch, ns, every_ns)
#define loop_remove(watch)		    remove_timer(watch)
#define clock_mono_ns()			    told_ns
#define agent_report(agent)		    ((void)(agent), reports++)
#define agent_hand_over_held(agent)	    ((void)(agent), handed_over++)

#include "agent/extra_report.c"

static struct agent agent;

static int setup(void **state)
{
	(void)state;
	memset(timers, 0, sizeof(timers));
	memset(&agent, 0, sizeof(agent));
	told_ns = 1000 * NSEC_PER_SEC;
	add_error = set_error = 0;
	reports = handed_over = 0;
	return 0;
}

static unsigned count_timers(void)
{
	unsigned count = 0;

	for (size_t i = 0; i < TIMERS; i++)
		count += timers[i].is_there;
	return count;
}

/* --- tests --- */

/* A report is made when the last samples of its time have settled; names have a quarter of a second. */
static void test_a_report(void **state)
{
	(void)state;
	assert_int_equal(agent_report_at(&agent, told_ns + 5 * NSEC_PER_SEC), 0);
	assert_int_equal(timers[0].ns, 5 * NSEC_PER_SEC + 40 * NSEC_PER_MSEC);
	assert_int_equal(timers[0].every_ns, 0);
	assert_int_equal(reports, 0);
	timers[0].fn(timers[0].arg);
	assert_int_equal(reports, 1);
	assert_int_equal(handed_over, 0);
	assert_int_equal(timers[0].ns, 250 * NSEC_PER_MSEC);
	timers[0].fn(timers[0].arg);
	assert_int_equal(reports, 1);
	assert_int_equal(handed_over, 1);
	assert_int_equal(count_timers(), 0);
	assert_null(agent.extra_reports);
}

/* A time that is over is reported at once, but for what must settle. */
static void test_times_that_are_over(void **state)
{
	(void)state;
	assert_int_equal(agent_report_at(&agent, told_ns), 0);
	assert_int_equal(timers[0].ns, 40 * NSEC_PER_MSEC);
	assert_int_equal(agent_report_at(&agent, told_ns - 40 * NSEC_PER_MSEC), 0);
	assert_int_equal(timers[1].ns, 1);
	assert_int_equal(agent_report_at(&agent, 0), 0);
	assert_int_equal(timers[2].ns, 1);
	agent_drop_extra_reports(&agent);
}

/* Each has its own time, and one that ends leaves the others. */
static void test_several(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(agent_report_at(&agent, told_ns + i * NSEC_PER_SEC), 0);
	for (int twice = 0; twice < 2; twice++)
		timers[1].fn(timers[1].arg);
	assert_int_equal(reports, 1);
	assert_int_equal(handed_over, 1);
	assert_true(timers[0].is_there && !timers[1].is_there && timers[2].is_there);
	for (int twice = 0; twice < 2; twice++)
		timers[0].fn(timers[0].arg);
	for (int twice = 0; twice < 2; twice++)
		timers[2].fn(timers[2].arg);
	assert_int_equal(reports, 3);
	assert_int_equal(count_timers(), 0);
}

static void test_dropped(void **state)
{
	(void)state;
	agent_drop_extra_reports(&agent);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(agent_report_at(&agent, told_ns), 0);
	timers[0].fn(timers[0].arg);
	agent_drop_extra_reports(&agent);
	assert_int_equal(count_timers(), 0);
	assert_null(agent.extra_reports);
	assert_int_equal(handed_over, 0);
}

static void test_no_timer(void **state)
{
	(void)state;
	add_error = -EMFILE;
	assert_int_equal(agent_report_at(&agent, told_ns), -EMFILE);
	assert_null(agent.extra_reports);
	add_error = 0;
	set_error = -EIO;
	assert_int_equal(agent_report_at(&agent, told_ns), -EIO);
	assert_null(agent.extra_reports);
	assert_int_equal(count_timers(), 0);
}

/* Where the timer cannot be set again the stacks go out at once. */
static void test_no_second_timer(void **state)
{
	(void)state;
	assert_int_equal(agent_report_at(&agent, told_ns), 0);
	set_error = -EIO;
	timers[0].fn(timers[0].arg);
	assert_int_equal(reports, 1);
	assert_int_equal(handed_over, 1);
	assert_int_equal(count_timers(), 0);
}

#define REPORT_TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REPORT_TEST(test_a_report), REPORT_TEST(test_times_that_are_over),
		REPORT_TEST(test_several),  REPORT_TEST(test_dropped),
		REPORT_TEST(test_no_timer), REPORT_TEST(test_no_second_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
