/* SPDX-License-Identifier: Apache-2.0 */
/* --probabilistic and --delay: as text, and when sampling is turned off and on. That chance keeps to it is a matter of
 * tests/system/schedule.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "cmd/options/config.h"
#include "cmd/setup/schedule.h"

enum { MOST_MS = 20000 };

static int pauses, runs; /* what the agent was told */
static bool is_paused;

/* Stands in for the agent's. */
int agent_pause(struct agent *a, bool on)
{
	assert_ptr_equal(a, &pauses);
	*(on ? &pauses : &runs) += 1;
	is_paused = on;
	return 0;
}

struct fixture {
	struct loop *loop;
	struct schedule schedule;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ 0 };
	pauses = runs = 0;
	assert_int_equal(loop_new(&f.loop), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	loop_free(f->loop);
	return 0;
}

static struct schedule made(const char *probabilistic, uint64_t delay_ns)
{
	const struct config config = { .probabilistic = probabilistic, .delay_ns = delay_ns };
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct schedule schedule = { 0 };

	assert_int_equal(schedule_init(&schedule, &config, &error), 0);
	return schedule;
}

static void start(struct fixture *f, const char *probabilistic, uint64_t delay_ns)
{
	f->schedule = made(probabilistic, delay_ns);
	assert_int_equal(schedule_start(&f->schedule, f->loop, (struct agent *)&pauses), 0);
}

/* Steps until the agent was told @count times in all. */
static void await(struct fixture *f, int count)
{
	uint64_t end_ns = clock_mono_ns() + MOST_MS * NSEC_PER_MSEC;

	while (pauses + runs < count && clock_mono_ns() < end_ns)
		assert_int_equal(loop_step(f->loop, 10), 0);
	assert_true(pauses + runs >= count);
}

/* Nothing more comes in a while. */
static void stays(struct fixture *f, int count)
{
	uint64_t end_ns = clock_mono_ns() + 30 * NSEC_PER_MSEC;

	while (clock_mono_ns() < end_ns)
		assert_int_equal(loop_step(f->loop, 10), 0);
	assert_int_equal(pauses + runs, count);
}

static void test_always(void **state)
{
	struct fixture *f = *state;

	start(f, NULL, 0);
	assert_false(schedule_is_on(&f->schedule));
	stays(f, 0);
}

static void test_never(void **state)
{
	struct fixture *f = *state;

	start(f, "0", 0);
	assert_true(schedule_is_on(&f->schedule));
	assert_int_equal(pauses, 1); /* drawn once, at once */
	stays(f, 1);
}

static void test_delay(void **state)
{
	const uint64_t began_ns = clock_mono_ns(), delay_ns = 50 * NSEC_PER_MSEC;
	struct fixture *f = *state;

	start(f, NULL, delay_ns);
	assert_true(schedule_is_on(&f->schedule));
	assert_int_equal(pauses + runs, 0); /* who waits is paused by who loads the agent */
	await(f, 1);
	assert_true(clock_mono_ns() >= began_ns + delay_ns);
	assert_int_equal(runs, 1);
	stays(f, 1);
}

/* Each interval is drawn anew, so that both come. */
static void test_intervals(void **state)
{
	struct fixture *f = *state;

	start(f, "50/1ms", 0);
	assert_int_equal(pauses + runs, 1);
	await(f, 100);
	assert_true(pauses > 0 && runs > 0);
}

static void test_change(void **state)
{
	struct fixture *f = *state;
	struct schedule to = made("0", 0);

	start(f, NULL, 0);
	assert_int_equal(schedule_change(&f->schedule, &to, f->loop), 0);
	assert_int_equal(pauses, 1);
	to = made("100", 0);
	assert_int_equal(schedule_change(&f->schedule, &to, f->loop), 0);
	assert_int_equal(runs, 1);
	stays(f, 2);
	to = made("0/1ms", 0); /* now there are intervals */
	assert_int_equal(schedule_change(&f->schedule, &to, f->loop), 0);
	await(f, 6);
	assert_int_equal(runs, 1);
	to = made("0", 0); /* and none again */
	assert_int_equal(schedule_change(&f->schedule, &to, f->loop), 0);
	stays(f, pauses + runs);
}

/* As long as --delay lasts, a change waits for its end; afterwards it counts at once. */
static void test_change_in_delay(void **state)
{
	struct fixture *f = *state;
	struct schedule to = made("0", 0);

	start(f, NULL, 30 * NSEC_PER_MSEC);
	assert_int_equal(schedule_change(&f->schedule, &to, f->loop), 0);
	assert_int_equal(pauses + runs, 0);
	await(f, 1);
	assert_int_equal(pauses, 1);
	to = made("100", 0);
	assert_int_equal(schedule_change(&f->schedule, &to, f->loop), 0);
	assert_int_equal(runs, 1);
	stays(f, 2);
}

static void test_wrong(void **state)
{
	const struct config config = { .probabilistic = "101" };
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct schedule schedule;

	(void)state;
	assert_int_equal(schedule_init(&schedule, &config, &error), -EINVAL);
	assert_non_null(strstr(buf_text(&error), "'101' is not a percentage"));
}

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int err;
		double percent;
		uint64_t interval_ns;
	} cases[] = {
		{ "10", 0, 10, 0 },
		{ "10%", 0, 10, 0 },
		{ "0.5/1m", 0, 0.5, 60000000000 },
		{ "100/250ms", 0, 100, 250000000 },
		{ "0/5", 0, 0, 5000000000 },
		{ "5%/2h", 0, 5, 7200000000000 },
		{ "", -EINVAL, 0, 0 },
		{ "101", -EINVAL, 0, 0 },
		{ "-1", -EINVAL, 0, 0 },
		{ "nan", -EINVAL, 0, 0 },
		{ "10/", -EINVAL, 0, 0 },
		{ "10/0", -EINVAL, 0, 0 },
		{ "10/soon", -EINVAL, 0, 0 },
		{ "10 /1m", -EINVAL, 0, 0 },
		{ "10%1m", -EINVAL, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double percent = 0;
		uint64_t interval_ns = 0;

		if (schedule_parse(cases[i].text, &percent, &interval_ns) != cases[i].err)
			fail_msg("'%s'", cases[i].text);
		assert_true(percent == cases[i].percent);
		assert_true(interval_ns == cases[i].interval_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test_setup_teardown(test_always, setup, teardown),
		cmocka_unit_test_setup_teardown(test_never, setup, teardown),
		cmocka_unit_test_setup_teardown(test_delay, setup, teardown),
		cmocka_unit_test_setup_teardown(test_intervals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_change, setup, teardown),
		cmocka_unit_test_setup_teardown(test_change_in_delay, setup, teardown),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
