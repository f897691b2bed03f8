/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server in a loop on a thread of its own, a recording sink behind it. The misdeeds of clients are in requests.py,
 * which speaks to it over real sockets; here are its addresses and its life.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/ingest/ingest.h"
#include "backend/routes/routes.h"
#include "backend/http/server.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "tests/unit/backend/recorder.h"

/* --- servers on a thread --- */

enum command { END = 1, STOP, HANG };

struct world {
	struct loop *loop;
	struct metrics *metrics;
	struct sink_recorder sink;
	struct ingest *ingest;
	struct server *servers[2];
	int command; /* eventfd, takes an enum command */
	uint64_t stop_timeout_ns;
	_Atomic uint64_t stop_took_ns;
	pthread_t thread;
};

static void on_command(void *arg, int fd, uint32_t events)
{
	struct world *w = arg;
	uint64_t command = 0;
	(void)events;
	if (read(fd, &command, sizeof(command)) != sizeof(command))
		return;
	if (command == HANG) {
		usleep(1500000);
	} else if (command == STOP) {
		uint64_t now_ns = clock_mono_ns();
		server_stop(w->servers[0], now_ns + w->stop_timeout_ns);
		w->stop_took_ns = clock_mono_ns() - now_ns;
	} else {
		loop_stop(w->loop);
	}
}

static void *run(void *arg)
{
	struct world *w = arg;
	loop_run(w->loop);
	return NULL;
}

