/* SPDX-License-Identifier: Apache-2.0 */
/* Who was active when: rows, their order, and slots of time that double until a capture of any length fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proto/sums/activity.h"
#include "tests/unit/proto/text_profiles.h"

struct seen {
	const char *executable, *thread; /* NULL: not told */
	int64_t pid, tid;		 /* -1: not told */
	uint64_t time_unix_ns;
};

static void add_seen(struct builder *b, const struct seen *s)
{
	struct key_value process[2];
	int32_t attributes[2], frame = builder_location(b, 0, 0x1000, NULL, 0, NULL, 0);
	uint32_t keys = 0, count = 0;

	if (s->pid >= 0)
		process[keys++] = (struct key_value){ .key = STR("process.pid"),
						      .value = { .kind = VALUE_INT, .integer = s->pid } };
	if (s->executable)
		process[keys++] = (struct key_value){ .key = STR("process.executable.name"),
						      .value = { .kind = VALUE_STRING, .string = text_str(s->executable) } };
	if (s->thread)
		attributes[count++] = builder_attribute_string(b, "thread.name", text_str(s->thread));
	if (s->tid >= 0)
		attributes[count++] = builder_attribute_int(b, "thread.id", s->tid);
	builder_event(b, builder_profile(b, builder_resource(b, process, keys), &text_cpu_spec), builder_stack(b, &frame, 1),
		      attributes, count, 0, s->time_unix_ns, false, 0);
}

static void add(struct activity *a, const struct seen *seen, size_t count)
{
	struct builder *b = builder_new();
	struct profiles *p = NULL;

	assert_non_null(b);
	for (size_t i = 0; i < count; i++)
		add_seen(b, &seen[i]);
	assert_int_equal(builder_freeze(b, 1, UINT64_MAX / 4, &p), 0);
	assert_int_equal(activity_add(a, p), 0);
	profiles_put(p);
	builder_free(b);
}

static struct activity *activity_of(enum activity_rows kind, const struct seen *seen, size_t count)
{
	struct activity *a = activity_new(kind, NULL);

	assert_non_null(a);
	add(a, seen, count);
	return a;
}

/* Two threads of a process make one row, with both counted; the process that was seen more often comes first. */
static void test_processes(void **state)
{
	static const struct seen seen[] = {
		{ "light", "l", 7, 7, 100 },  { "heavy", "main", 8, 8, 200 }, { "heavy", "io", 8, 9, 150 },
		{ "heavy", "io", 8, 9, 300 }, { "light", "l", 7, 7, 90 },
	};
	struct activity *a = activity_of(ACTIVITY_PROCESSES, seen, ARRAY_LEN(seen));
	uint32_t count;
	const struct activity_row *const *rows = activity_rows(a, &count);

	(void)state;
	assert_int_equal(activity_kind(a), ACTIVITY_PROCESSES);
	assert_int_equal(count, 2);
	assert_string_equal(rows[0]->name, "heavy");
	assert_string_equal(rows[0]->process, "");
	assert_int_equal(rows[0]->pid, 8);
	assert_int_equal(rows[0]->tid, -1);
	assert_int_equal(rows[0]->weight, 3);
	assert_int_equal(rows[0]->events, 3);
	assert_int_equal(rows[0]->threads, 2);
	assert_int_equal(rows[0]->first_unix_ns, 150);
	assert_int_equal(rows[0]->last_unix_ns, 300);
	assert_string_equal(rows[1]->name, "light");
	assert_int_equal(rows[1]->threads, 1);
	assert_int_equal(rows[1]->first_unix_ns, 90);
	assert_int_equal(rows[1]->last_unix_ns, 100);
	assert_int_equal(activity_sum(a)->events, 5);
	activity_free(a);
}

static void test_threads(void **state)
{
	static const struct seen seen[] = { { "app", "main", 8, 8, 200 },
					    { "app", "io", 8, 9, 150 },
					    { "app", "io", 8, 10, 160 },
					    { "app", "io", 8, 9, 170 } };
	struct activity *a = activity_of(ACTIVITY_THREADS, seen, ARRAY_LEN(seen));
	uint32_t count;
	const struct activity_row *const *rows = activity_rows(a, &count);

	(void)state;
	assert_int_equal(count, 3);
	assert_string_equal(rows[0]->name, "io");
	assert_string_equal(rows[0]->process, "app");
	assert_int_equal(rows[0]->tid, 9);
	assert_int_equal(rows[0]->pid, 8);
	assert_int_equal(rows[0]->threads, 0);
	assert_int_equal(rows[1]->tid, 10);
	assert_string_equal(rows[2]->name, "main");
	activity_free(a);
}

