/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of /proc/stat, and what this machine's says beside the kernel's other count of the same. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/proc/cpu_idle.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/descriptors.h"

static const struct {
	const char *line;
	bool is_cpu;
	uint32_t cpu;
	uint64_t ticks;
} lines[] = {
	{ "cpu0 1 2 3 40 5 6 7 8 9 10\n", true, 0, 45 },
	{ "cpu4095 4705 356 584 18446744073 0 6 7 8 9 10\n", true, 4095, 18446744073 },
	{ "cpu7 0 0 0 3 4", true, 7, 7 },
	{ "cpu  10 20 30 40 50 60 70 0 0 0\n", false, 0, 0 },
	{ "cpu1 1 2 3\n", false, 0, 0 },
	{ "cpu\n", false, 0, 0 },
	{ "intr 1 2 3 4 5 6\n", false, 0, 0 },
	{ "", false, 0, 0 },
};

static void test_lines(void **state)
{
	uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		uint64_t idle_ns;
		uint32_t cpu;

		print_message("%s\n", lines[i].line);
		assert_int_equal(cpu_idle_parse(lines[i].line, &cpu, &idle_ns), lines[i].is_cpu);
		if (!lines[i].is_cpu)
			continue;
		assert_int_equal(cpu, lines[i].cpu);
		assert_int_equal(idle_ns, lines[i].ticks * tick_ns);
	}
}

struct sum {
	uint64_t idle_ns;
	long cpus;
};

static void add(void *arg, uint32_t cpu, uint64_t idle_ns)
{
	struct sum *sum = arg;

	(void)cpu;
	sum->cpus++;
	sum->idle_ns += idle_ns;
}

/* The second number of /proc/uptime is how long all CPUs were idle, but for disks. */
static void test_machine(void **state)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/uptime", "re");
	struct sum sum = { 0 };
	double up, idle;

	(void)state;
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lf %lf", &up, &idle), 2);
	assert_int_equal(cpu_idle_each(add, &sum), 0);
	assert_int_equal(sum.cpus, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true((double)sum.idle_ns * 1e-9 > idle - 1 - 0.01 * up);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_machine) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
