/* SPDX-License-Identifier: Apache-2.0 */
/* Text of scripts that may be UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/script/script.h"

static void test_utf8(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} cases[] = {
		{ "", 0, "" },
		{ "plain", 5, "plain" },
		{ "a\nb\x7f\0c", 6, "a?b??c" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\xe9", 1, "\xef\xbf\xbd" },
		{ "\xe2\x82", 2, "\xef\xbf\xbd" },
		{ "x\xe2\x82y", 4, "x\xef\xbf\xbdy" },
		{ "\xed\xa0\x80", 3, NULL }, /* half a pair: replaced, however often */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		script_utf8(cases[i].bytes, cases[i].len, &out);
		if (cases[i].text)
			assert_string_equal(buf_text(&out), cases[i].text);
		else
			assert_memory_equal(out.data, "\xef\xbf\xbd", 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_utf8) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
