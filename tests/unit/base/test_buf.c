/* SPDX-License-Identifier: Apache-2.0 */
/* The growable buffer: what is appended comes out again, and failure sticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

static void test_appends(void **state)
{
	struct buf b AUTO(buf_fini) = BUF_EMPTY;

	(void)state;
	assert_string_equal(buf_text(&b), "");
	buf_append(&b, NULL, 0);
	assert_null(b.data);
	buf_puts(&b, "one ");
	buf_putc(&b, '2');
	buf_printf(&b, " %s %d", "three", 4);
	buf_append(&b, "\0five", 5);
	assert_int_equal(b.len, 18);
	assert_memory_equal(b.data, "one 2 three 4\0five", 18);
	assert_string_equal(buf_text(&b), "one 2 three 4");
	assert_int_equal(b.len, 18);
}

static void test_grows(void **state)
{
	struct buf b AUTO(buf_fini) = BUF_EMPTY;

	(void)state;
	for (unsigned i = 0; i < 100000; i++)
		buf_append(&b, &i, sizeof(i));
	assert_false(b.failed);
	assert_int_equal(b.len, 100000 * sizeof(unsigned));
	for (unsigned i = 0; i < 100000; i++)
		assert_memory_equal(b.data + i * sizeof(i), &i, sizeof(i));
}

/* Lengths around what printf's first try has room for, from an empty and from a nearly full buffer. */
static void test_printf_lengths(void **state)
{
	char text[301];

	(void)state;
	memset(text, 'x', sizeof(text));
	for (int before = 0; before < 130; before++) {
		for (int len = 0; len < 300; len += 7) {
			struct buf b AUTO(buf_fini) = BUF_EMPTY;

			buf_append(&b, text, (size_t)before);
			buf_printf(&b, "<%.*s>", len, text);
			assert_int_equal(b.len, before + len + 2);
			assert_int_equal(b.data[before], '<');
			assert_int_equal(b.data[b.len - 1], '>');
		}
	}
}

static void test_failure_sticks(void **state)
{
	struct buf b AUTO(buf_fini) = BUF_EMPTY;

	(void)state;
	buf_puts(&b, "kept");
	assert_int_equal(buf_reserve(&b, SIZE_MAX - 2), -ENOMEM);
	assert_true(b.failed);
	buf_puts(&b, "ignored");
	buf_printf(&b, "%d", 1);
	assert_int_equal(b.len, 4);
	assert_int_equal(buf_reserve(&b, 0), -ENOMEM);
	assert_string_equal(buf_text(&b), "");
	buf_reset(&b);
	assert_false(b.failed);
	buf_puts(&b, "again");
	assert_string_equal(buf_text(&b), "again");
}

/* At every length there is room for the NUL already; and len bytes can be read where the text is lost. */
static void test_text_needs_no_memory(void **state)
{
	char copy[300];

	(void)state;
	for (size_t len = 1; len < sizeof(copy); len++) {
		struct buf whole AUTO(buf_fini) = BUF_EMPTY, grown AUTO(buf_fini) = BUF_EMPTY;

		assert_int_equal(buf_reserve(&whole, len), 0);
		assert_true(buf_room(&whole) >= len);
		memset(whole.data, 'x', len);
		whole.len = len;
		for (size_t i = 0; i < len; i++)
			buf_putc(&grown, 'x');
		for (struct buf *b = &whole; b; b = b == &whole ? &grown : NULL) {
			const struct buf before = *b;

			assert_true(b->len < b->cap);
			assert_ptr_equal(buf_text(b), before.data);
			assert_int_equal(strlen(buf_text(b)), len);
			assert_int_equal(b->cap, before.cap);
			buf_reserve(b, SIZE_MAX);
			assert_string_equal(buf_text(b), "");
			memcpy(copy, buf_text(b), b->len);
			assert_memory_equal(copy, b->data, len);
		}
	}
}

static void test_room(void **state)
{
	struct buf b AUTO(buf_fini) = BUF_EMPTY;

	(void)state;
	assert_int_equal(buf_room(&b), 0);
	for (int i = 0; i < 200; i++) {
		const size_t room = buf_room(&b), cap = b.cap;

		buf_putc(&b, 'x');
		assert_int_equal(b.cap == cap, room > 0);
		assert_true(b.cap != cap || buf_room(&b) == room - 1);
	}
}

static void test_take(void **state)
{
	struct buf b = BUF_EMPTY;
	size_t len = 99;
	uint8_t *data;

	(void)state;
	assert_null(buf_take(&b, &len));
	assert_int_equal(len, 0);
	buf_puts(&b, "mine");
	data = buf_take(&b, &len);
	assert_int_equal(len, 4);
	assert_memory_equal(data, "mine", 4);
	assert_null(b.data);
	assert_int_equal(b.cap, 0);
	free(data);
	buf_puts(&b, "lost");
	buf_reserve(&b, SIZE_MAX);
	assert_null(buf_take(&b, NULL)); /* incomplete content is never handed out */
	assert_null(b.data);
	assert_false(b.failed);
}

