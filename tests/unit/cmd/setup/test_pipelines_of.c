/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines as sinks: who feeds which of them, an exporter that several share, stages in their order, and what cannot be
 * made. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/metrics.h"
#include "cmd/options/config_file.h"
#include "cmd/setup/made_up.h"
#include "cmd/setup/pipelines_of.h"
#include "cmd/setup/sinks_of.h"
#include "proto/sink.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/http_answers.h"

static char folder[64];

struct fixture {
	struct config_file *file;
	struct config config;
	struct metrics *metrics;
	struct store *store;
	struct sink *sink;
	struct buf names, error;
};

static int setup(void **state)
{
	static struct fixture f;

	strcpy(folder, "/tmp/test_pipelines_of.XXXXXX");
	f = (struct fixture){ .metrics = metrics_new() };
	*state = &f;
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[96];

	sink_free(f->sink);
	metrics_free(f->metrics);
	config_fini(&f->config);
	config_file_free(f->file);
	buf_fini(&f->names);
	buf_fini(&f->error);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* Makes the pipelines of @text, in which %s stands for the folder. */
static int make(struct fixture *f, const char *text)
{
	AUTO(buf_fini) struct buf whole = BUF_EMPTY, error = BUF_EMPTY;

	for (const char *at; (at = strstr(text, "%s")); text = at + 2)
		buf_printf(&whole, "%.*s%s", (int)(at - text), text, folder);
	buf_puts(&whole, text);
	if (config_file_parse("c", buf_text(&whole), whole.len, &f->file, &error))
		fail_msg("%s", buf_text(&error));
	f->config = PARSED(&cmd_run, NULL);
	f->config.pipelines = config_file_pipelines(f->file);
	assert_non_null(f->config.pipelines);
	return sinks_of(&f->config, f->metrics, &f->sink, &f->store, &f->names, &f->error);
}

/* All that the exporter @name has written. */
static const char *written(const char *name)
{
	static struct buf text;
	char path[128];

	buf_fini(&text);
	snprintf(path, sizeof(path), "%s/%s.jsonl", folder, name);
	if (io_read_file(path, SIZE_MAX, &text))
		return "";
	return buf_text(&text);
}

static size_t count_of(const char *text, const char *word)
{
	size_t count = 0;

	for (; (text = strstr(text, word)); text++)
		count++;
	return count;
}

static void feed(struct sink *sink)
{
	struct profiles *p = NULL;

	assert_int_equal(made_up_profiles(100, clock_unix_ns(), NSEC_PER_SEC, &p), 0);
	assert_int_equal(sink_consume(sink, p, NULL), 0);
	profiles_put(p);
}

static void flush(struct fixture *f)
{
	assert_int_equal(sink_flush(f->sink, clock_mono_ns() + 20 * NSEC_PER_SEC), 0);
}

#define EXPORTERS                                                                      \
	"exporters: { file/a: { path: %s/a.jsonl }, file/b: { path: %s/b.jsonl }, "    \
	"file/c: { path: %s/c.jsonl } }\n"                                             \
	"processors:\n"                                                                \
	"  resource/one: { attributes: [{ key: env, action: insert, value: one }] }\n" \
	"  resource/two: { attributes: [{ key: env, action: insert, value: two }] }\n"

/* Samples of the agent go to each of its pipelines; profiles that come in go to the others. */
static void test_feeds(void **state)
{
	static const struct http_answer answers[] = { { "POST /", 200, "" }, { NULL, 0, NULL } };
	struct fixture *f = *state;
	struct http_answers servers[3];
	struct sink *received;
	char text[1024];

	for (size_t i = 0; i < ARRAY_LEN(servers); i++)
		http_answers_begin(&servers[i], answers);
	snprintf(text, sizeof(text),
		 "receivers: { profiling: , otlp: { protocols: { http: { endpoint: 127.0.0.1:0 } } } }\n"
		 "exporters: { otlphttp/a: { endpoint: '%s' }, otlphttp/b: { endpoint: '%s' }, otlphttp/c: { endpoint: '%s' "
		 "} }\n"
		 "service:\n  pipelines:\n"
		 "    profiles/1: { receivers: [profiling], exporters: [otlphttp/a] }\n"
		 "    profiles/2: { receivers: [profiling, otlp], exporters: [otlphttp/b] }\n"
		 "    profiles/3: { receivers: [otlp], exporters: [otlphttp/c] }\n",
		 servers[0].url, servers[1].url, servers[2].url);
	assert_int_equal(make(f, text), 0);
	assert_int_equal(count_of(buf_text(&f->names), "otlp"), 3);
	feed(f->sink);
	flush(f);
	assert_int_equal(servers[0].count, 1);
	assert_int_equal(servers[1].count, 1);
	assert_int_equal(servers[2].count, 0);
	received = pipelines_received(f->sink);
	assert_non_null(received);
	feed(received);
	sink_free(received);
	flush(f);
	assert_int_equal(servers[0].count, 1);
	assert_int_equal(servers[1].count, 2);
	assert_int_equal(servers[2].count, 1);
	for (size_t i = 0; i < ARRAY_LEN(servers); i++)
		http_answers_end(&servers[i]);
}

/* Without an agent all that is fed has come in, and there is no second way in. */
static void test_receiver_alone(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(make(f, "receivers: { otlp: { protocols: { http: { endpoint: 127.0.0.1:0 } } } }\n" EXPORTERS
				 "service: { pipelines: { profiles: { receivers: [otlp], exporters: [file/c] } } }\n"),
			 0);
	assert_null(pipelines_received(f->sink));
	assert_null(pipelines_received(NULL));
	feed(f->sink);
	flush(f);
	assert_int_equal(count_of(written("c"), "\"resourceProfiles\""), 1);
}

/* Two pipelines share an exporter, which is made and named once; each has stages of its own, the first of which counts
 * first. */
static void test_shared(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		make(f, "receivers: { profiling: }\n" EXPORTERS "service:\n  pipelines:\n"
			"    profiles/1: { receivers: [profiling], processors: [resource/one, resource/two], "
			"exporters: [file/a, file/b] }\n"
			"    profiles/2: { receivers: [profiling], processors: [resource/two], exporters: [file/a] }\n"),
		0);
	assert_int_equal(count_of(buf_text(&f->names), "file"), 2);
	feed(f->sink);
	flush(f);
	assert_int_equal(count_of(written("a"), "\"resourceProfiles\""), 2);
	assert_int_equal(count_of(written("a"), "\"stringValue\":\"one\""), 3); /* of three processes */
	assert_int_equal(count_of(written("a"), "\"stringValue\":\"two\""), 3);
	assert_int_equal(count_of(written("b"), "\"stringValue\":\"one\""), 3);
	assert_int_equal(count_of(written("b"), "\"stringValue\":\"two\""), 0);
}

