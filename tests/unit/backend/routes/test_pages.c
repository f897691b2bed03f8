/* SPDX-License-Identifier: Apache-2.0 */
/* A server that shows profiles, as programs and browsers meet it over HTTP: a store made of a table is behind it. */
#include "tests/unit/backend/api_table.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/api/query_thread.h"
#include "backend/compat/own_profiles.h"
#include "backend/http/server.h"
#include "backend/http/token.h"
#include "backend/ingest/ingest.h"
#include "backend/routes/routes.h"
#include "base/loop.h"
#include "base/pack/gzip.h"
#include "tests/unit/backend/recorder.h"
#include "tests/unit/descriptors.h"

#define SERVICE "/querier.v1.QuerierService/"

struct world {
	struct loop *loop;
	struct metrics *metrics;
	struct sink_recorder sink;
	struct ingest *ingest;
	struct query_thread *queries;
	struct tokens *tokens;
	struct server *server;
	struct loop_work stop;
	pthread_t thread;
	uint16_t port;
	_Atomic bool is_ready;
	_Atomic uint64_t window_ends_ns;
};

static struct world w;

static void stop_world(struct loop_work *work)
{
	(void)work;
	loop_stop(w.loop);
}

static void *run_world(void *arg)
{
	loop_run(arg);
	return NULL;
}

static bool is_ready(void *arg)
{
	return ((struct world *)arg)->is_ready;
}

static void window_ends(void *arg, uint64_t at_ns)
{
	((struct world *)arg)->window_ends_ns = at_ns;
}

/* @token: what is asked for; NULL: nothing */
static void begin(struct server_config config, const char *token, bool has_store)
{
	const struct ingest_config ingest = { .max_receive_bytes = 1 << 20, .receive_memory = 4 << 20 };
	struct server_error err = { "" };

	w = (struct world){ .sink.sink.ops = &recorder_ops, .stop.fn = stop_world };
	assert_int_equal(loop_new(&w.loop), 0);
	w.metrics = metrics_new();
	assert_int_equal(ingest_new(&ingest, w.loop, w.metrics, &w.sink.sink, &w.ingest), 0);
	if (has_store) {
		setup(NULL);
		assert_int_equal(query_thread_new(api, w.loop, 16, &w.queries), 0);
	}
	if (token) {
		char path[] = "/tmp/test_pages.XXXXXX";
		int fd = mkstemp(path);

		assert_int_equal(write(fd, token, strlen(token)), strlen(token));
		close(fd);
		assert_int_equal(tokens_new(path, &w.tokens), 0);
		unlink(path);
	}
	config.routes = &http_routes;
	config.http_address = "127.0.0.1:0";
	config.queries = w.queries;
	config.tokens = w.tokens;
	config.is_ready = is_ready;
	config.window_ends = window_ends;
	config.ready_arg = config.window_arg = &w;
	if (server_new(&config, w.loop, w.metrics, w.ingest, &w.server, &err))
		fail_msg("%s", err.message);
	w.port = server_http_port(w.server);
	assert_int_equal(pthread_create(&w.thread, NULL, run_world, w.loop), 0);
}

static void end(void)
{
	loop_post(w.loop, &w.stop);
	pthread_join(w.thread, NULL);
	server_free(w.server);
	query_thread_free(w.queries);
	ingest_free(w.ingest);
	metrics_free(w.metrics);
	tokens_free(w.tokens);
	loop_free(w.loop);
}

/* --- a client --- */

static char said[1 << 20]; /* the whole answer, until the next one */

/* Sends the request line @first with the @headers (each with its \r\n) and @body; what is said is in said. The status. */
static unsigned talk_bytes(const char *first, const char *headers, const void *body, size_t body_bytes)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(w.port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char head[4096];
	size_t len = 0;
	ssize_t n;

	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	snprintf(head, sizeof(head), "%s HTTP/1.1\r\nConnection: close\r\n%s%s", first,
		 strcasestr(headers, "host:") ? "" : "Host: localhost\r\n", headers);
	n = (ssize_t)strlen(head);
	if (body || !strncmp(first, "POST", 4))
		n += snprintf(head + n, sizeof(head) - (size_t)n, "Content-Length: %zu\r\n", body_bytes);
	n += snprintf(head + n, sizeof(head) - (size_t)n, "\r\n");
	assert_int_equal(send(fd, head, (size_t)n, MSG_NOSIGNAL), n);
	if (body_bytes)
		(void)send(fd, body, body_bytes, MSG_NOSIGNAL); /* the server may have refused it already */
	while ((n = recv(fd, said + len, sizeof(said) - 1 - len, 0)) > 0)
		len += (size_t)n;
	close(fd);
	said[len] = '\0';
	return strncmp(said, "HTTP/1.1 ", 9) ? 0 : (unsigned)atoi(said + 9);
}

