/* SPDX-License-Identifier: Apache-2.0 */
/* Where control groups are looked for, on hosts made up here: the mount of version 2, paths below it and others, containers.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/proc/cgroups.h"
#include "agent/proc/container_id.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/unit/agent/other_root.h"
#include "tests/unit/descriptors.h"

static long type_of_files;

static int fstatfs_told(int fd, struct statfs *ret)
{
	(void)fd;
	*ret = (struct statfs){ .f_type = type_of_files };
	return 0;
}

#define open(path, flags)    open(below_root(path), flags)
#define fstatfs(fd, ret)     fstatfs_told(fd, ret)
#define ROOT		     "/sys/fs/cgroup"
#define MOUNTED(type, place) "30 24 0:26 / " place " rw,nosuid shared:4 - " type " " type " rw\n"

#include "agent/proc/cgroups.c"

static void set_mounts(const char *text)
{
	other_root_file("/proc/self/mountinfo", text);
}

static int open_group(const char *path)
{
	struct agent_error error = { "" };
	int fd = cgroup_open(path, &error);

	assert_true(fd >= 0 || error.message[0]);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int new_root(void **state)
{
	(void)state;
	other_root_new();
	type_of_files = CGROUP2_SUPER_MAGIC;
	return 0;
}

static int free_root(void **state)
{
	(void)state;
	other_root_free();
	return 0;
}

static void test_paths(void **state)
{
	(void)state;
	assert_int_equal(open_group("a"), -EOPNOTSUPP); /* no list of mounts */
	set_mounts(MOUNTED("proc", "/proc") MOUNTED("cgroup", ROOT "/cpu"));
	assert_int_equal(open_group("a"), -EOPNOTSUPP);
	set_mounts(MOUNTED("cgroup", ROOT "/cpu") MOUNTED("cgroup2", ROOT "/unified"));
	other_root_file(ROOT "/unified/a/b/cgroup.procs", "");
	other_root_file(ROOT "/cpu/a/c/cgroup.procs", "");
	assert_int_equal(open_group("a"), 0);
	assert_int_equal(open_group("a/b"), 0);
	assert_int_equal(open_group(ROOT "/unified/a"), 0);
	assert_int_equal(open_group(ROOT "/cpu/a"), 0);
	assert_int_equal(open_group("a/c"), -ENOENT);
	assert_int_equal(open_group("a/b/cgroup.procs"), -ENOTDIR);
	set_mounts(MOUNTED("cgroup2", "/elsewhere"));
	other_root_file("/elsewhere/d/cgroup.procs", "");
	assert_int_equal(open_group("/elsewhere/d"), 0);
	assert_int_equal(open_group("d"), 0);
	type_of_files = CGROUP_SUPER_MAGIC;
	assert_int_equal(open_group("d"), -EOPNOTSUPP);
}

#define ID_A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_B "0123456789ffffff0123456789abcdef0123456789abcdef0123456789abcdef"

static int open_container(const char *id)
{
	struct agent_error error = { "" };
	int fd = cgroup_open_container(id, &error);

	assert_true(fd >= 0 || error.message[0]);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* A container that has two groups is one; ids that two begin with are none. */
static void test_containers(void **state)
{
	(void)state;
	assert_int_equal(open_container(ID_A), -EOPNOTSUPP);
	set_mounts(MOUNTED("cgroup2", ROOT));
	assert_int_equal(open_container(ID_A), -ENOENT);
	other_root_file(ROOT "/system.slice/docker-" ID_A ".scope/init/cgroup.procs", "");
	other_root_file(ROOT "/other/docker-" ID_A ".scope/cgroup.procs", "");
	other_root_file(ROOT "/machine.slice/box.scope/cgroup.procs", "");
	other_root_file(ROOT "/machine.slice/.hidden/" ID_B "/cgroup.procs", "");
	assert_int_equal(open_container(ID_A), 0);
	assert_int_equal(open_container("0123456789"), 0);
	assert_int_equal(open_container("0123456789a"), 0);
	assert_int_equal(open_container("0123456789f"), -ENOENT);
	assert_int_equal(open_container("box"), 0);
	assert_int_equal(open_container("bo"), -ENOENT);
	other_root_file(ROOT "/machine.slice/docker-" ID_B ".scope/cgroup.procs", "");
	assert_int_equal(open_container("0123456789"), -EEXIST);
	assert_int_equal(open_container("0123456789f"), 0);
}

/* Names of folders that follow no runtime's rule. */
static void test_loose_names(void **state)
{
	static const struct {
		const char *folder, *id;
		bool is_it;
	} names[] = {
		{ "x-y.scope", "y", true },	   { "x-y.scope", "x-y", false }, { "y.scope", "y", true },
		{ ".scope", ".scope", true },	   { "plain", "plain", true },	  { "plain-y", "y", false },
		{ "libpod-conmon-y", "y", false },
	};
	char found[CONTAINER_ID_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (cgroup_name_is_container("", names[i].folder, names[i].id, found) != names[i].is_it)
			fail_msg("%s, asked for as %s", names[i].folder, names[i].id);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_paths, new_root),
		cmocka_unit_test_setup(test_containers, new_root),
		cmocka_unit_test(test_loose_names),
	};

	return run_group_of_descriptors(tests, NULL, free_root);
}
