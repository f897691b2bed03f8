/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's parts, all of them made up: in which order they are made, of what, and freed; and that whichever of them
 * fails, nothing stays, and it is said which.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/agent/parts_made.h"
#include "tests/unit/descriptors.h"

static struct agent_error error;

static int start(void)
{
	agent = NULL;
	thing_count = 0;
	return agent_new(&config, (struct loop *)&agent, some_metrics, (struct sink *)&kinds, &agent, &error);
}

#define CALLED(wanted)                                           \
	do {                                                     \
		assert_string_equal(buf_text(&calls), (wanted)); \
		buf_reset(&calls);                               \
	} while (0)

#define MIDDLE                                                                                                      \
	"files indexes follow-files runtimes facts objects code processes follow-code on-map pending kernel-names " \
	"traces traces of-objects of-objects limit limit names truths modules interval sampler attach late targets waits "
#define STOPPED                                                                                                      \
	"no-hook detach ~late ~waits ~targets ~sampler ~interval ~modules ~truths ~names ~traces ~traces "           \
	"~kernel-names ~pending intake-fini ~processes ~code ~objects ~facts ~runtimes ~indexes ~files proc-reader-" \
	"stop "

static void test_order(void **state)
{
	(void)state;
	assert_int_equal(start(), 0);
	CALLED("kernel pids readers " MIDDLE "side-band choose-cpus cpus scan tell-chains watch metrics ");
	assert_ptr_equal(agent->out, &kinds);
	assert_ptr_equal(agent->in.metrics, some_metrics);
	assert_int_equal(agent->report_interval_ns, 9);
	assert_int_equal(agent->in.kind_cnt, 1);
	assert_int_equal(agent->in.contention_kind, 0);
	assert_null(agent->code_reader);
	assert_string_equal(error.message, "");
	agent_free(agent);
	CALLED("metrics-off unwatch ~side-band " STOPPED);
	assert_int_equal(alive, 0);
	agent_free(NULL);
	CALLED("");
}

/* What agent_prepare() has started is taken; heaps and contentions have their kinds' numbers. */
static void test_kinds(void **state)
{
	struct readers readers = { 0 };

	(void)state;
	config.readers = &readers;
	kinds.count = 3;
	kinds.list[1] = (struct session_kind){ .kind = &kind_alloc_objects, .what = { .freq_hz = 21 } };
	kinds.list[2] = (struct session_kind){ .kind = &kind_contention, .what = { .freq_hz = 22 } };
	kinds.allocs = (struct alloc_set *)&things;
	config.heap_at_end = true;
	assert_int_equal(start(), 0);
	CALLED("pids readers-take " MIDDLE
	       "side-band at-once choose-cpus cpus scan tell-chains 1-at-end-heaps watch metrics ");
	assert_int_equal(agent->in.contention_kind, 2);
	agent_free(agent);
	CALLED("metrics-off unwatch ~heaps ~side-band " STOPPED);
	config.filter.no_inherit = true; /* children are nobody's */
	assert_int_equal(start(), 0);
	assert_null(strstr(buf_text(&calls), "at-once"));
	agent_free(agent);
	assert_int_equal(alive, 0);
}

/* With a filter only processes that were sampled have a heap that is read. */
static void test_filters(void **state)
{
	struct agent_filter rows[] = { { .pid_count = 1 },    { .tid_count = 1 },	{ .uid_count = 1 },
				       { .cgroup_count = 1 }, { .container_count = 1 }, { .comm_count = 1 },
				       { .min_age_ns = 1 },   { .kernel_only = true },	{ .follow_pids_only = true } };

	(void)state;
	kinds.list[0].kind = &kind_alloc_objects;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		config.filter = rows[i];
		assert_int_equal(start(), 0);
		if (!strstr(buf_text(&calls), " 0-sampled-heaps "))
			fail_msg("filter %zu: %s", i, buf_text(&calls));
		agent_free(agent);
		buf_reset(&calls);
	}
	assert_int_equal(alive, 0);
}

