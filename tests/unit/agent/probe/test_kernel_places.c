/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the kernel by name and pattern, out of a list that is made up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/config.h"
#include "agent/probe/user_places.h"
#include "base/cleanup.h"

static char list[] = "/tmp/hearth-kallsyms-XXXXXX";

static int setup(void **state)
{
	int fd = mkstemp(list);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	(void)state;
	if (!f)
		return -1;
	fputs("0000000000000000 T vfs_read\n"
	      "0000000000000000 t vfs_read.cold\n"
	      "0000000000000000 t __pfx_vfs_write\n"
	      "0000000000000000 T vfs_write\n"
	      "0000000000000000 D vfs_data\n"
	      "0000000000000000 t twice\n"
	      "0000000000000000 t twice\t[module]\n"
	      "0000000000000000 t bpf_prog_0123_vfs_x\t[bpf]\n",
	      f);
	for (int i = 0; i < PROBES_A_PATTERN + 1; i++)
		fprintf(f, "0000000000000000 t many_%d\n", i);
	return fclose(f);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(list);
}

static int find(const char *text, struct probe_set *set, struct agent_error *err)
{
	static struct probe_text t;

	err->message[0] = '\0';
	assert_int_equal(probe_text_parse(text, &t, err), 0);
	return probe_kernel_places(text, &t, list, set, err);
}

static void test_found(void **state)
{
	struct probe_set *set = calloc(1, sizeof(*set));
	struct agent_error err;

	(void)state;
	assert_int_equal(find("kprobe:vfs_*", set, &err), 0);
	assert_int_equal(set->count, 2);
	assert_string_equal(set->list[0].target, "vfs_read");
	assert_string_equal(set->list[1].label, "kprobe:vfs_write");
	assert_true(set->list[1].is_of_pattern);
	assert_int_equal(find("kprobe:vfs_read+5", set, &err), 0);
	assert_string_equal(set->list[2].label, "kprobe:vfs_read+5");
	assert_int_equal(set->list[2].offset, 5);
	assert_false(set->list[2].is_of_pattern);
	assert_int_equal(find("kretprobe:tw*", set, &err), 0);
	assert_int_equal(set->count, 4);
	probe_set_free(set);
}

static void test_not_found(void **state)
{
	struct probe_set *set = calloc(1, sizeof(*set));
	struct agent_error err;

	(void)state;
	assert_int_equal(find("kprobe:vfs_reed", set, &err), -ENOENT);
	assert_non_null(strstr(err.message, "did you mean vfs_read?"));
	assert_int_equal(find("kprobe:vfs_data", set, &err), -ENOENT);
	assert_int_equal(find("kprobe:many_*", set, &err), -E2BIG);
	assert_non_null(strstr(err.message, "1000 at most"));
	assert_int_equal(set->count, 0);
	probe_set_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_not_found),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
