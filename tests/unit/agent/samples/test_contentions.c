/* SPDX-License-Identifier: Apache-2.0 */
/* How many waits a sample of one stands for: in the mean of many draws as many as there were, whatever their length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/samples/contentions.h"

static uint64_t state = 88172645463325252u;

static inline __attribute__((always_inline)) uint32_t draw_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

#include "bpf/draw.h"

enum { MEAN_NS = 10000000 };

/* Counts the wait from @since_ns to @woken_ns, whose sample has @value; 0: it was not chosen. */
static uint64_t count(uint64_t since_ns, uint64_t woken_ns, uint64_t value)
{
	const struct sample_record record = { 0 };
	const struct wait_info wait = { .since_ns = since_ns, .woken_ns = woken_ns };
	const struct wait_target target = { .kind = TARGET_FUTEX };
	const struct pending_sample s = { .record = &record, .wait = &wait, .target = &target, .value = value };

	return value ? contentions_of(&s) : 0;
}

static void test_mean(void **unused)
{
	static const struct {
		uint64_t ns;
		uint32_t waits;
	} cases[] = { { 3000, 20000000 },  { 123457, 1000000 }, { 7000001, 100000 },
		      { 9999999, 100000 }, { 10000000, 1000 },	{ 70000000, 1000 } };

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t now_ns = 1000000000, sum = 0;
		struct draw d;

		draw_begin(&d, MEAN_NS);
		for (uint32_t n = 0; n < cases[i].waits; n++) {
			sum += count(now_ns, now_ns + cases[i].ns, draw_interval(&d, cases[i].ns, MEAN_NS));
			now_ns += cases[i].ns + 1000 + draw_random() % 1000;
		}
		print_message("%llu ns: %llu of %u\n", (unsigned long long)cases[i].ns, (unsigned long long)sum,
			      cases[i].waits);
		assert_in_range(sum, cases[i].waits * 0.98, cases[i].waits * 1.02);
	}
}

/* A wait that lasts is told in parts, as each interval ends, and is one. */
static void test_parts(void **unused)
{
	struct sample_record record = { .flags = SAMPLE_ASLEEP, .hdr.time_ns = 5000000000 };
	const struct wait_info wait = { .since_ns = 2000000000 };
	struct wait_target target = { .kind = TARGET_FUTEX };
	struct pending_sample s = { .record = &record, .wait = &wait, .target = &target, .value = 3000000000 };

	(void)unused;
	assert_int_equal(contentions_of(&s), 1);
	s.value = 1000000000; /* the last second alone */
	assert_int_equal(contentions_of(&s), 0);
	assert_int_equal(count(2000000000, 5000000000, 1000000000), 0);
	assert_int_equal(count(2000000000, 9000000000, 7000000000), 1); /* at once */
	s.value = 3000000000;
	target.kind = TARGET_PIPE;
	assert_int_equal(contentions_of(&s), 0);
	s.target = NULL;
	assert_int_equal(contentions_of(&s), 0);
	assert_int_equal(count(5, 5, 10000000), 0);
	assert_int_equal(count(5, 0, 10000000), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_mean), cmocka_unit_test(test_parts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
