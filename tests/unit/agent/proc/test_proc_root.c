/* SPDX-License-Identifier: Apache-2.0 */
/* Where /proc is: paths below it, what is refused, whose pids it shows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/proc/proc_root.h"
#include "tests/unit/descriptors.h"

static void test_paths(void **state)
{
	char path[PROC_PATH_BYTES], longest[PROC_ROOT_MAX_BYTES], too_long[PROC_ROOT_MAX_BYTES + 1];

	(void)state;
	assert_string_equal(proc_path(path, 7, "maps"), "/proc/7/maps");
	assert_int_equal(proc_root_set("/host/proc/"), 0);
	assert_string_equal(proc_root(), "/host/proc");
	assert_string_equal(proc_path(path, UINT32_MAX, "ns/uts"), "/host/proc/4294967295/ns/uts");
	assert_string_equal(proc_path(path, 7, ""), "/host/proc/7");
	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[0] = '/';
	too_long[sizeof(too_long) - 1] = '\0';
	assert_int_equal(proc_root_set(too_long), -ENAMETOOLONG);
	assert_string_equal(proc_root(), "/host/proc");
	strcpy(longest, too_long + 1);
	assert_int_equal(proc_root_set(longest), 0);
	proc_path(path, UINT32_MAX, "map_files/ffffffffffffffff-ffffffffffffffff");
	assert_string_equal(path + strlen(path) - 17, "-ffffffffffffffff"); /* not cut */
	assert_int_equal(proc_root_set(NULL), 0);
	assert_string_equal(proc_root(), "/proc");
}

static void test_refused(void **state)
{
	struct agent_error error = { "" };
	struct pid_space pids;

	(void)state;
	assert_int_equal(proc_root_set("/tmp"), 0);
	assert_int_equal(proc_root_space(&pids, &error), -EINVAL);
	assert_non_null(strstr(error.message, "/tmp is no proc file system"));
	assert_int_equal(proc_root_set("/nowhere/proc"), 0);
	assert_int_equal(proc_root_space(&pids, &error), -ENOENT);
	assert_non_null(strstr(error.message, "/nowhere/proc is not there"));
	assert_int_equal(proc_root_set(NULL), 0);
}

static void test_levels(void **state)
{
	(void)state;
	assert_int_equal(proc_status_levels("Name:\tx\nNSpid:\t12\nNSpgid:\t12\t3\n"), 1);
	assert_int_equal(proc_status_levels("Name:\tx\nNSpid:\t12\t3\nNSpgid:\t12\n"), 2);
	assert_int_equal(proc_status_levels("NSpid:\t4000000\t12\t1"), 3);
	assert_int_equal(proc_status_levels("Name:\tNSpid:\nPid:\t12\n"), 1); /* a kernel without namespaces */
	assert_int_equal(proc_status_levels(""), 1);
}

/* Where tests run, /proc is that of their own namespace. (An emulator of another CPU takes "/proc" for the empty folder of
 * that name in its root of packages, but nothing below it.) */
static void test_own(void **state)
{
	struct agent_error error = { "" };
	struct pid_space pids;
	uint32_t pid = 0;

	(void)state;
	assert_int_equal(proc_root_set("/proc/self/.."), 0);
	assert_int_equal(proc_root_space(&pids, &error), 0);
	assert_true(pids.is_ours && proc_root_is_ours());
	assert_int_equal(!pids.ns, proc_root_is_whole());
	assert_int_equal(proc_root_pid((uint32_t)getpid(), &pid), 0);
	assert_int_equal(pid, getpid());
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_paths), cmocka_unit_test(test_refused),
					    cmocka_unit_test(test_levels), cmocka_unit_test(test_own) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