/* Asks, and goes away before the answer; or stays until the server ends. */
static void hang_up(const char *first)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(w.port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char head[256];

	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	snprintf(head, sizeof(head), "%s HTTP/1.1\r\nHost: localhost\r\n\r\n", first);
	w.window_ends_ns = 0;
	assert_int_equal(send(fd, head, strlen(head), MSG_NOSIGNAL), strlen(head));
	for (int i = 0; i < 1000 && !w.window_ends_ns; i++)
		usleep(10000);
	assert_int_not_equal(w.window_ends_ns, 0);
	close(fd);
}

static unsigned talk(const char *first, const char *headers, const char *body)
{
	return talk_bytes(first, headers, body, body ? strlen(body) : 0);
}

/* Copies the value of the answer's header @name. */
static void header(const char *name, char *ret, size_t size)
{
	char line[64];
	const char *at;

	snprintf(line, sizeof(line), "\r\n%s: ", name);
	at = strcasestr(said, line);
	if (!at)
		fail_msg("no %s in %s", name, said);
	at += strlen(line);
	snprintf(ret, size, "%.*s", (int)strcspn(at, "\r"), at);
}

static void expect_answer(unsigned status, const char *first, const char *headers, const char *body, const char *has)
{
	unsigned got = talk(first, headers, body);

	if (got != status || !strcasestr(said, has))
		fail_msg("%s %s: not %u '%s' but %s", first, headers, status, has, said);
}

/* --- questions --- */

static void test_questions(void **state)
{
	char etag[64], again[128];

	(void)state;
	begin((struct server_config){ .page_names = (const char *const[]){ "hearth.example", NULL } }, NULL, true);
	expect_answer(200, "GET /api/v1/top?from=first&to=last", "", NULL, "\"name\":\"work\"");
	assert_non_null(strcasestr(said, "Content-Security-Policy: default-src 'none'; sandbox\r\n"));
	assert_non_null(strcasestr(said, "X-Content-Type-Options: nosniff\r\n"));
	assert_non_null(strcasestr(said, "Cache-Control: no-cache\r\n"));
	header("ETag", etag, sizeof(etag));
	snprintf(again, sizeof(again), "If-None-Match: %s\r\n", etag);
	assert_int_equal(talk("GET /api/v1/top?from=first&to=last", again, NULL), 304);
	assert_null(strstr(said, "work"));
	snprintf(again, sizeof(again), "If-None-Match: \"other\", W/%s\r\n", etag);
	assert_int_equal(talk("GET /api/v1/top?from=first&to=last", again, NULL), 304);
	assert_int_equal(talk("GET /api/v1/top?from=first&to=last&limit=1", again, NULL), 200); /* another answer */
	assert_int_equal(talk("GET /api/v1/top?from=first&to=last", "If-None-Match: *\r\n", NULL), 304);

	expect_answer(400, "GET /api/v1/values?from=first", "", NULL, "label: say of which label");
	expect_answer(404, "GET /api/v1/nothing", "", NULL, "404 not found");

	/* by which names */
	expect_answer(200, "GET /api/v1/labels?from=first", "Host: 127.0.0.1:1\r\n", NULL, "service.name");
	expect_answer(200, "GET /api/v1/labels?from=first", "Host: [::1]\r\n", NULL, "service.name");
	expect_answer(200, "GET /api/v1/labels?from=first", "Host: a.localhost\r\n", NULL, "service.name");
	expect_answer(200, "GET /api/v1/labels?from=first", "Host: HEARTH.example\r\n", NULL, "service.name");
	expect_answer(403, "GET /api/v1/labels?from=first", "Host: xlocalhost\r\n", NULL, "is no name of this server");
	expect_answer(403, "GET /api/v1/labels?from=first", "Host: elsewhere.example\r\n", NULL,
		      "'elsewhere.example' is no name of this server");
	expect_answer(403, "GET /api/v1/labels?from=first", "Origin: http://elsewhere.example\r\n", NULL,
		      "may not ask here");
	expect_answer(200, "GET /api/v1/labels?from=first", "Origin: http://localhost\r\n", NULL, "service.name");

	expect_answer(503, "GET /readyz", "", NULL, "");
	w.is_ready = true;
	expect_answer(200, "GET /readyz", "", NULL, "");
	end();
}