/* Whatever fails, all that was there is freed, and the message names the part. */
static void test_failures(void **state)
{
	static const struct {
		const char *step, *part;
	} rows[] = {
		{ "kernel", "the kernel" },
		{ "pids", "pids" },
		{ "readers", "readers of programs' files" },
		{ "files", "readers of programs' files" },
		{ "indexes", "readers of programs' files" },
		{ "runtimes", "runtimes" },
		{ "facts", "facts about processes" },
		{ "objects", "processes" },
		{ "code", "processes" },
		{ "processes", "processes" },
		{ "pending", "the order of samples" },
		{ "kernel-names", "names of the kernel" },
		{ "traces", "stacks" },
		{ "traces", "stacks" },
		{ "names", "names" },
		{ "truths", "reports" },
		{ "modules", "reports" },
		{ "interval", "reports" },
		{ "sampler", "the sampler" },
		{ "late", "the late walk" },
		{ "targets", "the late walk" },
		{ "waits", "the late walk" },
		{ "side-band", "the side band" },
		{ "choose-cpus", "perf events" },
		{ "cpus", "perf events" },
		{ "scan", "/proc" },
		{ "watch", "sources of events" },
		{ "metrics", "metrics" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO(buf_fini) struct buf message = BUF_EMPTY;

		begin(state);
		fails_at = i + 1;
		assert_int_equal(start(), -ENOMEM);
		assert_null(agent);
		assert_string_equal(failing, rows[i].step);
		buf_printf(&message, "cannot start the agent: %s: Cannot allocate memory", rows[i].part);
		assert_string_equal(error.message, buf_text(&message));
		if (alive)
			fail_msg("%s: %u things stay: %s", rows[i].step, alive, buf_text(&calls));
	}
	begin(state);
	fails_at = ARRAY_LEN(rows) + 1;
	assert_int_equal(start(), 0); /* there are no more */
	agent_free(agent);
}

/* Errors of perf_event_open(2) in words. */
static void test_events(void **state)
{
	static const struct {
		int failure;
		uint64_t period;
		const char *says;
	} rows[] = {
		{ -ENOENT, 0, "this machine cannot sample on 'cycles' (virtual machines often have" },
		{ -EOPNOTSUPP, 0, "this machine cannot sample on 'cycles' (virtual machines often have" },
		{ -ENODEV, 0, "this machine cannot sample on 'cycles' (virtual machines often have" },
		{ -EINVAL, 0,
		  "the kernel refuses 'cycles' 20 times a second; kernel.perf_event_max_sample_rate allows 777" },
		{ -EINVAL, 1000, "cannot start the agent: perf events: Invalid argument" },
		{ -EACCES, 0, "cannot start the agent: perf events: Permission denied" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		begin(state);
		fails_at = 25;
		failure = rows[i].failure;
		kinds.list[0].what.period = rows[i].period;
		assert_int_equal(start(), rows[i].failure);
		assert_string_equal(failing, "cpus");
		if (strncmp(error.message, rows[i].says, strlen(rows[i].says)))
			fail_msg("'%s' is not: %s", rows[i].says, error.message);
	}
}

/* --- settings --- */

static void test_config(void **state)
{
	const char *option = NULL;

	(void)state;
	config.kinds = NULL;
	assert_int_equal(agent_config_settle(&config, &option, &error), 0);
	assert_string_equal(option, "tid");
	assert_int_equal(config.kinds->count, 2);
	assert_int_equal(agent_config_add_malloc(&config, 55, &error), 0); /* no allocations are asked for */
	CALLED("kinds filter ");
	config.kinds->allocs = (struct alloc_set *)&things;
	strcpy(error.message, "old");
	assert_int_equal(agent_config_add_malloc(&config, 55, &error), 0);
	assert_string_equal(error.message, "");
	fails_at = step_count + 1;
	assert_int_equal(agent_config_add_malloc(&config, 55, &error), -ENOMEM);
	config.readers = calloc(1, sizeof(*config.readers));
	buf_reset(&calls);
	agent_config_fini(&config);
	CALLED("~kinds readers-stop ");
	assert_true(!config.kinds && !config.readers);
	agent_config_fini(&config);
	CALLED("");
	fails_at = step_count + 1;
	failure = -ENOENT;
	assert_int_equal(agent_config_settle(&config, &option, &error), -EINVAL);
	assert_string_equal(option, "event");
	agent_config_fini(&config);
	fails_at = step_count + 2;
	assert_int_equal(agent_config_settle(&config, &option, &error), -ENOENT);
	assert_string_equal(option, "tid");
	agent_config_fini(&config);
	assert_true(agent_is_probe("kprobe:x"));
	assert_false(agent_is_probe("cycles"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_order),    TEST(test_kinds),	TEST(test_filters),
		TEST(test_failures), TEST(test_events), TEST(test_config),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
