/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind an event is of, what its profiles say of it, profiles of two kinds side by side, and kinds of frames in them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/report/interval.h"
#include "agent/kernel/kernel_names.h"
#include "agent/kind/kind.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "proto/profiles.h"
#include "proto/sums/stack_walk.h"

/* What profiles of -e @event say with that frequency and period, and how it is told. */
static const struct {
	const char *event; /* NULL: none was asked for */
	unsigned freq_hz;
	uint64_t period;
	const struct kind *kind;
	const char *sample_type, *period_type, *period_unit;
	int64_t spec_period;
	const char *told;
	unsigned expected_hz;
} events[] = {
	{ NULL, 100, 0, &kind_cpu, "samples", "cpu", "nanoseconds", 10000000, "100 Hz", 100 },
	{ "cpu-clock", 100, 0, &kind_cpu, "samples", "cpu", "nanoseconds", 10000000, "100 Hz", 100 },
	{ "task-clock", 0, 2000000, &kind_cpu, "samples", "cpu", "nanoseconds", 2000000, "a sample each 2000000 events",
	  500 },
	{ "cpu-clock", 1, 2000000000, &kind_cpu, "samples", "cpu", "nanoseconds", 2000000000,
	  "a sample each 2000000000 events", 1000 },
	{ "page-faults", 20, 0, &kind_cpu, "page-faults", "", "", 0, "20 Hz", 20 },
	{ "page-faults", 20, 7, &kind_cpu, "page-faults", "page-faults", "count", 7, "a sample each 7 events", 1000 },
	{ "cycles:u", 20, 1, &kind_cpu, "cycles:u", "cycles:u", "count", 1, "a sample each event", 1000 },
};

static void test_choice(void **state)
{
	struct session_kinds kinds;
	struct agent_error err = { "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		const struct agent_config config = { .event = events[i].event,
						     .freq_hz = events[i].freq_hz,
						     .period = events[i].period };
		AUTO(buf_fini) struct buf text = BUF_EMPTY;
		struct builder_profile_spec spec = { 0 };

		print_message("%s\n", events[i].event ? events[i].event : "none");
		assert_int_equal(kinds_choose(&config, &kinds, &err), 0);
		assert_int_equal(kinds.count, 1);
		assert_ptr_equal(kinds.list[0].kind, events[i].kind);
		assert_ptr_equal(kinds.list[0].what.ops, &events[i].kind->events);
		assert_false(kinds.list[0].what.attr.exclude_user && !events[i].event);
		kinds.list[0].kind->describe(&kinds.list[0], &spec);
		assert_string_equal(spec.sample_type, events[i].sample_type);
		assert_string_equal(spec.sample_unit, "count");
		assert_string_equal(spec.period_type, events[i].period_type);
		assert_string_equal(spec.period_unit, events[i].period_unit);
		assert_int_equal(spec.period, events[i].spec_period);
		assert_int_equal(kinds.list[0].what.ops->expected_hz(&kinds.list[0].what), events[i].expected_hz);
		kinds_print(&kinds, &text);
		assert_string_equal(buf_text(&text), events[i].told);
	}
}

static void test_defaults(void **state)
{
	const struct agent_config most = { .event = "cpu-clock" }, kernel = { .filter.kernel_only = true, .freq_hz = 9 },
				  unknown = { .event = "cpu-clok", .freq_hz = 9 };
	struct session_kinds kinds;
	struct agent_error err = { "" };

	(void)state;
	assert_int_equal(kinds_choose(&most, &kinds, &err), 0);
	assert_true(kinds.list[0].what.freq_hz == AGENT_MAX_FREQ || kinds.list[0].what.freq_hz == perf_event_max_freq());
	assert_in_range(kinds.list[0].what.freq_hz, 1, AGENT_MAX_FREQ);
	assert_int_equal(kinds_choose(&kernel, &kinds, &err), 0);
	assert_true(kinds.list[0].what.attr.exclude_user);
	assert_string_equal(err.message, "");
	assert_int_equal(kinds_choose(&unknown, &kinds, &err), -EINVAL);
	assert_non_null(strstr(err.message, "cpu-clock"));
}

