/* SPDX-License-Identifier: Apache-2.0 */
/* The files of CPUs, memory, load and paging: what they tell, and that nothing is believed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/host/scrapers.h"
#include "tests/unit/cmd/host/reading_text.h"

static struct host_config config = { .root = "" };

static int setup(void **state)
{
	static struct host_reading r;

	config = (struct host_config){ .root = "" };
	*state = &r;
	return host_reading_init(&r, &config);
}

static int teardown(void **state)
{
	host_reading_fini(*state);
	return 0;
}

static void tells(const struct host_reading *r, const char *expected)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	reading_text(r, &out);
	assert_string_equal(buf_text(&out), expected);
	assert_false(r->failed);
}

static void test_stat(void **state)
{
	static const char text[] = "cpu  30 2 8 1000 4 0 6 0 0 0\n"
				   "cpu0 10 1 3 500 2 9 3 7 5 0\n"
				   "cpu11 20 1 5 500 2 0 3 0\n"
				   "cpufreq 1 2 3 4\n"
				   "intr 1 2 3\n"
				   "btime 1700000000\n";
	struct host_reading *r = *state;

	assert_int_equal(host_parse_stat(r, STR(text), 100), 0);
	tells(r, "system.cpu.time cpu=cpu0,state=user 0.100\n"
		 "system.cpu.time cpu=cpu0,state=nice 0.010\n"
		 "system.cpu.time cpu=cpu0,state=system 0.030\n"
		 "system.cpu.time cpu=cpu0,state=idle 5.000\n"
		 "system.cpu.time cpu=cpu0,state=wait 0.020\n"
		 "system.cpu.time cpu=cpu0,state=interrupt 0.090\n"
		 "system.cpu.time cpu=cpu0,state=softirq 0.030\n"
		 "system.cpu.time cpu=cpu0,state=steal 0.070\n"
		 "system.cpu.time cpu=cpu11,state=user 0.200\n"
		 "system.cpu.time cpu=cpu11,state=nice 0.010\n"
		 "system.cpu.time cpu=cpu11,state=system 0.050\n"
		 "system.cpu.time cpu=cpu11,state=idle 5.000\n"
		 "system.cpu.time cpu=cpu11,state=wait 0.020\n"
		 "system.cpu.time cpu=cpu11,state=interrupt 0.000\n"
		 "system.cpu.time cpu=cpu11,state=softirq 0.030\n"
		 "system.cpu.time cpu=cpu11,state=steal 0.000\n");
	assert_int_equal(r->bad_lines, 0);
	assert_true(host_boot_unix_ns(STR(text)) == 1700000000 * NSEC_PER_SEC);
	assert_true(host_boot_unix_ns(STR("btime 18446744073709551615\n")) == 0);
	assert_true(host_boot_unix_ns(STR("btime\n")) == 0);
}

/* What is no number, or too large, is a bad line; the others count. */
static void test_bad_stat(void **state)
{
	struct host_reading *r = *state;

	assert_int_equal(
		host_parse_stat(r, STR("cpu0 1 2 3\ncpu1 1 2 -3 4\ncpu2 99999999999999999999 1 1 1\ncpu3 1 2 3 4 x\n"), 100),
		0);
	tells(r, "system.cpu.time cpu=cpu3,state=user 0.010\n"
		 "system.cpu.time cpu=cpu3,state=nice 0.020\n"
		 "system.cpu.time cpu=cpu3,state=system 0.030\n"
		 "system.cpu.time cpu=cpu3,state=idle 0.040\n");
	assert_int_equal(r->bad_lines, 3);
	assert_int_equal(host_parse_stat(r, STR(""), 100), -EBADMSG);
	assert_int_equal(host_parse_stat(r, STR("cpu 1 2 3 4 5 6 7 8\n"), 100), -EBADMSG);
}

static void test_many_cpus(void **state)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct host_reading *r = *state;

	for (int i = 0; i < HOST_CPUS_MAX + 3; i++)
		buf_printf(&text, "cpu%d 1 2 3 4 5 6 7 8 9 10\n", i);
	assert_int_equal(host_parse_stat(r, (struct str){ buf_text(&text), (uint32_t)text.len }, 100), 0);
	assert_int_equal(r->points, HOST_CPUS_MAX * 8);
	assert_int_equal(r->left_out, 3);
	assert_string_equal(r->data[HOST_CPU_TIME].sum.items[r->points - 1].attributes.items[1].value.string.data, "steal");
}

