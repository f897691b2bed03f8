/* SPDX-License-Identifier: Apache-2.0 */
/* Events one by one: threads told apart, each stack once, and the order of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proto/sums/timeline.h"
#include "tests/unit/proto/text_profiles.h"

static const struct builder_profile_spec waits = { "s", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 },
					 counts = { "s", "1", "hits", "count", "", "", 0, NULL, 0 };

struct seen {
	const struct builder_profile_spec *spec;
	int64_t pid, tid;
	const char *thread, *stack; /* leaf first */
	int64_t cpu;		    /* -1: not told */
	uint64_t time_unix_ns;
	int64_t value; /* 0: none */
};

static int32_t stack_of(struct builder *b, const char *text)
{
	AUTO_FREE char *copy = strdup(text);
	char *rest = copy, *frame;
	int32_t frames[8];
	uint32_t count = 0;

	while ((frame = strsep(&rest, ";")))
		frames[count++] = text_frame(b, frame);
	return builder_stack(b, frames, count);
}

static struct profiles *make(const struct seen *seen, size_t count)
{
	struct builder *b = builder_new();
	struct profiles *p = NULL;

	assert_non_null(b);
	for (size_t i = 0; i < count; i++) {
		const struct seen *s = &seen[i];
		const struct key_value process[] = {
			{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = s->pid } },
			{ .key = STR("process.executable.name"), .value = { .kind = VALUE_STRING, .string = STR("app") } },
		};
		int32_t attributes[3] = { builder_attribute_string(b, "thread.name", text_str(s->thread)),
					  builder_attribute_int(b, "thread.id", s->tid) };
		uint32_t n = 2;

		if (s->cpu >= 0)
			attributes[n++] = builder_attribute_int(b, "cpu.logical_number", s->cpu);
		builder_event(b, builder_profile(b, builder_resource(b, process, 2), s->spec), stack_of(b, s->stack),
			      attributes, n, 0, s->time_unix_ns, s->value != 0, s->value);
	}
	assert_int_equal(builder_freeze(b, 1, 1000, &p), 0);
	builder_free(b);
	return p;
}

static struct timeline *timeline_of(struct profiles *p)
{
	struct timeline *t = NULL;

	assert_int_equal(timeline_new(p, &t), 0);
	return t;
}

/* Events of a thread stand together, in the order of time; sorted by time they do not. */
static void test_orders(void **state)
{
	static const struct seen seen[] = {
		{ &text_cpu_spec, 1, 1, "a", "f@m", -1, 30, 0 },
		{ &text_cpu_spec, 1, 2, "b", "f@m", -1, 20, 0 },
		{ &text_cpu_spec, 1, 1, "a", "g@m", -1, 10, 0 },
		{ &text_cpu_spec, 1, 2, "b", "g@m", -1, 10, 0 },
	};
	static const uint64_t by_thread[] = { 10, 30, 10, 20 }, by_time[] = { 10, 10, 20, 30 };
	struct profiles *p = make(seen, ARRAY_LEN(seen));
	struct timeline *t = timeline_of(p);

	(void)state;
	assert_int_equal(t->event_count, 4);
	assert_int_equal(t->thread_count, 2);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(t->events[i].time_unix_ns, by_thread[i]);
		assert_int_equal(t->events[i].thread, i / 2);
	}
	timeline_sort_by_time(t);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(t->events[i].time_unix_ns, by_time[i]);
	assert_int_equal(t->events[0].thread, 0);
	assert_int_equal(t->events[1].thread, 1);
	timeline_free(t);
	profiles_put(p);
}

/* A thread is its pid, its tid and its name. */
static void test_threads_are_told_apart(void **state)
{
	static const struct seen seen[] = {
		{ &text_cpu_spec, 1, 1, "a", "f@m", -1, 10, 0 }, { &text_cpu_spec, 1, 1, "a", "f@m", -1, 11, 0 },
		{ &text_cpu_spec, 1, 1, "b", "f@m", -1, 12, 0 }, { &text_cpu_spec, 1, 2, "a", "f@m", -1, 13, 0 },
		{ &text_cpu_spec, 2, 1, "a", "f@m", -1, 14, 0 },
	};
	struct profiles *p = make(seen, ARRAY_LEN(seen));
	struct timeline *t = timeline_of(p);

	(void)state;
	assert_int_equal(t->thread_count, 4);
	for (size_t i = 0; i < t->event_count; i++) {
		const struct seen *s = &seen[t->events[i].time_unix_ns - 10];
		const struct timeline_thread *thread = &t->threads[t->events[i].thread];

		assert_int_equal(thread->pid, s->pid);
		assert_int_equal(thread->tid, s->tid);
		assert_int_equal(thread->comm.len, 1);
		assert_memory_equal(thread->comm.data, s->thread, 1);
		assert_int_equal(thread->process.len, 3);
		assert_memory_equal(thread->process.data, "app", 3);
	}
	timeline_free(t);
	profiles_put(p);
}

