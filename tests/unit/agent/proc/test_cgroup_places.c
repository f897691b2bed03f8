/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups of version 1, on hosts made up here: which tree has a group, and by which controller it is known. */
#include <bpf/btf.h>
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
#include "agent/proc/cgroup_places.h"
#include "agent/proc/cgroups.h"
#include "agent/proc/container_id.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/unit/agent/other_root.h"
#include "tests/unit/descriptors.h"

#define ROOT		  "/sys/fs/cgroup"
#define ID		  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define V1(name, options) "30 24 0:26 / " ROOT "/" name " rw,nosuid shared:4 - cgroup cgroup rw," options "\n"
#define V2		  "31 24 0:27 / " ROOT "/unified rw shared:5 - cgroup2 cgroup2 rw\n"

/* What lies below unified is of version 2, all else of version 1; "plain" is no control group at all. */
static int fstatfs_told(int fd, struct statfs *ret)
{
	char link[64], path[4096] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	assert_true(readlink(link, path, sizeof(path) - 1) > 0);
	*ret = (struct statfs){ .f_type = strstr(path, "/plain")	  ? 0
					  : strstr(path, ROOT "/unified") ? CGROUP2_SUPER_MAGIC
									  : CGROUP_SUPER_MAGIC };
	return 0;
}

/* The kernel's list of controllers, by their numbers. */
static const char *const controllers[] = { "cpuset_cgrp_id", "cpu_cgrp_id", "io_cgrp_id", "memory_cgrp_id",
					   "cpuacct_cgrp_id" };
static bool has_btf;

static struct btf *load_btf(void)
{
	struct btf *btf = has_btf ? btf__new_empty() : NULL;

	if (!btf)
		return NULL;
	assert_true(btf__add_enum(btf, "cgroup_subsys_id", 4) > 0);
	for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
		assert_int_equal(btf__add_enum_value(btf, controllers[i], (int64_t)i), 0);
	return btf;
}

#define open(path, flags)     open(below_root(path), flags)
#define fstatfs(fd, ret)      fstatfs_told(fd, ret)
#define btf__load_vmlinux_btf load_btf

#include "agent/proc/cgroups.c"
#include "agent/proc/cgroup_places.c"

static int new_root(void **state)
{
	(void)state;
	other_root_new();
	has_btf = true;
	return 0;
}

static int free_root(void **state)
{
	(void)state;
	other_root_free();
	return 0;
}

static void set_mounts(const char *text)
{
	other_root_file("/proc/self/mountinfo", text);
}

static void make_group(const char *path)
{
	char file[512];

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	other_root_file(file, "");
}

static uint64_t inode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static int find(const char *path, struct cgroup_place *place, struct agent_error *err)
{
	*err = (struct agent_error){ .message = "" };
	return cgroup_place_find(path, place, err);
}

/* @path is the folder @folder, in a tree of the controller number @controller. */
static void check_v1(const char *path, const char *folder, uint32_t controller)
{
	struct cgroup_place place;
	struct agent_error err;

	assert_int_equal(find(path, &place, &err), 0);
	assert_int_equal(place.fd, -1);
	assert_int_equal(place.v1.id, inode_of(folder));
	assert_int_equal(place.v1.controller, controller);
	cgroup_place_fini(&place);
}

/* The first controller of a tree that the kernel knows is the one. */
static void test_controllers(void **state)
{
	(void)state;
	set_mounts(V1("cpu", "cpu,cpuacct") V1("mem", "seclabel,memory") V1("disk", "blkio"));
	make_group(ROOT "/cpu/a");
	make_group(ROOT "/mem/b");
	make_group(ROOT "/disk/c");
	check_v1("a", ROOT "/cpu/a", 1);
	check_v1("b", ROOT "/mem/b", 3);
	check_v1("c", ROOT "/disk/c", 2); /* BTF has it as io */
}

/* A path may begin with the place of its tree; one that begins alike is of another. */
static void test_whole_paths(void **state)
{
	struct cgroup_place place;
	struct agent_error err;

	(void)state;
	set_mounts(V1("cpu", "cpu") V1("cpuset", "cpuset"));
	make_group(ROOT "/cpu/a");
	make_group(ROOT "/cpuset/a");
	check_v1(ROOT "/cpu/a", ROOT "/cpu/a", 1);
	check_v1(ROOT "/cpuset/a", ROOT "/cpuset/a", 0);
	check_v1(ROOT "/cpuset", ROOT "/cpuset", 0);
	assert_int_equal(find(ROOT "/cpu/b", &place, &err), -EOPNOTSUPP); /* version 2's word: there is none */
	assert_true(err.message[0]);
}

