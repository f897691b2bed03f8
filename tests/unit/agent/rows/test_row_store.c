/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from life to life: what was put into a cache is there in the next one, and nothing of a file that is damaged. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/rows/row_store.h"

static char folder[] = "/tmp/hearth-test-XXXXXX";
static int dir_fd;
static unsigned seed = 1;
static struct row_store *store;
static struct row_cache *cache;

enum { FILES = 5, GROUPS = 40, MOST = 60 };

static void assert_same(const struct row *a, const struct row *b)
{
	/* without the padding */
	assert_memory_equal(a, b, offsetof(struct row, wrong_cnt) + sizeof(a->wrong_cnt));
	assert_memory_equal(&a->cfa_off, &b->cfa_off,
			    offsetof(struct row, saved) + sizeof(a->saved) - offsetof(struct row, cfa_off));
}

/* What a group has, drawn anew from the same seed each time. */
static size_t make_rows(unsigned file, uint64_t group, struct row *rows)
{
	unsigned draw = file * 1000 + (unsigned)group;
	uint64_t at = group * ROW_GROUP_BYTES;
	size_t n = 0;

	while (n < MOST && at + 40 < (group + 1) * ROW_GROUP_BYTES) {
		at += (unsigned)rand_r(&draw) % 20;
		memset(&rows[n], 0, sizeof(rows[n]));
		rows[n].start = at;
		at += 1 + (unsigned)rand_r(&draw) % 20;
		rows[n].end = at;
		rows[n].cfa = ROW_CFA_REG;
		rows[n].cfa_reg = REG_SP;
		rows[n].cfa_off = rand_r(&draw) % 30 * 8;
		rows[n++].saved[0] = rand_r(&draw) % 3 * 8;
	}
	return n;
}

/* Where a stack ends, of a group that make_rows drew. */
static bool is_end(unsigned file, uint64_t group)
{
	return (file + group) % 3 == 0;
}

static uint32_t number_of(unsigned file)
{
	char name[32];

	snprintf(name, sizeof(name), "0123456789abcdef-%08x", file);
	return row_store_number(store, name);
}

static void begin(void)
{
	assert_int_equal(row_store_new(dir_fd, &store), 0);
	assert_int_equal(row_cache_new(&cache), 0);
}

static void end(void)
{
	row_store_free(store);
	row_cache_free(cache);
}

static void put(unsigned file, uint64_t group)
{
	struct row rows[MOST];
	size_t count = make_rows(file, group, rows);

	assert_int_equal(row_cache_put(cache, number_of(file), group * ROW_GROUP_BYTES + 7, rows, count), 0);
	if (is_end(file, group))
		assert_int_equal(row_cache_end(cache, number_of(file), (group + 1) * ROW_GROUP_BYTES - 1), 0);
}

/* Is the group on disk, as it was? */
static bool is_kept(unsigned file, uint64_t group)
{
	uint64_t at = group * ROW_GROUP_BYTES;
	struct row rows[MOST], found;
	size_t count = make_rows(file, group, rows);

	if (row_store_load(store, number_of(file), at + 11, cache))
		return false;
	for (size_t i = 0; i < count; i++) {
		assert_true(row_cache_find(cache, number_of(file), rows[i].end - 1, &found));
		assert_same(&found, &rows[i]);
	}
	assert_int_equal(row_cache_find(cache, number_of(file), at + ROW_GROUP_BYTES - 1, &found), is_end(file, group));
	assert_true(!is_end(file, group) || found.is_end);
	return true;
}

static void test_next_life(void **state)
{
	(void)state;
	begin();
	for (unsigned file = 0; file < FILES; file++)
		for (uint64_t group = 0; group < GROUPS; group++)
			put(file, group * group);
	assert_false(is_kept(0, 0));
	assert_int_equal(row_store_save(store, cache), 0);
	assert_true(is_kept(2, 9)); /* at once */
	end();

	begin(); /* numbers are given by names: in another order */
	for (int file = FILES - 1; file >= 0; file--)
		for (uint64_t group = 0; group < GROUPS; group++)
			assert_true(is_kept((unsigned)file, group * group));
	assert_false(is_kept(1, 2));
	assert_false(is_kept(FILES, 0));
	put(FILES, 3);
	put(0, 2);
	assert_int_equal(row_store_save(store, cache), 0);
	end();

	begin(); /* what was there before stays */
	assert_true(is_kept(0, 2) && is_kept(FILES, 3) && is_kept(4, 25));
	end();
}

