/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks by their names: help and refusals tell of the same table, and a sink that cannot be made says why. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "cmd/setup/made_up.h"
#include "cmd/setup/sinks_of.h"
#include "proto/sink.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/http_answers.h"

/* Makes the sink @spec. @names and @error get what is told. */
static int make(const char *spec, struct buf *names, struct buf *error)
{
	char *items[] = { (char *)(uintptr_t)spec, NULL };
	const struct config config = { .print_form = "plain",
				       .collector_compression = "gzip",
				       .sinks = { .items = items, .count = 1 } };
	struct metrics *metrics = metrics_new();
	struct store *store = NULL;
	struct sink *sink = NULL;
	int err = sinks_of(&config, metrics, &sink, &store, names, error);

	assert_true(!sink == !!err);
	assert_null(store);
	sink_free(sink);
	metrics_free(metrics);
	return err;
}

static void test_refusals(void **state)
{
	static const struct {
		const char *spec, *says; /* NULL: it is made */
		int err;
	} cases[] = {
		{ "null", NULL, 0 },
		{ "nul", "--sink: there is no sink 'nul'; did you mean null?", -EINVAL },
		{ "null=x", "--sink: null takes no value", -EINVAL },
		{ "file", "--sink: file needs a value: file=PATH", -EINVAL },
		{ "file=", "--sink: file needs a value: file=PATH", -EINVAL },
		{ "file=/nowhere/x", "cannot write to /nowhere/x: No such file or directory", -ENOENT },
		{ "dir=/dev/null", "cannot write to /dev/null: Not a directory", -ENOTDIR },
		{ "prometheus", "--sink: prometheus is what 'hearth serve' counts for /metrics", -EINVAL },
		{ "otlp=ftp://u:secret@x",
		  "--collector: 'ftp://u:xxxxxx@x' is no collector's address; give one such as http://127.0.0.1:4318 or "
		  "grpc://127.0.0.1:4317",
		  -EINVAL },
		{ "store=/dev/null/x", "cannot keep profiles in /dev/null/x: Not a directory", -ENOTDIR },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf names = BUF_EMPTY, error = BUF_EMPTY;
		int err = make(cases[i].spec, &names, &error);

		if (err != cases[i].err || strcmp(buf_text(&error), cases[i].says ? cases[i].says : "") != 0)
			fail_msg("%s: %d, '%s'", cases[i].spec, err, buf_text(&error));
		assert_string_equal(buf_text(&names), cases[i].says ? "" : cases[i].spec);
	}
}

/* The refusal of an unknown name lists what help lists, without the words in parentheses. */
static void test_list(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY, error = BUF_EMPTY, help = BUF_EMPTY, want = BUF_EMPTY;
	const char *last;

	(void)state;
	sinks_print_help(&help);
	last = strrchr(buf_text(&help), ',');
	assert_non_null(last);
	buf_puts(&want, "--sink: there is no sink 'xyzzyx'; there are ");
	for (const char *p = buf_text(&help); *p; p++) {
		if (*p == ' ' && p[1] == '(')
			p = strchr(p, ')');
		else if (p == last)
			buf_puts(&want, " and");
		else
			buf_putc(&want, *p);
	}
	assert_int_equal(make("xyzzyx", &names, &error), -EINVAL);
	assert_string_equal(buf_text(&error), buf_text(&want));
}

