/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of another process's memory: what they cost, what is kept of them and for how long, and what a budget refuses. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "agent/runtime/code/code_memory.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/descriptors.h"

enum { PAGE = 4096 };
static const uint64_t BASE = 0x7f0000000000;

/* Two pages at BASE, and nothing around them. */
struct made {
	uint8_t bytes[2 * PAGE];
	uint32_t reads;
	size_t last_bytes;
};

static int read_made(void *arg, uint64_t addr, void *dst, size_t len)
{
	struct made *made = arg;
	uint64_t off = addr - BASE;

	made->reads++;
	made->last_bytes = len;
	if (off > sizeof(made->bytes) || len > sizeof(made->bytes) - off)
		return -EFAULT;
	memcpy(dst, made->bytes + off, len);
	return 0;
}

/* Memory of @made, with pages that are kept, or without. */
static struct code_memory of(struct made *made, bool is_kept)
{
	struct code_memory m;
	int fd = -1;

	code_memory_of_process(&fd, &m);
	m.read = read_made;
	m.arg = made;
	if (!is_kept)
		m.pages = NULL;
	return m;
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void a_process_is_read(void **state)
{
	AUTO_CLOSE int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	static const uint8_t here[] = { 1, 2, 3, 4, 5, 6, 7, 0x88, 'a', 'b', '\0', 'c' };
	uint64_t addr = (uintptr_t)here, before_ns = thread_ns();
	struct code_memory m;
	char text[3];
	int none;

	(void)state;
	code_memory_of_process(&fd, &m);
	assert_in_range(m.end_ns, before_ns + 200 * 1000000u, thread_ns() + 200 * 1000000u);
	assert_int_equal(code_read_u64(&m, addr), 0x8807060504030201);
	assert_int_equal(code_read_u32(&m, addr + 4), 0x88070605);
	assert_int_equal(code_read_u16(&m, addr + 6), 0x8807);
	assert_int_equal(code_read_u8(&m, addr + 7), 0x88);
	assert_int_equal(code_read_text(&m, addr + 8, text, sizeof(text)), 0);
	assert_string_equal(text, "ab");
	assert_int_equal(code_read(&m, 16, &none, sizeof(none)), -EFAULT);
	assert_false(m.is_spent);
}

static void a_page_is_read_once_a_request(void **state)
{
	static struct made made;
	struct code_memory m = of(&made, true);

	(void)state;
	made = (struct made){ .bytes = { 7, 8 } };
	assert_int_equal(code_read_u8(&m, BASE), 7);
	made.bytes[0] = made.bytes[1] = 9;
	assert_int_equal(code_read_u8(&m, BASE), 7);
	assert_int_equal(code_read_u8(&m, BASE + 1), 8);
	assert_int_equal(made.reads, 1);
	assert_int_equal(made.last_bytes, PAGE);
	assert_int_equal(code_read_u8(&m, BASE + PAGE), 0); /* another page leaves the first where it is */
	assert_int_equal(code_read_u8(&m, BASE), 7);
	assert_int_equal(made.reads, 2);
	code_memory_forget(&m);
	assert_int_equal(code_read_u8(&m, BASE), 9);
	assert_int_equal(made.reads, 3);
	made.bytes[0] = 10;
	m = of(&made, true); /* the next request */
	assert_int_equal(code_read_u8(&m, BASE), 10);
}

static void large_reads_are_not_kept(void **state)
{
	static struct made made;
	static uint8_t dst[1025];
	struct code_memory m = of(&made, true);

	(void)state;
	made.bytes[PAGE - 1] = 1;
	made.bytes[PAGE] = 2;
	assert_int_equal(code_read(&m, BASE + PAGE - 1, dst, 1025), 0);
	assert_int_equal(made.last_bytes, 1025);
	assert_memory_equal(dst, ((uint8_t[]){ 1, 2, 0 }), 3);
	assert_int_equal(m.bytes_left, CODE_MAX_BYTES - 1025);
	assert_int_equal(m.reads_left, CODE_MAX_READS - 1);
	assert_int_equal(code_read(&m, BASE + PAGE - 1, dst, 1024), 0);
	assert_int_equal(made.last_bytes, PAGE);
	assert_memory_equal(dst, ((uint8_t[]){ 1, 2, 0 }), 3);
	assert_int_equal(m.bytes_left, CODE_MAX_BYTES - 1025 - 2 * PAGE);
	assert_int_equal(m.reads_left, CODE_MAX_READS - 3);
}

static void nothing_is_left_of_a_read_that_fails(void **state)
{
	static struct made made;
	uint8_t dst[4];

	(void)state;
	memset(made.bytes, 5, sizeof(made.bytes));
	for (int is_kept = 0; is_kept < 2; is_kept++) {
		struct code_memory m = of(&made, is_kept);

		memset(dst, 6, sizeof(dst));
		assert_int_equal(code_read(&m, BASE + 2 * PAGE - 2, dst, 4), -EFAULT);
		assert_memory_equal(dst, "\0\0\0\0", 4);
		assert_int_equal(code_read_u64(&m, BASE + 2 * PAGE), 0);
		assert_int_equal(code_read_u32(&m, BASE - 4), 0);
		assert_int_equal(code_read_u16(&m, BASE - 2), 0);
		assert_int_equal(code_read_u8(&m, BASE - 1), 0);
		assert_false(m.is_spent);
		made.reads = 0;
		assert_int_equal(code_read(&m, INT64_MAX - 4, dst, 4), -EFAULT);
		assert_int_equal(made.reads, 1);
		assert_int_equal(code_read(&m, INT64_MAX - 3, dst, 4), -EFAULT);
		assert_int_equal(code_read(&m, UINT64_MAX - 1, dst, 1), -EFAULT);
		assert_int_equal(code_read(&m, BASE - 1, dst, 0), 0);
		assert_int_equal(made.reads, 1); /* that these are nowhere is known without */
	}
}

static void a_budget_ends(void **state)
{
	static struct made made;
	struct code_memory m = of(&made, false);
	uint8_t dst[4] = { 6, 6, 6, 6 };

	(void)state;
	memset(made.bytes, 5, sizeof(made.bytes));
	m.reads_left = 1;
	assert_int_equal(code_read(&m, BASE, dst, 4), 0);
	assert_false(m.is_spent);
	assert_int_equal(code_read(&m, BASE, dst, 4), -EDQUOT);
	assert_true(m.is_spent);
	assert_memory_equal(dst, "\0\0\0\0", 4);
	assert_int_equal(made.reads, 1);

	m = of(&made, false);
	m.bytes_left = 7;
	assert_int_equal(code_read(&m, BASE, dst, 4), 0);
	assert_int_equal(code_read(&m, BASE, dst, 4), -EDQUOT);
	assert_true(m.is_spent);
	m.is_spent = false;
	assert_int_equal(code_read(&m, BASE, dst, 3), 0);
	assert_int_equal(m.bytes_left, 0);
	assert_false(m.is_spent);

	m = of(&made, false);
	m.end_ns = 1; /* the clock is looked at every 64 reads */
	m.reads_left = 65;
	assert_int_equal(code_read(&m, BASE, dst, 4), 0);
	assert_int_equal(code_read(&m, BASE, dst, 4), -EDQUOT);
	assert_true(m.is_spent);
	assert_int_equal(m.reads_left, 0);
	m = of(&made, false);
	m.end_ns = UINT64_MAX;
	assert_int_equal(code_read(&m, BASE, dst, 4), 0);
}

static void text_ends_where_it_ends(void **state)
{
	static struct made made;
	char text[200];

	(void)state;
	memset(made.bytes, 'x', sizeof(made.bytes));
	memcpy(made.bytes + 2 * PAGE - 4, "abc", 4); /* behind it nothing can be read */
	made.bytes[100] = '\0';
	for (int is_kept = 0; is_kept < 2; is_kept++) {
		struct code_memory m = of(&made, is_kept);

		assert_int_equal(code_read_text(&m, BASE + 2 * PAGE - 4, text, sizeof(text)), 0);
		assert_string_equal(text, "abc");
		assert_int_equal(code_read_text(&m, BASE + 2 * PAGE - 4, text, 4), 0);
		assert_int_equal(code_read_text(&m, BASE + 2 * PAGE - 4, text, 3), -ENAMETOOLONG);
		assert_int_equal(code_read_text(&m, BASE + 2 * PAGE - 3, text, sizeof(text)), 0);
		assert_int_equal(code_read_text(&m, BASE, text, 101), 0);
		assert_int_equal(strlen(text), 100);
		assert_int_equal(code_read_text(&m, BASE, text, 100), -ENAMETOOLONG);
		memset(text, 0, sizeof(text));
		assert_int_equal(code_read_text(&m, BASE + PAGE - 60, text, 150), -ENAMETOOLONG);
		assert_int_equal(strlen(text), 150);
		made.bytes[2 * PAGE - 1] = 'd';
		m = of(&made, is_kept);
		assert_int_equal(code_read_text(&m, BASE + 2 * PAGE - 4, text, sizeof(text)), -EFAULT);
		made.bytes[2 * PAGE - 1] = '\0';
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_read),
		cmocka_unit_test(a_page_is_read_once_a_request),
		cmocka_unit_test(large_reads_are_not_kept),
		cmocka_unit_test(nothing_is_left_of_a_read_that_fails),
		cmocka_unit_test(a_budget_ends),
		cmocka_unit_test(text_ends_where_it_ends),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
