/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of names: each address is looked up once while it is met again, and memory stays bounded. Addresses are the
 * kernel's, of which most here have no name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/kernel/kernel_names.h"
#include "agent/names/names.h"
#include "base/metrics.h"
#include "tests/unit/descriptors.h"

enum {
	DEPTH = 50,
	FEW = 1000, /* frames of a usual interval */
	MANY = 40000,
	INTERVALS = 60,
	MOST_BYTES = 3 << 20,
};

static struct metrics *metrics;
static struct kernel_names *kernel;
static struct names *names;
static struct traces *traces;
static struct process *process;

/* The interval's frames are numbers [@from, @from + @count) of a made-up kernel. */
static void name_interval(uint64_t from, uint32_t count)
{
	const struct sample_record record = { .hdr = { .time_ns = 1 } };
	uint64_t stack[DEPTH];
	const struct pending_sample sample = { .record = &record, .kernel = stack, .kernel_cnt = DEPTH, .value = 1 };
	struct frame_name name;

	traces_reset(traces);
	for (uint32_t i = 0; i < count; i += DEPTH) {
		for (uint32_t k = 0; k < DEPTH; k++)
			stack[k] = 0xffff800000000000 + (from + i + k) * 16;
		assert_int_equal(traces_add(traces, process, &sample, NULL, 0, END_ROOT), 0);
	}
	assert_int_equal(traces_frame_count(traces), count);
	assert_int_equal(names_update(names, traces, 0, NULL), 0);
	for (uint32_t i = 0; i < count; i++)
		names_find(names, traces_frame(traces, i), &name);
}

static uint64_t looked_up(void)
{
	return metric_get(metrics_counter(metrics, "hearth_names_looked_up_total", NULL, ""));
}

static int setup(void **state)
{
	static struct process p = { .refs = 1 };

	(void)state;
	metrics = metrics_new();
	process = &p;
	p.as = address_space_new();
	return !metrics || !p.as || kernel_names_new(-1, metrics, &kernel) || names_new(kernel, metrics, &names) ||
	       traces_new(kernel, &traces);
}

static int teardown(void **state)
{
	(void)state;
	traces_free(traces);
	names_free(names);
	kernel_names_free(kernel);
	address_space_put(process->as);
	metrics_free(metrics);
	return 0;
}

static void test_once(void **state)
{
	uint64_t before = looked_up();

	(void)state;
	for (int i = 0; i < 5; i++)
		name_interval(0, FEW);
	assert_int_equal(looked_up(), before + FEW);
}

static void test_bound(void **state)
{
	uint64_t before = looked_up(), next = 1000000;

	(void)state;
	for (int i = 0; i < INTERVALS; i++, next += FEW) {
		name_interval(next, FEW);
		assert_true(names_memory_bytes(names) < MOST_BYTES);
	}
	assert_int_equal(looked_up(), before + INTERVALS * FEW);
	/* An interval of more than are kept otherwise is kept as a whole, ... */
	before = looked_up();
	for (int i = 0; i < 5; i++)
		name_interval(0, MANY);
	assert_true(looked_up() <= before + 2 * MANY);
	assert_true(names_memory_bytes(names) > MOST_BYTES);
	/* ... and its memory goes back when they are few again. */
	for (int i = 0; i < INTERVALS; i++, next += FEW)
		name_interval(next, FEW);
	assert_true(names_memory_bytes(names) < MOST_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_bound),
	};

	return run_group_of_descriptors(tests, setup, teardown);
}