static void world_start(struct world *w, const struct server_config *configs, size_t count)
{
	struct server_error err = { "" };
	*w = (struct world){ .sink.sink.ops = &recorder_ops, .command = eventfd(0, EFD_CLOEXEC) };
	assert_true(w->command >= 0);
	assert_int_equal(loop_new(&w->loop), 0);
	w->metrics = metrics_new();
	assert_non_null(w->metrics);
	const struct ingest_config ingest = { .max_receive_bytes = 1 << 20,
					      .receive_memory = 5592406 /* 4 MiB for bodies */ };
	assert_int_equal(ingest_new(&ingest, w->loop, w->metrics, &w->sink.sink, &w->ingest), 0);
	for (size_t i = 0; i < count; i++)
		if (server_new(&configs[i], w->loop, w->metrics, w->ingest, &w->servers[i], &err))
			fail_msg("%s", err.message);
	assert_int_equal(loop_add_fd(w->loop, w->command, EPOLLIN, on_command, w, NULL), 0);
	assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void world_command(struct world *w, enum command what)
{
	uint64_t command = what;
	assert_int_equal(write(w->command, &command, sizeof(command)), sizeof(command));
}

static void world_end(struct world *w)
{
	world_command(w, END);
	pthread_join(w->thread, NULL);
	server_free(w->servers[0]);
	server_free(w->servers[1]);
	ingest_free(w->ingest);
	metrics_free(w->metrics);
	loop_free(w->loop);
	close(w->command);
}

/* --- tests --- */

struct total {
	const char *name;
	uint64_t value;
};

static void find_total(void *arg, const char *name, const char *labels, uint64_t value)
{
	struct total *total = arg;
	(void)labels;
	if (strcmp(name, total->name) == 0)
		total->value += value;
}

static uint64_t metric_total(struct world *w, const char *name)
{
	struct total total = { .name = name };
	metrics_each(w->metrics, find_total, &total);
	return total.value;
}

static void run_script(struct world *w, const char *name)
{
	char command[256];

	snprintf(command, sizeof(command), "python3 " TEST_DATA "/unit/backend/%s %u %u", name,
		 server_http_port(w->servers[0]), server_http_port(w->servers[1]));
	int status = system(command);
	assert_int_equal(status, 0);
}

static void test_requests(void **state)
{
	const struct server_config configs[] = {
		{ .routes = &http_routes, .http_address = "127.0.0.1:0" },
		{ .routes = &http_routes,
		  .http_address = "localhost:0",
		  .max_connections = 4,
		  .request_timeout_ns = 2400 * NSEC_PER_MSEC,
		  .idle_timeout_ns = 600 * NSEC_PER_MSEC },
	};
	struct world w;
	(void)state;

	world_start(&w, configs, ARRAY_LEN(configs));
	run_script(&w, "malformed.py");
	run_script(&w, "requests.py");

	/* What the counters say is what the sink got. */
	assert_true(w.sink.sample_events > 1000);
	assert_int_equal(metric_total(&w, "hearth_received_samples_total"), w.sink.sample_events);
	assert_int_equal(w.sink.other[OTLP_LOGS], 1 + 2 + 1 + 1 + 16);
	assert_int_equal(w.sink.other[OTLP_METRICS], 1 + 2 + 1 + 16);
	assert_int_equal(w.sink.other[OTLP_TRACES], 1 + 1 + 16 /* strangers() */);
	assert_int_equal(metric_total(&w, "hearth_uncounted_requests_total"), 0);
	world_end(&w);
}

static int connect_to(uint16_t port)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void send_text(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads until the answer's text holds @needle. */
static void expect_text(int fd, const char *needle)
{
	char got[4096];
	size_t len = 0;
	do {
		ssize_t n = recv(fd, got + len, sizeof(got) - 1 - len, 0);
		len += n > 0 ? (size_t)n : 0;
		got[len] = '\0';
		if (n <= 0)
			fail_msg("connection ended; got '%s' instead of '%s'", got, needle);
	} while (!strstr(got, needle));
}

static const char health[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
static const char half[] =
	"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: "
	"2\r\n\r\nx"; /* then another x: a field that nobody knows */

static void test_stop_lets_requests_finish(void **state)
{
	const struct server_config config = { .routes = &http_routes, .http_address = "127.0.0.1:0" };
	struct world w;
	(void)state;

	world_start(&w, &config, 1);
	uint16_t port = server_http_port(w.servers[0]);
	AUTO_CLOSE int watcher = connect_to(port);
	AUTO_CLOSE int client = connect_to(port);
	send_text(client, half);
	send_text(watcher, health);
	expect_text(watcher, "\r\n\r\nok\n");

	w.stop_timeout_ns = 20 * NSEC_PER_SEC;
	world_command(&w, STOP);
	int refused;
	while ((refused = connect_to(port)) >= 0)
		close(refused);
	send_text(watcher, health);
	expect_text(watcher, "503 ");
	assert_int_equal(w.stop_took_ns, 0);
	char end[1] = { 0 };
	send_text(client, "x");
	expect_text(client, "200 ");
	world_end(&w);
	assert_true(recv(client, end, 1, 0) <= 0);
	assert_in_range(w.stop_took_ns, 1, 10 * NSEC_PER_SEC);
	assert_int_equal(w.sink.other[OTLP_LOGS], 1 + 2);
}

static void test_stop_ends_at_its_deadline(void **state)
{
	struct world w;
	(void)state;

	world_start(&w, &(struct server_config){ .routes = &http_routes, .http_address = "127.0.0.1:0" }, 1);
	AUTO_CLOSE int client = connect_to(server_http_port(w.servers[0]));
	AUTO_CLOSE int watcher = connect_to(server_http_port(w.servers[0]));
	send_text(client, half);
	send_text(watcher, health); /* its answer shows that what came before was read */
	expect_text(watcher, "ok\n");
	w.stop_timeout_ns = 200 * NSEC_PER_MSEC;
	world_command(&w, STOP);
	while (!w.stop_took_ns)
		usleep(1000);
	world_end(&w);
	assert_in_range(w.stop_took_ns, 200 * NSEC_PER_MSEC, 5 * NSEC_PER_SEC);
	assert_int_equal(w.sink.other[OTLP_LOGS], 0);
}

/* A loop that stood still does not hold that time against its clients. */
static void test_hang_is_not_the_clients_fault(void **state)
{
	/* A request that has brought nothing for a second is cut. */
	const struct server_config config = { .routes = &http_routes,
					      .http_address = "127.0.0.1:0",
					      .request_timeout_ns = 6 * NSEC_PER_SEC };
	struct world w;
	(void)state;

	world_start(&w, &config, 1);
	AUTO_CLOSE int client = connect_to(server_http_port(w.servers[0]));
	AUTO_CLOSE int watcher = connect_to(server_http_port(w.servers[0]));
	send_text(client, half);
	send_text(watcher, health); /* its answer shows that what came before was read */
	expect_text(watcher, "ok\n");
	world_command(&w, HANG);
	usleep(1600000);
	send_text(client, "x");
	expect_text(client, "200 ");
	world_end(&w);
}

/* Where there are as many connections as there may be, the one that has said nothing for longest gives way, after a second;
 * one with a body on its way stays. */
static void test_room(void **state)
{
	const struct server_config config = { .routes = &http_routes, .http_address = "127.0.0.1:0", .max_connections = 3 };
	struct world w;
	char end;
	(void)state;

	world_start(&w, &config, 1);
	uint16_t port = server_http_port(w.servers[0]);
	const uint64_t began_ns = clock_mono_ns();
	AUTO_CLOSE int with_body = connect_to(port);
	send_text(with_body, half);
	AUTO_CLOSE int silent = connect_to(port);
	usleep(20000);
	AUTO_CLOSE int watcher = connect_to(port);
	send_text(watcher, health);
	expect_text(watcher, "ok\n");
	for (int i = 0; i < 4; i++) {
		AUTO_CLOSE int another = connect_to(port);
		send_text(another, health);
		expect_text(another, "ok\n"); /* a first one waits until somebody has said nothing for a second */
		if (i)
			continue;
		assert_true(clock_mono_ns() - began_ns > NSEC_PER_SEC);
		assert_int_equal(recv(silent, &end, 1, 0), 0);
	}
	assert_in_range(metric_total(&w, "hearth_http_connections_cut_total"), 1, 2); /* the watcher may be the second */
	send_text(with_body, "x");
	expect_text(with_body, "200 ");
	world_end(&w);
}

static void test_addresses(void **state)
{
	static const struct {
		const char *address;
		int error;
		const char *says;
	} table[] = {
		{ "127.0.0.1:0", 0, "" },
		{ "[::1]:0", 0, "" },
		{ "localhost:0", 0, "" },
		{ ":4318", -EINVAL, "names no host" },
		{ ":4318", -EINVAL, "0.0.0.0:4318" },
		{ "4318", -EINVAL, "HOST:PORT" },
		{ "", -EINVAL, "HOST:PORT" },
		{ "127.0.0.1", -EINVAL, "HOST:PORT" },
		{ "127.0.0.1:", -EINVAL, "HOST:PORT" },
		{ "127.0.0.1:65536", -EINVAL, "HOST:PORT" },
		{ "127.0.0.1:http", -EINVAL, "HOST:PORT" },
		{ "127.0.0.1:-1", -EINVAL, "HOST:PORT" },
		{ "::1:4318", -EINVAL, "brackets" },
		{ "[]:4318", -EINVAL, "host is missing" },
		{ "[:4318", -EINVAL, "cannot listen" },
		{ "300.1.1.1:4318", -EINVAL, "cannot listen" },
		{ "192.0.2.1:0", -EADDRNOTAVAIL, "no such address" },
	};
	struct loop *loop = NULL;
	struct metrics *metrics = metrics_new();
	struct sink_recorder sink = { .sink.ops = &recorder_ops };
	struct ingest *ingest = NULL;
	(void)state;

	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(ingest_new(&(struct ingest_config){ 0 }, loop, metrics, &sink.sink, &ingest), 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct server *server = NULL;
		struct server_error err = { "" };
		const struct server_config config = { .routes = &http_routes, .http_address = table[i].address };
		int ret = server_new(&config, loop, metrics, ingest, &server, &err);
		if (ret != table[i].error || !strstr(err.message, table[i].says))
			fail_msg("'%s': %d '%s'", table[i].address, ret, err.message);
		if (ret == 0)
			assert_int_not_equal(server_http_port(server), 0);
		server_free(server);
	}
	ingest_free(ingest);
	metrics_free(metrics);
	loop_free(loop);
}

static void test_taken_port(void **state)
{
	struct world w;
	struct server *second = NULL;
	struct server_error err = { "" };
	char address[32];
	(void)state;

	world_start(&w, &(struct server_config){ .routes = &http_routes, .http_address = "127.0.0.1:0" }, 1);
	snprintf(address, sizeof(address), "127.0.0.1:%u", server_http_port(w.servers[0]));
	assert_int_equal(server_new(&(struct server_config){ .routes = &http_routes, .http_address = address }, w.loop,
				    w.metrics, w.ingest, &second, &err),
			 -EADDRINUSE);
	assert_non_null(strstr(err.message, address));
	assert_non_null(strstr(err.message, "another port"));
	assert_null(second);
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_taken_port),
		cmocka_unit_test(test_stop_lets_requests_finish),
		cmocka_unit_test(test_stop_ends_at_its_deadline),
		cmocka_unit_test(test_hang_is_not_the_clients_fault),
		cmocka_unit_test(test_requests),
	};
	return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
