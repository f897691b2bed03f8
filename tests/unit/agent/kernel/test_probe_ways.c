/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to attach to a probe: this kernel is asked, and a link is made that a program in the kernel tells of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/kernel/probe_ways.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

#define UNITS "/sys/bus/event_source/devices"

/* The number in the file that sysfs has for a unit, read by another program. */
static long told_unit(const char *name)
{
	char command[200], line[32] = "";
	FILE *f;

	snprintf(command, sizeof(command), "cat '" UNITS "/%s/type'", name);
	f = popen(command, "re");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_int_equal(pclose(f), 0);
	return strtol(line, NULL, 10);
}

static void test_units_have_their_numbers(void **state)
{
	DIR *d = opendir(UNITS);

	(void)state;
	if (!d)
		skip();
	for (const struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			assert_int_equal(probe_unit(e->d_name), told_unit(e->d_name));
	closedir(d);
}

/* perf_event.h of all kernels: PERF_TYPE_SOFTWARE and PERF_TYPE_TRACEPOINT. */
static void test_numbers_that_never_change(void **state)
{
	(void)state;
	if (access(UNITS "/software", F_OK))
		skip();
	assert_int_equal(probe_unit("software"), 1);
	assert_int_equal(probe_unit("tracepoint"), 2);
}

static void test_no_such_unit(void **state)
{
	(void)state;
	assert_int_equal(probe_unit("no such unit"), 0);
	assert_int_equal(probe_unit(""), 0);
}

static void test_units_are_ways(void **state)
{
	(void)state;
	assert_int_equal(probe_way_is_there(PROBE_WAY_UPROBE), access(UNITS "/uprobe/type", R_OK) == 0);
	assert_int_equal(probe_way_is_there(PROBE_WAY_KPROBE), access(UNITS "/kprobe/type", R_OK) == 0);
}

static void test_no_program(void **state)
{
	const uint64_t offset = 0;
	int err = probe_multi_link(-1, "/proc/self/exe", &offset, NULL, NULL, 1, false);

	(void)state;
	assert_true(err == -EBADF || err == -EPERM || err == -EINVAL || err == -ENOSYS);
}

/* --- a link that works --- */

/* Counters of places, as SystemTap's: the kernel counts up who wants to know. */
#define COUNTER static volatile unsigned short __attribute__((section(".probes"), used))
COUNTER first_counter, second_counter;

static int values = -1; /* the map to which the program writes the cookie of the place that was hit last */

static uint64_t seen_cookie(void)
{
	uint32_t key = 0;
	uint64_t value = 0;

	assert_int_equal(bpf_map_lookup_elem(values, &key, &value), 0);
	return value;
}

/* They tell what the program wrote until they began. */
static __attribute__((noinline)) uint64_t first_place(void)
{
	return seen_cookie() + 1;
}

static __attribute__((noinline)) uint64_t second_place(void)
{
	return seen_cookie() + 2;
}

/* Where the byte at @at of this process lies in its executable. */
static uint64_t file_offset(const volatile void *at)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	uint64_t ret = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		uint64_t start, end, offset;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) == 3 &&
		    (uintptr_t)at >= start && (uintptr_t)at < end)
			ret = (uintptr_t)at - start + offset;
	}
	fclose(f);
	assert_true(ret > 0);
	return ret;
}

/* A program that writes its place's cookie into the map. */
static int load_program(void)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_attach_cookie },
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .src_reg = BPF_REG_0, .off = -8 },
		{ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .off = -16 },
		{ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = values },
		{ .code = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -16 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_3, .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_3, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_4 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_update_elem },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)UPROBE_MULTI);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", instructions, ARRAY_LEN(instructions), &opts);
}

