/* SPDX-License-Identifier: Apache-2.0 */
/* The servers beside an agent: which there are by options, what each shows, on which port, and what is refused. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/signals/signals.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/usage.h"
#include "cmd/setup/page.h"
#include "cmd/setup/session.h"
#include "cmd/setup/workloads_of.h"
#include "sinks/sinks.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"

#define ANY "127.0.0.1:0"

static struct session session;
static struct config config;
static struct page *page;
static uint16_t ports[PAGE_PORTS];
static struct sink *received;

/* The session of `hearth run WORDS...`. */
static void open_session(bool has_store, const char *const *words)
{
	const struct store_config store = { .place = ":memory:", .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	struct store_error why;

	config = parse_words(&cmd_run, words);
	assert_int_equal(session_open(&session, &config), 0);
	if (has_store)
		assert_int_equal(store_sqlite_open(&store, session.metrics, &session.store, &why), 0);
}

#define OPEN(has_store, ...) open_session(has_store, (const char *const[]){ "--signals-size", "0", __VA_ARGS__, NULL })

static int close_session(void **state)
{
	(void)state;
	page_free(page);
	page = NULL;
	session_close(&session);
	sink_free(received);
	received = NULL;
	config_fini(&config);
	usage_set_other(&(struct usage){ 0 });
	return 0;
}

static int start(void)
{
	int err = page_start(&session, &page);

	page_ports(page, ports);
	return err;
}

/* --- a client --- */

static int connect_to(uint16_t port)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					.sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (const struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -errno;
	}
	return fd;
}

static int ask(uint16_t port, const char *method, const char *path)
{
	int fd = connect_to(port);

	if (fd >= 0)
		dprintf(fd, "%s %s HTTP/1.1\r\nHost: localhost:%u\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", method,
			path, port);
	return fd;
}

/* The status with which @method @path is answered; 0: nobody is there. */
static int status_of(uint16_t port, const char *method, const char *path)
{
	char head[16] = "", rest[4096];
	int fd = ask(port, method, path), status;
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return 0;
	while (len < sizeof(head) - 1 && (n = read(fd, head + len, sizeof(head) - 1 - len)) > 0)
		len += (size_t)n;
	while (read(fd, rest, sizeof(rest)) > 0)
		;
	close(fd);
	return sscanf(head, "HTTP/1.1 %d", &status) == 1 ? status : -1;
}

/* Which of what a server may have is there: the page, profiles taken, /metrics, /workloads, /healthz; a letter each. */
static const char *shown_on(uint16_t port)
{
	static const struct {
		const char *method, *path;
		char letter;
	} parts[] = {
		{ "GET", "/", 'p' },	    { "POST", "/v1development/profiles", 'r' },
		{ "GET", "/metrics", 'm' }, { "GET", "/workloads", 'w' },
		{ "GET", "/healthz", 'h' },
	};
	static char letters[ARRAY_LEN(parts) + 1];
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		int status = status_of(port, parts[i].method, parts[i].path);

		if (status != 404 && status != 405 && status)
			letters[count++] = parts[i].letter;
	}
	letters[count] = '\0';
	return letters;
}

/* --- ports that others have --- */

enum { TRIED = 20 }; /* so many ports are tried, the first among them */

/* Listens on @port of the loopback; -1: somebody does. */
static int take_port(uint16_t port)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					.sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!bind(fd, (const struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1))
		return fd;
	close(fd);
	return -1;
}