/* A parameter that a path does not take, or takes once, is refused: the answer would be of something else. */
static void test_parameters(void **state)
{
	static const struct {
		unsigned status;
		const char *first, *says;
	} cases[] = {
		{ 400, "GET /api/v1/labels?sevice=x",
		  "\r\n\r\n{\"error\":\"'sevice' is no parameter of /api/v1/labels, which takes: query, from, to, "
		  "kind, focus, ignore, idle, inline\"}" },
		{ 400, "GET /api/v1/top?from=first&sevice", "'sevice' is no parameter of /api/v1/top, which takes: " },
		{ 400, "GET /api/v1/top?From=first", "'From' is no parameter of" },
		{ 400, "GET /api/v1/top?fromm=first", "'fromm' is no parameter of" },
		{ 400, "GET /api/v1/top?query+from=first", "'query from' is no parameter of" },
		{ 400, "GET /api/v1/top?_=1763788000", "'_' is no parameter of" },
		{ 400, "GET /api/v1/top?=first", "'' is no parameter of" },
		{ 400, "GET /api/v1/top?%22%0a%ff=first", "'\\\"\\n\xef\xbf\xbd' is no parameter of" },
		{ 400, "GET /api/v1/top?from=first&to=last&from=first", "'from' is given twice: /api/v1/top takes it once" },
		{ 400, "GET /api/v1/top?from&from", "'from' is given twice" },
		{ 400, "GET /api/v1/flamegraph?from2=first", "'from2' is no parameter of" },
		{ 400, "GET /api/v1/status?from=first", "'from' is no parameter of /api/v1/status, which takes none\"}" },
		{ 400, "GET /api/v1/span/0000000000000001/top?query=x", "which takes: from, to, kind, focus," },
		{ 400, "GET /api/v1/log/1/where?from=first", "which takes: of\"}" },
		{ 400, "GET /debug/pprof/profile?secnds=1", "'secnds' is no parameter of /debug/pprof/profile, which" },
		{ 400, "POST /api/v1/clear?from=now-1h", "'from' is no parameter of /api/v1/clear, which takes none" },
		{ 400, "POST /api/v1/symbols?name=x", "which takes none" },
		{ 200, "GET /metrics?format=prometheus", "# TYPE" },
		{ 400, "GET /workload/a/functions?limit=1", "'limit' is no parameter of /workload/a/functions, which" },
		{ 400, "GET /page/app.js?_=1", "which takes none" },
		{ 400, "POST " SERVICE "LabelNames?selector=%7B%7D",
		  "{\"code\":\"invalid_argument\",\"message\":\"'selector' is no parameter of " SERVICE
		  "LabelNames, which" },
		{ 404, "GET /api/v1/nothing?a=b", "404 not found" },
		{ 404, "GET /api/v1/top?from%00x=first", "404 not found" },
		{ 200, "GET /api/v1/top?", "\"rows\"" },
		{ 200, "GET /api/v1/top?&from=first&&to=last&", "\"rows\":[{" },
		{ 200, "GET /api/v1/top?f%72om=first&to=last", "\"rows\":[{" },
		{ 200, "GET /?trace=0af7651916cd43dd8448eb211c80319c", "<!doctype html>" },
		{ 200, "GET /healthz?verbose", "ok" },
		{ 200, "GET /debug/pprof/symbol?0x1000+0x2000", "num_symbols: 0" },
		{ 415, "POST /v1/profiles?tenant=a", "" },
	};
	char many[256] = "GET /api/v1/top?", counted[128];
	unsigned refused = 0;

	(void)state;
	begin((struct server_config){ 0 }, NULL, true);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		expect_answer(cases[i].status, cases[i].first, "", strncmp(cases[i].first, "POST", 4) ? NULL : "",
			      cases[i].says);
		if (cases[i].status != 400)
			continue;
		refused++;
		assert_non_null(strcasestr(said, "Content-Type: application/json\r\n"));
		assert_non_null(strcasestr(said, "X-Content-Type-Options: nosniff\r\n"));
	}
	memset(many + strlen(many), '&', 100); /* nothing, more often than there is room for parameters */
	expect_answer(200, many, "", NULL, "\"rows\"");
	snprintf(counted, sizeof(counted), "hearth_rejected_requests_total{reason=\"parameter\"} %u\n", refused);
	expect_answer(200, "GET /metrics", "", NULL, counted);
	end();
}