/* Two places of this program, with the cookies 40 and 50 and a counter each; the link. */
static int link_places(int program, bool is_return)
{
	const uint64_t offsets[] = { file_offset((const void *)(uintptr_t)first_place),
				     file_offset((const void *)(uintptr_t)second_place) };
	const uint64_t counters[] = { file_offset(&first_counter), file_offset(&second_counter) };
	const uint64_t cookies[] = { 40, 50 };

	return probe_multi_link(program, "/proc/self/exe", offsets, counters, cookies, ARRAY_LEN(offsets), is_return);
}

/* Makes the map and the program; false where this kernel, or the user, has no such links. */
static bool has_links(int *program_ret)
{
	values = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, 8, 1, NULL);
	*program_ret = values >= 0 ? load_program() : -1;
	return *program_ret >= 0;
}

static void drop_links(int program)
{
	if (program >= 0)
		close(program);
	if (values >= 0)
		close(values);
	values = -1;
}

static void test_each_place_has_its_cookie(void **state)
{
	int program, link;

	(void)state;
	if (!has_links(&program)) {
		drop_links(program);
		skip();
	}
	link = link_places(program, false);
	assert_true(link >= 0);
	assert_int_equal(first_place(), 41);
	assert_int_equal(second_place(), 52);
	assert_int_equal(first_place(), 41);
	close(link);
	drop_links(program);
}

/* A program at the return runs when the function has ended: it sees the cookie of the call before. */
static void test_a_return_comes_after_the_call(void **state)
{
	int program, link;

	(void)state;
	if (!has_links(&program)) {
		drop_links(program);
		skip();
	}
	link = link_places(program, true);
	assert_true(link >= 0);
	assert_int_equal(first_place(), 1);
	assert_int_equal(seen_cookie(), 40);
	assert_int_equal(second_place(), 42);
	assert_int_equal(seen_cookie(), 50);
	close(link);
	drop_links(program);
}

static void test_counters_are_raised_while_it_is_linked(void **state)
{
	int program, link;

	(void)state;
	if (!has_links(&program)) {
		drop_links(program);
		skip();
	}
	link = link_places(program, false);
	assert_true(link >= 0);
	assert_int_equal(first_counter, 1);
	assert_int_equal(second_counter, 1);
	close(link);
	for (int i = 0; first_counter && i < 5000; i++) /* the kernel takes it away when it has time */
		usleep(1000);
	assert_int_equal(first_counter, 0);
	assert_int_equal(second_counter, 0);
	drop_links(program);
}

/* Where such a link can be made it is told to be there; where the program cannot even be loaded it is not. */
static void test_the_way_is_told_as_it_is(void **state)
{
	int program, link = -1;

	(void)state;
	if (has_links(&program))
		link = link_places(program, false);
	assert_int_equal(probe_way_is_there(PROBE_WAY_MULTI), link >= 0);
	if (link >= 0)
		close(link);
	drop_links(program);
}

static void test_no_file(void **state)
{
	const uint64_t offset = 0;
	int program;

	(void)state;
	if (!has_links(&program)) {
		drop_links(program);
		skip();
	}
	assert_int_equal(probe_multi_link(program, "/no/such/file", &offset, NULL, NULL, 1, false), -ENOENT);
	assert_int_equal(probe_multi_link(program, "/", &offset, NULL, NULL, 1, false), -EBADF);
	assert_int_equal(probe_multi_link(program, "/proc/self/exe", &offset, NULL, NULL, 0, false), -EINVAL);
	drop_links(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units_have_their_numbers),
		cmocka_unit_test(test_numbers_that_never_change),
		cmocka_unit_test(test_no_such_unit),
		cmocka_unit_test(test_units_are_ways),
		cmocka_unit_test(test_no_program),
		cmocka_unit_test(test_each_place_has_its_cookie),
		cmocka_unit_test(test_a_return_comes_after_the_call),
		cmocka_unit_test(test_counters_are_raised_while_it_is_linked),
		cmocka_unit_test(test_the_way_is_told_as_it_is),
		cmocka_unit_test(test_no_file),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