/* A collector gets what the options ask for: form, packing, headers. */
static void test_collector(void **state)
{
	static const struct http_answer answers[] = { { "POST /", 200, "" }, { NULL, 0, NULL } };
	static const struct {
		const char *words[8], *has, *lacks;
	} cases[] = {
		{ { NULL }, "Content-Type: application/x-protobuf\r\n", NULL },
		{ { NULL }, "Content-Encoding: gzip\r\n", NULL },
		{ { "--collector-compression", "gzip" }, "Content-Encoding: gzip\r\n", NULL },
		{ { "--collector-compression", "zstd" }, "Content-Encoding: zstd\r\n", "gzip" },
		{ { "--collector-compression", "none" }, "Content-Type: application/x-protobuf\r\n", "Content-Encoding" },
		{ { "--collector-protocol", "http/json" }, "Content-Type: application/json\r\n", NULL },
		{ { "--collector-protocol", "http/protobuf" }, "Content-Type: application/x-protobuf\r\n", NULL },
		{ { "--collector-header", "X-Scope: a b", "--collector-header", "x-two: 2" }, "X-Scope: a b\r\n", NULL },
		{ { "--collector-header", "X-Scope: a b", "--collector-header", "x-two: 2" }, "x-two: 2\r\n", NULL },
	};
	struct http_answers server;

	(void)state;
	http_answers_begin(&server, answers);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf names = BUF_EMPTY, error = BUF_EMPTY;
		const char *words[12] = { "--collector", server.url };
		struct metrics *metrics = metrics_new();
		struct profiles *p = NULL;
		struct store *store = NULL;
		struct sink *sink = NULL;
		struct config config;

		memcpy(words + 2, cases[i].words, sizeof(cases[i].words));
		config = parse_words(&cmd_serve, words);
		assert_int_equal(made_up_profiles(1000, clock_unix_ns(), NSEC_PER_SEC, &p), 0);
		assert_int_equal(sinks_of(&config, metrics, &sink, &store, &names, &error), 0);
		assert_int_equal(sink_consume(sink, p, NULL), 0);
		assert_int_equal(sink_flush(sink, clock_mono_ns() + 20 * NSEC_PER_SEC), 0);
		sink_free(sink);
		metrics_free(metrics);
		profiles_put(p);
		config_fini(&config);
		assert_int_equal(server.count, i + 1);
		if (!strcasestr(server.head, cases[i].has) || (cases[i].lacks && strcasestr(server.head, cases[i].lacks)))
			fail_msg("%zu: %s", i, server.head);
	}
	http_answers_end(&server);
}

