/* SPDX-License-Identifier: Apache-2.0 */
/* One question to an API server: its answer, or why there is none; the access goes with it, whatever comes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "enrich/kube/kube.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/http_answers.h"

static struct http_answers server;

static int ask(const char *url, const char *ca_file, const char *path, uint64_t timeout_ns, struct buf *out)
{
	struct kube_access access = { .url = strdup(url),
				      .ca_file = ca_file ? strdup(ca_file) : NULL,
				      .token = strdup("t") };
	int err = kube_ask(&access, path, timeout_ns, out);

	assert_true(!access.url && !access.token && !access.ca_file);
	return err;
}

static bool is_said_last(const char *text)
{
	struct log_message last;

	return log_recent(&last, 1) == 1 && strstr(last.text, text);
}

static void test_answers(void **state)
{
	static char large[(1 << 20) + 1], larger[(1 << 20) + 2];
	const struct http_answer answers[] = {
		{ "GET /api/one ", 200, "{\"a\":1}" },
		{ "GET /api/gone ", 404, "no" },
		{ "GET /api/broken ", 500, "no" },
		{ "GET /api/mine ", 403, "no" },
		{ "GET /api/large ", 200, large },
		{ "GET /api/larger ", 200, larger },
		{ NULL, 0, NULL },
	};
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	memset(larger, 'x', sizeof(larger) - 1);
	http_answers_begin(&server, answers);
	buf_puts(&out, "before ");
	assert_int_equal(ask(server.url, NULL, "/api/one", 10 * NSEC_PER_SEC, &out), 0);
	assert_string_equal(buf_text(&out), "before {\"a\":1}");
	assert_non_null(strstr(server.head, "Authorization: Bearer t\r\n"));
	log_warn("nothing else");
	assert_int_equal(ask(server.url, NULL, "/api/gone", 10 * NSEC_PER_SEC, &out), -ENOENT);
	assert_true(is_said_last("nothing else"));
	assert_int_equal(ask(server.url, NULL, "/api/broken", 10 * NSEC_PER_SEC, &out), -EIO);
	assert_true(is_said_last("Kubernetes does not tell /api/broken: "));
	assert_true(is_said_last("500"));
	assert_int_equal(ask(server.url, NULL, "/api/mine", 10 * NSEC_PER_SEC, &out), -EIO);
	assert_true(is_said_last("Kubernetes does not tell /api/mine: "));
	assert_string_equal(buf_text(&out), "before {\"a\":1}");
	buf_reset(&out);
	assert_int_equal(ask(server.url, NULL, "/api/large", 10 * NSEC_PER_SEC, &out), 0);
	assert_int_equal(out.len, 1 << 20);
	buf_reset(&out);
	assert_int_equal(ask(server.url, NULL, "/api/larger", 10 * NSEC_PER_SEC, &out), -EIO);
	assert_true(out.len <= 1 << 20);
	http_answers_end(&server);
	assert_int_equal(ask(server.url, NULL, "/api/one", 10 * NSEC_PER_SEC, &out), -EIO); /* it has gone */
	assert_true(is_said_last("Kubernetes does not tell /api/one: "));
}

/* Files that cannot be read are said. */
static void test_files(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	assert_int_not_equal(ask("https://127.0.0.1:1", "/nowhere/ca.pem", "/x", NSEC_PER_SEC, &out), 0);
	assert_true(is_said_last("/nowhere/ca.pem"));
	assert_int_equal(out.len, 0);
}

/* One that does not answer is waited for as long as was said, and no longer. */
static void test_deaf(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	AUTO_CLOSE int deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t began;
	char url[64];

	(void)state;
	assert_return_code(bind(deaf, (struct sockaddr *)&at, len), errno);
	assert_return_code(listen(deaf, 8), errno);
	assert_return_code(getsockname(deaf, (struct sockaddr *)&at, &len), errno);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(at.sin_port));
	began = clock_mono_ns();
	assert_int_equal(ask(url, NULL, "/x", 300 * NSEC_PER_MSEC, &out), -EIO);
	assert_in_range(clock_mono_ns() - began, 290 * NSEC_PER_MSEC, 8 * NSEC_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_answers), cmocka_unit_test(test_files),
					    cmocka_unit_test(test_deaf) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
