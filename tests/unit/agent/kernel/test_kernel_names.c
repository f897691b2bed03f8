/* SPDX-License-Identifier: Apache-2.0 */
/* Code that the kernel tells of: named by its moment, before, while and after it stands; this kernel's own list below, which
 * is kept. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/kernel/kernel_names.h"
#include "agent/kernel/side_band.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "tests/unit/descriptors.h"

/* Above everything the kernel has: this is where it maps nothing. */
enum { BYTES = 0x100 };
#define PLACE 0xfffffffffff00000ull

static struct metrics *metrics;
static struct kernel_names *k;

static int set_up(void **state)
{
	(void)state;
	metrics = metrics_new();
	return !metrics || kernel_names_new(-1, metrics, &k);
}

static int tear_down(void **state)
{
	(void)state;
	kernel_names_free(k);
	metrics_free(metrics);
	return 0;
}

static void tell(const char *name, uint64_t start, uint64_t time_ns, bool is_unregister)
{
	AUTO_FREE struct side_band_record *r = calloc(1, sizeof(*r) + strlen(name) + 1);

	assert_non_null(r);
	r->kind = SIDE_BAND_KSYMBOL;
	r->time_ns = time_ns;
	r->start = start;
	r->end = start + BYTES;
	r->is_unregister = is_unregister;
	memcpy(r->name, name, strlen(name));
	kernel_names_apply(k, r);
}

static void expect(uint64_t addr, uint64_t code, const char *name, const char *module)
{
	const char *found_name, *found_module;
	bool found = kernel_names_find(k, addr, code, &found_name, &found_module);

	assert_int_equal(found, name != NULL);
	if (!found)
		return;
	assert_string_equal(found_name, name);
	assert_string_equal(found_module, module);
}

static void test_told(void **state)
{
	uint32_t changes = kernel_names_changes(k);
	uint64_t before, first, between, second;

	(void)state;
	before = kernel_names_code(k, PLACE + 8);
	assert_int_equal(before, 0);
	tell("bpf_prog_1_first", PLACE, 100, false);
	first = kernel_names_code(k, PLACE + 8);
	tell("bpf_prog_1_first", PLACE, 200, true);
	between = kernel_names_code(k, PLACE + 8);
	tell("bpf_prog_2_second", PLACE, 300, false);
	second = kernel_names_code(k, PLACE + 8);
	assert_int_equal(kernel_names_changes(k), changes + 3);
	expect(PLACE + 8, before, NULL, NULL);
	expect(PLACE + 8, first, "bpf_prog_1_first", "bpf");
	expect(PLACE + 8, between, NULL, NULL);
	expect(PLACE + 8, second, "bpf_prog_2_second", "bpf");
	expect(PLACE + BYTES, second, NULL, NULL); /* it has a size */
	assert_int_equal(kernel_names_code(k, PLACE + BYTES), 0);
	tell("ftrace_trampoline", PLACE + 0x1000, 400, false);
	expect(PLACE + 0x1001, kernel_names_code(k, PLACE + 0x1001), "ftrace_trampoline", "");
}

/* A program that is older than we are: the list may not have it any more when its last samples are named. */
static void test_went(void **state)
{
	uint64_t before = kernel_names_code(k, PLACE + 0x2008);

	(void)state;
	tell("bpf_prog_3_elder", PLACE + 0x2000, 500, true);
	expect(PLACE + 0x2008, before, "bpf_prog_3_elder", "bpf");
	expect(PLACE + 0x2008, kernel_names_code(k, PLACE + 0x2008), NULL, NULL);
}

/* Where schedule() is, as the kernel says it; 0: it does not. */
static uint64_t schedule_address(void)
{
	AUTO_FCLOSE FILE *list = fopen("/proc/kallsyms", "r");
	unsigned long addr = 0;
	char type, line[512], name[512];

	while (list && fgets(line, sizeof(line), list))
		if (sscanf(line, "%lx %c %511s", &addr, &type, name) == 3 && !strcmp(name, "schedule"))
			return addr;
	return 0;
}

static void test_list(void **state)
{
	uint64_t addr = schedule_address();
	uint32_t version = kernel_names_version(k);
	const char *found, *module;

	(void)state;
	if (!addr)
		skip();
	assert_false(kernel_names_find(k, addr, 0, &found, &module)); /* not read yet */
	kernel_names_update(k, 0);
	assert_int_equal(kernel_names_version(k), version + 1);
	expect(addr, 0, "schedule", "");
	kernel_names_update(k, 0); /* no module came */
	assert_int_equal(kernel_names_version(k), version + 1);
}

/* How often the text was read. */
static uint64_t reads(void)
{
	return metric_get(metrics_counter(metrics, "hearth_kernel_symbols_read_total", NULL, ""));
}

/* Starts again, with what an earlier start kept in @dir_fd. */
static void start_again(int dir_fd)
{
	kernel_names_free(k);
	assert_int_equal(kernel_names_new(dir_fd, metrics, &k), 0);
	kernel_names_update(k, 0);
}

static void test_kept(void **state)
{
	char folder[] = "/tmp/test_kernel_names.XXXXXX";
	uint64_t addr = schedule_address(), before = reads();
	const char *found, *module;
	int dir_fd, fd;

	(void)state;
	if (!addr)
		skip();
	assert_non_null(mkdtemp(folder));
	dir_fd = open(folder, O_RDONLY | O_DIRECTORY);
	assert_true(dir_fd >= 0);
	start_again(dir_fd);
	expect(addr, 0, "schedule", "");
	assert_int_equal(reads(), before + 1);
	start_again(dir_fd);
	expect(addr, 0, "schedule", "");
	assert_int_equal(reads(), before + 1); /* it was kept */
	kernel_names_rest(k);
	expect(addr, 0, "schedule", "");
	/* An address without a name may be code that comes and goes: the text is read at once, then each minute. */
	assert_false(kernel_names_find(k, PLACE, 0, &found, &module));
	assert_int_equal(reads(), before + 2);
	assert_false(kernel_names_find(k, PLACE, 0, &found, &module));
	kernel_names_update(k, 0);
	assert_int_equal(reads(), before + 2);
	expect(addr, 0, "schedule", "");
	/* One that is of another boot, or broken, is not believed, and another takes its place. */
	for (int at = 32; at < 100; at += 31) {
		char byte;

		fd = openat(dir_fd, "kernel-names", O_RDWR);
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
		before = reads();
		start_again(dir_fd);
		expect(addr, 0, "schedule", "");
		assert_int_equal(reads(), before + 1);
		start_again(dir_fd);
		expect(addr, 0, "schedule", "");
		assert_int_equal(reads(), before + 1);
	}
	assert_int_equal(unlinkat(dir_fd, "kernel-names", 0), 0);
	assert_int_equal(rmdir(folder), 0); /* there was no other file */
	close(dir_fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_went),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_kept),
	};

	return run_group_of_descriptors(tests, set_up, tear_down);
}
