/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of Connect's calls, in both forms: every kind of field, fields that nobody knows, and messages cut anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "proto/compat/connect.h"

enum { KIND_COUNT = 5 };

static const struct connect_field fields[KIND_COUNT] = {
	{ 1, "a_text", "aText", CONNECT_TEXT, NULL },	  { 2, "a_number", "aNumber", CONNECT_INT64, NULL },
	{ 3, "a_word", "aWord", CONNECT_ENUM, NULL },	  { 4, "a_share", "aShare", CONNECT_DOUBLE, NULL },
	{ 16, "a_part", "aPart", CONNECT_MESSAGE, NULL },
};

/* 1: "hi"; 2: 300; 3: 2; 4: 0.5; 16: of two bytes; 9: a text that nobody knows; 1: "" */
static const uint8_t packed[] = { 0x0a, 2,    'h',  'i',  0x10, 0xac, 0x02, 0x18, 2,	0x21, 0,   0,	0,   0,	   0,
				  0,	0xe0, 0x3f, 0x82, 1,	2,    8,    1,	  0x4a, 3,    'a', 'b', 'c', 0x0a, 0 };
static const size_t ends[] = { 0, 4, 7, 9, 18, 23, 28, 30 };

static int say(void *arg, const struct connect_field *field, const struct connect_value *v)
{
	struct buf *out = arg;

	buf_printf(out, "%s=", field->name);
	if (field->kind == CONNECT_DOUBLE)
		buf_printf(out, "%g", v->real);
	else if (v->text)
		buf_printf(out, field->kind == CONNECT_MESSAGE ? "<%d>" : "'%.*s'", (int)v->len, v->text);
	else
		buf_printf(out, "%d", (int)v->integer);
	buf_putc(out, ' ');
	return 0;
}

static int refuse(void *arg, const struct connect_field *field, const struct connect_value *v)
{
	(void)arg, (void)v;
	return field->number == 2 ? -EDOM : 0;
}

static int read_packed(size_t len, struct buf *out)
{
	return connect_read(fields, KIND_COUNT, false, packed, len, say, out);
}

static void test_packed(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	assert_int_equal(read_packed(sizeof(packed), &out), 0);
	assert_string_equal(buf_text(&out), "a_text='hi' a_number=300 a_word=2 a_share=0.5 a_part=<2> a_text='' ");
	assert_int_equal(connect_read(fields, KIND_COUNT, false, packed, sizeof(packed), refuse, NULL), -EDOM);
	for (size_t len = 0; len < sizeof(packed); len++) {
		bool is_whole = false;

		for (size_t i = 0; i < ARRAY_LEN(ends); i++)
			is_whole |= ends[i] == len;
		buf_reset(&out);
		assert_int_equal(read_packed(len, &out), is_whole ? 0 : -EBADMSG);
	}
}

static int read_json(const char *text, struct buf *out)
{
	buf_reset(out);
	return connect_read(fields, KIND_COUNT, true, text, strlen(text), say, out);
}

static void test_json(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	assert_int_equal(read_json("{\"aText\":\"hi\",\"a_number\":\"300\",\"aWord\":2,\"aShare\":0.5,\"x\":[1]}", &out), 0);
	assert_string_equal(buf_text(&out), "a_text='hi' a_number=300 a_word=2 a_share=0.5 ");
	assert_int_equal(read_json("{\"aNumber\":-7,\"aWord\":\"TWO\",\"aText\":[\"a\",\"b\"]}", &out), 0);
	assert_string_equal(buf_text(&out), "a_number=-7 a_word='TWO' a_text='a' a_text='b' ");
	assert_int_equal(read_json("{}", &out), 0);
	assert_string_equal(buf_text(&out), "");
	assert_int_equal(read_json("{\"aNumber\":\"many\"}", &out), -EBADMSG);
	assert_int_equal(read_json("{\"aText\":true}", &out), -EBADMSG);
	assert_int_equal(read_json("{\"aText\":\"hi\"", &out), -EBADMSG);
	assert_int_equal(read_json("[]", &out), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_packed), cmocka_unit_test(test_json) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
