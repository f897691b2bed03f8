/* SPDX-License-Identifier: Apache-2.0 */
/* Traces and spans in the SQLite store: labels by which samples are found and summed, and the API's questions about them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "backend/api/api.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/pattern.h"
#include "proto/profiles_builder.h"
#include "tests/unit/backend/store_put.h"

#define T0     1700000040000000000ull
#define TRACE  "0a000000000000000000000000000001"
#define TRACE2 "0b000000000000000000000000000002"

static const struct builder_profile_spec off_cpu = { "hearth", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 };
static const struct builder_profile_spec cpu = { "hearth", "1", "cpu", "nanoseconds", "", "", 0, NULL, 0 };

static const struct {
	uint8_t trace, span; /* 0: none */
	int64_t weight;
	bool is_wait;
} linked[] = { { 1, 1, 1, false },  { 1, 2, 2, false },	 { 1, 1, 4, false }, { 2, 1, 8, false },
	       { 0, 0, 16, false }, { 0, 3, 32, false }, { 1, 2, 64, true } };

static struct store *open_store(void)
{
	struct store_config config = { .place = ":memory:", .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	struct store_error err;
	struct store *s = NULL;

	if (store_sqlite_open(&config, NULL, &s, &err))
		fail_msg("%s", err.message);
	return s;
}

static struct profiles *make_linked(void)
{
	struct builder *b = builder_new();
	struct profile_line line = { builder_function(b, builder_string_z(b, "main"), 0, 0, 10), 12, 0 };
	int32_t main_ = builder_location(b, 0, 0x1100, &line, 1, NULL, 0), top = builder_stack(b, &main_, 1);
	uint32_t resource = builder_resource(b, NULL, 0);
	struct profiles *p;

