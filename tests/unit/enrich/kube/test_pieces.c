/* SPDX-License-Identifier: Apache-2.0 */
/* Objects cut out of lists and watches, whatever the pieces in which the bytes come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "enrich/kube/pieces.h"

static void on_piece(void *arg, const void *json, size_t len, bool is_item)
{
	struct buf *out = arg;

	buf_puts(out, is_item ? "|" : "#");
	buf_append(out, json, len);
}

/* Takes @text in steps of @step bytes. Returns the first error; what came is in @out. */
static int take(enum pieces_of of, const char *text, size_t step, struct buf *out, bool *is_whole)
{
	size_t len = strlen(text);
	struct pieces p;
	int err = 0;

	pieces_init(&p, of, on_piece, out);
	for (size_t at = 0; at < len && !err; at += step) {
		size_t n = len - at < step ? len - at : step;
		AUTO_FREE char *copy = malloc(n);

		memcpy(copy, text + at, n);
		err = pieces_take(&p, copy, n);
	}
	*is_whole = pieces_are_whole(&p);
	pieces_fini(&p);
	return err;
}

static void test_cutting(void **state)
{
	static const struct {
		enum pieces_of of;
		const char *text, *pieces;
		int error;
		bool is_whole;
	} cases[] = {
		{ PIECES_OF_WATCH, "", "", 0, true },
		{ PIECES_OF_WATCH, "{\"a\":1}\n{\"b\":[{}]}\n", "|{\"a\":1}|{\"b\":[{}]}", 0, true },
		{ PIECES_OF_WATCH, "{\"a\":\"}{\\\"\"}\r\n{", "|{\"a\":\"}{\\\"\"}", 0, false },
		{ PIECES_OF_WATCH, "{\"a\":\"\\\\\"}{}", "|{\"a\":\"\\\\\"}|{}", 0, true },
		{ PIECES_OF_WATCH, "<html>", "", -EBADMSG, true },
		{ PIECES_OF_WATCH, "{} x", "|{}", -EBADMSG, true },
		{ PIECES_OF_WATCH, "[{}]", "", -EBADMSG, true },
		{ PIECES_OF_LIST, "{\"kind\":\"PodList\",\"metadata\":{\"v\":\"1\"},\"items\":[{\"a\":{}},{\"b\":1}]}",
		  "#{\"v\":\"1\"}|{\"a\":{}}|{\"b\":1}", 0, true },
		{ PIECES_OF_LIST, "{\"items\":[ {\"a\":\"[\"} ] , \"metadata\":{}}\n", "|{\"a\":\"[\"}#{}", 0, true },
		{ PIECES_OF_LIST, "{\"items\":null,\"metadata\":{}}", "#{}", 0, true },
		{ PIECES_OF_LIST, "{\"items\":[{\"a\":1},{\"b\"", "|{\"a\":1}", 0, false },
		{ PIECES_OF_LIST, "{\"x}{\\\"\":[1,\"[{\"],\"metadata\":{}}", "#{}", 0, true },
		{ PIECES_OF_LIST, "{\"items\":[[{}]]}", "", -EBADMSG, false },
		{ PIECES_OF_LIST, "{]", "", -EBADMSG, false },
		{ PIECES_OF_LIST, "[]", "", -EBADMSG, true },
		{ PIECES_OF_LIST, "}", "", -EBADMSG, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t step = 1; step < 50; step += 7) {
			struct buf out = BUF_EMPTY;
			bool is_whole;
			int error = take(cases[i].of, cases[i].text, step, &out, &is_whole);

			if (error != cases[i].error || strcmp(buf_text(&out), cases[i].pieces) != 0 ||
			    (!error && is_whole != cases[i].is_whole))
				fail_msg("'%s' by %zu: %d, '%s'", cases[i].text, step, error, buf_text(&out));
			buf_fini(&out);
		}
	}
}

/* One that is too long is passed over, and the next one comes; one that never ends is no answer. */
static void test_too_long(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	AUTO_FREE char *filler = malloc(1 << 20);
	struct pieces p;
	int err = 0;

	(void)state;
	memset(filler, 'a', 1 << 20);
	pieces_init(&p, PIECES_OF_WATCH, on_piece, &out);
	assert_int_equal(pieces_take(&p, "{\"x\":\"", 6), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(pieces_take(&p, filler, 1 << 20), 0);
	assert_true(p.piece.cap == 0); /* nothing of it is kept */
	assert_int_equal(pieces_take(&p, "\"}{\"b\":2}", 9), 0);
	assert_string_equal(buf_text(&out), "|{\"b\":2}");
	assert_int_equal(p.too_long, 1);
	assert_int_equal(pieces_take(&p, "{\"x\":\"", 6), 0);
	for (int i = 0; i < 65 && !err; i++)
		err = pieces_take(&p, filler, 1 << 20);
	assert_int_equal(err, -EFBIG);
	pieces_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cutting), cmocka_unit_test(test_too_long) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