/* The names that are told, without passwords, whatever the sinks are. */
static void test_names(void **state)
{
	static const struct {
		const char *words[8], *names;
		bool are_named, are_a_store, use_stdout;
	} cases[] = {
		{ { NULL }, "", false, false, false },
		{ { "--print" }, "print", true, false, true },
		{ { "--store", "x" }, "store x", true, true, false },
		{ { "--store", "x", "--print" }, "print, store x", true, false, true },
		{ { "--store", "clickhouse+http://u:secret@h:1/d" },
		  "clickhouse clickhouse+http://u:xxxxxx@h:1/d",
		  true,
		  true,
		  false },
		{ { "--collector", "http://u:secret@h:1", "--store", "x" },
		  "store x, otlp http://u:xxxxxx@h:1",
		  true,
		  false,
		  false },
		{ { "--sink", "null", "--sink", "file=x.otlp" }, "null, file x.otlp", true, false, false },
		{ { "--sink", "store=x" }, "store x", true, false, false },
		{ { "--store", "y", "--sink", "store=x" }, "store y, store x", true, false, false },
		{ { "--sink", "file=-" }, "file -", true, false, true },
		{ { "--sink", "print", "--sink", "null" }, "print, null", true, false, true },
		{ { "--sink", "otlp=http://u:secret@h:1" }, "otlp http://u:xxxxxx@h:1", true, false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf names = BUF_EMPTY;
		struct config config = parse_words(&cmd_serve, cases[i].words);

		sinks_name(&config, &names);
		assert_string_equal(buf_text(&names), cases[i].names);
		assert_int_equal(sinks_are_named(&config), cases[i].are_named);
		assert_int_equal(sinks_are_a_store(&config), cases[i].are_a_store);
		assert_int_equal(sinks_use_stdout(&config), cases[i].use_stdout);
		config_fini(&config);
	}
}

static void test_types(void **state)
{
	(void)state;
	assert_true(sinks_is_store("store=x") && sinks_is_store("clickhouse=http://x"));
	assert_false(sinks_is_store("storex") || sinks_is_store("stor") || sinks_is_store("file=store") ||
		     sinks_is_store(""));
	assert_true(sinks_is_sender("otlp=http://x"));
	assert_false(sinks_is_sender("store=x") || sinks_is_sender("print") || sinks_is_sender("file=x"));
	assert_true(sinks_has_type("filex", 4));
	assert_false(sinks_has_type("filex", 5) || sinks_has_type("file", 3));
}

static void note_label(void *arg, const char *name, const char *labels, uint64_t value)
{
	(void)name, (void)value;
	if (labels && strstr(labels, "collector="))
		++*(int *)arg;
}

/* Counters of a collector are told apart where there are several, by whichever options. */
static void test_several_collectors(void **state)
{
	static const struct {
		const char *words[6];
		bool are_several;
	} cases[] = {
		{ { "--collector", "http://127.0.0.1:9", "--sink", "null" }, false },
		{ { "--sink", "otlp=http://127.0.0.1:9" }, false },
		{ { "--collector", "http://127.0.0.1:9", "--collector", "http://127.0.0.1:10" }, true },
		{ { "--collector", "http://127.0.0.1:9", "--sink", "otlp=http://127.0.0.1:10" }, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf names = BUF_EMPTY, error = BUF_EMPTY;
		struct config config = parse_words(&cmd_serve, cases[i].words);
		struct metrics *metrics = metrics_new();
		struct store *store = NULL;
		struct sink *sink = NULL;
		int labelled = 0;

		assert_int_equal(sinks_of(&config, metrics, &sink, &store, &names, &error), 0);
		metrics_each(metrics, note_label, &labelled);
		assert_int_equal(labelled > 0, cases[i].are_several);
		sink_free(sink);
		metrics_free(metrics);
		config_fini(&config);
	}
}

/* One that is quick is handed out as it is; a sink that may hold its producer up, and several, stand behind a fan-out. */
static void test_fanout(void **state)
{
	static const struct {
		const char *words[6], *name, *names;
	} cases[] = {
		{ { "--sink", "null" }, "null", "null" },
		{ { "--sink", "null", "--sink", "count" }, "fanout", "null, count" },
		{ { "--print" }, "fanout", "print" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf names = BUF_EMPTY, error = BUF_EMPTY;
		struct config config = parse_words(&cmd_serve, cases[i].words);
		struct metrics *metrics = metrics_new();
		struct store *store = NULL;
		struct sink *sink = NULL;

		assert_int_equal(sinks_of(&config, metrics, &sink, &store, &names, &error), 0);
		assert_string_equal(sink->ops->name, cases[i].name);
		assert_string_equal(buf_text(&names), cases[i].names);
		sink_free(sink);
		metrics_free(metrics);
		config_fini(&config);
	}
}

/* One of a pipeline alone: with the other settings, and whether it may wait. */
static void test_one(void **state)
{
	static const struct {
		const char *spec;
		bool is_slow;
	} cases[] = { { "null", false }, { "print", true } };
	struct config config = PARSED(&cmd_serve, "--sink", "count");
	struct metrics *metrics = metrics_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf names = BUF_EMPTY, error = BUF_EMPTY;
		bool is_slow = !cases[i].is_slow;
		struct store *store = NULL;
		struct sink *sink = NULL;

		assert_int_equal(sinks_make(&config, cases[i].spec, metrics, &sink, &store, &is_slow, &names, &error), 0);
		assert_string_equal(sink->ops->name, cases[i].spec);
		assert_string_equal(buf_text(&names), cases[i].spec);
		assert_int_equal(is_slow, cases[i].is_slow);
		sink_free(sink);
	}
	metrics_free(metrics);
	config_fini(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_list),  cmocka_unit_test(test_collector),
		cmocka_unit_test(test_names),	 cmocka_unit_test(test_types), cmocka_unit_test(test_several_collectors),
		cmocka_unit_test(test_fanout),	 cmocka_unit_test(test_one),
	};

	cmd_list(all_commands);
	if (options_fill_in(all_option_texts))
		return 1;
	return run_group_of_descriptors(tests, NULL, NULL);
}