	for (size_t i = 0; i < ARRAY_LEN(linked); i++) {
		uint8_t trace[16] = { linked[i].trace ? 9 + linked[i].trace : 0 }, span[8] = { 0 };

		trace[15] = linked[i].trace;
		span[7] = linked[i].span;
		builder_event(b, builder_profile(b, resource, linked[i].is_wait ? &off_cpu : &cpu), top, NULL, 0,
			      linked[i].span ? builder_link(b, trace, span) : 0, T0 + i, true, linked[i].weight);
	}
	assert_int_equal(builder_freeze(b, T0, T0 + NSEC_PER_SEC, &p), 0);
	builder_free(b);
	return p;
}

static int add_line(void *arg, const char *value, int64_t weight, uint64_t events)
{
	struct buf *text = arg;

	buf_printf(text, "%s=%lld/%llu ", value, (long long)weight, (unsigned long long)events);
	return 0;
}

static int add_label(void *arg, const char *label)
{
	buf_printf(arg, "%s ", label);
	return 0;
}

static void check(struct buf *text, const char *wanted)
{
	assert_string_equal(buf_text(text), wanted);
	buf_reset(text);
}

static void check_selected(struct store *s, const char *label, enum store_match match, const char *value, const char *wanted)
{
	struct store_matcher m = { label, match, value, NULL };
	struct store_selection some = { .to_ns = UINT64_MAX, .kind = "cpu", .matchers = &m, .matcher_count = 1 };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct pattern_error why;

	if (match == MATCH_REGEX || match == MATCH_NOT_REGEX)
		assert_int_equal(pattern_new(value, PATTERN_WHOLE, &m.pattern, &why), 0);
	assert_int_equal(s->read->label_values(s, &some, "nothing", add_line, &text), 0);
	check(&text, wanted);
	pattern_free(m.pattern);
}

static void check_store(struct store *s)
{
	struct store_selection all = { .to_ns = UINT64_MAX, .kind = "cpu" };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	assert_int_equal(s->read->labels(s, &all, add_label, &text), 0);
	assert_non_null(strstr(buf_text(&text), "trace_id "));
	assert_non_null(strstr(buf_text(&text), "span_id "));
	buf_reset(&text);
	assert_int_equal(s->read->label_values(s, &all, STORE_TRACE_LABEL, add_line, &text), 0);
	assert_non_null(strstr(buf_text(&text), TRACE "=7/3 "));
	assert_non_null(strstr(buf_text(&text), TRACE2 "=8/1 "));
	assert_non_null(strstr(buf_text(&text), "=48/2 ")); /* a trace of zeros is none */
	check_selected(s, STORE_TRACE_LABEL, MATCH_EQUAL, TRACE, "=7/3 ");
	check_selected(s, STORE_TRACE_LABEL, MATCH_EQUAL, "0A000000000000000000000000000001", "=7/3 ");
	check_selected(s, STORE_TRACE_LABEL, MATCH_NOT_EQUAL, TRACE, "=56/3 ");
	check_selected(s, STORE_TRACE_LABEL, MATCH_EQUAL, "", "=48/2 ");
	check_selected(s, STORE_TRACE_LABEL, MATCH_REGEX, "0.*", "=15/4 ");
	check_selected(s, STORE_TRACE_LABEL, MATCH_EQUAL, "nothing of the kind", "");
	check_selected(s, STORE_SPAN_LABEL, MATCH_EQUAL, "0000000000000001", "=13/3 ");
	check_selected(s, STORE_SPAN_LABEL, MATCH_EQUAL, "0000000000000003", "=32/1 ");
	check_selected(s, STORE_SPAN_LABEL, MATCH_NOT_REGEX, "0*[12]?", "=32/1 ");
}

static void test_labels(void **state)
{
	struct store *s = open_store();
	struct profiles *p = make_linked();

	(void)state;
	store_put(s, p);
	profiles_put(p);
	check_store(s);
	assert_int_equal(s->maintain->task(s, STORE_COMPACT), 0);
	check_store(s);
	s->close(s);
}

/* --- blocks that are left out --- */

enum { COMMITS = 20, TRACES = 10 /* of a commit */ };

static char folder[] = "/tmp/hearth-links-XXXXXX";

static void remove_files(void)
{
	static const char *const names[] = { "profiles.db", "profiles.db-wal", "profiles.db-shm", "lock" };
	char path[96];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

static struct store *open_folder(void)
{
	struct store_config config = { .place = folder, .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	struct store_error err;
	struct store *s = NULL;

	if (store_sqlite_open(&config, NULL, &s, &err))
		fail_msg("%s", err.message);
	return s;
}

static void execute(const char *sql)
{
	char path[96];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/profiles.db", folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

/* Commit @n, an hour each: TRACES traces with an event each, of weight trace + 1, and an event without. */
static void put_commit(struct store *s, uint32_t n)
{
	struct builder *b = builder_new();
	struct profile_line line = { builder_function(b, builder_string_z(b, "main"), 0, 0, 10), 12, 0 };
	int32_t main_ = builder_location(b, 0, 0x1100, &line, 1, NULL, 0), top = builder_stack(b, &main_, 1);
	struct key_value kv = { .key = STR(STORE_TRACE_LABEL), .value = { .kind = VALUE_STRING, .string = STR("x") } };
	uint32_t profile = builder_profile(b, builder_resource(b, &kv, 1), &cpu); /* not a label of events */
	const uint64_t time_ns = T0 + n * 3600 * NSEC_PER_SEC;
	struct profiles *p;

	for (uint32_t i = 0; i <= TRACES; i++) {
		uint8_t trace[16] = { 1, [15] = (uint8_t)(n * TRACES + i) }, span[8] = { 1 };

		builder_event(b, profile, top, NULL, 0, i < TRACES ? builder_link(b, trace, span) : 0, time_ns + i, true,
			      n * TRACES + i + 1);
	}
	assert_int_equal(builder_freeze(b, time_ns, time_ns + NSEC_PER_SEC, &p), 0);
	builder_free(b);
	store_put(s, p);
	profiles_put(p);
}

static int count_problem(void *arg, const char *problem)
{
	(void)problem;
	++*(unsigned *)arg;
	return 0;
}

static unsigned count_problems(struct store *s)
{
	unsigned count = 0;

	assert_int_equal(store_sqlite_verify(s, count_problem, &count), 0);
	return count;
}

static void check_traces(struct store *s)
{
	for (uint32_t i = 0; i < COMMITS * TRACES; i++) {
		char trace[40], wanted[24];

		snprintf(trace, sizeof(trace), "010000000000000000000000000000%02x", i);
		snprintf(wanted, sizeof(wanted), "=%u/1 ", i + 1);
		check_selected(s, STORE_TRACE_LABEL, MATCH_EQUAL, trace, wanted);
	}
	check_selected(s, STORE_SPAN_LABEL, MATCH_EQUAL, "0100000000000000", "=20100/200 ");
	check_selected(s, STORE_TRACE_LABEL, MATCH_EQUAL, "", "=2120/20 ");
	check_selected(s, STORE_TRACE_LABEL, MATCH_NOT_EQUAL, "01000000000000000000000000000000", "=22219/219 ");
	check_selected(s, STORE_TRACE_LABEL, MATCH_EQUAL, "x", "");
}

static void test_blocks(void **state)
{
	struct store *s;

	(void)state;
	assert_non_null(mkdtemp(folder));
	s = open_folder();
	for (uint32_t n = 0; n < COMMITS; n++)
		put_commit(s, n);
	check_traces(s);
	assert_int_equal(s->maintain->task(s, STORE_COMPACT), 0);
	check_traces(s);
	assert_int_equal(count_problems(s), 0);
	s->close(s);

	/* As blocks were before they said their links. */
	execute("DROP INDEX blocks_time; ALTER TABLE blocks DROP COLUMN first_link; ALTER TABLE blocks DROP COLUMN "
		"last_link;"
		"CREATE INDEX blocks_time ON blocks(from_ns, to_ns, level, events, generation); PRAGMA user_version = 4");
	s = open_folder();
	check_traces(s);
	assert_int_equal(count_problems(s), 0);
	s->close(s);

	/* They are what is looked at. */
	execute("UPDATE blocks SET first_link = 1000, last_link = 1000");
	s = open_folder();
	check_selected(s, STORE_TRACE_LABEL, MATCH_EQUAL, "01000000000000000000000000000001", "");
	check_selected(s, STORE_TRACE_LABEL, MATCH_EQUAL, "", "=2120/20 ");
	assert_in_range(count_problems(s), 1, COMMITS);
	s->close(s);
	remove_files();
}

static void ask(struct api *api, const char *path, const struct query_params *params, unsigned status, const char *part)
{
	struct api_answer answer = { 0 };

	(void)api_answer(api, path, params, NULL, &answer);
	if (answer.status != status || !strstr(buf_text(&answer.body), part))
		fail_msg("%s: %u %s, wanted %s", path, answer.status, buf_text(&answer.body), part);
	buf_fini(&answer.body);
}

static void test_api(void **state)
{
	static const struct query_param wait = { "kind", "off_cpu" }, node = { "max_nodes", "10" };
	const struct query_params none = { NULL, 0 };
	struct store *s = open_store();
	struct profiles *p = make_linked();
	struct api_config config = { .store = s };
	struct api *api;

	(void)state;
	store_put(s, p);
	profiles_put(p);
	assert_int_equal(api_new(&config, &api), 0);
	ask(api, "/api/v1/trace/" TRACE, &none, 200,
	    "\"spans\":[{\"span_id\":\"0000000000000002\",\"ns\":66,\"joined\":\"link\",\"kinds\":{\"cpu\":{\"weight\":2,"
	    "\"events\":1},"
	    "\"off_cpu\":{\"weight\":64,\"events\":1}}},{\"span_id\":\"0000000000000001\",\"ns\":5,"
	    "\"joined\":\"link\",\"kinds\":{\"cpu\":{\"weight\":5,\"events\":2}}}],\"left_out\":0}");
	ask(api, "/api/v1/trace/" TRACE, &none, 200, "{\"trace_id\":\"" TRACE "\",\"joined\":\"link\",\"from\":");
	ask(api, "/api/v1/trace/0c000000000000000000000000000001", &none, 200, "\"spans\":[]");
	ask(api, "/api/v1/span/0000000000000001/flamegraph", &none, 200, "\"total\":13,\"events\":3");
	ask(api, "/api/v1/trace/" TRACE "/flamegraph", &(struct query_params){ &wait, 1 }, 200, "\"total\":64,\"events\":1");
	ask(api, "/api/v1/span/0000000000000001/top", &(struct query_params){ &node, 1 }, 200,
	    "\"rows\":[{\"name\":\"main\"");
	assert_null(strstr(api_params("/api/v1/span/0000000000000001/top"), "query")); /* the path says which */
	assert_non_null(api_params("/api/v1/trace/" TRACE));
	assert_null(api_params("/api/v1/trace/" TRACE "/"));
	assert_null(api_params("/api/v1/trace/" TRACE "1"));
	assert_null(api_params("/api/v1/trace/0000000000000001"));
	assert_null(api_params("/api/v1/span/0000000000000001"));
	assert_null(api_params("/api/v1/span/0000000000000001/nothing"));
	assert_null(api_params("/api/v1/span/000000000000000g/flamegraph"));
	api_free(api);
	s->close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_api),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
