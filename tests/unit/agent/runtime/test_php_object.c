/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts made of PHP's functions, as the kernel copies them: what is shown of each kind of function, and records that lie.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/object.h"
#include "base/cleanup.h"
#include "bpf/runtime/php_state.h"

enum { LINE_AT = 160 };

static const struct chain_state layout = { .runtime = RUNTIME_PHP, .offset = { [PHP_FUNCTION_LINE] = LINE_AT } };

/* Appends the record of a function to @out; a text is as long as @bytes says, or as it is where that is 0. */
static void make(struct buf *out, uint8_t type, uint32_t line, const char *const *texts, const uint16_t *bytes)
{
	uint8_t head[PHP_HEAD_BYTES] = { type };
	struct object_record r = { .runtime = RUNTIME_PHP, .part_bytes[PHP_PART_HEAD] = sizeof(head) };

	memcpy(head + LINE_AT, &line, sizeof(line));
	r.hdr.size = sizeof(r) + sizeof(head);
	for (int i = 0; i < 3; i++) {
		r.part_bytes[PHP_PART_NAME + i] = bytes && bytes[i] ? bytes[i] : (uint16_t)strlen(texts[i]);
		r.hdr.size += r.part_bytes[PHP_PART_NAME + i];
	}
	buf_append(out, &r, sizeof(r));
	buf_append(out, head, sizeof(head));
	for (int i = 0; i < 3; i++)
		buf_append(out, texts[i], r.part_bytes[PHP_PART_NAME + i]);
	assert_false(out->failed);
}

static void expect(const struct buf *record, const char *name, const char *file, uint32_t line)
{
	AUTO(buf_fini) struct buf content = BUF_EMPTY;
	struct script s;

	assert_int_equal(object_read((const struct object_record *)record->data, &layout, &content), 0);
	assert_int_equal(script_open(content.data, content.len, &s), 0);
	assert_int_equal(s.head.name_bytes, strlen(name));
	assert_memory_equal(s.name, name, strlen(name));
	assert_int_equal(s.head.file_bytes, strlen(file));
	assert_memory_equal(s.file, file, strlen(file));
	assert_int_equal(s.head.first_line, line);
	assert_int_equal(script_line(&s, 77), 77);
	assert_int_equal(script_line(&s, 0), 0);
}

static void test_kinds(void **state)
{
	static const struct {
		uint8_t type;
		const char *texts[3]; /* name, class, file */
		uint16_t bytes[3];
		const char *name, *file;
		uint32_t line;
	} cases[] = {
		{ PHP_USER_FUNCTION, { "f", "", "/a/b.php" }, { 0 }, "f", "/a/b.php", 12 },
		{ PHP_USER_FUNCTION, { "method", "My\\Class", "/a/b.php" }, { 0 }, "My\\Class::method", "/a/b.php", 12 },
		{ PHP_USER_FUNCTION, { "{closure}", "", "/a/b.php" }, { 0 }, "{closure}", "/a/b.php", 12 },
		{ PHP_USER_FUNCTION, { "", "", "/a/b.php" }, { 0 }, "b.php", "/a/b.php", 12 },
		{ PHP_USER_FUNCTION, { "", "Class", "b.php" }, { 0 }, "b.php", "b.php", 12 }, /* included by a method */
		{ PHP_USER_FUNCTION, { "", "", "/a/" }, { 0 }, "", "/a/", 12 },
		{ PHP_EVAL_CODE,
		  { "", "", "/a/b.php(3) : eval()'d code" },
		  { 0 },
		  "b.php(3) : eval()'d code",
		  "/a/b.php(3) : eval()'d code",
		  12 },
		{ PHP_INTERNAL_FUNCTION, { "array_map", "", "" }, { 0 }, "array_map", "", 0 },
		{ PHP_INTERNAL_FUNCTION, { "next", "Generator", "" }, { 0 }, "Generator::next", "", 0 },
		{ PHP_USER_FUNCTION,
		  { "f", "class@anonymous\0/a/b.php:3$0", "/a/b.php" },
		  { 1, 28, 8 },
		  "class@anonymous::f",
		  "/a/b.php",
		  12 },
		{ PHP_USER_FUNCTION, { "f\xc3\xa9\xff", "", "/\n.php" }, { 0 }, "f\xc3\xa9\xef\xbf\xbd", "/?.php", 12 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf record = BUF_EMPTY;

		make(&record, cases[i].type, 12, cases[i].texts, cases[i].bytes);
		expect(&record, cases[i].name, cases[i].file, cases[i].line);
	}
	assert_string_equal(object_frame_type(RUNTIME_PHP), "php");
}

/* The parts are longer than the record, or the head is missing or short. */
static void test_lies(void **state)
{
	static const char *const texts[3] = { "f", "C", "/a/b.php" };
	AUTO(buf_fini) struct buf record = BUF_EMPTY;
	AUTO(buf_fini) struct buf content = BUF_EMPTY;
	struct object_record *r;

	(void)state;
	make(&record, PHP_USER_FUNCTION, 12, texts, NULL);
	r = (struct object_record *)record.data;
	r->part_bytes[PHP_PART_FILE]++;
	assert_int_equal(object_read(r, &layout, &content), -EBADMSG);
	r->part_bytes[PHP_PART_FILE]--;
	r->part_bytes[PHP_PART_HEAD] = 0;
	assert_int_equal(object_read(r, &layout, &content), -EBADMSG);
	r->part_bytes[PHP_PART_HEAD] = UINT16_MAX;
	assert_int_equal(object_read(r, &layout, &content), -EBADMSG);
	assert_int_equal(content.len, 0);
	r->part_bytes[PHP_PART_HEAD] = 3; /* its line, and its type, are not there */
	assert_int_equal(object_read(r, &layout, &content), 0);
	r->runtime = RUNTIME_ID_MAX;
	assert_int_equal(object_read(r, &layout, &content), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
