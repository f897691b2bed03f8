/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the kernel: how they are opened, with a kernel of the test's own; what stands behind names. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "agent/config.h"
#include "agent/kernel/perf_event.h"
#include "base/cleanup.h"

static struct {
	struct perf_event_attr attr;
	int pid, cpu, group;
	unsigned long flags;
	int result; /* a descriptor or -errno */
} asked;

long syscall(long number, ...)
{
	va_list args;

	if (number != SYS_perf_event_open) {
		errno = ENOSYS;
		return -1;
	}
	va_start(args, number);
	asked.attr = *va_arg(args, const struct perf_event_attr *);
	asked.pid = va_arg(args, int);
	asked.cpu = va_arg(args, int);
	asked.group = va_arg(args, int);
	asked.flags = (unsigned long)va_arg(args, int);
	va_end(args);
	errno = -asked.result;
	return asked.result < 0 ? -1 : asked.result;
}

/* Time is sampled by a period, all else by a rate; a period that is given counts for both. */
static void test_open(void **state)
{
	static const struct {
		const char *event;
		unsigned freq_hz;
		uint64_t period;
		uint64_t value; /* of sample_period or sample_freq */
		bool is_freq;
	} cases[] = {
		{ "cpu-clock", 99, 0, 10101010, false }, { "task-clock", 1000, 0, 1000000, false },
		{ "page-faults", 99, 0, 99, true },	 { "cycles", 1000, 0, 1000, true },
		{ "cpu-clock", 99, 1, 1, false },	 { "instructions", 99, 100000, 100000, false },
		{ "branch-misses:u", 7, 0, 7, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct perf_event_attr kind = { 0 }, before;
		struct agent_error err;

		assert_int_equal(perf_event_parse(cases[i].event, &kind, &err), 0);
		before = kind;
		asked.result = (int)i; /* 0 is a descriptor, too */
		assert_int_equal(perf_event_open_cpu(&kind, 3, cases[i].freq_hz, cases[i].period), i);
		assert_memory_equal(&kind, &before, sizeof(kind));
		assert_int_equal(asked.attr.type, kind.type);
		assert_int_equal(asked.attr.config, kind.config);
		assert_int_equal(asked.attr.exclude_kernel, kind.exclude_kernel);
		assert_int_equal(asked.attr.size, sizeof(asked.attr));
		assert_int_equal(asked.attr.disabled, 1);
		assert_int_equal(asked.attr.sample_type, PERF_SAMPLE_RAW);
		assert_int_equal(asked.attr.freq, cases[i].is_freq);
		assert_int_equal(asked.attr.sample_period, cases[i].value); /* a union with sample_freq */
		assert_int_equal(asked.pid, -1);
		assert_int_equal(asked.cpu, 3);
		assert_int_equal(asked.group, -1);
		assert_int_equal(asked.flags, PERF_FLAG_FD_CLOEXEC);
		asked.result = -EACCES;
		assert_int_equal(perf_event_open_cpu(&kind, 0, 1, 0), -EACCES);
		assert_int_equal(asked.cpu, 0);
	}
}

static void test_modifiers(void **state)
{
	static const struct {
		const char *text;
		unsigned user, kernel, hypervisor, precise; /* excluded; how precise */
	} cases[] = {
		{ "cycles", 0, 0, 0, 0 },     { "cycles:u", 0, 1, 1, 0 },   { "cycles:k", 1, 0, 1, 0 },
		{ "cycles:h", 1, 1, 0, 0 },   { "cycles:uk", 0, 0, 1, 0 },  { "cycles:ukh", 0, 0, 0, 0 },
		{ "cycles:p", 0, 0, 0, 1 },   { "cycles:ppp", 0, 0, 0, 3 }, { "cycles:pppp", 0, 0, 0, 3 },
		{ "cycles:pup", 0, 1, 1, 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct perf_event_attr attr = { 0 };
		struct agent_error err;

		assert_int_equal(perf_event_parse(cases[i].text, &attr, &err), 0);
		if (attr.exclude_user != cases[i].user || attr.exclude_kernel != cases[i].kernel ||
		    attr.exclude_hv != cases[i].hypervisor || attr.precise_ip != cases[i].precise)
			fail_msg("%s", cases[i].text);
	}
}

static void test_raw(void **state)
{
	static const struct {
		const char *text;
		uint64_t config; /* 0: that is none */
	} cases[] = {
		{ "r1", 1 },
		{ "rA", 10 },
		{ "rfF", 255 },
		{ "r0123456789abcdef", 0x0123456789abcdef },
		{ "rffffffffffffffff", UINT64_MAX },
		{ "r0ffffffffffffffff", 0 },
		{ "r", 0 },
		{ "rg", 0 },
		{ "r1g", 0 },
		{ "s1", 0 },
		{ "r:u", 0 },
		{ "r1:u", 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct perf_event_attr attr = { 0 };
		struct agent_error err;

		if (perf_event_parse(cases[i].text, &attr, &err) != (cases[i].config ? 0 : -EINVAL))
			fail_msg("%s", cases[i].text);
		if (!cases[i].config)
			continue;
		assert_int_equal(attr.type, PERF_TYPE_RAW);
		assert_true(attr.config == cases[i].config);
	}
}

/* The cache first, then what is done with it, and nothing behind that. */
static void test_caches(void **state)
{
	static const struct {
		const char *text;
		int64_t config; /* -1: that is none */
	} cases[] = {
		{ "L1-dcache-loads", 0 },     { "L1-icache-load-misses", 0x10001 },
		{ "LLC-loads", 2 },	      { "dTLB-store-misses", 0x10103 },
		{ "node-prefetches", 0x206 }, { "branch-loads", 5 },
		{ "L1-dcache-load", -1 },     { "L1-dcache-loadss", -1 },
		{ "L1-dcacheXloads", -1 },    { "L1-dcache", -1 },
		{ "L1-dcache-", -1 },	      { "L2-dcache-loads", -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct perf_event_attr attr = { 0 };
		struct agent_error err;

		if (perf_event_parse(cases[i].text, &attr, &err) != (cases[i].config < 0 ? -EINVAL : 0))
			fail_msg("%s", cases[i].text);
		if (cases[i].config < 0)
			continue;
		assert_int_equal(attr.type, PERF_TYPE_HW_CACHE);
		assert_int_equal(attr.config, cases[i].config);
	}
}

static void test_messages(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "cycels", "there is no event 'cycels' (did you mean cycles?); 'hearth help events' names them" },
		{ "cycels:u", "there is no event 'cycels:u' (did you mean cycles?); 'hearth help events' names them" },
		{ "xyzzyxyzzy", "there is no event 'xyzzyxyzzy'; 'hearth help events' names them" },
		{ "cycles:x", "'cycles:x': behind the colon there may be u (user space alone)" },
		{ "cycles:", "'cycles:': behind the colon there may be u (user space alone)" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct perf_event_attr attr = { 0 };
		struct agent_error err;

		assert_int_equal(perf_event_find(cases[i].text, &attr, &err), -EINVAL);
		if (strncmp(err.message, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("%s", err.message);
	}
}

static void test_time(void **state)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE };

	(void)state;
	for (attr.config = 0; attr.config < PERF_COUNT_SW_MAX; attr.config++)
		assert_int_equal(perf_event_is_time(&attr),
				 attr.config == PERF_COUNT_SW_CPU_CLOCK || attr.config == PERF_COUNT_SW_TASK_CLOCK);
	attr = (struct perf_event_attr){ .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_SW_TASK_CLOCK };
	assert_false(perf_event_is_time(&attr));
}

/* What the kernel says, where it says something. */
static void test_max_freq(void **state)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	unsigned max = 0;

	(void)state;
	if (!f || fscanf(f, "%u", &max) != 1 || !max)
		max = 1000;
	assert_int_equal(perf_event_max_freq(), max);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),	 cmocka_unit_test(test_modifiers), cmocka_unit_test(test_raw),
		cmocka_unit_test(test_caches),	 cmocka_unit_test(test_messages),  cmocka_unit_test(test_time),
		cmocka_unit_test(test_max_freq),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
