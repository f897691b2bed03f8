/* SPDX-License-Identifier: Apache-2.0 */
/* By which names what is kept of a file is found again, and when a file is believed to be what it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/files/files.c"
#include "tests/unit/descriptors.h"

static char path[] = "/tmp/hearth-files-XXXXXX";
static int file_fd;

static int make(void **state)
{
	(void)state;
	file_fd = mkstemp(path);
	assert_true(file_fd >= 0);
	assert_int_equal(write(file_fd, "12345678", 8), 8);
	return 0;
}

static int destroy(void **state)
{
	(void)state;
	close(file_fd);
	return unlink(path);
}

static struct file example(const char *gnu, const char *go)
{
	struct file file = { .fd = file_fd,
			     .id = 5,
			     .key = { .inode = 3, .dev_major = 1, .dev_minor = 2 },
			     .size_bytes = 1000,
			     .mtime_ns = 2000,
			     .info.build_ids.htlhash = "0123456789abcdef0123456789abcdef" };

	file.rows_id = file.id | OWN_ROWS_ID;
	snprintf(file.info.build_ids.gnu, sizeof(file.info.build_ids.gnu), "%s", gnu);
	snprintf(file.info.build_ids.go, sizeof(file.info.build_ids.go), "%s", go);
	return file;
}

/* The same file but for one thing that says that its bytes may be others. */
static struct file changed(struct file file, int what)
{
	file.size_bytes += what == 1;
	file.mtime_ns += what == 2;
	file.key.inode += what == 3;
	file.key.dev_major += what == 4;
	file.key.dev_minor += what == 5;
	file.info.build_ids.htlhash[0] = what == 6 ? 'f' : file.info.build_ids.htlhash[0];
	return file;
}

enum { CHANGES = 6 };

static void test_names(void **state)
{
	struct symbol_cache_key key, other;
	struct file file, same;

	(void)state;
	for (int what = 1; what <= CHANGES; what++) {
		file = example("", "");
		same = changed(file, what);
		file_cache_key(&file, &key);
		file_cache_key(&same, &other);
		assert_string_not_equal(key.name, other.name);
	}
	for (int what = 1; what < CHANGES; what++) { /* a build id stands for all of them */
		file = example("abcdef", "");
		same = changed(file, what);
		file_cache_key(&file, &key);
		file_cache_key(&same, &other);
		assert_string_equal(key.name, other.name);
		file = example("", "go-id");
		same = changed(file, what);
		file_cache_key(&file, &key);
		file_cache_key(&same, &other);
		assert_string_equal(key.name, other.name);
	}
}

/* Rows are shared by files that are the same to the byte: those without a hash have their own. */
static void test_rows(void **state)
{
	struct files f = { 0 };
	struct file file, other;

	(void)state;
	assert_int_equal(row_store_new(-1, &f.store), 0);
	file = other = example("abcdef", "");
	number_rows(&f, &file);
	number_rows(&f, &other);
	assert_int_equal(file.rows_id, other.rows_id);
	assert_int_not_equal(file.rows_id, file.id | OWN_ROWS_ID);
	for (int what = 1; what <= CHANGES; what++) {
		other = changed(example("abcdef", ""), what);
		number_rows(&f, &other);
		assert_int_not_equal(file.rows_id, other.rows_id);
	}
	for (uint32_t id = 1; id < 3; id++) {
		other = example("abcdef", "");
		other.info.build_ids.htlhash[0] = '\0';
		other.rows_id = id | OWN_ROWS_ID;
		number_rows(&f, &other);
		assert_int_equal(other.rows_id, id | OWN_ROWS_ID);
	}
	row_store_free(f.store);
}

/* A file is another one when its size or its time has changed, which is looked at now and then. */
static void test_versions(void **state)
{
	struct timespec times[2] = { { 0 } };
	struct file file = example("", "");
	uint64_t now_ns = NSEC_PER_SEC;

	(void)state;
	assert_int_equal(read_version(file_fd, &file.size_bytes, &file.mtime_ns), 0);
	assert_int_equal(file.size_bytes, 8);
	assert_true(is_as_it_was(&file, now_ns));
	assert_int_equal(ftruncate(file_fd, 7), 0);
	times[0].tv_sec = times[1].tv_sec = (time_t)(file.mtime_ns / NSEC_PER_SEC);
	times[0].tv_nsec = times[1].tv_nsec = (long)(file.mtime_ns % NSEC_PER_SEC);
	assert_int_equal(futimens(file_fd, times), 0);
	assert_true(is_as_it_was(&file, now_ns + BELIEVED_MS * NSEC_PER_MSEC - 1));
	assert_false(is_as_it_was(&file, now_ns + BELIEVED_MS * NSEC_PER_MSEC)); /* its size */
	assert_int_equal(ftruncate(file_fd, 8), 0);
	times[1].tv_sec++;
	assert_int_equal(futimens(file_fd, times), 0);
	assert_false(is_as_it_was(&file, now_ns + BELIEVED_MS * NSEC_PER_MSEC)); /* its time */
	times[1].tv_sec--;
	assert_int_equal(futimens(file_fd, times), 0);
	assert_true(is_as_it_was(&file, now_ns + BELIEVED_MS * NSEC_PER_MSEC));
}

static void test_matches(void **state)
{
	struct file file = example("", "");
	struct file_key key;

	(void)state;
	file.fd = -1;
	file.key.has_generation = true;
	file.key.generation = 9;
	for (int what = 0; what < 6; what++) {
		key = file.key;
		key.inode += what == 1;
		key.dev_major += what == 2;
		key.dev_minor += what == 3;
		key.generation += what == 4 || what == 5;
		key.has_generation = what != 5; /* /proc does not tell it */
		assert_int_equal(file_matches(&file, &key, 0), what == 0 || what == 5);
	}
}

/* With a file go its descriptors, and the index of its names, which is mapped. */
static void test_end(void **state)
{
	struct file *file = calloc(1, sizeof(*file));
	void *mapped = mmap(NULL, 8, PROT_READ, MAP_PRIVATE, file_fd, 0);

	(void)state;
	assert_non_null(file);
	assert_ptr_not_equal(mapped, MAP_FAILED);
	*file = (struct file){ .fd = dup(file_fd), .debug_fd = dup(file_fd), .path = strdup(path) };
	file->index = calloc(1, sizeof(*file->index));
	assert_non_null(file->index);
	file->index->entry = (struct symbol_cache_entry){ .file = { .data = mapped, .len_bytes = 8 } };
	assert_int_equal(msync(mapped, 8, MS_ASYNC), 0);
	file_destroy(file); /* the group looks at the descriptors */
	assert_int_equal(msync(mapped, 8, MS_ASYNC), -1);
	assert_int_equal(errno, ENOMEM); /* nothing is mapped there */
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	cmocka_unit_test(test_rows), cmocka_unit_test(test_versions),
		cmocka_unit_test(test_matches), cmocka_unit_test(test_end),
	};

	return run_group_of_descriptors(tests, make, destroy);
}
