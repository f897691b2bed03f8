/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening what a process has mapped: this process maps a file of its own and asks for it as the kernel's record would name
 * it; renamed, deleted, replaced by another in the path and at the address. Another than the file is never handed out.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/files/guard.h"
#include "agent/files/open.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "tests/unit/descriptors.h"

enum { PAGE = 4096 };

static char top[] = "/tmp/hearth-open-XXXXXX", path[64], other[64];
static struct metrics *metrics;
static struct file_opener *opener;

static int set_up(void **state)
{
	(void)state;
	metrics = metrics_new();
	if (!metrics || !mkdtemp(top))
		return -1;
	snprintf(path, sizeof(path), "%s/file", top);
	snprintf(other, sizeof(other), "%s/other", top);
	return file_opener_new(metrics, &opener);
}

static int tear_down(void **state)
{
	(void)state;
	file_opener_free(opener);
	metrics_free(metrics);
	unlink(path);
	unlink(other);
	return rmdir(top);
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_true(fprintf(f, "%-4096s", text) > 0);
	assert_int_equal(fclose(f), 0);
}

static void *map_file(const char *name, void *at, struct file_key *key)
{
	AUTO_CLOSE int fd = open(name, O_RDONLY | O_CLOEXEC);
	unsigned int generation = 0;
	struct stat st;
	void *map;

	assert_int_equal(fstat(fd, &st), 0);
	*key = (struct file_key){ .dev_major = major(st.st_dev), .dev_minor = minor(st.st_dev), .inode = st.st_ino };
	key->has_generation = !ioctl(fd, FS_IOC_GETVERSION, &generation);
	key->generation = generation;
	map = mmap(at, PAGE, PROT_READ, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);
	assert_true(map != MAP_FAILED);
	return map;
}

/* What stands first in the file that is opened, or the error. */
static int first_of(const struct file_key *key, const char *name, void *start, uint32_t pid, char *first)
{
	struct file_place at = { .pid = pid, .tid = pid, .start = (uintptr_t)start, .end = (uintptr_t)start + PAGE };
	AUTO_CLOSE int fd = file_open(opener, key, name, &at);

	*first = 0;
	if (fd < 0)
		return fd;
	assert_int_equal(pread(fd, first, 1, 0), 1);
	return 0;
}

static void test_mapped(void **state)
{
	uint32_t pid = (uint32_t)getpid();
	struct file_key key, other_key;
	char first, *start;

	(void)state;
	write_file(path, "one");
	write_file(other, "two");
	start = map_file(path, NULL, &key);
	assert_int_equal(first_of(&key, path, start, pid, &first), 0);
	assert_int_equal(first, 'o');
	/* By the path alone: the process has gone. */
	assert_int_equal(first_of(&key, path, start, 0x7ffffff0, &first), 0);
	assert_int_equal(first, 'o');
	/* Another file in the path: not it, but still what is mapped. */
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(first_of(&key, path, start, pid, &first), 0);
	assert_int_equal(first, 'o');
	assert_int_equal(first_of(&key, path, start, 0x7ffffff0, &first), -ESTALE);
	/* Another file at the address, too. */
	map_file(path, start, &other_key);
	assert_true(first_of(&key, path, start, pid, &first) < 0);
	assert_int_equal(first_of(&other_key, path, start, pid, &first), 0);
	assert_int_equal(first, 't');
	/* Of the same number but another life. */
	other_key.generation++;
	if (other_key.has_generation)
		assert_int_equal(first_of(&other_key, path, start, 0x7ffffff0, &first), -ESTALE);
	assert_int_equal(munmap(start, PAGE), 0);
}

static void test_guard(void **state)
{
	struct file_guard *guard;
	char first = 0;
	int fd;

	(void)state;
	write_file(path, "one");
	assert_int_equal(mkfifo(other, 0600), 0); /* whoever opens it waits */
	assert_int_equal(file_guard_new(&guard), 0);
	for (int i = 0; i < 20; i++) {
		fd = file_guard_open(guard, path, NULL);
		assert_true(fd >= 0);
		assert_int_equal(pread(fd, &first, 1, 0), 1);
		assert_int_equal(first, 'o');
		close(fd);
		assert_int_equal(file_guard_open(guard, "/no/such/file", NULL), -ENOENT);
		assert_int_equal(file_guard_open(guard, top, NULL), -EINVAL);
		assert_int_equal(file_guard_open(guard, other, NULL), -EINVAL);
	}
	file_guard_free(guard);
	assert_int_equal(unlink(other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_mapped), cmocka_unit_test(test_guard) };

	return run_group_of_descriptors(tests, set_up, tear_down);
}