/* Profiles for pprof's own tools: of the time to come, and of a process by its name. */
static void test_pprof(void **state)
{
	static const struct {
		const char *first, *says;
	} wrong[] = {
		{ "GET /debug/pprof/profile?seconds=0", "seconds: a whole number from 1 to 3600" },
		{ "GET /debug/pprof/profile?seconds=3601", "seconds: a whole number from 1 to 3600" },
		{ "GET /debug/pprof/profile?seconds=x", "seconds: a whole number from 1 to 3600" },
		{ "GET /debug/pprof/profile?process=a%60b", "process: a name, and no query beside it" },
		{ "GET /debug/pprof/profile?process=a&query=%7B%7D", "process: a name, and no query beside it" },
	};
	uint64_t began_ns, took_ns;

	(void)state;
	begin((struct server_config){ 0 }, NULL, true);
	expect_answer(200, "GET /debug/pprof/symbol", "", NULL, "num_symbols: 0");
	expect_answer(200, "GET /debug/pprof/cmdline", "", NULL, "\r\n\r\nhearth\n");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		expect_answer(400, wrong[i].first, "", NULL, wrong[i].says);
	assert_int_equal(w.window_ends_ns, 0);
	began_ns = clock_mono_ns();
	(void)talk("GET /debug/pprof/profile?seconds=1", "", NULL);
	took_ns = clock_mono_ns() - began_ns;
	assert_true(took_ns >= 1500 * NSEC_PER_MSEC); /* with the time in which samples settle */
	assert_in_range(w.window_ends_ns, began_ns + NSEC_PER_SEC, began_ns + took_ns);
	w.window_ends_ns = 0;
	(void)talk("GET /debug/pprof/profile?from=first", "", NULL); /* nobody waits for what was */
	assert_int_equal(w.window_ends_ns, 0);
	end();
}

/* hearth's own profile at an address of its own, where a store has it, and where this hearth samples nothing. */
static void test_own(void **state)
{
	static const char *const elsewhere[] = { "/",
						 "/metrics",
						 "/healthz",
						 "/api/v1/status",
						 "/pprof/profile",
						 "/v1/profiles",
						 "/debug/pprof",
						 "/debug/pprof/heap",
						 "/debug/pprof/profile/x" };
	uint64_t began_ns;

	(void)state;
	for (int has_store = 0; has_store < 2; has_store++) {
		begin((struct server_config){ .pages = PAGES_PPROF }, NULL, has_store);
		expect_answer(200, "GET /debug/pprof/", "", NULL, "/debug/pprof/profile?seconds=N");
		expect_answer(200, "GET /debug/pprof/symbol", "", NULL, "num_symbols: 0");
		expect_answer(200, "GET /debug/pprof/cmdline", "", NULL, "\r\n\r\nhearth\n");
		for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++) {
			char first[64];

			snprintf(first, sizeof(first), "GET %s", elsewhere[i]);
			expect_answer(404, first, "", NULL, "here are /debug/pprof/");
		}
		expect_answer(400, "GET /debug/pprof/profile?query=%7B%7D", "", NULL,
			      "'query' is no parameter of /debug/pprof/profile, which takes: seconds, debug\"}");
		expect_answer(400, "GET /debug/pprof/profile?seconds=1&process=a", "", NULL, "'process' is no parameter");
		expect_answer(400, "GET /debug/pprof/profile?seconds=1&seconds=2", "", NULL, "'seconds' is given twice");
		expect_answer(403, "GET /debug/pprof/profile?seconds=1", "Host: elsewhere.example\r\n", NULL, "is no name");
		if (!has_store)
			expect_answer(404, "GET /debug/pprof/profile?seconds=1", "", NULL, "this hearth samples nothing");
		else
			expect_answer(400, "GET /debug/pprof/profile?seconds=3601", "", NULL, "from 1 to 3600");
		if (has_store) {
			began_ns = clock_mono_ns();
			(void)talk("GET /debug/pprof/profile?seconds=1&debug=1", "", NULL);
			assert_in_range(w.window_ends_ns, began_ns + NSEC_PER_SEC, clock_mono_ns());
		}
		end();
	}
}