/* Time off the CPUs comes in two kinds beside that of the event. */
static void test_waits(void **state)
{
	const struct agent_config given = { .freq_hz = 100, .off_cpu_ns = 7000000 },
				  usual = { .freq_hz = 100, .off_cpu_ns = OFF_CPU_USUAL },
				  with_wakers = { .freq_hz = 100, .off_cpu_ns = OFF_CPU_USUAL, .wakers = true },
				  by_period = { .event = "page-faults", .period = 3, .off_cpu_ns = OFF_CPU_USUAL };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct builder_profile_spec spec = { 0 };
	struct session_kinds kinds;
	struct agent_error err = { "" };

	(void)state;
	assert_int_equal(kinds_choose(&given, &kinds, &err), 0);
	assert_int_equal(kinds.count, 4);
	assert_ptr_equal(kinds.list[3].kind, &kind_contention);
	assert_ptr_equal(kinds.list[0].kind, &kind_cpu);
	assert_ptr_equal(kinds.list[1].kind, &kind_off_cpu);
	assert_ptr_equal(kinds.list[2].kind, &kind_runnable);
	assert_int_equal(kinds.list[1].what.period, 7000000);
	kinds_print(&kinds, &text);
	assert_string_equal(buf_text(&text), "100 Hz, waits of 7 ms and longer, shorter ones by chance");
	for (int i = 1; i < 3; i++) {
		kinds.list[i].kind->describe(&kinds.list[i], &spec);
		assert_string_equal(spec.sample_type, i == 1 ? "off_cpu" : "runnable");
		assert_string_equal(spec.sample_unit, "nanoseconds");
		assert_true(!*spec.period_type && !*spec.period_unit && !spec.period);
	}
	assert_int_equal(kinds_choose(&usual, &kinds, &err), 0);
	assert_int_equal(kinds.list[1].what.period, 10000000);
	assert_int_equal(kinds_choose(&by_period, &kinds, &err), 0);
	assert_int_equal(kinds.list[1].what.period, 50000000);
	assert_int_equal(kinds_choose(&with_wakers, &kinds, &err), 0);
	assert_int_equal(kinds.count, 5);
	kinds.list[3].kind->describe(&kinds.list[3], &spec);
	assert_string_equal(spec.sample_type, "waker");
	kinds.list[4].kind->describe(&kinds.list[4], &spec);
	assert_string_equal(spec.sample_type, "contentions");
	assert_string_equal(spec.sample_unit, "count");
}

/* Memory that is touched is a kind, heaps of Go programs are four, beside that of the event. */
static void test_memory(void **state)
{
	static const struct {
		const char *type, *unit, *period_type;
		int64_t period;
	} expected[] = {
		{ "memory", "bytes", "memory", 65536 },	     { "alloc_objects", "count", "space", 524288 },
		{ "alloc_space", "bytes", "space", 524288 }, { "inuse_objects", "count", "space", 524288 },
		{ "inuse_space", "bytes", "space", 524288 },
	};
	const struct agent_config config = { .freq_hz = 100, .memory_bytes = 65536, .heap = true };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct session_kinds kinds;
	struct agent_error err = { "" };

	(void)state;
	assert_int_equal(kinds_choose(&config, &kinds, &err), 0);
	assert_int_equal(kinds.count, 6);
	kinds_print(&kinds, &text);
	assert_string_equal(buf_text(&text), "100 Hz, memory, a sample each 64 KB, heaps of Go programs");
	for (uint32_t i = 0; i < ARRAY_LEN(expected); i++) {
		struct builder_profile_spec spec = { 0 };

		kinds.list[i + 1].kind->describe(&kinds.list[i + 1], &spec);
		assert_string_equal(spec.sample_type, expected[i].type);
		assert_string_equal(spec.sample_unit, expected[i].unit);
		assert_string_equal(spec.period_type, expected[i].period_type);
		assert_string_equal(spec.period_unit, "bytes");
		assert_int_equal(spec.period, expected[i].period);
	}
}

