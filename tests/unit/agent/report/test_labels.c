/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of samples of waits and of probes, as profiles have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/probe/probe.h"
#include "agent/report/probe_labels.h"
#include "agent/report/wait_labels.h"
#include "tests/unit/proto/text_profiles.h"

static struct builder *builder;

static int setup(void **state)
{
	(void)state;
	builder = builder_new();
	return !builder;
}

static int teardown(void **state)
{
	(void)state;
	builder_free(builder);
	return 0;
}

static void append_value(struct profiles *p, const struct any_value *value, struct buf *out)
{
	struct str s;

	if (value->kind == VALUE_INT)
		buf_printf(out, "%lld", (long long)value->integer);
	else if (profiles_value_string(p, value, &s))
		buf_append(out, s.data, s.len);
}

/* The sample with these attributes reads "key=value key=value ...". */
static void check_labels(const int32_t *attributes, uint32_t count, const char *expected)
{
	int32_t frame = builder_location(builder, 0, 0x1000, NULL, 0, NULL, 0);
	struct buf text = BUF_EMPTY;
	struct profiles *p = NULL;
	const struct sample *sample;

	builder_event(builder, builder_profile(builder, builder_resource(builder, NULL, 0), &text_cpu_spec),
		      builder_stack(builder, &frame, 1), attributes, count, 0, 5, false, 0);
	assert_int_equal(builder_freeze(builder, 1, 10, &p), 0);
	sample = &p->resources[0].scopes[0].profiles[0].samples[0];
	for (uint32_t i = 0; i < sample->attributes.count; i++) {
		const struct profile_attribute *a = &p->dict.attributes[sample->attributes.items[i]];
		struct str key = profiles_string(p, a->key_strindex);

		buf_printf(&text, "%s%.*s=", i ? " " : "", (int)key.len, key.data);
		append_value(p, &a->value, &text);
	}
	assert_string_equal(buf_text(&text), expected);
	buf_fini(&text);
	profiles_put(p);
}

/* --- probes --- */

static struct probe probes[] = {
	{ .label = "uprobe:/a:f", .args.count = 2, .arg_numbers = { 1, 3 } },
	{ .label = "uretprobe:/a:g", .args.count = 1, .arg_numbers = { PROBE_ARG_RETURN } },
	{ .label = "usdt:/a:p:n" },
};
static const struct probe_set set = { probes, 3, 3 };
static const uint64_t args[] = { 10, 20, 30, (uint64_t)-1 };

static void probe_reads(struct trace_event event, const char *expected)
{
	int32_t attributes[PROBE_LABELS];

	check_labels(attributes, probe_labels_build(builder, &event, args, &set, attributes), expected);
}

static void test_probe_with_arguments(void **state)
{
	(void)state;
	probe_reads((struct trace_event){ .probe = 1, .first_arg = 1, .arg_cnt = 2 },
		    "probe.name=uprobe:/a:f probe.arg1=20 probe.arg3=30");
}

static void test_probe_with_result(void **state)
{
	(void)state;
	probe_reads((struct trace_event){ .probe = 2, .first_arg = 3, .arg_cnt = 1 },
		    "probe.name=uretprobe:/a:g probe.ret=-1");
}

static void test_probe_without_arguments(void **state)
{
	(void)state;
	probe_reads((struct trace_event){ .probe = 3 }, "probe.name=usdt:/a:p:n");
}

/* Fewer that came than there are, and more than are known. */
static void test_other_numbers_of_arguments(void **state)
{
	(void)state;
	probe_reads((struct trace_event){ .probe = 1, .first_arg = 0, .arg_cnt = 1 },
		    "probe.name=uprobe:/a:f probe.arg1=10");
}

static void test_more_arguments_than_are_known(void **state)
{
	(void)state;
	probe_reads((struct trace_event){ .probe = 3, .first_arg = 0, .arg_cnt = 2 }, "probe.name=usdt:/a:p:n");
}

static void test_no_probe(void **state)
{
	const struct trace_event none = { .probe = 0 }, beyond = { .probe = 4 }, first = { .probe = 1 };
	int32_t attributes[PROBE_LABELS];

	(void)state;
	assert_int_equal(probe_labels_build(builder, &none, args, &set, attributes), 0);
	assert_int_equal(probe_labels_build(builder, &beyond, args, &set, attributes), 0);
	assert_int_equal(probe_labels_build(builder, &first, args, NULL, attributes), 0);
}