static void give_ports(int fds[static TRIED])
{
	for (int i = 0; i < TRIED; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Takes TRIED ports in a row: the first. */
static uint16_t take_ports(int fds[static TRIED])
{
	for (uint16_t first = (uint16_t)(20000 + getpid() % 8000); first < 30000; first = (uint16_t)(first + TRIED)) {
		int count = 0;

		for (int i = 0; i < TRIED; i++)
			count += (fds[i] = take_port((uint16_t)(first + i))) >= 0;
		if (count == TRIED)
			return first;
		give_ports(fds);
	}
	fail_msg("no ports in a row are free");
	return 0;
}

/* --- tests --- */

static void test_wanted(void **state)
{
	static const struct {
		const char *address; /* NULL: not said */
		bool has_store, is_wanted, is_warned;
	} cases[] = {
		{ NULL, true, true, false },	      { NULL, false, false, false },
		{ "off", true, false, false },	      { "off", false, false, false },
		{ "127.0.0.1:1", true, true, false }, { "127.0.0.1:1", false, false, true },
		{ "offer:1", false, false, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (cases[i].address)
			OPEN(cases[i].has_store, "--page-address", cases[i].address);
		else
			OPEN(cases[i].has_store, NULL);
		log_warn("nothing yet");
		page_warn_of_nothing(&session);
		if (page_is_wanted(&session) != cases[i].is_wanted)
			fail_msg("case %zu", i);
		assert_int_equal(is_said_last("profiles are not kept here, which --store does"), cases[i].is_warned);
		close_session(state);
	}
}

static void test_url(void **state)
{
	static const struct {
		const char *page, *http, *cert, *url;
	} cases[] = {
		{ NULL, "127.0.0.1:0", NULL, "http://127.0.0.1:80/" },
		{ "[::1]:7", "127.0.0.1:0", NULL, "http://[::1]:80/" },
		{ NULL, "host", "x", "https://host:80/" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct config c = { .page_address = (char *)(uintptr_t)cases[i].page,
					  .http_address = (char *)(uintptr_t)cases[i].http,
					  .tls_cert = (char *)(uintptr_t)cases[i].cert };
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		page_write_url(&c, 80, &out);
		assert_string_equal(buf_text(&out), cases[i].url);
	}
}

/* Each option makes a server, which shows its part and no other. */
static void test_servers(void **state)
{
	static const struct {
		const char *words[8];
		bool has_store, is_fed;			/* by receivers of a file's pipelines */
		const char *shown, *receiver, *metrics; /* NULL: no such server */
		bool has_grpc;
	} cases[] = {
		{ { "--http-address", ANY }, true, false, "prmh", NULL, NULL, false },
		{ { "--http-address", ANY }, false, false, NULL, NULL, NULL, false },
		{ { "--http-address", "off" }, true, false, NULL, NULL, NULL, false },
		{ { "--http-address", "off", "--page-address", "off" }, true, false, NULL, NULL, NULL, false },
		{ { "--http-address", "off", "--page-address", ANY }, true, false, "pmh", NULL, NULL, false },
		{ { "--http-address", ANY, "--page-address", ANY }, true, false, "pmh", "rmh", NULL, false },
		{ { "--http-address", ANY, "--page-address", "off" }, true, false, NULL, "rmh", NULL, false },
		{ { "--http-address", "off", "--metrics-address", ANY }, true, false, NULL, NULL, "mh", false },
		{ { "--http-address", ANY, "--metrics-address", ANY }, false, false, NULL, NULL, "mh", false },
		{ { "--http-address", "off", "--metrics-address", "off" }, false, false, NULL, NULL, NULL, false },
		{ { "--http-address", ANY, "--grpc-address", ANY }, false, true, NULL, "rmh", NULL, true },
		{ { "--http-address", ANY, "--grpc-address", "off" }, false, true, NULL, "rmh", NULL, false },
		{ { "--http-address", ANY, "--grpc-address", ANY }, true, true, "prmh", NULL, NULL, true },
		{ { "--http-address", "off", "--grpc-address", ANY }, false, true, NULL, NULL, NULL, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *const wanted[] = { cases[i].shown, cases[i].receiver, cases[i].metrics };
		static const unsigned numbers[] = { PAGE_PORT_SHOWN, PAGE_PORT_RECEIVER, PAGE_PORT_METRICS };

		open_session(cases[i].has_store, cases[i].words);
		config.signals_bytes = 0;
		if (cases[i].is_fed)
			assert_int_equal(sink_null_new(&received), 0);
		session.received = received;
		assert_int_equal(start(), 0);
		for (size_t w = 0; w < ARRAY_LEN(wanted); w++) {
			if (!ports[numbers[w]] != !wanted[w])
				fail_msg("case %zu: server %zu has port %u", i, w, ports[numbers[w]]);
			if (wanted[w] && strcmp(shown_on(ports[numbers[w]]), wanted[w]) != 0)
				fail_msg("case %zu: server %zu shows %s", i, w, shown_on(ports[numbers[w]]));
		}
		assert_int_equal(ports[PAGE_PORT_GRPC] != 0, cases[i].has_grpc);
		assert_int_equal(ports[PAGE_PORT_REST], 0);
		assert_int_equal(page_url(page) != NULL, cases[i].shown != NULL);
		close_session(state);
	}
}

/* Its address, and an end at once, after which nobody listens; a second end does nothing. */
static void test_life(void **state)
{
	char url[64];

	(void)state;
	OPEN(true, "--http-address", ANY, "--metrics-address", ANY);
	assert_null(page_url(NULL));
	page_ports(NULL, ports);
	for (size_t i = 0; i < PAGE_PORTS; i++)
		assert_int_equal(ports[i], 0);
	page_stop(NULL, 0);
	assert_int_equal(start(), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ports[PAGE_PORT_SHOWN]);
	assert_string_equal(page_url(page), url);
	assert_true(ports[PAGE_PORT_METRICS] != ports[PAGE_PORT_SHOWN]);
	assert_int_equal(status_of(ports[PAGE_PORT_SHOWN], "GET", "/api/v1/status"), 200);
	page_stop(page, clock_mono_ns() + NSEC_PER_SEC);
	assert_true(connect_to(ports[PAGE_PORT_SHOWN]) < 0);
	assert_true(connect_to(ports[PAGE_PORT_METRICS]) < 0);
	page_stop(page, clock_mono_ns() + NSEC_PER_SEC);
}

static void test_workloads(void **state)
{
	(void)state;
	OPEN(false, "--http-address", "off", "--rest-address", ANY);
	assert_int_equal(start(), 0);
	assert_null(page); /* nobody keeps any */
	assert_int_equal(sink_null_new(&session.sink), 0);
	assert_int_equal(workloads_wrap(&config, session.metrics, &session.sink), 0);
	assert_int_equal(start(), 0);
	assert_string_equal(shown_on(ports[PAGE_PORT_REST]), "wh");
	assert_int_equal(status_of(ports[PAGE_PORT_REST], "GET", "/workloads"), 200);
	assert_null(page_url(page));
}

/* --- who has the port --- */

/* The next one that is free is taken and said, of twenty; --metrics-address wants its own. */
static void test_taken(void **state)
{
	char address[32], says[96];
	int fds[TRIED];
	uint16_t first = take_ports(fds);

	snprintf(address, sizeof(address), "127.0.0.1:%u", first);
	for (int gap = 1; gap < TRIED; gap += TRIED - 2) {
		close(fds[gap]);
		fds[gap] = -1;
		OPEN(true, "--http-address", address);
		assert_int_equal(start(), 0);
		assert_int_equal(ports[PAGE_PORT_SHOWN], first + gap);
		snprintf(says, sizeof(says), "%s is taken by another program; the page has port %d", address, first + gap);
		assert_true(is_said_last(says));
		close_session(state);
		fds[gap] = take_port((uint16_t)(first + gap));
		if (fds[gap] < 0) /* another has been quicker */
			goto out;
	}
	OPEN(true, "--http-address", address);
	assert_int_equal(start(), -EADDRINUSE);
	assert_null(page);
	assert_true(is_said_last("cannot listen"));
	close_session(state);

	OPEN(false, "--metrics-address", address);
	close(fds[1]);
	fds[1] = -1;
	assert_int_equal(start(), -EADDRINUSE);
	close_session(state);

	OPEN(true, "--http-address", address, "--page-address", ANY);
	assert_int_equal(start(), 0);
	assert_int_equal(ports[PAGE_PORT_RECEIVER], first + 1);
out:
	give_ports(fds);
}

/* There is no port behind the last. */
static void test_last_port(void **state)
{
	int before = take_port(UINT16_MAX - 1), last = take_port(UINT16_MAX);

	if (before >= 0 && last >= 0) {
		OPEN(true, "--http-address", "127.0.0.1:65534");
		assert_int_equal(start(), -EADDRINUSE);
		close_session(state);
		close(last);
		last = -1;
		OPEN(true, "--http-address", "127.0.0.1:65534");
		assert_int_equal(start(), 0);
		assert_int_equal(ports[PAGE_PORT_SHOWN], UINT16_MAX);
	}
	if (before >= 0)
		close(before);
	if (last >= 0)
		close(last);
}

static void test_refused(void **state)
{
	OPEN(true, "--http-address", ANY, "--tls-key", "x");
	assert_int_equal(start(), -EINVAL);
	assert_null(page);
	assert_true(is_said_last("--tls-key needs --tls-cert"));
	close_session(state);
	OPEN(true, "--http-address", "nonsense");
	assert_true(start() < 0);
	assert_null(page);
	close_session(state);
	OPEN(false, "--metrics-address", "nonsense");
	assert_true(start() < 0);
	assert_null(page);
}

/* --- the agent's half --- */

static uint64_t asked_ns;

static void on_report(void *arg, uint64_t at_ns)
{
	asked_ns = at_ns;
	loop_stop(arg);
}

/* Who asks for a profile of the next two seconds has the agent report at their end. */
static void test_window(void **state)
{
	uint64_t before, after;
	int fd;

	(void)state;
	OPEN(true, "--http-address", ANY);
	session.report_at = on_report;
	session.report_arg = session.loop;
	assert_int_equal(start(), 0);
	before = clock_mono_ns();
	fd = ask(ports[PAGE_PORT_SHOWN], "GET", "/debug/pprof/profile?seconds=2");
	assert_true(fd >= 0);
	assert_int_equal(loop_run(session.loop), 0);
	after = clock_mono_ns();
	assert_true(asked_ns >= before + 2 * NSEC_PER_SEC && asked_ns <= after + 2 * NSEC_PER_SEC);
	close(fd);
}

/* Ready is who samples: the other half, when it has told of itself; at once, where nobody samples. */
static void test_ready(void **state)
{
	OPEN(true, "--http-address", ANY);
	assert_int_equal(start(), 0);
	assert_int_equal(status_of(ports[PAGE_PORT_SHOWN], "GET", "/readyz"), 200);
	close_session(state);
	OPEN(true, "--http-address", ANY);
	session.report_at = on_report;
	assert_int_equal(start(), 0);
	assert_int_equal(status_of(ports[PAGE_PORT_SHOWN], "GET", "/readyz"), 503);
	usage_set_other(&(struct usage){ .pid = 7 });
	assert_int_equal(status_of(ports[PAGE_PORT_SHOWN], "GET", "/readyz"), 200);
}

/* Records of spans are kept where a page shows them and there is room; what is shown only takes none. */
static void test_signals(void **state)
{
	static const struct {
		const char *bytes, *address;
		bool has_store, is_read_only, are_there;
	} cases[] = {
		{ "1M", ANY, true, false, true },    { "0", ANY, true, false, false },	 { "0", ANY, true, true, true },
		{ "1M", "off", true, false, false }, { "1M", ANY, false, false, false }, { "0", "off", true, true, false },
	};
	struct signals *first;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *const words[] = { "--signals-size", cases[i].bytes, "--page-address", cases[i].address, NULL };

		open_session(cases[i].has_store, words);
		assert_int_equal(page_signals(&session, cases[i].is_read_only), 0);
		if ((session.signals != NULL) != cases[i].are_there)
			fail_msg("case %zu", i);
		first = session.signals;
		assert_int_equal(page_signals(&session, cases[i].is_read_only), 0);
		assert_ptr_equal(session.signals, first);
		close_session(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wanted),
		cmocka_unit_test(test_url),
		cmocka_unit_test_teardown(test_servers, close_session),
		cmocka_unit_test_teardown(test_life, close_session),
		cmocka_unit_test_teardown(test_workloads, close_session),
		cmocka_unit_test_teardown(test_taken, close_session),
		cmocka_unit_test_teardown(test_last_port, close_session),
		cmocka_unit_test_teardown(test_refused, close_session),
		cmocka_unit_test_teardown(test_window, close_session),
		cmocka_unit_test_teardown(test_ready, close_session),
		cmocka_unit_test_teardown(test_signals, close_session),
	};

	cmd_list(all_commands);
	return run_group_of_descriptors(tests, NULL, NULL);
}
