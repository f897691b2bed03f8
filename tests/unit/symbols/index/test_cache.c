/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of indexes: what is kept, believed, removed, and in which order; and several processes in one folder at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/code/names.h"
#include "symbols/index/cache.h"
#include "symbols/symbols.h"

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_symbol_cache.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* The same where the file system does not note by itself when a file is read. As root; else as it comes. */
static int make_noatime_folder(void **state)
{
	if (make_folder(state))
		return -1;
	if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0) {
		assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
		assert_int_equal(mount("none", folder, "tmpfs", MS_NOATIME, NULL), 0);
	}
	return 0;
}

static int remove_noatime_folder(void **state)
{
	umount2(folder, MNT_DETACH);
	return remove_folder(state);
}

/* The key of file number @n. */
static struct symbol_cache_key key_of(unsigned int n)
{
	struct build_ids ids = { .go = "ignored", .htlhash = "00112233445566778899aabbccddeeff" };
	struct symbol_cache_key key;

	snprintf(ids.gnu, sizeof(ids.gnu), "%040x", n);
	symbol_cache_key(&ids, 0, &key);
	return key;
}

/* An index in which number @n's only function is named after it. */
static struct buf index_of(unsigned int n)
{
	struct symbol_index_head head = { .best = CODE_SOURCE_SYMTAB };
	struct code_names *c = code_names_new(NULL, 0);
	struct buf bytes = BUF_EMPTY;
	char name[32];

	strcpy(head.build_id, key_of(n).build_id);
	snprintf(name, sizeof(name), "function_%u", n);
	code_names_begin(c, CODE_SOURCE_SYMTAB);
	code_names_range(c, 100, 200,
			 code_names_node(c, CODE_NONE, code_names_function(c, name, strlen(name), 0), CODE_NONE, 0, 0));
	assert_int_equal(code_names_finish(c), 0);
	assert_int_equal(symbol_index_write(c, &head, &bytes), 0);
	code_names_free(c);
	return bytes;
}

static int add(struct symbol_cache *c, unsigned int n)
{
	AUTO(buf_fini) struct buf bytes = index_of(n);
	struct symbol_cache_key key = key_of(n);

	return symbol_cache_add(c, &key, bytes.data, bytes.len);
}

/* Number @n's index is there and is its own: 0; else what symbol_cache_find said. */
static int find(struct symbol_cache *c, unsigned int n)
{
	struct symbol_cache_key key = key_of(n);
	struct symbol_cache_entry e;
	struct buf text = BUF_EMPTY;
	struct code_answer a;
	char name[32];
	int r = symbol_cache_find(c, &key, &e);

	if (r)
		return r;
	snprintf(name, sizeof(name), "function_%u", n);
	assert_int_equal(symbol_index_find(e.index, 150, &a), 0);
	assert_int_equal(symbol_index_name(e.index, a.frames[0].function, &text), 0);
	assert_string_equal(buf_text(&text), name);
	buf_fini(&text);
	symbol_cache_entry_close(&e);
	assert_null(e.index);
	return 0;
}

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void set_times(const char *name, time_t seconds_ago)
{
	struct timespec times[2];

	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= seconds_ago;
	times[1] = times[0];
	assert_int_equal(utimensat(AT_FDCWD, path_of(name), times, AT_SYMLINK_NOFOLLOW), 0);
}