static void test_percent(void **state)
{
	struct buf b AUTO(buf_fini) = BUF_EMPTY;

	(void)state;
	buf_percent(&b, "azAZ09-._~/ %@[`{:\0\x7f\xc3\xa9", 22, URL_PLAIN);
	assert_string_equal(buf_text(&b), "azAZ09-._~%2F%20%25%40%5B%60%7B%3A%00%7F%C3%A9");
	buf_reset(&b);
	buf_percent(&b, "a/b.\0", 5, "/");
	assert_string_equal(buf_text(&b), "a/b%2E%00");
	buf_reset(&b);
	buf_percent(&b, NULL, 0, "");
	assert_int_equal(b.len, 0);
}

/* A buffer that was cut to its size is read as text, and grows again. */
static void test_fit(void **state)
{
	struct buf b = BUF_EMPTY;

	(void)state;
	buf_fit(&b);
	assert_int_equal(b.cap, 0);
	for (int i = 0; i < 1000; i++)
		buf_putc(&b, 'x');
	buf_fit(&b);
	assert_int_equal(b.len, 1000);
	assert_int_equal(b.cap, 1001);
	assert_int_equal(strlen(buf_text(&b)), 1000);
	buf_puts(&b, "yz");
	assert_int_equal(strlen(buf_text(&b)), 1002);
	buf_fini(&b);
}

enum { MANY_BYTES = 3000000, MOST_CAP_BYTES = 1 << 20 };

/* Byte number @i of what goes to a file. */
static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

/* Appends MANY_BYTES in parts of @part_bytes, in each way in turn. */
static void append_many(struct buf *b, size_t part_bytes)
{
	uint8_t *all = malloc(MANY_BYTES);
	size_t most_cap = 0;

	assert_non_null(all);
	for (size_t i = 0; i < MANY_BYTES; i++)
		all[i] = byte_at(i);
	for (size_t at = 0; at < MANY_BYTES; at += part_bytes) {
		size_t len = MANY_BYTES - at < part_bytes ? MANY_BYTES - at : part_bytes;

		if (len > 1) {
			buf_append(b, all + at, len - 1);
			buf_putc(b, (char)all[at + len - 1]);
		} else {
			buf_printf(b, "%c", all[at]);
		}
		most_cap = b->cap > most_cap ? b->cap : most_cap;
	}
	assert_in_range(most_cap, 1, MOST_CAP_BYTES);
	free(all);
}

/* With a file a buffer stays small, and all bytes are in the file in order, parts that are larger than a piece too. */
static void test_file(void **state)
{
	static const size_t parts[] = { 1, 1000, 262144, 700000, MANY_BYTES };

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct buf_file file = { .fd = memfd_create("test", MFD_CLOEXEC), .most_bytes = MANY_BYTES };
		struct buf b AUTO(buf_fini) = { .file = &file };
		uint8_t *met = malloc(MANY_BYTES);

		append_many(&b, parts[i]);
		assert_true(file.bytes && !b.failed);
		assert_int_equal(buf_flush(&b), 0);
		assert_int_equal(buf_flush(&b), 0);
		assert_int_equal(b.len, 0);
		assert_int_equal(file.bytes, MANY_BYTES);
		assert_non_null(met);
		assert_int_equal(pread(file.fd, met, MANY_BYTES, 0), MANY_BYTES);
		for (size_t at = 0; at < MANY_BYTES; at++)
			assert_int_equal(met[at], byte_at(at));
		free(met);
		close(file.fd);
	}
}

/* A file that is full, or has as much as it may, is told by the buffer and by the file, and stays so. */
static void test_file_fails(void **state)
{
	struct buf_file full = { .fd = open("/dev/full", O_WRONLY | O_CLOEXEC), .most_bytes = UINT64_MAX };
	struct buf_file small = { .fd = memfd_create("test", MFD_CLOEXEC), .most_bytes = MANY_BYTES - 1 };
	struct buf b AUTO(buf_fini) = { .file = &full }, c AUTO(buf_fini) = { .file = &small };
	struct stat st;

	(void)state;
	buf_puts(&b, "fits");
	assert_false(b.failed);
	append_many(&b, 1000);
	assert_true(b.failed);
	assert_int_equal(full.error, -ENOSPC);
	buf_reset(&b);
	buf_puts(&b, "more");
	assert_int_equal(buf_flush(&b), -ENOSPC);
	assert_true(b.failed && !full.bytes);
	append_many(&c, 1000);
	assert_int_equal(buf_flush(&c), -ENOMEM);
	assert_true(c.failed);
	assert_int_equal(fstat(small.fd, &st), 0);
	assert_int_equal(st.st_size, small.bytes);
	assert_in_range(small.bytes, 1, MANY_BYTES - 1);
	close(small.fd);
	close(full.fd);
}

/* A buffer that failed without its file makes the file fail: a part is missing. */
static void test_file_of_a_failed_buffer(void **state)
{
	struct buf_file file = { .fd = memfd_create("test", MFD_CLOEXEC), .most_bytes = UINT64_MAX };
	struct buf b AUTO(buf_fini) = { .file = &file };

	(void)state;
	buf_puts(&b, "a part");
	b.failed = true;
	assert_int_equal(buf_flush(&b), -ENOMEM);
	assert_true(b.failed && !file.bytes);
	close(file.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_appends),
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_printf_lengths),
		cmocka_unit_test(test_failure_sticks),
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_percent),
		cmocka_unit_test(test_text_needs_no_memory),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_file_fails),
		cmocka_unit_test(test_file_of_a_failed_buffer),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
