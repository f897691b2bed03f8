/* SPDX-License-Identifier: Apache-2.0 */
/* The memory_limiter: from which byte on it refuses, how often it looks, and what it tries first. Memory and time are the
 * test's. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/usage.h"
#include "sinks/stage/stage_sink.h"
#include "tests/unit/proto/text_profiles.h"

static uint64_t told_ns, told_bytes, bytes_given_back;
static unsigned looks, gives;
static long told_pages;

static struct usage look_at_usage(void)
{
	looks++;
	return (struct usage){ .resident_bytes = told_bytes };
}

static void give_back(void)
{
	gives++;
	told_bytes -= bytes_given_back;
}

#define clock_mono_ns()	   told_ns
#define usage_of_process() look_at_usage()
#define memory_give_back() give_back()
#define sysconf(what)	   ((what) == _SC_PHYS_PAGES ? told_pages : 4096)

#include "sinks/stage/limit.c"

/* The next sink. */
static unsigned consumed;
static int next_error;

static int next_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	(void)sink;
	(void)p;
	(void)ack;
	consumed++;
	return next_error;
}

static void next_free(struct sink *sink)
{
	(void)sink;
}

static const struct sink_ops next_ops = { .name = "next", .consume = next_consume, .free = next_free };
static struct sink next = { &next_ops };
static struct metrics *metrics;
static struct profiles *profiles; /* of 5 samples */
static struct sink *stage;

static int setup(void **state)
{
	(void)state;
	metrics = metrics_new();
	profiles = text_profiles("app;main@app 5\n", 0);
	told_ns = 1000 * NSEC_PER_SEC;
	told_bytes = bytes_given_back = 0;
	looks = gives = consumed = 0;
	next_error = 0;
	told_pages = 1000000;
	return !profiles;
}

static int teardown(void **state)
{
	(void)state;
	if (stage)
		sink_free(stage);
	stage = NULL;
	profiles_put(profiles);
	metrics_free(metrics);
	return 0;
}

static void begin(struct stage_limit limit)
{
	limit.check_interval_ns = NSEC_PER_SEC;
	assert_int_equal(stage_limit_new(&limit, &next, metrics, &stage), 0);
}

/* A second later the process takes @bytes: profiles are taken, or not. */
static void takes(uint64_t bytes, bool taken)
{
	const unsigned before = consumed;

	told_ns += NSEC_PER_SEC;
	told_bytes = bytes;
	assert_int_equal(sink_consume(stage, profiles, NULL), taken ? 0 : -EAGAIN);
	assert_int_equal(consumed, before + taken);
}

static uint64_t refused(void)
{
	return metric_get(metrics_counter(metrics, "hearth_memory_limiter_refused_samples_total", NULL, ""));
}

/* The limit less the spike is the first that is too much. */
static void test_bytes(void **state)
{
	(void)state;
	begin((struct stage_limit){ .limit_bytes = 1000, .spike_bytes = 200 });
	takes(799, true);
	takes(800, false);
	takes(1200, false);
	takes(0, true);
	assert_int_equal(refused(), 10);
}

/* Parts of the machine's memory, where no bytes are given. */
static void test_percent(void **state)
{
	const uint64_t percent = 1000000ull * 4096 / 100;

	(void)state;
	begin((struct stage_limit){ .limit_percent = 50, .spike_percent = 20 });
	takes(30 * percent - 1, true);
	takes(30 * percent, false);
}

static void test_bytes_before_percent(void **state)
{
	(void)state;
	begin((struct stage_limit){ .limit_bytes = 1000, .limit_percent = 50, .spike_percent = 20 });
	takes(999, true);
	takes(1000, false);
}

/* Nobody knows how much memory there is: nothing is too much. */
static void test_no_machine(void **state)
{
	(void)state;
	told_pages = -1;
	begin((struct stage_limit){ .limit_percent = 50 });
	takes(1ull << 50, true);
}

/* Between two looks what was seen last counts. */
static void test_how_often_it_looks(void **state)
{
	(void)state;
	begin((struct stage_limit){ .limit_bytes = 1000 });
	takes(10, true);
	assert_int_equal(looks, 1);
	told_bytes = 5000;
	told_ns += NSEC_PER_SEC - 1;
	assert_int_equal(sink_consume(stage, profiles, NULL), 0);
	assert_int_equal(looks, 1);
	told_ns++;
	assert_int_equal(sink_consume(stage, profiles, NULL), -EAGAIN);
	told_bytes = 10;
	assert_int_equal(sink_consume(stage, profiles, NULL), -EAGAIN);
	told_ns += NSEC_PER_SEC;
	looks = 0; /* the message about a refusal tells the memory, too */
	assert_int_equal(sink_consume(stage, profiles, NULL), 0);
	assert_int_equal(looks, 1);
}

/* Memory that can be given back is, before anything is refused. */
static void test_given_back(void **state)
{
	(void)state;
	begin((struct stage_limit){ .limit_bytes = 1000 });
	takes(999, true);
	assert_int_equal(gives, 0);
	bytes_given_back = 500;
	takes(1400, true);
	assert_int_equal(gives, 1);
	takes(1500, false);
	assert_int_equal(gives, 2);
}

/* The next sink's errors are the producer's, and no refusals. */
static void test_errors(void **state)
{
	(void)state;
	begin((struct stage_limit){ .limit_bytes = 1000 });
	next_error = -EIO;
	assert_int_equal(sink_consume(stage, profiles, NULL), -EIO);
	assert_int_equal(refused(), 0);
}

#define LIMIT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIMIT_TEST(test_bytes),
		LIMIT_TEST(test_percent),
		LIMIT_TEST(test_bytes_before_percent),
		LIMIT_TEST(test_no_machine),
		LIMIT_TEST(test_how_often_it_looks),
		LIMIT_TEST(test_given_back),
		LIMIT_TEST(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