/* The same without a store: what passes is waited for; who goes away leaves nothing. */
static void test_own_passing(void **state)
{
	struct own_profiles *own = own_profiles_new(0);
	uint64_t began_ns;

	(void)state;
	begin((struct server_config){ .pages = PAGES_PPROF, .own = own }, NULL, false);
	expect_answer(400, "GET /debug/pprof/profile?seconds=0", "", NULL, "from 1 to 3600");
	began_ns = clock_mono_ns();
	expect_answer(200, "GET /debug/pprof/profile?seconds=1", "", NULL, "filename=\"hearth.pb.gz\"");
	assert_true(clock_mono_ns() - began_ns >= 4 * NSEC_PER_SEC); /* nothing came, so it waited for what is late */
	assert_in_range(w.window_ends_ns, began_ns + NSEC_PER_SEC, began_ns + 2 * NSEC_PER_SEC);
	assert_non_null(strstr(said, "\r\n\r\n\x1f\x8b"));
	hang_up("GET /debug/pprof/profile?seconds=100");
	end();
	own_profiles_free(own);
}

static void test_no_store(void **state)
{
	(void)state;
	begin((struct server_config){ 0 }, NULL, false);
	expect_answer(404, "GET /api/v1/top", "", NULL, "there is no store here");
	expect_answer(404, "POST /api/v1/clear", "", "", "there is no store here");
	expect_answer(404, "POST /api/v1/symbols", "", "x", "there is no store here that takes symbols");
	expect_answer(404, "POST " SERVICE "LabelNames", "Content-Type: application/json\r\n", "{}",
		      "there is no store here");
	expect_answer(404, "POST /login", "", "", "no token is asked for here");
	end();
}

/* --- Pyroscope's calls --- */