/* --- waits --- */

static void wait_reads(struct trace_event event, const char *expected)
{
	int32_t attributes[WAIT_LABELS];

	check_labels(attributes, wait_labels_build(builder, NULL, &event, attributes), expected);
}

static void test_no_wait(void **state)
{
	const struct trace_event on_cpu = { .wait = 0, .syscall = 0 };
	int32_t attributes[WAIT_LABELS];

	(void)state;
	assert_int_equal(wait_labels_build(builder, NULL, &on_cpu, attributes), 0);
}

static void test_wait_in_a_call(void **state)
{
	(void)state;
	wait_reads((struct trace_event){ .wait = 1 + WAIT_SLEEPING, .syscall = SYS_futex },
		   "thread.state=sleeping syscall.name=futex");
}

static void test_wait_in_no_call(void **state)
{
	(void)state;
	wait_reads((struct trace_event){ .wait = 1 + WAIT_SLEEPING, .syscall = -1 }, "thread.state=sleeping");
}

/* Numbers that no kernel has, at the end of what is looked up and beyond. */
static void test_wait_in_a_call_without_a_name(void **state)
{
	(void)state;
	wait_reads((struct trace_event){ .wait = 1 + WAIT_SLEEPING, .syscall = 1024 }, "thread.state=sleeping");
}

static void test_wait_in_the_last_call(void **state)
{
	(void)state;
	wait_reads((struct trace_event){ .wait = 1 + WAIT_SLEEPING, .syscall = 1023 }, "thread.state=sleeping");
}

/* The first call of all has the number 0 on x86-64, 0 is io_setup's on arm64. */
static void test_wait_in_the_first_call(void **state)
{
	(void)state;
	wait_reads((struct trace_event){ .wait = 1 + WAIT_SLEEPING, .syscall = 0 },
		   SYS_read == 0 ? "thread.state=sleeping syscall.name=read"
				 : "thread.state=sleeping syscall.name=io_setup");
}

/* The name of the frame between a waker's stack and that of the wait. */
static void separator_reads(const struct waker *waker, const char *expected)
{
	int32_t type = builder_attribute_string(builder, "profile.frame.type", STR(WAKER_TYPE)),
		frame = wait_labels_separator(builder, waker, type);
	struct profiles *p = NULL;
	const struct profile_location *location;
	struct str name;

	builder_event(builder, builder_profile(builder, builder_resource(builder, NULL, 0), &text_cpu_spec),
		      builder_stack(builder, &frame, 1), NULL, 0, 0, 5, false, 0);
	assert_int_equal(builder_freeze(builder, 1, 10, &p), 0);
	location = &p->dict.locations[p->dict.location_count - 1];
	assert_int_equal(location->line_count, 1);
	name = profiles_string(p, p->dict.functions[location->lines[0].function_index].name_strindex);
	assert_int_equal(name.len, strlen(expected));
	assert_memory_equal(name.data, expected, name.len);
	profiles_put(p);
}

static void test_woken_by_a_thread(void **state)
{
	const struct waker waker = { .comm = "fifteen letters", .tid = 7 };

	(void)state;
	separator_reads(&waker, "[woken by fifteen letters]");
}

static void test_woken_by_an_interrupt(void **state)
{
	const struct waker waker = { .comm = "nobody", .is_irq = true };

	(void)state;
	separator_reads(&waker, "[woken by an interrupt]");
}

#define LABEL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LABEL_TEST(test_probe_with_arguments),
		LABEL_TEST(test_probe_with_result),
		LABEL_TEST(test_probe_without_arguments),
		LABEL_TEST(test_other_numbers_of_arguments),
		LABEL_TEST(test_more_arguments_than_are_known),
		LABEL_TEST(test_no_probe),
		LABEL_TEST(test_no_wait),
		LABEL_TEST(test_wait_in_a_call),
		LABEL_TEST(test_wait_in_no_call),
		LABEL_TEST(test_wait_in_a_call_without_a_name),
		LABEL_TEST(test_wait_in_the_last_call),
		LABEL_TEST(test_wait_in_the_first_call),
		LABEL_TEST(test_woken_by_a_thread),
		LABEL_TEST(test_woken_by_an_interrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