static void test_meminfo(void **state)
{
	struct host_reading *r = *state;

	assert_int_equal(host_parse_meminfo(r, STR("MemTotal:       1000 kB\nMemFree:         100 kB\n"
						   "MemAvailable:    700 kB\nBuffers:          50 kB\n"
						   "Cached:          300 kB\nSwapCached:        7 kB\n"
						   "SReclaimable:     20 kB\nSUnreclaim:       30 kB\n")),
			 0);
	tells(r, "system.memory.usage state=used 542720\n" /* 1000 - 100 - 50 - 320 KiB */
		 "system.memory.usage state=free 102400\n"
		 "system.memory.usage state=buffered 51200\n"
		 "system.memory.usage state=cached 327680\n"
		 "system.memory.usage state=slab_reclaimable 20480\n"
		 "system.memory.usage state=slab_unreclaimable 30720\n");
}

static void test_bad_meminfo(void **state)
{
	struct host_reading *r = *state;

	assert_int_equal(host_parse_meminfo(r, STR("MemTotal: 1000 kB\n")), -EBADMSG);
	assert_int_equal(host_parse_meminfo(r, STR("MemTotal: 1000 kB\nMemFree: many kB\n")), -EBADMSG);
	assert_int_equal(r->bad_lines, 1);
	assert_int_equal(host_parse_meminfo(r, STR("MemTotal: 1 kB\nMemFree: 18446744073709551615 kB\n")), -EBADMSG);
	assert_int_equal(r->bad_lines, 2);
	tells(r, "");
	/* more in parts than in all; a second line of a name is nothing */
	assert_int_equal(host_parse_meminfo(r, STR("MemTotal: 10 kB\nMemFree: 20 kB\nMemFree: 5 kB\n:\n\n \n")), 0);
	tells(r, "system.memory.usage state=used 0\nsystem.memory.usage state=free 20480\n");
}

static void test_load(void **state)
{
	struct host_reading *r = *state;

	assert_int_equal(host_parse_loadavg(r, STR("0.50 12.25 3.00 2/345 6789\n"), 2), 0);
	tells(r,
	      "system.cpu.load_average.1m  0.250\nsystem.cpu.load_average.5m  6.125\nsystem.cpu.load_average.15m  1.500\n");
	assert_int_equal(host_parse_loadavg(r, STR("0.50 12.25\n"), 1), -EBADMSG);
	assert_int_equal(host_parse_loadavg(r, STR("nan 1 1\n"), 1), -EBADMSG);
	assert_int_equal(host_parse_loadavg(r, STR("1. 1 1\n"), 1), -EBADMSG);
	assert_int_equal(host_parse_loadavg(r, STR(""), 1), -EBADMSG);
	assert_int_equal(r->points, 3);
}

static void test_paging(void **state)
{
	struct host_reading *r = *state;

	assert_int_equal(host_parse_vmstat(r, STR("nr_free_pages 9\npgpgin 11\npgpgout 12\npswpin 13\npswpout 14\n"
						  "pgfault 100\npgmajfault 30\n")),
			 0);
	assert_int_equal(host_parse_swaps(r, STR("Filename\tType\tSize\tUsed\tPriority\n"
						 "/dev/sda2       partition\t1000\t\t400\t\t-2\n"
						 "/swap\\040file file 10\n")),
			 0);
	tells(r, "system.paging.usage device=/dev/sda2,state=used 409600\n"
		 "system.paging.usage device=/dev/sda2,state=free 614400\n"
		 "system.paging.operations type=major,direction=page_in 13\n"
		 "system.paging.operations type=major,direction=page_out 14\n"
		 "system.paging.operations type=minor,direction=page_in 11\n"
		 "system.paging.operations type=minor,direction=page_out 12\n"
		 "system.paging.faults type=major 30\n"
		 "system.paging.faults type=minor 70\n");
	assert_int_equal(r->bad_lines, 1);
	assert_int_equal(host_parse_vmstat(r, STR("pgfault 1\n")), -EBADMSG);
	assert_int_equal(host_parse_swaps(r, STR("")), -EBADMSG);
}

/* A metric that is turned off, and a number that OTLP has no room for. */
static void test_wanted(void **state)
{
	struct host_reading *r = *state;

	config.is_off[HOST_PAGING_FAULTS] = true;
	assert_int_equal(
		host_parse_vmstat(r, STR("pgfault 9223372036854775810\npgmajfault 1\npswpin 9223372036854775808\n")), 0);
	tells(r, "");
	assert_int_equal(r->bad_lines, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stat, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_stat, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_cpus, setup, teardown),
		cmocka_unit_test_setup_teardown(test_meminfo, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_meminfo, setup, teardown),
		cmocka_unit_test_setup_teardown(test_load, setup, teardown),
		cmocka_unit_test_setup_teardown(test_paging, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wanted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