/* Of several trees that have a group the first is taken. */
static void test_the_first_tree(void **state)
{
	(void)state;
	set_mounts(V1("mem", "memory") V1("cpu", "cpu"));
	make_group(ROOT "/cpu/a");
	make_group(ROOT "/mem/a");
	check_v1("a", ROOT "/mem/a", 3);
}

/* Version 2 comes first. */
static void test_version_2(void **state)
{
	struct cgroup_place place;
	struct agent_error err;

	(void)state;
	set_mounts(V1("cpu", "cpu") V2);
	make_group(ROOT "/cpu/a");
	make_group(ROOT "/unified/a");
	make_group(ROOT "/cpu/b");
	assert_int_equal(find("a", &place, &err), 0);
	assert_true(place.fd >= 0);
	cgroup_place_fini(&place);
	assert_int_equal(place.fd, -1);
	cgroup_place_fini(&place);
	check_v1("b", ROOT "/cpu/b", 1);
}

/* A tree by name has no controller: its groups are found, and refused with the way out. */
static void test_no_controller(void **state)
{
	struct cgroup_place place;
	struct agent_error err;

	(void)state;
	set_mounts(V1("systemd", "xattr,name=systemd"));
	make_group(ROOT "/systemd/a");
	assert_int_equal(find("a", &place, &err), -EOPNOTSUPP);
	assert_string_equal(err.message, "the control groups below " ROOT "/systemd have no controller, and the kernel's "
					 "filter cannot look at them; name the group in the tree of one (memory, "
					 "cpu, pids, ...) or of version 2");
	set_mounts(V1("systemd", "name=systemd") V1("cpu", "cpu"));
	make_group(ROOT "/cpu/a");
	check_v1("a", ROOT "/cpu/a", 1); /* another tree has one */
}

static void test_no_btf(void **state)
{
	struct cgroup_place place;
	struct agent_error err;

	(void)state;
	has_btf = false;
	set_mounts(V1("cpu", "cpu"));
	make_group(ROOT "/cpu/a");
	assert_int_equal(find("a", &place, &err), -EOPNOTSUPP);
}

/* A folder that is no control group is none. */
static void test_other_folders(void **state)
{
	struct cgroup_place place;
	struct agent_error err;

	(void)state;
	set_mounts(V1("plain", "cpu") V2);
	make_group(ROOT "/plain/a");
	other_root_file(ROOT "/unified/x", "");
	assert_int_equal(find("a", &place, &err), -ENOENT);
	set_mounts("");
	assert_int_equal(find("a", &place, &err), -EOPNOTSUPP);
}

/* --- containers --- */

static int find_container(const char *id, struct cgroup_place *place, struct agent_error *err)
{
	*err = (struct agent_error){ .message = "" };
	return cgroup_place_find_container(id, place, err);
}

static void test_containers(void **state)
{
	struct cgroup_place place;
	struct agent_error err;

	(void)state;
	set_mounts(V1("mem", "memory"));
	make_group(ROOT "/mem/docker/" ID);
	assert_int_equal(find_container("0123456789", &place, &err), 0);
	assert_int_equal(place.v1.id, inode_of(ROOT "/mem/docker/" ID));
	assert_int_equal(place.v1.controller, 3);
	assert_int_equal(place.fd, -1);
	assert_true(find_container("ffff", &place, &err) < 0);
	assert_true(err.message[0]);
}

/* Ids that two begin with are refused, in either version. */
static void test_two_containers(void **state)
{
	static const char other[] = "0123456789ffffff0123456789abcdef0123456789abcdef0123456789abcdef";
	struct cgroup_place place;
	struct agent_error err;
	char path[256];

	(void)state;
	set_mounts(V1("mem", "memory"));
	make_group(ROOT "/mem/docker/" ID);
	snprintf(path, sizeof(path), ROOT "/mem/docker/%s", other);
	make_group(path);
	assert_int_equal(find_container("0123456789", &place, &err), -EEXIST);
	assert_true(err.message[0]);
	assert_int_equal(find_container("0123456789f", &place, &err), 0);
	set_mounts(V2);
	make_group(ROOT "/unified/docker-" ID ".scope");
	snprintf(path, sizeof(path), ROOT "/unified/docker-%s.scope", other);
	make_group(path);
	assert_int_equal(find_container("0123456789", &place, &err), -EEXIST);
}

#define PLACES_TEST(name) cmocka_unit_test_setup(name, new_root)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		PLACES_TEST(test_controllers),	 PLACES_TEST(test_whole_paths),	  PLACES_TEST(test_the_first_tree),
		PLACES_TEST(test_version_2),	 PLACES_TEST(test_no_controller), PLACES_TEST(test_no_btf),
		PLACES_TEST(test_other_folders), PLACES_TEST(test_containers),	  PLACES_TEST(test_two_containers),
	};

	return run_group_of_descriptors(tests, NULL, free_root);
}
