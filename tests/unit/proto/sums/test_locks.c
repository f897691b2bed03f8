/* SPDX-License-Identifier: Apache-2.0 */
/* Locks, who waited for them and who let them go; and what is no lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/buf.h"
#include "proto/report/report.h"
#include "proto/sums/locks.h"
#include "tests/unit/proto/text_profiles.h"

static const struct builder_profile_spec waits = { "s", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 },
					 wakers = { "s", "1", "waker", "nanoseconds", "", "", 0, NULL, 0 },
					 counts = { "s", "1", "contentions", "count", "", "", 0, NULL, 0 };

/* Samples: stacks leaf first. "|waker" is the frame between a waker's stack and that of the wait. */
static const struct {
	const struct builder_profile_spec *spec;
	int64_t pid;
	const char *target, *stack;
	uint64_t ms;
} samples[] = {
	{ &waits, 7, "futex 0x10",
	  "futex_wait@[kernel];__lll_lock_wait@libc.so.6;pthread_mutex_lock@libc.so.6;take@shop;main@shop", 600 },
	{ &waits, 7, "futex 0x10", "futex_wait@[kernel];pthread_mutex_lock@shop;other@shop;main@shop", 200 },
	{ &waits, 7, "futex 0x20", "futex_wait@[kernel];syscall@libc.so.6", 50 },
	{ &waits, 8, "futex 0x10", "futex_wait@[kernel];bare@shop", 300 },
	{ &waits, 9, "futex 0x90",
	  "futex_wait@[kernel];sem_wait@libc.so.6;PyThread_acquire_lock_timed@python3.11;lock_PyThread_acquire_lock@python3."
	  "11;reserve@shop.py",
	  10 },
	{ &waits, 9, "futex 0x91", /* as above, of a runtime without its static functions' names */
	  "futex_wait@[kernel];sem_wait@libc.so.6;PyThread_acquire_lock_timed@python3.11;@python3.11;reserve@shop.go", 8 },
	{ &waits, 9, "futex 0x92", "futex_wait@[kernel];sem_wait@libc.so.6;@shop;main@shop", 6 },
	{ &waits, 8, "pipe:[7]", "pipe_read@[kernel];read@libc.so.6;bare@shop", 9000 },
	{ &waits, 8, NULL, "bare@shop", 9000 },
	{ &text_cpu_spec, 8, "futex 0x10", "bare@shop", 0 },
	{ &wakers, 7, "futex 0x10",
	  "wake@[kernel];pthread_mutex_unlock@libc.so.6;give@shop;run@shop;|waker;futex_wait@[kernel];take@shop", 500 },
	{ &counts, 7, "futex 0x10", "futex_wait@[kernel];pthread_mutex_lock@shop;take@shop;main@shop", 80 }, /* million */
	{ &counts, 7, "pipe:[7]", "pipe_read@[kernel];read@libc.so.6;bare@shop", 5 },
	{ &wakers, 7, "futex 0x10", "give@shop;futex_wait@[kernel];take@shop", 500 }, /* cut: who wakes is not told */
};

static int32_t make_frame(struct builder *b, const char *text)
{
	struct profile_line line = { 0 };
	int32_t type;
	char name[64];

	if (strcmp(text, "|waker") != 0) {
		snprintf(name, sizeof(name), "%s", text);
		return text_frame(b, name);
	}
	type = builder_attribute_string(b, "profile.frame.type", STR("waker"));
	line.function_index = builder_function(b, builder_string_z(b, "[woken by holder]"), 0, 0, 0);
	return builder_location(b, 0, 0, &line, 1, &type, 1);
}

static struct profiles *make(void)
{
	struct builder *b = builder_new();
	struct profiles *p;

	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		struct key_value process[2] = {
			{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = samples[i].pid } },
			{ .key = STR("process.executable.name"), .value = { .kind = VALUE_STRING, .string = STR("shop") } },
		};
		AUTO_FREE char *copy = strdup(samples[i].stack);
		int32_t stack[16], attribute = 0;
		char *rest = copy, *frame;
		uint32_t depth = 0;

		while ((frame = strsep(&rest, ";")))
			stack[depth++] = make_frame(b, frame);
		if (samples[i].target)
			attribute = builder_attribute_string(b, "wait.target", text_str(samples[i].target));
		builder_event(b, builder_profile(b, builder_resource(b, process, 2), samples[i].spec),
			      builder_stack(b, stack, depth), &attribute, samples[i].target != NULL, 0, 5, samples[i].ms > 0,
			      (int64_t)samples[i].ms * 1000000);
	}
	assert_int_equal(builder_freeze(b, 1, 10, &p), 0);
	builder_free(b);
	return p;
}

static void test_table(void **state)
{
	static const char expected[] =
		"7 samples, 1.2 s of waits for 6 locks\n"
		"\n"
		"    WAIT s     WAITS    MEAN ms   SAMPLES       PID  PROCESS                   LOCK\n"
		"     0.800  80000000      0.000         2         7  shop                      futex 0x10\n"
		"             waits  75.00%  take (pthread_mutex_lock)\n"
		"             waits  25.00%  other (pthread_mutex_lock)\n"
		"            let go 100.00%  holder: give (pthread_mutex_unlock)\n"
		"     0.300         -          -         1         8  shop                      futex 0x10\n"
		"             waits 100.00%  bare\n"
		"     0.050         -          -         1         7  shop                      futex 0x20\n"
		"             waits 100.00%  [no function of the program]\n"
		"     0.010         -          -         1         9  shop                      futex 0x90\n"
		"             waits 100.00%  reserve (lock_PyThread_acquire_lock)\n"
		"     0.008         -          -         1         9  shop                      futex 0x91\n"
		"             waits 100.00%  reserve (PyThread_acquire_lock_timed)\n"
		"     0.006         -          -         1         9  shop                      futex 0x92\n"
		"             waits 100.00%  shop (no symbols) (sem_wait)\n";
	const struct report_style style = { .max_rows = 10 }, first = { .max_rows = 1 };
	AUTO(put_profiles) struct profiles *p = make();
	AUTO(buf_fini) struct buf out = BUF_EMPTY, less = BUF_EMPTY;
	struct locks *l = locks_new(NULL);

	(void)state;
	assert_int_equal(locks_add(l, p), 0);
	assert_int_equal(report_locks(l, &style, &out), 0);
	assert_string_equal(buf_text(&out), expected);
	assert_int_equal(locks_add(l, p), 0); /* a second capture */
	assert_int_equal(report_locks(l, &first, &less), 0);
	assert_non_null(strstr(buf_text(&less), "     1.600  160000000      0.000         4         7  shop"));
	assert_non_null(strstr(buf_text(&less), "(5 more)\n"));
	locks_free(l);
}

static void test_none(void **state)
{
	const struct report_style style = { .max_rows = 10 };
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct locks *l = locks_new(NULL);

	(void)state;
	assert_int_equal(report_locks(l, &style, &out), 0);
	assert_string_equal(buf_text(&out), "0 samples, 0.0 s of waits for 0 locks\n");
	locks_free(l);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_table), cmocka_unit_test(test_none) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
