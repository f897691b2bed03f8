/* SPDX-License-Identifier: Apache-2.0 */
/* Which file systems answer by themselves: those of this machine, by what the kernel says that a process has mounted. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/proc/mounts.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

static bool is_local(const char *folder)
{
	AUTO_CLOSE int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return mounts_folder_is_local((uint32_t)getpid(), fd);
}

static void test_proc(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat("/proc", &st), 0);
	assert_true(mounts_device_is_local((uint32_t)getpid(), major(st.st_dev), minor(st.st_dev)));
	assert_true(mounts_device_is_local(UINT32_MAX, major(st.st_dev), minor(st.st_dev))); /* who has gone: ours count */
	assert_false(mounts_device_is_local((uint32_t)getpid(), 0xffff, 0xffff));
	assert_true(is_local("/proc"));
	assert_true(is_local("/proc/sys"));
	assert_false(mounts_folder_is_local((uint32_t)getpid(), -1));
}

/* Whoever has changed its root does not see the mount that this is in. */
static void test_other_root(void **state)
{
	char path[64];
	pid_t child;
	int fd, ready[2];

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		(void)!write(ready[1], "x", !chroot("/proc/sys") && !chdir("/"));
		close(ready[1]);
		close(ready[0]);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], path, 1), 1);
	close(ready[0]);
	snprintf(path, sizeof(path), "/proc/%d/root", child);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(mounts_folder_is_local((uint32_t)child, fd));
	close(fd);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* What others mount does not count, nor what is of no kind that is known. */
static void test_kinds(void **state)
{
	struct stat outside, inside;
	pid_t child;
	int status;

	(void)state;
	if (geteuid() != 0 || stat("/proc", &outside))
		skip();
	child = fork();
	if (!child) {
		if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("x", "/proc/sys/fs", "ramfs", 0, NULL))
			_exit(77);
		_exit(is_local("/proc/sys/fs") && !stat("/proc/sys/fs", &inside) &&
				      mounts_device_is_local((uint32_t)getpid(), major(inside.st_dev),
							     minor(inside.st_dev)) &&
				      !mounts_device_is_local((uint32_t)getppid(), major(inside.st_dev),
							      minor(inside.st_dev)) &&
				      !mount("y", "/proc/sys/fs", "cgroup2", 0, NULL) && !is_local("/proc/sys/fs")
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proc),
		cmocka_unit_test(test_other_root),
		cmocka_unit_test(test_kinds),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
