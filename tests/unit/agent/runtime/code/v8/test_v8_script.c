/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and columns of positions in a source of many pieces, with all that ends a line, against a count of every character.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/runtime/code/v8/v8_script.h"
#include "base/cleanup.h"
#include "tests/unit/agent/runtime/code/v8/v8_image.h"

enum {
	CHARS = (V8_WINDOWS + 3) * V8_MARK_CHARS + 17,
	EXTERNAL_WIDE = 34,
	EXTERNAL = 42,
	FIRST_LINE = 3,
	FIRST_COLUMN = 7,
};

#define SOURCE_AT 0x500000000000ULL

static struct v8_image image;
static struct v8_marks marks;
static struct source {
	uint32_t width;
	uint16_t chars[CHARS];
	uint8_t bytes[CHARS];
	uint32_t reads;
} source;

static int read_memory(void *arg, uint64_t addr, void *dst, size_t len)
{
	const uint8_t *bytes = source.width == 1 ? source.bytes : (const uint8_t *)source.chars;
	uint64_t off = addr - SOURCE_AT, size = (uint64_t)CHARS * source.width;

	if (off >= size)
		return image_read(arg, addr, dst, len);
	if (len > size - off)
		return -EFAULT;
	source.reads++;
	memcpy(dst, bytes + off, len);
	return 0;
}

/* Characters of which one in thirty ends a line, or looks like it; pieces end in the midst of "\r\n", or beside it. */
static void make_source(uint32_t width)
{
	static const uint16_t ends[] = { '\n', '\r', '\r', '\v', 0x2028, 0x2029, 0x200a, 0x0a0d, 0x202a };
	uint32_t random = 1;

	source.width = width;
	for (uint32_t i = 0; i < CHARS; i++) {
		random = random * 1664525 + 1013904223;
		source.chars[i] = random >> 24 < 9 ? ends[random >> 16 & 7] : (uint16_t)(' ' + (random >> 20 & 63));
		if (i % 3 == 0 && i && source.chars[i - 1] == '\r')
			source.chars[i] = '\n';
	}
	for (uint32_t k = 1; k < CHARS / V8_MARK_CHARS; k++) {
		source.chars[k * V8_MARK_CHARS - 1] = k & 1 ? '\r' : 'a';
		source.chars[k * V8_MARK_CHARS] = k & 2 ? '\n' : k & 4 ? '\r' : 'b';
	}
	for (uint32_t i = 0; i < CHARS; i++)
		source.bytes[i] = (uint8_t)(source.chars[i] = width == 1 ? (uint8_t)source.chars[i] : source.chars[i]);
}

static bool ends_line(uint32_t i)
{
	uint16_t ch = source.chars[i];

	return ch == '\n' || ch == 0x2028 || ch == 0x2029 || (ch == '\r' && (i + 1 == CHARS || source.chars[i + 1] != '\n'));
}

/* A heap with a source of characters of @width bytes, *@source_ret, of which nothing is known. The caller's, to be freed;
 * @m must outlive it. */
static struct v8_heap *begin(uint32_t width, struct code_memory *m, uint64_t *source_ret)
{
	struct v8_heap *h;

	image_make(&image, true);
	*m = image_memory(&image);
	m->read = read_memory;
	m->pages = NULL;
	h = v8_heap_new(&image.layout, m);
	assert_non_null(h);
	memset(&marks, 0, sizeof(marks));
	make_source(width);
	*source_ret = image_string_of(&image, width == 1 ? EXTERNAL : EXTERNAL_WIDE, CHARS, 0, SOURCE_AT);
	return h;
}

/* Fails unless the position @at is told as it is: in line number @line of the source, which begins at @start. */
static void check(struct v8_heap *h, struct v8_windows *w, const struct v8_script *s, uint32_t at, uint32_t line,
		  uint32_t start)
{
	uint32_t told_line, told_column;

	assert_int_equal(v8_script_line(h, &marks, w, s, at, &told_line, &told_column), 0);
	if (told_line != line + 1 + FIRST_LINE || told_column != at - start + 1 + (line ? 0 : FIRST_COLUMN))
		fail_msg("width %u, %u: %u:%u instead of %u:%u", source.width, at, told_line, told_column, line, at - start);
}

static void test_lines(void **state)
{
	AUTO_FREE uint32_t *lines = calloc(CHARS + 1, sizeof(*lines)), *starts = calloc(CHARS + 1, sizeof(*starts));
	uint32_t random = 1, line = 0, column = 0;

	(void)state;
	for (uint32_t width = 1; width <= 2; width++) {
		struct v8_windows windows = { { NULL } };
		struct v8_script s = { .id = 5, .line = FIRST_LINE, .column = FIRST_COLUMN };
		struct code_memory m;
		AUTO_FREE struct v8_heap *h = begin(width, &m, &s.source);

		for (uint32_t i = 0; i < CHARS; i++) {
			lines[i + 1] = lines[i] + ends_line(i);
			starts[i + 1] = ends_line(i) ? i + 1 : starts[i];
		}
		assert_true(lines[CHARS] > CHARS / 100);
		for (uint32_t i = 0; i < 20000; i++) {
			uint32_t at;

			random = random * 1664525 + 1013904223;
			at = (random >> 8) % (CHARS + 1);
			if (i % 3 == 0) /* around a piece's beginning */
				at = at / V8_MARK_CHARS * V8_MARK_CHARS + i / 3 % 5 - (at >= V8_MARK_CHARS ? 2 : 0);
			m.reads_left = UINT32_MAX;
			m.bytes_left = UINT64_MAX;
			check(h, &windows, &s, at < CHARS ? at : CHARS, lines[at < CHARS ? at : CHARS],
			      starts[at < CHARS ? at : CHARS]);
		}
		assert_int_equal(v8_script_line(h, &marks, &windows, &s, CHARS + 1, &line, &column), -EBADMSG);
		v8_windows_fini(&windows);
	}
}

/* Places in as many pieces as are kept, again and again, are read once; one more makes the oldest go. */
static void test_recent(void **state)
{
	struct v8_windows windows = { { NULL } };
	struct v8_script s = { .id = 5 };
	struct code_memory m;
	AUTO_FREE struct v8_heap *h = begin(1, &m, &s.source);
	uint32_t line, column, first;

	(void)state;
	for (uint32_t i = 0; i < V8_WINDOWS; i++)
		assert_int_equal(v8_script_line(h, &marks, &windows, &s, i * V8_MARK_CHARS, &line, &column), 0);
	first = source.reads;
	for (uint32_t i = 0; i < 10 * V8_WINDOWS; i++)
		assert_int_equal(v8_script_line(h, &marks, &windows, &s, i % V8_WINDOWS * V8_MARK_CHARS + 9, &line, &column),
				 0);
	assert_int_equal(source.reads, first);
	assert_int_equal(v8_script_line(h, &marks, &windows, &s, V8_WINDOWS * V8_MARK_CHARS, &line, &column), 0);
	assert_true(source.reads > first);
	first = source.reads;
	assert_int_equal(v8_script_line(h, &marks, &windows, &s, V8_MARK_CHARS, &line, &column), 0);
	assert_int_equal(source.reads, first);
	assert_int_equal(v8_script_line(h, &marks, &windows, &s, 0, &line, &column), 0);
	assert_true(source.reads > first);
	v8_windows_fini(&windows);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines), cmocka_unit_test(test_recent) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
