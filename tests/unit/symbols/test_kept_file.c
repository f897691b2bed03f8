/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the folder of indexes: who may have written them, and that they are replaced as a whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/kept_file.h"
#include "tests/unit/descriptors.h"

static char folder[] = "/tmp/test_kept_file.XXXXXX";
static int dir_fd = -1;

static int set_up(void **state)
{
	(void)state;
	memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
	if (!mkdtemp(folder))
		return -1;
	dir_fd = open(folder, O_RDONLY | O_DIRECTORY);
	return dir_fd < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(dir_fd);
	return rmdir(folder); /* no test leaves anything, and no half file stays */
}

static void expect(const char *name, const char *text)
{
	struct kept_file f;

	assert_int_equal(kept_file_map(dir_fd, name, &f), 0);
	assert_int_equal(f.len_bytes, strlen(text));
	assert_memory_equal(f.data, text, f.len_bytes);
	kept_file_rest(&f);
	assert_memory_equal(f.data, text, f.len_bytes);
	kept_file_unmap(&f);
	assert_null(f.data);
	kept_file_unmap(&f);
}

static void test_replace(void **state)
{
	struct kept_file old;
	struct stat st;

	(void)state;
	assert_int_equal(kept_file_replace(dir_fd, "a", "one", 3), 0);
	expect("a", "one");
	assert_int_equal(kept_file_map(dir_fd, "a", &old), 0);
	assert_int_equal(kept_file_replace(dir_fd, "a", "second", 6), 0);
	expect("a", "second");
	assert_memory_equal(old.data, "one", 3); /* whoever mapped it has it for as long as it wants */
	kept_file_unmap(&old);
	assert_int_equal(fstatat(dir_fd, "a", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(unlinkat(dir_fd, "a", 0), 0);
	assert_int_equal(kept_file_replace(-1, "a", "x", 1), -EBADF);
}

/* A disk that takes no more: here a limit for files. The old one stays. */
static void test_no_room(void **state)
{
	struct rlimit before, limit;
	char big[100] = "x";

	(void)state;
	assert_int_equal(kept_file_replace(dir_fd, "a", "one", 3), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ 50, before.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(kept_file_replace(dir_fd, "a", big, sizeof(big)), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	expect("a", "one");
	assert_int_equal(unlinkat(dir_fd, "a", 0), 0);
}

static void test_others(void **state)
{
	struct kept_file f;
	AUTO_CLOSE int fd = -1;

	(void)state;
	assert_int_equal(kept_file_map(dir_fd, "a", &f), -ENOENT);
	assert_int_equal(symlinkat("b", dir_fd, "a"), 0);
	assert_int_equal(kept_file_map(dir_fd, "a", &f), -EBADMSG);
	assert_int_equal(unlinkat(dir_fd, "a", 0), 0);
	assert_int_equal(mkfifoat(dir_fd, "a", 0600), 0);
	assert_int_equal(kept_file_map(dir_fd, "a", &f), -EBADMSG); /* and nobody waits for its writer */
	assert_int_equal(unlinkat(dir_fd, "a", 0), 0);
	assert_int_equal(kept_file_replace(dir_fd, "a", "", 0), 0);
	assert_int_equal(kept_file_map(dir_fd, "a", &f), -EBADMSG);
	assert_int_equal(kept_file_replace(dir_fd, "a", "text", 4), 0);
	assert_int_equal(fchmodat(dir_fd, "a", 0620, 0), 0);
	assert_int_equal(kept_file_map(dir_fd, "a", &f), -EBADMSG);
	assert_int_equal(fchmodat(dir_fd, "a", 0602, 0), 0);
	assert_int_equal(kept_file_map(dir_fd, "a", &f), -EBADMSG);
	fd = openat(dir_fd, "a", O_RDONLY);
	assert_int_equal(kept_file_map_fd(fd, &f), 0); /* whoever opened it believes it */
	assert_memory_equal(f.data, "text", 4);
	kept_file_unmap(&f);
	assert_int_equal(fchmodat(dir_fd, "a", 0644, 0), 0);
	expect("a", "text");
	if (geteuid() == 0) {
		assert_int_equal(fchownat(dir_fd, "a", 12345, 0, 0), 0);
		assert_int_equal(kept_file_map(dir_fd, "a", &f), -EBADMSG);
	}
	assert_int_equal(unlinkat(dir_fd, "a", 0), 0);
	assert_int_equal(kept_file_map_fd(-1, &f), -EBADF);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_replace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_others, set_up, tear_down),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
