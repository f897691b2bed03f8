/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to ClickHouse: conditions in SQL with their parameters, and limits of time, told to a listener that answers
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"
#include "base/clock.h"

static const char time_sql[] = "time >= fromUnixTimestamp64Nano(5) AND time < fromUnixTimestamp64Nano(9)";

static void test_where(void **state)
{
	static const struct {
		const char *kind;
		bool any_kind;
		uint64_t to_ns;
		const char *sql, *params;
	} cases[] = {
		{ NULL, false, 9, "time < fromUnixTimestamp64Nano(9)", "" },
		{ "cpu", false, 9, "time < fromUnixTimestamp64Nano(9) AND sample_type = {p0:String}", "&param_p0=cpu" },
		{ "cpu", true, 9, "time < fromUnixTimestamp64Nano(9)", "" },
		{ "a&b'", false, 9, "time < fromUnixTimestamp64Nano(9) AND sample_type = {p0:String}",
		  "&param_p0=a%26b%27" },
		{ NULL, false, UINT64_MAX, "time < fromUnixTimestamp64Nano(9223372036854775807)", "" },
		{ NULL, false, INT64_MAX, "time < fromUnixTimestamp64Nano(9223372036854775807)", "" },
		{ NULL, false, (uint64_t)INT64_MAX + 1, "time < fromUnixTimestamp64Nano(9223372036854775807)", "" },
		{ NULL, false, INT64_MAX - 1, "time < fromUnixTimestamp64Nano(9223372036854775806)", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(click_sql_fini) struct click_sql q = { BUF_EMPTY, BUF_EMPTY, 0 };
		struct store_selection sel = { .from_ns = 5, .to_ns = cases[i].to_ns, .kind = cases[i].kind };
		char want[256];

		click_where(&q, &sel, cases[i].any_kind);
		snprintf(want, sizeof(want), "time >= fromUnixTimestamp64Nano(5) AND %s", cases[i].sql);
		assert_string_equal(buf_text(&q.text), want);
		assert_string_equal(q.params.len ? buf_text(&q.params) : "", cases[i].params);
	}
}

/* What each kind of match makes of a label, by what distinguishes it from the others. */
static void test_matches(void **state)
{
	static const struct {
		const char *label;
		enum store_match match;
		const char *value;
		const char *has, *has_not, *params; /* parts */
	} cases[] = {
		{ "mine", MATCH_EQUAL, "x", " = {p", "match(", "=x&" },
		{ "mine", MATCH_NOT_EQUAL, "x", " != {p", "match(", "=x&" },
		{ "mine", MATCH_REGEX, "x", "match(", "NOT match(", "=%5E%28%3F%3Ax%29%24&" },
		{ "mine", MATCH_NOT_REGEX, "x", "NOT match(", " AND match(", "=%5E%28%3F%3Ax%29%24&" },
		{ "service.name", MATCH_EQUAL, "x", " AND service IN ({p0:String}, '') AND (series IN ", "NOT match(",
		  "=x&" },
		{ "service.name", MATCH_EQUAL, "", " AND (series IN ", "service IN", "=service.name&" },
		{ "service.name", MATCH_NOT_EQUAL, "x", " AND (series IN ", "service IN", "=x&" },
		{ "trace_id", MATCH_EQUAL, "0a", " AND trace = unhex({p1:String})", "hearth_series", "=0a&" },
		{ "trace_id", MATCH_EQUAL, "", "lower(hex(trace))", "unhex", "=&" },
		{ "span_id", MATCH_NOT_EQUAL, "0a", "lower(hex(span))", "unhex", "=0a&" },
		{ "comm", MATCH_EQUAL, "x", " AND (", " AND NOT (", "=x&" },
		{ "comm", MATCH_NOT_EQUAL, "x", " AND NOT (", " OR NOT (", "=x&" },
		{ "comm", MATCH_EQUAL, "", " OR NOT (", " AND NOT (", "=&" },
		{ "comm", MATCH_NOT_EQUAL, "", " OR NOT (", "match(", "=&" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(click_sql_fini) struct click_sql q = { BUF_EMPTY, BUF_EMPTY, 0 };
		struct store_matcher m = { cases[i].label, cases[i].match, cases[i].value, NULL };
		struct store_selection sel = { .from_ns = 5, .to_ns = 9, .matchers = &m, .matcher_count = 1 };
		int depth = 0;

		click_where(&q, &sel, false);
		assert_int_equal(strncmp(buf_text(&q.text), time_sql, sizeof(time_sql) - 1), 0);
		buf_putc(&q.params, '&');
		if (!strstr(buf_text(&q.text), cases[i].has) || strstr(buf_text(&q.text), cases[i].has_not))
			fail_msg("case %zu: %s", i, buf_text(&q.text));
		if (!strstr(buf_text(&q.params), cases[i].params))
			fail_msg("case %zu: %s", i, buf_text(&q.params));
		for (const char *p = buf_text(&q.text); *p; p++) {
			depth += (*p == '(') - (*p == ')');
			assert_true(depth >= 0);
		}
		assert_int_equal(depth, 0);
	}
}

/* --- time --- */

struct listener {
	int fd;
	pthread_t thread;
	_Atomic int requests;
	char head[4096]; /* of the last request */
};

/* Answers each request with nothing, until it is shut down. */
static void *serve(void *arg)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	struct listener *l = arg;
	int fd;

	while ((fd = accept(l->fd, NULL, NULL)) >= 0) {
		ssize_t n = 0;
		size_t len = 0;

		while (len < sizeof(l->head) - 1 && (n = read(fd, l->head + len, sizeof(l->head) - 1 - len)) > 0) {
			len += (size_t)n;
			l->head[len] = '\0';
			if (strstr(l->head, "SELECT 1"))
				break;
		}
		l->requests++;
		if (write(fd, answer, sizeof(answer) - 1) < 0)
			l->requests = -1;
		close(fd);
	}
	return NULL;
}

/* @left_ns: until the deadline, 0: there is none. A machine that lets it pass is asked again. */
static void check_time(struct store_clickhouse *s, struct listener *l, uint64_t left_ns, int least_s, int most_s)
{
	AUTO(click_sql_fini) struct click_sql q = { BUF_EMPTY, BUF_EMPTY, 0 };
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	struct store_selection sel = { .to_ns = 9 };
	const char *found;
	int seconds, err = -ETIMEDOUT;

	buf_puts(&q.text, "SELECT 1");
	for (int i = 0; i < 20 && err == -ETIMEDOUT; i++) {
		sel.deadline_ns = left_ns ? clock_mono_ns() + left_ns : 0;
		buf_reset(&q.params);
		err = click_ask(s, &q, &sel, &answer);
	}
	assert_int_equal(err, 0);
	found = strstr(l->head, "max_execution_time=");
	assert_non_null(found);
	seconds = atoi(found + strlen("max_execution_time="));
	if (seconds < least_s || seconds > most_s)
		fail_msg("%d s", seconds);
	assert_non_null(strstr(l->head, "max_memory_usage=8589934592&"));
	assert_non_null(strstr(l->head, "database=some"));
}

/* ClickHouse takes 0 seconds as no limit at all. */
static void test_time(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	struct listener l = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	struct store_clickhouse s = { 0 };
	struct store_selection late = { .to_ns = 9, .deadline_ns = 1 };
	AUTO(click_sql_fini) struct click_sql q = { BUF_EMPTY, BUF_EMPTY, 0 };
	struct click_address a;
	char place[64];
	int requests;

	(void)state;
	assert_int_equal(bind(l.fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(l.fd, 8), 0);
	assert_int_equal(getsockname(l.fd, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(pthread_create(&l.thread, NULL, serve, &l), 0);
	snprintf(place, sizeof(place), "clickhouse+http://127.0.0.1:%u/some", ntohs(address.sin_port));
	assert_int_equal(click_address_init(&a, place, NULL), 0);
	assert_int_equal(click_connect(&a, NULL, s.metrics.failures, &s.reader), 0);

	check_time(&s, &l, 0, 61, 61);
	check_time(&s, &l, 900 * NSEC_PER_MSEC, 1, 1);
	check_time(&s, &l, 30 * NSEC_PER_SEC, 10, 30);
	requests = l.requests;
	assert_true(requests >= 3);
	buf_puts(&q.text, "SELECT 1");
	assert_int_equal(click_ask(&s, &q, &late, NULL), -ETIMEDOUT);
	late = (struct store_selection){ .to_ns = 9, .matcher_count = STORE_MAX_MATCHERS + 1 };
	assert_int_equal(click_ask(&s, &q, &late, NULL), -E2BIG);
	assert_int_equal(l.requests, requests); /* not even asked */

	click_disconnect(s.reader);
	click_address_fini(&a);
	shutdown(l.fd, SHUT_RDWR);
	pthread_join(l.thread, NULL);
	close(l.fd);
}

static void is_text(const char *is, const char *should)
{
	if (should)
		assert_string_equal(is, should);
	else
		assert_null(is);
}

/* What an address means; messages have it without a password, and nothing in it may end a line of a request or a message. */
static void test_addresses(void **state)
{
	static const struct {
		const char *place, *url, *user, *password, *database, *display;
		int err;
	} rows[] = {
		{ "clickhouse+http://h:8123/some", "http://h:8123/", NULL, NULL, "some", "http://h:8123/some", 0 },
		{ "http://h", "http://h/", NULL, NULL, "hearth", "http://h/", 0 },
		{ "clickhouse+https://u:p%40@h/?a=b#c", "https://h/", "u", "p@", "hearth", "https://u@h/", 0 },
		{ "clickhouse+http://u@h/a%20b", "http://h/", "u", NULL, "a b", "http://u@h/a%20b", 0 },
		{ .place = "clickhouse+ftp://h", .err = -EINVAL },
		{ .place = "clickhouse+http://", .err = -EINVAL },
		{ .place = "clickhouse+http://h/a/b", .err = -EINVAL },
		{ .place = "clickhouse+http://h/a%60b", .err = -EINVAL },
		{ .place = "clickhouse+http://h/a%5Cb", .err = -EINVAL },
		{ .place = "clickhouse+http://h/a%0Ab", .err = -EINVAL },
		{ .place = "clickhouse+http://h/a%7F", .err = -EINVAL },
		{ .place = "clickhouse+http://u%0D@h/", .err = -EINVAL },
		{ .place = "clickhouse+http://u:p%1F@h/", .err = -EINVAL },
		{ .place = "clickhouse+http://h\n/", .err = -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct click_address a;

		if (click_address_init(&a, rows[i].place, NULL) != rows[i].err)
			fail_msg("%s", rows[i].place);
		is_text(a.url, rows[i].url);
		is_text(a.user, rows[i].user);
		is_text(a.password, rows[i].password);
		is_text(a.database, rows[i].database);
		is_text(a.display, rows[i].display);
		click_address_fini(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_where),
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