/* Of rows that weigh the same the name decides, then the pid, then the tid. */
static void test_ties(void **state)
{
	static const struct seen seen[] = { { "b", "t", 1, 5, 10 },
					    { "a", "t", 9, 9, 10 },
					    { "a", "t", 2, 4, 10 },
					    { "a", "t", 2, 3, 10 },
					    { "a", "s", 3, 1, 10 } };
	static const int64_t tids[] = { 1, 5, 3, 4, 9 };
	struct activity *a = activity_of(ACTIVITY_THREADS, seen, ARRAY_LEN(seen));
	uint32_t count;
	const struct activity_row *const *rows = activity_rows(a, &count);

	(void)state;
	assert_int_equal(count, ARRAY_LEN(tids));
	for (size_t i = 0; i < ARRAY_LEN(tids); i++)
		assert_int_equal(rows[i]->tid, tids[i]);
	activity_free(a);
}

static void test_nothing_is_told(void **state)
{
	static const struct seen seen[] = { { NULL, NULL, -1, -1, 10 } };
	struct activity *a = activity_of(ACTIVITY_PROCESSES, seen, 1);
	uint32_t count;
	const struct activity_row *const *rows = activity_rows(a, &count);

	(void)state;
	assert_int_equal(count, 1);
	assert_string_equal(rows[0]->name, "[unknown]");
	assert_int_equal(rows[0]->pid, -1);
	activity_free(a);
}

static void test_nothing_was_seen(void **state)
{
	struct activity *a = activity_new(ACTIVITY_PROCESSES, NULL);
	struct activity_time time = activity_time(a);
	uint32_t count = 7;

	(void)state;
	activity_rows(a, &count);
	assert_int_equal(count, 0);
	assert_int_equal(time.start_unix_ns, 0);
	assert_int_equal(time.slot_ns, 0);
	assert_int_equal(time.slot_count, 0);
	activity_free(a);
	activity_free(NULL);
}

/* --- time --- */

enum { T = 1 << 20 };

/* A process that was seen at each of @times. */
static struct activity *seen_at(const uint64_t *times, size_t count)
{
	struct activity *a = activity_new(ACTIVITY_PROCESSES, NULL);

	for (size_t i = 0; i < count; i++) {
		const struct seen seen = { "app", "t", 1, 1, times[i] };

		add(a, &seen, 1);
	}
	return a;
}

/* One event takes one slot of a nanosecond, the finest there is. */
static void test_one_moment(void **state)
{
	const uint64_t times[] = { T + 5, T + 5 };
	struct activity *a = seen_at(times, 2);
	struct activity_time time = activity_time(a);
	uint32_t count;

	(void)state;
	assert_int_equal(time.start_unix_ns, T + 5);
	assert_int_equal(time.slot_ns, 1);
	assert_int_equal(time.slot_count, 1);
	assert_int_equal(activity_rows(a, &count)[0]->slots[0], 2);
	activity_free(a);
}

/* All slots are used before they are doubled. */
static void test_as_many_as_there_are_slots(void **state)
{
	const uint64_t times[] = { T, T + ACTIVITY_SLOTS - 1 };
	struct activity *a = seen_at(times, 2);
	struct activity_time time = activity_time(a);
	uint32_t count;
	const struct activity_row *row = activity_rows(a, &count)[0];

	(void)state;
	assert_int_equal(time.slot_ns, 1);
	assert_int_equal(time.slot_count, ACTIVITY_SLOTS);
	assert_int_equal(time.start_unix_ns, T);
	assert_int_equal(row->slots[0], 1);
	assert_int_equal(row->slots[ACTIVITY_SLOTS - 1], 1);
	activity_free(a);
}

