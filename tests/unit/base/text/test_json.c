/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer: its layout against written-out text, its strings and numbers against Python's parser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/text/hex.h"
#include "base/text/json.h"
#include "tests/unit/descriptors.h"

static void write_document(struct json *j)
{
	json_object_begin(j);
	json_key(j, "empty");
	json_array_begin(j);
	json_array_end(j);
	json_key_n(j, "numbersXX", 7);
	json_array_begin(j);
	json_u64(j, UINT64_MAX);
	json_i64(j, INT64_MIN);
	json_double(j, 0.1);
	json_double(j, -3);
	json_double(j, NAN);
	json_double(j, -INFINITY);
	json_array_end(j);
	json_key(j, "a \"key\"");
	json_object_begin(j);
	json_key(j, "x");
	json_object_begin(j);
	json_object_end(j);
	json_key(j, "yes");
	json_bool(j, true);
	json_key(j, "no");
	json_bool(j, false);
	json_object_end(j);
	json_key(j, "nothing");
	json_null(j);
	json_object_end(j);
}

static void test_layout(void **state)
{
	static const struct {
		unsigned indent;
		const char *text;
	} cases[] = {
		{ 0, "{\"empty\":[],\"numbers\":[18446744073709551615,-9223372036854775808,0.1,-3,null,null],"
		     "\"a \\\"key\\\"\":{\"x\":{},\"yes\":true,\"no\":false},\"nothing\":null}" },
		{ 2, "{\n"
		     "  \"empty\": [],\n"
		     "  \"numbers\": [\n"
		     "    18446744073709551615,\n"
		     "    -9223372036854775808,\n"
		     "    0.1,\n"
		     "    -3,\n"
		     "    null,\n"
		     "    null\n"
		     "  ],\n"
		     "  \"a \\\"key\\\"\": {\n"
		     "    \"x\": {},\n"
		     "    \"yes\": true,\n"
		     "    \"no\": false\n"
		     "  },\n"
		     "  \"nothing\": null\n"
		     "}" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf out AUTO(buf_fini) = BUF_EMPTY;
		struct json j;

		json_init(&j, &out, cases[i].indent);
		write_document(&j);
		assert_int_equal(j.depth, 0);
		assert_string_equal(buf_text(&out), cases[i].text);
	}
}

static void test_strings(void **state)
{
	static const struct {
		const char *in;
		size_t len;
		const char *out;
	} cases[] = {
		{ "", 0, "\"\"" },
		{ "plain </script>", 15, "\"plain </script>\"" },
		{ "\b\f\n\r\t\"\\/", 8, "\"\\b\\f\\n\\r\\t\\\"\\\\/\"" },
		{ "a\0b\x1f\x7f", 5, "\"a\\u0000b\\u001f\x7f\"" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xa5", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xa5\"" },
		{ "\xff.\xe2\x82.\xed\xa0\x80", 8, "\"\xef\xbf\xbd.\xef\xbf\xbd.\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf out AUTO(buf_fini) = BUF_EMPTY;
		struct json j;

		json_init(&j, &out, 0);
		json_string_n(&j, cases[i].in, cases[i].len);
		assert_string_equal(buf_text(&out), cases[i].out);
	}
}

static void quoted(const char *s, size_t len, bool html_safe, char *want)
{
	struct buf out AUTO(buf_fini) = BUF_EMPTY;
	struct json j;

	json_init(&j, &out, 0);
	j.html_safe = html_safe;
	json_string_n(&j, s, len);
	assert_string_equal(buf_text(&out), want);
}

/* Every byte at every place of texts of every length: what stands there as it is, and what does not. */
static void test_places(void **state)
{
	enum { MOST = 20 };

	(void)state;
	for (size_t len = 1; len <= MOST; len++) {
		for (size_t at = 0; at < len; at++) {
			for (unsigned c = 0; c < 0x80; c++) {
				char text[MOST], escape[8], want[MOST + 16];

				memset(text, c & 1 ? '!' : '~', sizeof(text)); /* both ends of what is plain */
				text[at] = (char)c;
				if (c < 0x20)
					snprintf(escape, sizeof(escape), "\\u%04x", c);
				else
					snprintf(escape, sizeof(escape), c == '"' || c == '\\' ? "\\%c" : "%c", c);
				if (strchr("\b\f\n\r\t", (int)c) && c)
					snprintf(escape, sizeof(escape), "\\%c", "btn?fr"[c - '\b']);
				snprintf(want, sizeof(want), "\"%.*s%s%.*s\"", (int)at, text, escape, (int)(len - at - 1),
					 text + at + 1);
				quoted(text, len, false, want);
				if (c == '<' || c == '>' || c == '&')
					snprintf(want, sizeof(want), "\"%.*s\\u%04x%.*s\"", (int)at, text, c,
						 (int)(len - at - 1), text + at + 1);
				quoted(text, len, true, want);
			}
		}
	}
	quoted("line\xe2\x80\xa8 paragraph\xe2\x80\xa9 \xe2\x80\xaa", 24, true,
	       "\"line\\u2028 paragraph\\u2029 \xe2\x80\xaa\"");
}

/* Every nesting depth the writer allows. */
static void test_depth(void **state)
{
	struct buf out AUTO(buf_fini) = BUF_EMPTY;
	struct json j;

	(void)state;
	json_init(&j, &out, 0);
	for (int i = 0; i < 63; i++)
		json_array_begin(&j);
	json_null(&j);
	json_null(&j);
	for (int i = 0; i < 63; i++)
		json_array_end(&j);
	assert_int_equal(out.len, 63 + 9 + 63);
	assert_memory_equal(out.data + 60, "[[[null,null]]]", 15);
}

static uint8_t random_byte(void)
{
	/* Mostly bytes that begin, continue or break UTF-8 sequences. */
	static const uint8_t edges[] = { 0x00, 0x22, 0x41, 0x5c, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0,
					 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff };
	long r = random();

	return r % 4 ? edges[r / 4 % (long)ARRAY_LEN(edges)] : (uint8_t)(r >> 8);
}

static void write_texts(struct json *j)
{
	for (int i = 0; i < 20000; i++) {
		uint8_t bytes[8];
		char hex[2 * sizeof(bytes) + 1];
		size_t len = (size_t)random() % (sizeof(bytes) + 1);

		for (size_t n = 0; n < len; n++)
			bytes[n] = random_byte();
		hex_encode(hex, bytes, len);
		json_array_begin(j);
		json_string(j, hex);
		json_string_n(j, (char *)bytes, len);
		json_array_end(j);
	}
}

static void write_doubles(struct json *j)
{
	static const double special[] = { 0.0,	     -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
					  0.1 + 0.2, 1e22, 123456 };

	for (size_t i = 0; i < 20000; i++) {
		uint64_t bits = (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
		double v;
		char hex[17];

		if (i < ARRAY_LEN(special))
			v = special[i];
		else if (i % 2)
			v = (double)(random() % 1000000) / 1000;
		else
			memcpy(&v, &bits, sizeof(v));
		if (!isfinite(v))
			continue;
		memcpy(&bits, &v, sizeof(bits));
		snprintf(hex, sizeof(hex), "%016lx", (unsigned long)bits);
		json_array_begin(j);
		json_string(j, hex);
		json_double(j, v);
		json_array_end(j);
	}
}

static void test_against_python(void **state)
{
	struct buf out AUTO(buf_fini) = BUF_EMPTY;
	struct json j;
	FILE *python;
	int status;

	(void)state;
	srandom(11);
	json_init(&j, &out, 1);
	json_object_begin(&j);
	json_key(&j, "texts");
	json_array_begin(&j);
	write_texts(&j);
	json_array_end(&j);
	json_key(&j, "doubles");
	json_array_begin(&j);
	write_doubles(&j);
	json_array_end(&j);
	json_object_end(&j);
	python = popen("python3 " TEST_DATA "/unit/base/text/check_json.py", "w");
	assert_non_null(python);
	assert_int_equal(fwrite(out.data, 1, out.len, python), out.len);
	status = pclose(python);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout), cmocka_unit_test(test_strings),	      cmocka_unit_test(test_places),
		cmocka_unit_test(test_depth),  cmocka_unit_test(test_against_python),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