/* A stack is kept once, leaf first, however many events have it. */
static void test_stacks(void **state)
{
	static const struct seen seen[] = {
		{ &text_cpu_spec, 1, 1, "a", "leaf@m;root@m", -1, 10, 0 },
		{ &text_cpu_spec, 1, 2, "b", "leaf@m;root@m", -1, 11, 0 },
		{ &text_cpu_spec, 1, 1, "a", "root@m", -1, 12, 0 },
	};
	struct profiles *p = make(seen, ARRAY_LEN(seen));
	struct timeline *t = timeline_of(p);

	(void)state;
	assert_int_equal(t->stack_count, 2);
	assert_int_equal(t->frame_id_count, 3);
	timeline_sort_by_time(t);
	assert_int_equal(t->events[0].stack, t->events[1].stack);
	assert_int_not_equal(t->events[0].stack, t->events[2].stack);
	for (size_t i = 0; i < 3; i += 2) {
		const struct timeline_stack *stack = &t->stacks[t->events[i].stack];
		const struct frame *first = &t->frames[t->frame_ids[stack->first]],
				   *last = &t->frames[t->frame_ids[stack->first + stack->count - 1]];

		assert_int_equal(stack->count, i ? 1 : 2);
		assert_memory_equal(first->function.data, i ? "root" : "leaf", 4);
		assert_memory_equal(last->function.data, "root", 4);
	}
	timeline_free(t);
	profiles_put(p);
}

/* A sample of CPU time weighs its period. */
static void test_weights_of_time(void **state)
{
	static const struct seen seen[] = { { &text_cpu_spec, 1, 1, "a", "f@m", 3, 10, 0 },
					    { &text_cpu_spec, 1, 1, "a", "f@m", 3, 12, 0 } };
	struct profiles *p = make(seen, ARRAY_LEN(seen));
	struct timeline *t = timeline_of(p);

	(void)state;
	assert_true(t->is_time);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(t->events[i].weight, text_cpu_spec.period);
		assert_int_equal(t->events[i].samples, 1);
		assert_int_equal(t->events[i].cpu, 3);
	}
	assert_int_equal(t->sum.events, 2);
	timeline_free(t);
	profiles_put(p);
}

static void test_weights_of_counts(void **state)
{
	static const struct seen seen[] = { { &counts, 1, 1, "a", "f@m", -1, 10, 40 } };
	struct profiles *p = make(seen, ARRAY_LEN(seen));
	struct timeline *t = timeline_of(p);

	(void)state;
	assert_false(t->is_time);
	assert_int_equal(t->event_count, 1);
	assert_int_equal(t->events[0].weight, 40);
	assert_int_equal(t->events[0].cpu, -1);
	timeline_free(t);
	profiles_put(p);
}

/* Samples of a second kind are left out, and counted. */
static void test_one_kind(void **state)
{
	static const struct seen seen[] = { { &text_cpu_spec, 1, 1, "a", "f@m", -1, 10, 0 },
					    { &waits, 1, 7, "w", "g@m", -1, 11, 5000 } };
	struct profiles *p = make(seen, ARRAY_LEN(seen));
	struct timeline *t = timeline_of(p);

	(void)state;
	assert_int_equal(t->event_count, 1);
	assert_int_equal(t->thread_count, 1);
	assert_int_equal(t->stack_count, 1);
	assert_int_equal(t->sum.other_events, 1);
	timeline_free(t);
	profiles_put(p);
}

static void test_nothing(void **state)
{
	struct profiles *p = make(NULL, 0);
	struct timeline *t = timeline_of(p);

	(void)state;
	assert_int_equal(t->event_count, 0);
	assert_int_equal(t->thread_count, 0);
	timeline_sort_by_time(t);
	timeline_free(t);
	timeline_free(NULL);
	profiles_put(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_threads_are_told_apart),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_weights_of_time),
		cmocka_unit_test(test_weights_of_counts),
		cmocka_unit_test(test_one_kind),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
