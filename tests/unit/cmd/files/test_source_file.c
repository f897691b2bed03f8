/* SPDX-License-Identifier: Apache-2.0 */
/* Of all that a capture may name as a source, only regular files of a bearable size are read. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/files/source_file.h"
#include "tests/unit/descriptors.h"

enum { MOST_BYTES = 16 << 20 };

static void test_reads(void **state)
{
	char path[] = "/tmp/test_source_file.XXXXXX";
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	AUTO_CLOSE int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "int f;\n", 7), 7);
	assert_true(source_file_read(path, &text));
	assert_string_equal(buf_text(&text), "int f;\n");
	buf_reset(&text);
	assert_int_equal(ftruncate(fd, MOST_BYTES), 0);
	assert_true(source_file_read(path, &text));
	assert_int_equal(text.len, MOST_BYTES);
	buf_reset(&text);
	assert_int_equal(ftruncate(fd, MOST_BYTES + 1), 0);
	assert_false(source_file_read(path, &text));
	assert_int_equal(unlink(path), 0);
	assert_false(source_file_read(path, &text));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(source_file_read(path, &text)); /* at once: nobody writes into it */
	assert_int_equal(unlink(path), 0);
	assert_false(source_file_read("/tmp", &text));
	assert_false(source_file_read("/dev/zero", &text));
	assert_int_equal(text.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_reads) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