struct seen {
	uint64_t addrs[8];
	uint32_t count;
};

static void see(void *arg, uint64_t addr, const struct row *rows, size_t count)
{
	struct seen *seen = arg;
	struct row known[CODE_BLOCK_BYTES];

	assert_int_equal(row_cache_block(cache, number_of(1), addr, known), count);
	for (size_t i = 0; i < count; i++)
		assert_same(&known[i], &rows[i]);
	seen->addrs[seen->count++] = addr;
}

static void test_hot(void **state)
{
	struct seen seen = { 0 };

	(void)state;
	begin();
	put(1, 4);
	put(1, 9);
	row_cache_mark(cache, number_of(1), 9 * ROW_GROUP_BYTES + 3 * CODE_BLOCK_BYTES + 5);
	row_cache_mark(cache, number_of(1), 4 * ROW_GROUP_BYTES + 2 * CODE_BLOCK_BYTES);
	row_cache_mark(cache, number_of(1), 5 * ROW_GROUP_BYTES); /* not known */
	assert_int_equal(row_store_save(store, cache), 0);
	end();

	begin();
	assert_true(is_kept(1, 4) && is_kept(1, 9));
	row_store_hot(store, number_of(1), 8, see, &seen);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.addrs[0], 4 * ROW_GROUP_BYTES + 2 * CODE_BLOCK_BYTES);
	assert_int_equal(seen.addrs[1], 9 * ROW_GROUP_BYTES + 3 * CODE_BLOCK_BYTES);
	seen.count = 0;
	row_store_hot(store, number_of(1), 1, see, &seen);
	assert_int_equal(seen.count, 1);
	row_store_hot(store, number_of(3), 8, see, &seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(row_store_save(store, cache), 0); /* and it stays so, though none ran in this life */
	end();

	begin();
	assert_true(is_kept(1, 4) && is_kept(1, 9));
	seen.count = 0;
	row_store_hot(store, number_of(1), 8, see, &seen);
	assert_int_equal(seen.count, 2);
	end();
}

/* The one file of the folder. */
static int open_kept(void)
{
	DIR *dir = opendir(folder);
	const struct dirent *d;
	int fd = -1;

	assert_non_null(dir);
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.')
			fd = openat(dir_fd, d->d_name, O_RDWR);
	closedir(dir);
	assert_true(fd >= 0);
	return fd;
}

/* A byte changed, the end cut off, or writable for others: nothing is believed, and it is written anew. */
static void test_damage(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		int fd;
		struct stat st;
		uint8_t byte;
		off_t at;

		begin();
		put(0, 1);
		assert_int_equal(row_store_save(store, cache), 0);
		end();
		fd = open_kept();
		assert_int_equal(fstat(fd, &st), 0);
		at = i < 40 ? i * 2 : rand_r(&seed) % st.st_size;
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= (uint8_t)(1 << i % 8);
		if (i % 20 == 7)
			assert_int_equal(ftruncate(fd, at), 0);
		else if (i % 20 == 8)
			assert_int_equal(fchmod(fd, 0622), 0);
		else
			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
		begin();
		assert_false(is_kept(0, 1));
		end();
	}
}

static void test_no_folder(void **state)
{
	(void)state;
	assert_int_equal(row_store_new(-1, &store), 0);
	assert_int_equal(row_cache_new(&cache), 0);
	assert_true(number_of(0) && number_of(0) == number_of(0) && number_of(0) != number_of(1));
	assert_false(is_kept(0, 1));
	assert_int_equal(row_store_save(store, cache), 0);
	end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next_life),
		cmocka_unit_test(test_hot),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_no_folder),
	};
	char command[64];
	int failed;

	if (!mkdtemp(folder))
		return 1;
	dir_fd = open(folder, O_RDONLY | O_DIRECTORY);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command) || failed;
}