/* A receiver with a thread feeds each pipeline that names it, once; the agent's have nothing of it. */
static void test_made_up(void **state)
{
	struct fixture *f = *state;
	uint64_t end_ns = clock_mono_ns() + 20 * NSEC_PER_SEC;
	size_t a, b;

	assert_int_equal(make(f, "receivers: { synthetic: { interval: 20ms, samples: 10 }, profiling: }\n" EXPORTERS
				 "service:\n  pipelines:\n"
				 "    profiles/1: { receivers: [synthetic], exporters: [file/a] }\n"
				 "    profiles/2: { receivers: [synthetic], exporters: [file/b] }\n"
				 "    profiles/3: { receivers: [profiling], exporters: [file/c] }\n"),
			 0);
	while (count_of(written("b"), "\"resourceProfiles\"") < 2 && clock_mono_ns() < end_ns)
		usleep(5000);
	flush(f); /* ends the thread */
	a = count_of(written("a"), "\"resourceProfiles\"");
	b = count_of(written("b"), "\"resourceProfiles\"");
	assert_true(a > 0 && b >= 2); /* each has a queue of its own, which may be full */
	assert_string_equal(written("c"), "");
	usleep(50000);
	assert_int_equal(count_of(written("a"), "\"resourceProfiles\""), a);
	assert_int_equal(count_of(written("b"), "\"resourceProfiles\""), b);
}

/* An exporter that cannot be made: why, and nothing is left open. */
static void test_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		make(f, "receivers: { profiling: }\nexporters: { file/a: { path: %s/a.jsonl }, "
			"file/b: { path: %s/nowhere/b.jsonl } }\n"
			"service: { pipelines: { profiles: { receivers: [profiling], exporters: [file/a, file/b] } } }\n"),
		-ENOENT);
	assert_null(f->sink);
	assert_non_null(strstr(buf_text(&f->error), "nowhere/b.jsonl: No such file"));
}

static bool is_print(const char *spec)
{
	return !strcmp(spec, "print");
}

/* Exporters by their names in the file, and whether one of them is asked for, before any is made. */
static void test_named(void **state)
{
	struct fixture *f = *state;
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	struct log_message said[4];
	bool is_said = false;

	assert_int_equal(
		make(f, "receivers: { profiling: }\n" EXPORTERS
			"service: { pipelines: { profiles: { receivers: [profiling], exporters: [file/a, file/b] } } }\n"),
		0);
	pipelines_name(f->config.pipelines, &names);
	assert_string_equal(buf_text(&names), "file/a, file/b");
	assert_false(pipelines_use(f->config.pipelines, is_print));
	assert_false(sinks_use_stdout(&f->config));
	assert_true(sinks_are_named(&f->config));
	f->config.print = true;
	pipelines_say(&f->config);
	for (size_t i = log_recent(said, ARRAY_LEN(said)); i > 0; i--)
		is_said |= strstr(said[i - 1].text,
				  "--print, --store, --collector, --sink and OTEL_EXPORTER_OTLP_... do not") != NULL;
	assert_true(is_said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_feeds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_receiver_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_made_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_named, setup, teardown),
	};

	cmd_list(all_commands);
	if (options_fill_in(all_option_texts))
		return 1;
	return run_group_of_descriptors(tests, NULL, NULL);
}
