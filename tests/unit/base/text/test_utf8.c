/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: the boundaries of what is one, at every place in a text, and random bytes against Python's decoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "tests/unit/descriptors.h"

#define BAD "\xef\xbf\xbd"

static const struct {
	const char *name, *text;
	size_t length, skip; /* of the first sequence; 0: none, and then as many bytes to skip */
	const char *clean;   /* NULL: as it is */
} cases[] = {
	{ "ASCII", "a", 1, 0, NULL },
	{ "DEL", "\x7f", 1, 0, NULL },
	{ "U+0080", "\xc2\x80", 2, 0, NULL },
	{ "U+07FF", "\xdf\xbf", 2, 0, NULL },
	{ "U+0800", "\xe0\xa0\x80", 3, 0, NULL },
	{ "U+D7FF", "\xed\x9f\xbf", 3, 0, NULL },
	{ "U+E000", "\xee\x80\x80", 3, 0, NULL },
	{ "U+FFFF", "\xef\xbf\xbf", 3, 0, NULL },
	{ "U+10000", "\xf0\x90\x80\x80", 4, 0, NULL },
	{ "U+10FFFF", "\xf4\x8f\xbf\xbf", 4, 0, NULL },
	{ "continuation alone", "\x80", 0, 1, BAD },
	{ "last continuation alone", "\xbf", 0, 1, BAD },
	{ "overlong NUL", "\xc0\x80", 0, 1, BAD BAD },
	{ "overlong U+007F", "\xc1\xbf", 0, 1, BAD BAD },
	{ "overlong U+07FF", "\xe0\x9f\xbf", 0, 1, BAD BAD BAD },
	{ "overlong U+FFFF", "\xf0\x8f\xbf\xbf", 0, 1, BAD BAD BAD BAD },
	{ "U+D800", "\xed\xa0\x80", 0, 1, BAD BAD BAD },
	{ "U+DFFF", "\xed\xbf\xbf", 0, 1, BAD BAD BAD },
	{ "U+110000", "\xf4\x90\x80\x80", 0, 1, BAD BAD BAD BAD },
	{ "beyond F4", "\xf5\x80\x80\x80", 0, 1, BAD BAD BAD BAD },
	{ "FE and FF", "\xfe\xff", 0, 1, BAD BAD },
	{ "2 of 3 bytes", "\xe2\x82", 0, 2, BAD },
	{ "3 of 4 bytes", "\xf0\x9f\x94", 0, 3, BAD },
	{ "cut by ASCII", "\xf0\x9f.", 0, 2, BAD "." },
	{ "cut by another", "\xe2\x82\xc3\xa9", 0, 2, BAD "\xc3\xa9" },
};

static void test_sequences(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t skip = 0, length = utf8_sequence(cases[i].text, strlen(cases[i].text), &skip);

		if (length != cases[i].length || (!length && skip != cases[i].skip))
			fail_msg("%s: length %zu, skip %zu", cases[i].name, length, skip);
	}
}

/* Each case behind and before up to two words of ASCII, so that it meets every way through the words. */
static void test_within_text(void **state)
{
	static const char ascii[] = "0123456789abcdef";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t at = 0; at < 17 * 17; at++) {
			int before = (int)(at % 17), behind = (int)(at / 17);
			AUTO(buf_fini) struct buf in = BUF_EMPTY, want = BUF_EMPTY, out = BUF_EMPTY;
			AUTO_FREE char *tight = NULL; /* a sanitizer sees a read beyond it */

			buf_printf(&in, "%.*s%s%.*s", before, ascii, cases[i].text, behind, ascii);
			buf_printf(&want, "%.*s%s%.*s", before, ascii, cases[i].clean ? cases[i].clean : cases[i].text,
				   behind, ascii);
			tight = malloc(in.len);
			assert_non_null(tight);
			memcpy(tight, in.data, in.len);
			utf8_append_clean(&out, tight, in.len);
			if (utf8_is_valid(tight, in.len) != !cases[i].clean || strcmp(buf_text(&out), buf_text(&want)))
				fail_msg("%s between %d and %d bytes: \"%s\"", cases[i].name, before, behind,
					 buf_text(&out));
		}
	}
	assert_true(utf8_is_valid("", 0));
	assert_true(utf8_is_valid("a\0b", 3));
}

static void put_hex(struct buf *out, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf_printf(out, "%02x", bytes[i]);
	buf_putc(out, ',');
}

/* Mostly runs of ASCII and of bytes that begin, continue or break sequences. */
static size_t random_bytes(uint8_t bytes[static 40])
{
	static const char *const pieces[] = { "a", "plain text", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x94\xa5" };
	static const uint8_t edges[] = { 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
					 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff };
	size_t len = 0, most = (size_t)random() % 25, odds = 1 + (size_t)random() % 8;

	while (len < most) {
		const char *piece = pieces[(size_t)random() % ARRAY_LEN(pieces)];

		if ((size_t)random() % odds == 0) {
			bytes[len++] = random() % 4 ? edges[(size_t)random() % ARRAY_LEN(edges)] : (uint8_t)random();
			continue;
		}
		memcpy(bytes + len, piece, strlen(piece));
		len += strlen(piece);
	}
	return len;
}

static void test_against_python(void **state)
{
	AUTO(buf_fini) struct buf lines = BUF_EMPTY;
	FILE *python;
	int status;

	(void)state;
	srandom(7);
	for (int i = 0; i < 30000; i++) {
		AUTO(buf_fini) struct buf clean = BUF_EMPTY;
		uint8_t bytes[40];
		size_t len = random_bytes(bytes);

		utf8_append_clean(&clean, bytes, len);
		put_hex(&lines, bytes, len);
		buf_printf(&lines, "%d,", utf8_is_valid(bytes, len));
		put_hex(&lines, clean.data, clean.len);
		put_hex(&lines, bytes, utf8_cut(bytes, len, 6));
		buf_putc(&lines, '\n');
	}
	python = popen("python3 " TEST_DATA "/unit/base/text/check_utf8.py", "w");
	assert_non_null(python);
	assert_int_equal(fwrite(lines.data, 1, lines.len, python), lines.len);
	status = pclose(python);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_within_text),
		cmocka_unit_test(test_against_python),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
