/* SPDX-License-Identifier: Apache-2.0 */
/* Code that the kernel tells of: named by its moment, before, while and after it stands; and this kernel's own list below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	return !metrics || kernel_names_new(metrics, &k);
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

static void test_list(void **state)
{
	AUTO_FCLOSE FILE *list = fopen("/proc/kallsyms", "r");
	unsigned long addr = 0;
	char type, line[512], name[512];
	uint32_t version = kernel_names_version(k);
	const char *found, *module;

	(void)state;
	while (list && fgets(line, sizeof(line), list))
		if (sscanf(line, "%lx %c %511s", &addr, &type, name) == 3 && !strcmp(name, "schedule"))
			break;
	if (!addr)
		skip();
	assert_false(kernel_names_find(k, addr, 0, &found, &module)); /* not read yet */
	kernel_names_update(k, 0);
	assert_int_equal(kernel_names_version(k), version + 1);
	expect(addr, 0, "schedule", "");
	kernel_names_update(k, 0); /* no module came */
	assert_int_equal(kernel_names_version(k), version + 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_went),
		cmocka_unit_test(test_list),
	};

	return run_group_of_descriptors(tests, set_up, tear_down);
}