/* By hand: where tracepoints cannot be read none can be chosen. */
static void test_tracepoint(void **state)
{
	struct session_kinds kinds = {
		.list = { { .kind = &kind_tracepoint, .event = "sched:sched_switch", .what = { .freq_hz = 20 } },
			  { .kind = &kind_cpu, .event = "cpu-clock", .what = { .freq_hz = 20 } } },
		.count = 2,
	};
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct builder_profile_spec spec = { 0 };

	(void)state;
	assert_true(kind_tracepoint.has(&attr) && !kind_cpu.has(&attr));
	attr.type = PERF_TYPE_HARDWARE;
	assert_true(!kind_tracepoint.has(&attr) && kind_cpu.has(&attr));
	kind_tracepoint.settle(&kinds.list[0].what);
	kind_tracepoint.describe(&kinds.list[0], &spec);
	assert_string_equal(spec.sample_type, "sched:sched_switch");
	assert_string_equal(spec.period_type, "sched:sched_switch");
	assert_string_equal(spec.period_unit, "count");
	assert_int_equal(spec.period, 1); /* each is a sample */
	kinds_print(&kinds, &text);
	assert_string_equal(buf_text(&text), "a sample each event, 20 Hz");
}

/* --- profiles of two kinds --- */

static int no_answer(struct elf_service *s, const struct elf_request *request, int fd, const void *payload, size_t bytes,
		     struct buf *reply)
{
	(void)s, (void)request, (void)fd, (void)payload, (void)bytes, (void)reply;
	return -ENOEXEC;
}

static void no_free(struct elf_service *s)
{
	(void)s;
}

static void describe_waits(const struct session_kind *k, struct builder_profile_spec *spec)
{
	(void)k;
	spec->sample_type = "waits";
	spec->sample_unit = "nanoseconds";
	spec->period_type = spec->period_unit = "";
}

static const struct elf_service_ops ops = { .call = no_answer, .free = no_free };
static struct elf_service service = { .ops = &ops };
static struct metrics *metrics;
static struct files *files;
static struct kernel_names *kernel;
static struct names *names;
static struct runtimes *runtimes;
static struct truth_counts *truths;
static struct module_status *modules;
static struct traces *traces;

static int make(void **state)
{
	struct file_opener *opener;

	(void)state;
	metrics = metrics_new();
	return !metrics || file_opener_new(metrics, &opener) || files_new(&service, opener, metrics, &files) ||
	       kernel_names_new(-1, metrics, &kernel) || names_new(kernel, metrics, &names) ||
	       runtimes_new(0, files, metrics, &runtimes) || truth_counts_new(metrics, &truths) ||
	       module_status_new(metrics, &modules) || traces_new(NULL, &traces);
}

static int destroy(void **state)
{
	(void)state;
	traces_free(traces);
	truth_counts_free(truths);
	module_status_free(modules);
	names_free(names);
	runtimes_free(runtimes);
	kernel_names_free(kernel);
	files_free(files);
	metrics_free(metrics);
	return 0;
}

static void add(struct process *p, uint16_t kind, uint64_t value)
{
	const struct sample_record record = { .hdr = { .time_ns = 5 }, .pid = p->pid, .kind = kind };
	const struct pending_sample sample = { .record = &record, .value = value };

	assert_int_equal(traces_add(traces, p, &sample, NULL, 0, END_NONE), 0);
}

static void test_two_kinds(void **state)
{
	static const struct kind waits = { .describe = describe_waits };
	const struct agent_config config = { .freq_hz = 100 };
	struct process *p = calloc(1, sizeof(*p));
	const struct profile *profile;
	struct session_kinds kinds;
	struct agent_error err;
	struct profiles *built;
	struct interval *iv;

	(void)state;
	assert_non_null(p);
	p->refs = 1;
	p->pid = 7;
	p->as = address_space_new();
	assert_int_equal(kinds_choose(&config, &kinds, &err), 0);
	kinds.list[kinds.count++] = (struct session_kind){ .kind = &waits };
	assert_int_equal(interval_new(names, runtimes, truths, modules, &config, &kinds, &iv), 0);
	add(p, 1, 4000);
	add(p, 0, 1);
	add(p, 1, 6000);
	add(p, 0, 1);
	add(p, 0, 1);
	assert_int_equal(interval_build(iv, traces, 0, 10, NULL, &built), 0);
	/* one process, one resource */
	assert_true(built->resource_count == 1 && built->resources[0].scope_count == 1);
	assert_int_equal(built->resources[0].scopes[0].profile_count, 2);
	profile = built->resources[0].scopes[0].profiles;
	profile += !str_is(profiles_string(built, profile->sample_type.type_strindex), "waits");
	assert_true(str_is(profiles_string(built, profile->sample_type.type_strindex), "waits"));
	assert_true(str_is(profiles_string(built, profile->sample_type.unit_strindex), "nanoseconds"));
	assert_true(profile->sample_count == 1 && profile->samples[0].value_count == 2);
	assert_int_equal(profile->samples[0].values[0] + profile->samples[0].values[1], 10000);
	profile = &built->resources[0].scopes[0].profiles[profile == built->resources[0].scopes[0].profiles];
	assert_true(str_is(profiles_string(built, profile->sample_type.type_strindex), "samples"));
	assert_int_equal(profile->period, 10000000);
	assert_true(profile->sample_count == 1 && profile->samples[0].value_count == 0);
	assert_int_equal(profile->samples[0].timestamp_count, 3);
	profiles_put(built);
	traces_reset(traces);
	interval_free(iv);
	process_put(p);
}