static void test_keep_and_find(void **state)
{
	struct symbol_cache_key key = key_of(1);
	struct symbol_cache *c;
	struct stat st;

	(void)state;
	assert_int_equal(symbol_cache_open(path_of("a/b/c"), 1 << 20, &c), 0); /* made with its parents */
	assert_int_equal(stat(path_of("a/b/c"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(find(c, 1), -ENOENT);
	assert_int_equal(symbol_cache_remove(c, &key), 0);
	assert_int_equal(add(c, 1), 0);
	assert_int_equal(add(c, 2), 0);
	assert_int_equal(add(c, 1), 0);
	assert_int_equal(find(c, 1), 0);
	assert_int_equal(find(c, 2), 0);
	assert_int_equal(symbol_cache_remove(c, &key), 0);
	assert_int_equal(find(c, 1), -ENOENT);
	symbol_cache_close(c);
	assert_int_equal(symbol_cache_open(path_of("a/b/c"), 1 << 20, &c), 0);
	assert_int_equal(find(c, 2), 0);
	symbol_cache_close(c);
}

/* What another process wrote into a file of the folder: kept as it is, not copied, and gone when nobody keeps it. */
static void test_adopt(void **state)
{
	AUTO(buf_fini) struct buf bytes = index_of(7);
	struct symbol_cache_key key = key_of(7);
	struct symbol_cache *c;
	struct stat st, kept;
	char path[128];
	int fd;

	(void)state;
	assert_int_equal(symbol_cache_open(path_of("adopted"), 1 << 20, &c), 0);
	fd = symbol_cache_file(c);
	if (fd == -EOPNOTSUPP) /* no such files here */
		skip();
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes.data, bytes.len), bytes.len);
	assert_int_equal(find(c, 7), -ENOENT);
	assert_int_equal(symbol_cache_adopt(c, &key, fd), 0);
	assert_int_equal(find(c, 7), 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	snprintf(path, sizeof(path), "adopted/%s", key.name);
	assert_int_equal(stat(path_of(path), &kept), 0);
	assert_int_equal(kept.st_ino, st.st_ino);

	fd = symbol_cache_file(c); /* in the place of the one there is */
	assert_int_equal(write(fd, bytes.data, bytes.len), bytes.len);
	assert_int_equal(symbol_cache_adopt(c, &key, fd), 0);
	assert_int_equal(find(c, 7), 0);
	assert_int_equal(ftruncate(fd, 2 << 20), 0);
	assert_int_equal(symbol_cache_adopt(c, &key, fd), -EFBIG);
	close(fd);
	assert_int_equal(symbol_cache_adopt(c, &key, -1), -EBADF);
	symbol_cache_close(c);
}

static void test_keys(void **state)
{
	struct build_ids ids = { .gnu = "0123456789abcdef", .go = "a/b/c/d", .htlhash = "00112233445566778899aabbccddeeff" };
	struct symbol_cache_key key, other;

	(void)state;
	symbol_cache_key(&ids, 0, &key);
	assert_string_equal(key.build_id, "0123456789abcdef");
	assert_string_equal(key.name, "0123456789abcdef-00112233");
	symbol_cache_key(&ids, 1000, &other);
	assert_string_equal(other.build_id, key.build_id);
	assert_string_equal(other.name, "0123456789abcdef-00112233-u1000");
	strcpy(ids.gnu, "0123"); /* too short to tell files apart */
	symbol_cache_key(&ids, 0, &key);
	/* printf a/b/c/d | sha256sum */
	assert_string_equal(key.build_id, "69b3db0fc351a54b1f59b63568d114e3db0db94e25d1ecd2330df81da631cefc");
	ids.go[0] = '\0';
	symbol_cache_key(&ids, 0, &key);
	assert_string_equal(key.name, "00112233445566778899aabbccddeeff-00112233");
}

static void test_not_believed(void **state)
{
	static const char *const folders[] = { "writable", "plain", "link", "other" };
	struct symbol_cache_key key = key_of(1);
	struct symbol_cache *c;
	struct buf bytes = index_of(1), wrong = index_of(2);

	(void)state;
	assert_int_equal(mkdir(path_of(folders[0]), 0700), 0);
	assert_int_equal(chmod(path_of(folders[0]), 0770), 0);
	assert_int_equal(symbol_cache_open(path_of(folders[0]), 1 << 20, &c), -EPERM);
	assert_int_equal(chmod(path_of(folders[0]), 0702), 0);
	assert_int_equal(symbol_cache_open(path_of(folders[0]), 1 << 20, &c), -EPERM);
	assert_int_equal(chmod(path_of(folders[0]), 0755), 0);
	close(open(path_of(folders[1]), O_CREAT | O_WRONLY, 0600));
	assert_int_equal(symbol_cache_open(path_of(folders[1]), 1 << 20, &c), -ENOTDIR);
	assert_int_equal(symlink(folders[0], path_of(folders[2])), 0);
	assert_int_equal(symbol_cache_open(path_of(folders[2]), 1 << 20, &c), -ENOTDIR);
	if (geteuid() == 0) {
		assert_int_equal(mkdir(path_of(folders[3]), 0755), 0);
		assert_int_equal(chown(path_of(folders[3]), 12345, 0), 0);
		assert_int_equal(symbol_cache_open(path_of(folders[3]), 1 << 20, &c), -EPERM);
	}

	assert_int_equal(symbol_cache_open(folder, 1 << 20, &c), 0);
	/* Writable for others, another user's, another file's, of another version, damaged, cut, a link, a folder. */
	assert_int_equal(add(c, 1), 0);
	assert_int_equal(chmod(path_of(key.name), 0622), 0);
	assert_int_equal(find(c, 1), -ENOENT);
	assert_int_not_equal(access(path_of(key.name), F_OK), 0); /* and removed */
	if (geteuid() == 0) {
		assert_int_equal(add(c, 1), 0);
		assert_int_equal(chown(path_of(key.name), 12345, 0), 0);
		assert_int_equal(find(c, 1), -ENOENT);
	}
	assert_int_equal(symbol_cache_add(c, &key, wrong.data, wrong.len), 0);
	assert_int_equal(find(c, 1), -ENOENT);
	bytes.data[8]++;
	assert_int_equal(symbol_cache_add(c, &key, bytes.data, bytes.len), 0);
	assert_int_equal(find(c, 1), -ENOENT);
	bytes.data[8]--;
	bytes.data[100] ^= 1;
	assert_int_equal(symbol_cache_add(c, &key, bytes.data, bytes.len), 0);
	assert_int_equal(find(c, 1), -ENOENT);
	bytes.data[100] ^= 1;
	assert_int_equal(symbol_cache_add(c, &key, bytes.data, bytes.len - 1), 0);
	assert_int_equal(find(c, 1), -ENOENT);
	assert_int_equal(symbol_cache_add(c, &key, bytes.data, 0), 0);
	assert_int_equal(find(c, 1), -ENOENT);
	assert_int_equal(symlink("/etc/passwd", path_of(key.name)), 0);
	assert_int_equal(find(c, 1), -ENOENT);
	assert_int_equal(access(path_of(key.name), F_OK), -1);
	assert_int_equal(mkdir(path_of(key.name), 0700), 0);
	assert_int_equal(find(c, 1), -ENOENT);
	assert_int_equal(rmdir(path_of(key.name)), 0);
	assert_int_equal(add(c, 1), 0);
	assert_int_equal(find(c, 1), 0);
	symbol_cache_close(c);
	buf_fini(&bytes);
	buf_fini(&wrong);
}

static void test_limit(void **state)
{
	struct buf one = index_of(100);
	struct symbol_cache_key key = key_of(103);
	struct symbol_cache_pruned done;
	struct symbol_cache *c;
	char name[128];

	(void)state;
	assert_int_equal(symbol_cache_open(path_of("limited"), one.len * 4, &c), 0);
	for (unsigned int n = 100; n < 104; n++) {
		assert_int_equal(add(c, n), 0);
		snprintf(name, sizeof(name), "limited/%s", key_of(n).name);
		set_times(name, 10000 - n);
	}
	assert_int_equal(find(c, 100), 0); /* the oldest, but now it was used */
	assert_int_equal(add(c, 104), 0);
	assert_int_equal(find(c, 101), -ENOENT);
	assert_int_equal(find(c, 100), 0);
	assert_int_equal(find(c, 102), 0);
	assert_int_equal(find(c, 103), 0);
	assert_int_equal(find(c, 104), 0);
	assert_int_equal(symbol_cache_add(c, &key, one.data, one.len * 4 + 1), -EFBIG);
	symbol_cache_close(c);

	assert_int_equal(symbol_cache_open(path_of("limited"), one.len, &c), 0);
	assert_int_equal(symbol_cache_prune(c, &done), 0);
	assert_int_equal(done.files, 1);
	assert_int_equal(done.removed, 3);
	assert_int_equal(done.broken, 0);
	assert_int_equal(done.bytes, one.len);
	assert_int_equal(done.removed_bytes, 3 * one.len);
	symbol_cache_close(c);
	buf_fini(&one);
}

static void put_file(const char *name, const void *data, size_t len)
{
	AUTO_CLOSE int fd = open(path_of(name), O_CREAT | O_EXCL | O_WRONLY, 0600);

	assert_true(fd >= 0 && write(fd, data, len) == (ssize_t)len);
}

static void test_prune(void **state)
{
	struct symbol_cache_pruned done;
	struct symbol_cache *c;
	struct buf bytes = index_of(8);

	(void)state;
	assert_int_equal(symbol_cache_open(folder, 1 << 20, &c), 0);
	assert_int_equal(add(c, 7), 0);
	bytes.data[bytes.len - 1] ^= 1; /* where opening does not look */
	put_file(key_of(8).name, bytes.data, bytes.len);
	put_file("README", "mine", 4);
	put_file(".new-0123456789abcdef", "begun", 5);
	put_file(".new-fedcba9876543210", "begun", 5);
	put_file("0123456789abcdefg", "no build id", 4);
	set_times(".new-fedcba9876543210", 4000);
	set_times("README", 1000000);
	assert_int_equal(symbol_cache_prune(c, &done), 0);
	assert_int_equal(done.removed, 2);
	assert_int_equal(done.broken, 1);
	assert_int_equal(done.files, 1);
	assert_int_equal(find(c, 7), 0);
	assert_int_equal(find(c, 8), -ENOENT);
	assert_int_equal(access(path_of("README"), F_OK), 0);
	assert_int_equal(access(path_of(".new-0123456789abcdef"), F_OK), 0);
	assert_int_equal(access(path_of("0123456789abcdefg"), F_OK), 0);
	assert_int_not_equal(access(path_of(".new-fedcba9876543210"), F_OK), 0);
	symbol_cache_close(c);
	buf_fini(&bytes);
}

/* Processes that add, find, remove and prune the same few: each find is right or finds nothing. */
static void test_together(void **state)
{
	struct buf one = index_of(1);

	(void)state;
	for (unsigned int p = 0; p < 4; p++) {
		struct symbol_cache_pruned done;
		struct symbol_cache *c;
		unsigned int found = 0;

		if (fork())
			continue;
		assert_int_equal(symbol_cache_open(path_of("together"), one.len * 6, &c), 0);
		for (unsigned int i = 0; i < 500; i++) {
			unsigned int n = 1 + (i * i + p) % 9;
			struct symbol_cache_key key = key_of(n);

			if (find(c, n) == 0)
				found++;
			else if (add(c, n))
				_exit(1);
			if (i % 50 == p)
				symbol_cache_remove(c, &key);
			if (i % 100 == p && (symbol_cache_prune(c, &done) || done.broken))
				_exit(2);
		}
		_exit(found > 50 ? 0 : 3);
	}
	for (int p = 0; p < 4; p++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	buf_fini(&one);
}

static void test_default_folder(void **state)
{
	struct buf text = BUF_EMPTY;

	(void)state;
	if (geteuid() == 0) {
		assert_int_equal(symbol_cache_default_folder(&text), 0);
		assert_string_equal(buf_text(&text), "/var/cache/hearth/symbols");
		assert_int_equal(seteuid(12345), 0);
	}
	setenv("HOME", "/home/me", 1);
	setenv("XDG_CACHE_HOME", "/elsewhere", 1);
	buf_reset(&text);
	assert_int_equal(symbol_cache_default_folder(&text), 0);
	assert_string_equal(buf_text(&text), "/elsewhere/hearth/symbols");
	setenv("XDG_CACHE_HOME", "relative", 1);
	buf_reset(&text);
	assert_int_equal(symbol_cache_default_folder(&text), 0);
	assert_string_equal(buf_text(&text), "/home/me/.cache/hearth/symbols");
	unsetenv("HOME");
	assert_int_equal(symbol_cache_default_folder(&text), -ENOENT);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	buf_fini(&text);
}

int main(void)
{
#define with_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
	static const struct CMUnitTest tests[] = {
		with_folder(test_keep_and_find),
		with_folder(test_adopt),
		cmocka_unit_test(test_keys),
		with_folder(test_not_believed),
		cmocka_unit_test_setup_teardown(test_limit, make_noatime_folder, remove_noatime_folder),
		with_folder(test_prune),
		with_folder(test_together),
		cmocka_unit_test(test_default_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
