/* SPDX-License-Identifier: Apache-2.0 */
/* ClickHouse and libcurl failing: a number, a kind that is counted, one line with advice that is whole. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <curl/curl.h>

#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"

#define LOGIN "; look at the user in the address and at --store-password-file"

static int read_error(long status, const char *exception, const char *body, enum click_failure *failure, char *text,
		      size_t text_bytes)
{
	AUTO(buf_fini) struct buf b = BUF_EMPTY;

	buf_puts(&b, body);
	return click_read_error(status, exception, &b, failure, text, text_bytes);
}

static void test_answers(void **state)
{
	static const struct {
		long status;
		const char *exception, *body;
		int err;
		enum click_failure failure;
		const char *text;
	} cases[] = {
		/* No error: nothing is written. */
		{ 200, NULL, "rows", 0, CLICK_FAILURES, "?" },
		{ 200, "0", "rows", 0, CLICK_FAILURES, "?" },
		{ 200, "159", "too slow", -ETIMEDOUT, CLICK_TIMEOUT, "too slow" }, /* after its first rows */
		{ 200, "242", "late", -EBUSY, CLICK_REFUSED, "late" },
		{ 500, "159", "too long\nat line 3", -ETIMEDOUT, CLICK_TIMEOUT, "too long" },
		{ 500, "160", "slow\rly", -ETIMEDOUT, CLICK_TIMEOUT, "slow" },
		{ 500, "241", "x", -ENOMEM, CLICK_REFUSED, "x" },
		{ 500, "396", "rows", -ENOMEM, CLICK_REFUSED, "rows" },
		{ 404, "60", "no table\r\nmore", -ENOENT, CLICK_REFUSED, "no table" },
		{ 404, "81", "x", -ENOENT, CLICK_REFUSED, "x" },
		{ 500, "164", "readonly", -EACCES, CLICK_LOGIN, "readonly" LOGIN },
		{ 403, "497", "no", -EACCES, CLICK_LOGIN, "no" LOGIN },
		{ 403, "516", "who?", -EACCES, CLICK_LOGIN, "who?" LOGIN },
		{ 401, NULL, "", -EACCES, CLICK_LOGIN, "status 401" LOGIN },
		{ 401, NULL, "who?", -EACCES, CLICK_LOGIN, "who?" LOGIN },
		{ 403, NULL, "", -EACCES, CLICK_LOGIN, "status 403" LOGIN },
		{ 400, "62", "syntax", -EINVAL, CLICK_REFUSED, "syntax" },
		{ 400, "427", "regex", -EINVAL, CLICK_REFUSED, "regex" },
		{ 400, NULL, "bad", -EINVAL, CLICK_REFUSED, "bad" },
		{ 404, NULL, "", -EINVAL, CLICK_REFUSED, "status 404" },
		{ 499, NULL, "", -EINVAL, CLICK_REFUSED, "status 499" },
		{ 500, NULL, "", -EBUSY, CLICK_REFUSED, "status 500" },
		{ 413, NULL, "", -EBUSY, CLICK_REFUSED, "status 413" },
		{ 503, NULL, "a proxy's", -EBUSY, CLICK_REFUSED, "a proxy's" },
		{ 400, "242", "read-only table", -EBUSY, CLICK_REFUSED, "read-only table" },
		{ 400, "9999", "new", -EBUSY, CLICK_REFUSED, "new" },
		{ 403, "9999", "new", -EBUSY, CLICK_REFUSED, "new" },
		{ 500, "252", "t\x1b[31m\x7f\xc3\xa9 ~", -EBUSY, CLICK_REFUSED, "t?[31m??? ~" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		enum click_failure failure = CLICK_FAILURES;
		char text[200] = "?";

		print_message("status %ld, exception %s\n", cases[i].status, cases[i].exception ? cases[i].exception : "-");
		assert_int_equal(
			read_error(cases[i].status, cases[i].exception, cases[i].body, &failure, text, sizeof(text)),
			cases[i].err);
		assert_int_equal(failure, cases[i].failure);
		assert_string_equal(text, cases[i].text);
	}
}

/* Too long a line is cut, for the advice too, which is not; nothing is written behind the room. */
static void test_room(void **state)
{
	enum click_failure failure;
	char text[80];

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(read_error(500, "241", "0123456789", &failure, text, 10), -ENOMEM);
	assert_string_equal(text, "012345678");
	assert_int_equal(text[10], 'x');

	memset(text, 'x', sizeof(text));
	assert_int_equal(read_error(500, "164", "0123456789", &failure, text, sizeof(LOGIN) + 4), -EACCES);
	assert_string_equal(text, "0123" LOGIN);
	assert_int_equal(text[sizeof(LOGIN) + 4], 'x');
}

static void test_curl(void **state)
{
	static const struct {
		unsigned code;
		long certificate;
		int err;
		enum click_failure failure;
		const char *text;
	} cases[] = {
		{ CURLE_COULDNT_CONNECT, 0, -EHOSTUNREACH, CLICK_UNREACHABLE, "why" },
		{ CURLE_COULDNT_RESOLVE_HOST, 0, -EHOSTUNREACH, CLICK_UNREACHABLE, "why" },
		{ CURLE_OPERATION_TIMEDOUT, 0, -ETIMEDOUT, CLICK_TIMEOUT, "why" },
		{ CURLE_GOT_NOTHING, 0, -EHOSTUNREACH, CLICK_CUT, "the connection ended within the answer: why" },
		{ CURLE_PARTIAL_FILE, 0, -EHOSTUNREACH, CLICK_CUT, "the connection ended within the answer: why" },
		{ CURLE_SSL_CONNECT_ERROR, 0, -EHOSTUNREACH, CLICK_TLS, "why; is that a port for https?" },
		{ CURLE_SSL_CACERT_BADFILE, 0, -EHOSTUNREACH, CLICK_TLS,
		  "why; --store-ca is to be a file of certificates (PEM)" },
		{ CURLE_PEER_FAILED_VERIFICATION, 10, -EHOSTUNREACH, CLICK_TLS,
		  "why; renew its certificate, or set this machine's clock" },
		{ CURLE_PEER_FAILED_VERIFICATION, 9, -EHOSTUNREACH, CLICK_TLS,
		  "why; renew its certificate, or set this machine's clock" },
		{ CURLE_PEER_FAILED_VERIFICATION, 18, -EHOSTUNREACH, CLICK_TLS,
		  "why; name a file with the certificate (PEM) of who signed it: --store-ca FILE" },
		{ CURLE_PEER_FAILED_VERIFICATION, 0, -EHOSTUNREACH, CLICK_TLS,
		  "why; call it by a name that its certificate has" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		enum click_failure failure = CLICK_FAILURES;
		char text[200];

		assert_int_equal(click_read_curl(cases[i].code, "why", cases[i].certificate, &failure, text, sizeof(text)),
				 cases[i].err);
		assert_int_equal(failure, cases[i].failure);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_curl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