static void test_connect(void **state)
{
	static const struct {
		unsigned status;
		const char *method, *body, *says;
	} cases[] = {
		{ 200, "LabelValues", "{\"name\":\"service_name\",\"start\":\"1000000\",\"end\":1006000}",
		  "{\"names\":[\"mail\",\"shop\"]}" },
		{ 200, "LabelValues", "{\"name\":\"service_name\",\"start\":1004500,\"end\":1005500}",
		  "{\"names\":[\"mail\"]}" },
		{ 200, "LabelValues", "{\"name\":\"thread_name\",\"matchers\":[\"{service_name=\\\"shop\\\"}\"]}",
		  "{\"names\":[\"t1\",\"t2\"]}" },
		{ 200, "SelectSeries",
		  "{\"start\":1000000,\"end\":1006000,\"step\":0.5,\"limit\":1,\"aggregation\":0,\"stackTraceSelector\":{}}",
		  "{\"value\":4,\"timestamp\":\"1000500\"}" },
		{ 501, "SelectSeries", "{\"start\":1000000,\"end\":1006000,\"step\":1,\"aggregation\":1}",
		  "hearth does not select by" },
		{ 501, "SelectMergeStacktraces", "{\"spanSelector\":[\"a\"]}", "hearth does not select by" },
		{ 400, "LabelValues", "{\"name\":\"a\",\"start\":-1}", "start, end: milliseconds since 1970" },
		{ 400, "LabelValues", "{\"name\":", "this is no such message" },
		{ 501, "SelectMergeSpanProfile", "{}", "hearth does not have this one" },
	};
	AUTO(buf_fini) struct buf packed = BUF_EMPTY;
	static char long_body[70000];
	char zeros[100];

	(void)state;
	begin((struct server_config){ 0 }, NULL, true);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char first[128];

		snprintf(first, sizeof(first), "POST " SERVICE "%s", cases[i].method);
		expect_answer(cases[i].status, first, "Content-Type: application/json; charset=utf-8\r\n", cases[i].body,
			      cases[i].says);
	}
	expect_answer(200, "POST " SERVICE "LabelValues", "Content-Type: Application/Proto\r\n", "\x0a\x0cservice_name",
		      "\x0a\x04mail\x0a\x04shop"); /* field 1, a text */
	expect_answer(415, "POST " SERVICE "LabelNames", "Content-Type: text/plain\r\n", "{}", "send application/proto");
	expect_answer(415, "POST " SERVICE "LabelNames", "Content-Type: application/prot\r\n", "{}",
		      "send application/proto");

	/* packed */
	assert_int_equal(gzip_pack("{\"name\":\"service_name\"}", 23, 6, &packed), 0);
	assert_int_equal(talk_bytes("POST " SERVICE "LabelValues",
				    "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", packed.data, packed.len),
			 200);
	assert_non_null(strstr(said, "{\"names\":[\"mail\",\"shop\"]}"));
	packed.data[packed.len / 2] ^= 0x55;
	assert_int_equal(talk_bytes("POST " SERVICE "LabelValues",
				    "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", packed.data, packed.len),
			 400);
	buf_reset(&packed);
	memset(long_body, ' ', sizeof(long_body));
	assert_int_equal(gzip_pack(long_body, sizeof(long_body), 6, &packed), 0);
	assert_int_equal(talk_bytes("POST " SERVICE "LabelValues",
				    "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", packed.data, packed.len),
			 413); /* short as it came, too long unpacked */
	assert_int_equal(talk_bytes("POST " SERVICE "LabelValues", "Content-Type: application/json\r\n", long_body,
				    sizeof(long_body)),
			 413);
	assert_non_null(strstr(said, "\"resource_exhausted\""));

	/* as many fields as there may be */
	memset(zeros, 0, sizeof(zeros));
	for (int i = 0; i < 23; i++)
		memcpy(zeros + 2 * i, "\x12\0", 2); /* an empty matcher */
	assert_int_equal(talk_bytes("POST " SERVICE "Series", "Content-Type: application/proto\r\n", zeros, 46), 200);
	memcpy(zeros + 46, "\x12\0", 2);
	assert_int_equal(talk_bytes("POST " SERVICE "Series", "Content-Type: application/proto\r\n", zeros, 48), 400);
	assert_non_null(strstr(said, "too many fields"));
	end();
}

/* --- the page --- */

static void test_page(void **state)
{
	static const struct {
		const char *accept;
		bool packed;
	} accepts[] = {
		{ "", false },
		{ "Accept-Encoding: gzip\r\n", true },
		{ "Accept-Encoding: br, GZIP ;q=0.5\r\n", true },
		{ "Accept-Encoding: *\r\n", true },
		{ "Accept-Encoding: gzip;q=0, *\r\n", false },
		{ "Accept-Encoding: *;q=0\r\n", false },
		{ "Accept-Encoding: gzip2, xgzip\r\n", false },
		{ "Accept-Encoding: gzip;x=1;q=0.0\r\n", false },
		{ "Accept-Encoding: br;q=0, gzip\r\n", true },
	};
	char etag[64], again[128];

	(void)state;
	begin((struct server_config){ 0 }, NULL, true);
	expect_answer(200, "GET /", "", NULL, "<!doctype html>");
	assert_non_null(strcasestr(said, "Content-Type: text/html; charset=utf-8\r\n"));
	assert_non_null(strcasestr(said, "Content-Security-Policy: default-src 'none'; script-src 'self';"));
	expect_answer(200, "GET /page/app.js", "", NULL, "Content-Type: text/javascript; charset=utf-8\r\n");
	expect_answer(404, "GET /page/nothing.js", "", NULL, "404 not found");
	for (size_t i = 0; i < ARRAY_LEN(accepts); i++) {
		assert_int_equal(talk("GET /page/style.css", accepts[i].accept, NULL), 200);
		if (!strcasestr(said, "\r\nContent-Encoding: gzip\r\n") != !accepts[i].packed)
			fail_msg("%s: %s", accepts[i].accept, said);
		header("ETag", etag, sizeof(etag));
		assert_int_equal(!!strstr(etag, "-gz\""), accepts[i].packed);
		snprintf(again, sizeof(again), "%sIf-None-Match: %s\r\n", accepts[i].accept, etag);
		assert_int_equal(talk("GET /page/style.css", again, NULL), 304);
	}
	end();
}