/* --- kinds of frames --- */

static int create(const struct runtime_context *context, void **ret)
{
	*ret = context->metrics;
	return 0;
}

static void destroy_nothing(void *runtime)
{
	(void)runtime;
}

static bool find(void *runtime, const struct process *p, uint64_t addr, uint64_t time_ns, struct runtime_name *ret)
{
	(void)runtime, (void)p;
	*ret = (struct runtime_name){ .line = { .name = time_ns == 5 ? STR("early") : STR("latest"),
						.system_name = STR(""),
						.file = STR("/src/x.js"),
						.line = 3 },
				      .type = addr == 0x1000 ? "v8js" : NULL };
	return true;
}

static bool varies(void *runtime, const struct process *p)
{
	(void)runtime;
	return p->pid == 8;
}

static int describe_stack(void *arg, const struct stack_sample *s)
{
	for (uint32_t i = 0; i < s->frame_count; i++) {
		const struct frame *f = stack_frame(s, i);

		buf_printf(arg, "%s%.*s %.*s %.*s", i ? "|" : "", (int)f->function.len, f->function.data, (int)f->module.len,
			   f->module.data, (int)f->type.len, f->type.data);
	}
	buf_puts(arg, "\n");
	return 0;
}

/* A frame's type and module are its kind's, but where its name has a type of its own; and its name that of the moment, where
 * there are several. */
static void test_frames(void **state)
{
	static const struct runtime runtime = {
		.create = create, .destroy = destroy_nothing, .find = find, .varies = varies
	};
	static const struct runtime *const table[] = { &runtime };
	const uint64_t frames[] = { 0xffff800000000010 }, user[] = { 0x1000 | FRAME_EXACT, 0x2000 };
	const struct sample_record record = { .hdr = { .time_ns = 5 }, .pid = 7 };
	const struct pending_sample sample = { .record = &record, .kernel = frames, .kernel_cnt = 1, .value = 1 };
	const struct agent_config config = { .freq_hz = 100 };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct process *p[2];
	struct session_kinds kinds;
	struct agent_error err;
	struct profiles *built;
	struct interval *iv;
	struct runtimes *one;

	(void)state;
	assert_int_equal(runtimes_new_of(table, 1, 0, files, metrics, &one), 0);
	assert_int_equal(kinds_choose(&config, &kinds, &err), 0);
	assert_int_equal(interval_new(names, one, truths, modules, &config, &kinds, &iv), 0);
	for (uint32_t i = 0; i < 2; i++) {
		p[i] = calloc(1, sizeof(*p[i]));
		assert_non_null(p[i]);
		p[i]->refs = 1;
		p[i]->pid = 7 + i;
		p[i]->as = address_space_new();
		assert_int_equal(traces_add(traces, p[i], &sample, user, 2, END_ROOT), 0);
		assert_true(traces_last_asks_runtimes(traces));
	}
	assert_int_equal(interval_build(iv, traces, 0, 10, NULL, &built), 0);
	assert_int_equal(stack_walk_each(built, describe_stack, &text), 0);
	assert_string_equal(buf_text(&text), " vmlinux kernel|latest anon v8js|latest anon native\n"
					     " vmlinux kernel|early anon v8js|early anon native\n");
	profiles_put(built);
	traces_reset(traces);
	interval_free(iv);
	runtimes_free(one);
	process_put(p[0]);
	process_put(p[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_tracepoint),
		cmocka_unit_test_setup_teardown(test_two_kinds, make, destroy),
		cmocka_unit_test_setup_teardown(test_frames, make, destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
