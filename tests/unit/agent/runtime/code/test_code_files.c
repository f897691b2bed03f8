/* SPDX-License-Identifier: Apache-2.0 */
/* Files beside images: by whose memory and which image they are known, what is needed, and which go when there is no room.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/runtime/code/code_files.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

static struct code_files files;
static struct code_memory memory;

static int setup(void **state)
{
	(void)state;
	files = (struct code_files){ 0 };
	memory = (struct code_memory){ .end_ns = UINT64_MAX, .files = &files };
	code_files_begin(&files, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	code_files_fini(&files);
	assert_int_equal(files.open_cnt, 0);
	return 0;
}

static int find(uint64_t base, struct code_memory *ret)
{
	const struct code_need need = { .base = base, .id = { 7 }, .name = "a.pdb" };

	return code_files_find(&memory, &need, ret);
}

static int with(const char *text)
{
	int fd = memfd_create("pdb", MFD_CLOEXEC);

	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	return fd;
}

static void the_first_that_is_missed_is_needed(void **state)
{
	const struct code_need nonsense = { .base = 3, .name = "../a.pdb" };
	struct code_memory file;

	(void)state;
	assert_int_equal(code_files_find(&memory, &nonsense, &file), -ENOENT);
	assert_int_equal(files.need.base, 0);
	assert_int_equal(find(1, &file), -EAGAIN);
	assert_int_equal(find(2, &file), -EAGAIN);
	assert_int_equal(files.need.base, 1);
	assert_int_equal(files.need.id[0], 7);
	assert_string_equal(files.need.name, "a.pdb");
	code_files_begin(&files, 1);
	assert_int_equal(files.need.base, 0);
	memory.files = NULL;
	assert_int_equal(find(1, &file), -ENOENT);
}

static void files_are_known_by_memory_and_image(void **state)
{
	AUTO_CLOSE int fd = with("text");
	struct code_memory file;
	char text[5] = "";

	(void)state;
	assert_int_equal(code_files_put(&files, 1, fd), 0);
	assert_int_equal(code_files_put(&files, 2, -1), 0);
	assert_int_equal(find(1, &file), 0);
	assert_int_equal(code_read(&file, 0, text, 4), 0);
	assert_string_equal(text, "text");
	assert_int_equal(code_read(&file, 8192, text, 4), -EFAULT); /* behind the end */
	assert_int_equal(find(2, &file), -ENOENT);
	code_files_begin(&files, 2);
	assert_int_equal(find(1, &file), -EAGAIN);
	code_files_forget(&files, 1);
	code_files_begin(&files, 1);
	assert_int_equal(find(1, &file), -EAGAIN);
	assert_int_equal(find(2, &file), -EAGAIN);
	assert_int_equal(code_files_put(&files, 1, 9999), -EBADF);
}

static void a_later_answer_counts(void **state)
{
	AUTO_CLOSE int fd = with("text");
	struct code_memory file;

	(void)state;
	assert_int_equal(code_files_put(&files, 1, -1), 0);
	assert_int_equal(code_files_put(&files, 1, fd), 0);
	assert_int_equal(find(1, &file), 0);
	assert_int_equal(code_files_put(&files, 1, -1), 0);
	assert_int_equal(find(1, &file), -ENOENT);
	assert_int_equal(files.count, 1);
	assert_int_equal(files.open_cnt, 0);
}

static void the_coldest_goes(void **state)
{
	AUTO_CLOSE int fd = with("text");
	int before = open_descriptors();
	struct code_memory file;

	(void)state;
	for (uint64_t i = 1; i <= CODE_FILES_OPEN; i++)
		assert_int_equal(code_files_put(&files, i, fd), 0);
	assert_int_equal(find(1, &file), 0); /* it is warm */
	assert_int_equal(code_files_put(&files, 100, fd), 0);
	assert_int_equal(open_descriptors(), before + CODE_FILES_OPEN);
	assert_int_equal(find(1, &file), 0);
	assert_int_equal(find(2, &file), -EAGAIN);
	for (uint64_t i = 0; i < CODE_FILES; i++) /* answers without a file go for each other */
		assert_int_equal(code_files_put(&files, 1000 + i, -1), 0);
	assert_int_equal(files.count, CODE_FILES);
	assert_int_equal(find(1000, &file), -ENOENT);
	assert_int_equal(find(1, &file), -EAGAIN);
	assert_int_equal(open_descriptors(), before);
}

static int keep(uint64_t base, char first, size_t len)
{
	uint8_t *data = calloc(1, len);

	assert_non_null(data);
	data[0] = (uint8_t)first;
	return code_files_keep(&files, base, data, len);
}

static void what_was_unpacked_is_a_file(void **state)
{
	struct code_memory file;
	char text[8] = "";

	(void)state;
	assert_false(code_files_has(&files, 1));
	assert_int_equal(keep(1, 'a', 5000), 0);
	assert_true(code_files_has(&files, 1));
	assert_int_equal(find(1, &file), 0);
	assert_int_equal(code_read_u8(&file, 0), 'a');
	assert_int_equal(code_read(&file, 4996, text, 8), 0); /* as of a file's last page */
	assert_int_equal(code_read(&file, 8192, text, 4), -EFAULT);
	assert_int_equal(code_read(&file, UINT64_MAX - 3, text, 4), -EFAULT);
	assert_int_equal(keep(1, 'b', 1), 0); /* the later one counts, and one that is brought, too */
	assert_int_equal(find(1, &file), 0);
	assert_int_equal(code_read_u8(&file, 0), 'b');
	assert_int_equal(files.kept_bytes, 1);
	assert_int_equal(code_files_put(&files, 1, -1), 0);
	assert_int_equal(find(1, &file), -ENOENT);
	assert_true(code_files_has(&files, 1));
	assert_int_equal(files.kept_bytes, 0);
	code_files_begin(&files, 2);
	assert_false(code_files_has(&files, 1));
}

static void what_is_kept_has_a_bound(void **state)
{
	enum { HALF = CODE_FILES_BYTES / 2 };
	struct code_memory file;

	(void)state;
	assert_int_equal(keep(1, 'a', CODE_FILES_BYTES + 1), -E2BIG);
	assert_int_equal(code_files_put(&files, 9, -1), 0);
	for (uint64_t i = 1; i <= 2; i++)
		assert_int_equal(keep(i, 'a', HALF), 0);
	assert_int_equal(find(1, &file), 0); /* it is warm */
	assert_int_equal(keep(3, 'a', HALF), 0);
	assert_true(code_files_has(&files, 1) && !code_files_has(&files, 2) && code_files_has(&files, 3));
	assert_true(code_files_has(&files, 9)); /* takes no memory */
	assert_int_equal(files.kept_bytes, CODE_FILES_BYTES);
	assert_int_equal(keep(4, 'a', CODE_FILES_BYTES), 0);
	assert_int_equal(files.kept_bytes, CODE_FILES_BYTES);
	assert_true(code_files_has(&files, 4) && !code_files_has(&files, 3));
	code_files_forget(&files, 1);
	assert_int_equal(files.kept_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_first_that_is_missed_is_needed, setup, teardown),
		cmocka_unit_test_setup_teardown(files_are_known_by_memory_and_image, setup, teardown),
		cmocka_unit_test_setup_teardown(a_later_answer_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(the_coldest_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_unpacked_is_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_kept_has_a_bound, setup, teardown),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