static void test_one_more_doubles_them(void **state)
{
	const uint64_t times[] = { T, T + 1, T + ACTIVITY_SLOTS };
	struct activity *a = seen_at(times, 3);
	struct activity_time time = activity_time(a);
	uint32_t count;
	const struct activity_row *row = activity_rows(a, &count)[0];

	(void)state;
	assert_int_equal(time.slot_ns, 2);
	assert_int_equal(time.start_unix_ns, T);
	assert_int_equal(time.slot_count, ACTIVITY_SLOTS / 2 + 1);
	assert_int_equal(row->slots[0], 2);
	assert_int_equal(row->slots[ACTIVITY_SLOTS / 2], 1);
	activity_free(a);
}

/* An earlier event moves what is there; nothing of it is lost. */
static void test_backwards(void **state)
{
	const uint64_t times[] = { T + 10, T + 12, T };
	struct activity *a = seen_at(times, 3);
	struct activity_time time = activity_time(a);
	uint32_t count;
	const struct activity_row *row = activity_rows(a, &count)[0];

	(void)state;
	assert_int_equal(time.start_unix_ns, T);
	assert_int_equal(time.slot_count, 13);
	assert_int_equal(row->slots[0], 1);
	assert_int_equal(row->slots[10], 1);
	assert_int_equal(row->slots[12], 1);
	assert_int_equal(row->slots[1] + row->slots[2] + row->slots[11], 0);
	activity_free(a);
}

/* Events in any order over any time: each stands in the slot that its time is in, and the slots are as fine as can be. */
static void test_any_times(void **state)
{
	uint64_t chance = 88172645463325252;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		uint64_t times[12], first = UINT64_MAX, last = 0, wanted[ACTIVITY_SLOTS] = { 0 };
		const unsigned spread = 2 + round % 45;
		struct activity_time time;
		struct activity *a;
		uint32_t count;

		for (size_t i = 0; i < ARRAY_LEN(times); i++) {
			chance ^= chance << 13;
			chance ^= chance >> 7;
			chance ^= chance << 17;
			times[i] = 1700000000000000000 + (chance & ((1ull << spread) - 1));
			first = times[i] < first ? times[i] : first;
			last = times[i] > last ? times[i] : last;
		}
		a = seen_at(times, ARRAY_LEN(times));
		time = activity_time(a);
		assert_true(time.start_unix_ns <= first);
		assert_true(last < time.start_unix_ns + time.slot_count * time.slot_ns);
		assert_in_range(time.slot_count, 1, ACTIVITY_SLOTS);
		assert_true(time.slot_ns == 1 || (last - first) / time.slot_ns >= ACTIVITY_SLOTS / 2 - 2);
		for (size_t i = 0; i < ARRAY_LEN(times); i++)
			wanted[(times[i] - time.start_unix_ns) / time.slot_ns]++;
		assert_memory_equal(activity_rows(a, &count)[0]->slots, wanted, sizeof(wanted));
		activity_free(a);
	}
}

/* The slots are the same times for all rows, also for those that come when slots have been doubled. */
static void test_rows_share_time(void **state)
{
	static const struct seen seen[] = {
		{ "a", "t", 1, 1, T },
		{ "a", "t", 1, 1, T + 4 * ACTIVITY_SLOTS },
		{ "b", "t", 2, 2, T + 4 * ACTIVITY_SLOTS },
		{ "b", "t", 2, 2, T + 3 },
	};
	struct activity *a = activity_of(ACTIVITY_PROCESSES, seen, ARRAY_LEN(seen));
	uint32_t count;
	const struct activity_row *const *rows = activity_rows(a, &count);

	(void)state;
	assert_int_equal(activity_time(a).slot_ns, 8);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(rows[i]->slots[0], 1);
		assert_int_equal(rows[i]->slots[ACTIVITY_SLOTS / 2], 1);
	}
	activity_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_nothing_is_told),
		cmocka_unit_test(test_nothing_was_seen),
		cmocka_unit_test(test_one_moment),
		cmocka_unit_test(test_as_many_as_there_are_slots),
		cmocka_unit_test(test_one_more_doubles_them),
		cmocka_unit_test(test_backwards),
		cmocka_unit_test(test_any_times),
		cmocka_unit_test(test_rows_share_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