/* A part of the pages has a port of its own. */
static void test_parts(void **state)
{
	static const struct {
		enum server_pages pages;
		unsigned page, api, receiver, metrics, health;
	} cases[] = {
		{ PAGES_ALL, 200, 200, 415, 200, 200 },	      { PAGES_PAGE, 200, 200, 404, 200, 200 },
		{ PAGES_RECEIVER, 404, 404, 415, 200, 200 },  { PAGES_METRICS, 404, 404, 404, 200, 200 },
		{ PAGES_WORKLOADS, 404, 404, 404, 404, 200 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		begin((struct server_config){ .pages = cases[i].pages }, NULL, true);
		expect_answer(cases[i].page, "GET /", "", NULL, "");
		expect_answer(cases[i].api, "GET /api/v1/labels?from=first", "", NULL, "");
		expect_answer(cases[i].receiver, "POST /v1development/profiles", "Content-Type: text/plain\r\n", "x", "");
		expect_answer(cases[i].metrics, "GET /metrics", "", NULL, "");
		expect_answer(cases[i].health, "GET /healthz", "", NULL, "");
		end();
	}
}

/* A browser shows its token once, and has a cookie until it logs out; what it changes says where it comes from. */
static void test_login(void **state)
{
	char cookie[256], with[512], with_origin[600], name[32];

	(void)state;
	begin((struct server_config){ 0 }, "right\n", true);
	expect_answer(401, "GET /", "", NULL, "<!doctype html>"); /* the form */
	expect_answer(200, "GET /page/login.js", "", NULL, "");
	expect_answer(200, "GET /session", "", NULL, "{\"session\":false}");
	assert_non_null(strcasestr(said, "Cache-Control: no-store\r\n"));
	expect_answer(401, "GET /api/v1/labels?from=first", "", NULL, "no valid token");
	expect_answer(401, "GET /api/v1/labels?from=first", "Authorization: Bearer wrong\r\n", NULL, "no valid token");
	expect_answer(200, "GET /api/v1/labels?from=first", "Authorization: Bearer right\r\n", NULL, "service.name");
	expect_answer(401, "POST /login", "", "", "no valid token");
	expect_answer(401, "POST /login", "Authorization: Bearer wrong\r\n", "", "no valid token");
	expect_answer(204, "POST /login", "Authorization: Bearer right\r\n", "", "Cache-Control: no-store\r\n");
	header("Set-Cookie", cookie, sizeof(cookie));
	snprintf(name, sizeof(name), "hearth-%u=", w.port);
	assert_int_equal(strncmp(cookie, name, strlen(name)), 0);
	assert_non_null(strstr(cookie, "; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"));
	assert_null(strstr(cookie, "Secure")); /* it came without TLS */
	cookie[strcspn(cookie, ";")] = '\0';
	assert_int_equal(strlen(cookie), strlen(name) + 64);
	snprintf(with, sizeof(with), "Cookie: %s\r\n", cookie);
	snprintf(with_origin, sizeof(with_origin), "%sOrigin: http://localhost\r\n", with);
	expect_answer(200, "GET /session", with, NULL, "{\"session\":true}");
	expect_answer(200, "GET /api/v1/labels?from=first", with, NULL, "service.name");
	expect_answer(401, "GET /metrics", with, NULL, "no valid token"); /* a session is for the page */
	expect_answer(403, "POST /logout", with, "", "a browser says where this comes from");
	expect_answer(204, "POST /logout", with_origin, "", "Max-Age=0;");
	expect_answer(200, "GET /session", with, NULL, "{\"session\":false}");
	expect_answer(401, "GET /api/v1/labels?from=first", with, NULL, "no valid token");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_questions),   cmocka_unit_test(test_parameters), cmocka_unit_test(test_pprof),
		cmocka_unit_test(test_no_store),    cmocka_unit_test(test_connect),    cmocka_unit_test(test_page),
		cmocka_unit_test(test_parts),	    cmocka_unit_test(test_login),      cmocka_unit_test(test_own),
		cmocka_unit_test(test_own_passing),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
