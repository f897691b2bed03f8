/* SPDX-License-Identifier: Apache-2.0 */
/* SIGHUP without an agent: which options are told as changed, one by one, and since when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/options/options.h"
#include "cmd/setup/reload.h"
#include "cmd/setup/session.h"

static const char first[] = "freq: 20\ncomm: [a, b]\npid: [7, 9]\npage-name: one\nreport-interval: 5s\nsymbols: tables\n";

static char path[64];
static struct session session;
static struct config config;
static char *argv[4];

static void write_file(const char *text)
{
	AUTO_FCLOSE FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
}

static int begin(void **state)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	int fd = mkstemp(strcpy(path, "/tmp/hearth-test-reload-XXXXXX"));

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	write_file(first);
	argv[0] = (char *)"run";
	argv[1] = (char *)"--config";
	argv[2] = path;
	if (options_parse(&cmd_run, 3, argv, &config, &error)) {
		print_message("%s\n", buf_text(&error));
		return -1;
	}
	session = (struct session){ .config = &config, .current = &config };
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (session.reloaded)
		config_fini(session.reloaded);
	free(session.reloaded);
	config_fini(&config);
	log_set_level(LOG_INFO);
	return unlink(path);
}

/* Reads the file again with @text in it. @said: all that is told, a line each, without "SIGHUP: ". */
static void check(const char *text, const char *said)
{
	AUTO(buf_fini) struct buf got = BUF_EMPTY;
	struct log_message messages[8];
	uint64_t count = 0;
	size_t n;

	while (log_since(&count, messages, 8))
		;
	write_file(text);
	reload(&session);
	n = log_since(&count, messages, 8);
	for (size_t i = 0; i < n; i++)
		buf_printf(&got, "%s\n", strncmp(messages[i].text, "SIGHUP: ", 8) ? messages[i].text : messages[i].text + 8);
	assert_string_equal(buf_text(&got), said);
}

#define NOTHING	     "the configuration was read again; nothing changed\n"
#define LATER(names) "these changed too, but count from the next start on: " names "\n"
#define NOW(names)   "the configuration was read again; changed: " names "\n"
#define REST(what)   "freq: " what "pid: [7, 9]\npage-name: one\nreport-interval: 5s\nsymbols: tables\n"

/* A change of each kind of value; the same again is none. */
static void test_each_kind(void **state)
{
	(void)state;
	check(first, NOTHING);
	check(REST("20\ncomm: [a, c]\n"), LATER("--comm"));
	check(REST("20\ncomm: [a, c]\n"), NOTHING);
	check(REST("20\ncomm: [a]\n"), LATER("--comm"));
	check(REST("20\n"), LATER("--comm"));
	check(REST("21\n"), LATER("--freq"));
	check("freq: 21\npid: [7, 8]\npage-name: one\nreport-interval: 5s\nsymbols: tables\n", LATER("--pid"));
	check("freq: 21\npid: [7]\npage-name: one\nreport-interval: 5s\nsymbols: tables\n", LATER("--pid"));
	check("freq: 21\npage-name: one\nreport-interval: 5s\nsymbols: tables\n", LATER("--pid"));
	check("freq: 21\npage-name: two\nreport-interval: 5s\nsymbols: tables\n", LATER("--page-name"));
	check("freq: 21\nreport-interval: 5s\nsymbols: tables\n", LATER("--page-name"));
	check("freq: 21\nreport-interval: 5s\nsymbols: off\n", LATER("--symbols"));
	check("freq: 21\nreport-interval: 6s\nsymbols: off\n", NOW("--report-interval"));
	check("freq: 21\nreport-interval: 6s\nsymbols: off\nreport-jitter: 0.1\n", NOW("--report-jitter"));
	check("freq: 21\nreport-interval: 6s\nsymbols: off\nreport-jitter: 0.1\nkernel: true\n", LATER("--kernel"));
	check("freq: 22\nreport-interval: 7s\nsymbols: off\nreport-jitter: 0.1\n",
	      NOW("--report-interval") LATER("--freq, --kernel"));
}

/* A mistake changes nothing, and what is right again is compared with what counted before it. */
static void test_mistakes(void **state)
{
	const struct config *before = session.current;

	(void)state;
	write_file("freq: soon\n");
	reload(&session);
	assert_ptr_equal(session.current, before);
	write_file("probabilistic: 200\n");
	reload(&session);
	assert_ptr_equal(session.current, before);
	assert_null(session.reloaded);
	check(first, NOTHING);
	assert_ptr_equal(session.current, session.reloaded);
	assert_ptr_not_equal(session.current, before);
}

#define PIPES(filter, exporters, list)                                                                                     \
	"receivers: { profiling: { samples_per_second: 20 } }\nprocessors: { batch: , resource: { attributes: [{ key: a, " \
	"value: " filter ", action: insert }] } }\nexporters: { " exporters " }\nservice: { pipelines: { " list " } }\n"
#define PIPE		   "profiles: { receivers: [profiling], processors: [resource], exporters: [file, debug] }"
#define PIPES_LATER(names) "of the pipelines these changed, but count from the next start on: " names "\n"

/* Pipelines and their parts are told by name, with nothing that may be secret. */
static void test_pipelines(void **state)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;

	(void)state;
	config_fini(&config);
	write_file(PIPES("b", "file: { path: x.json }, debug: ", PIPE));
	assert_int_equal(options_parse(&cmd_run, 3, argv, &config, &error), 0);
	check(PIPES("b", "debug: {}, file: { path: x.json }", PIPE), PIPES_LATER("exporter debug"));
	check(PIPES("b", "debug: {}, file: { path: x.json }", PIPE), NOTHING);
	check(PIPES("secret", "debug: {}, file: { path: x.json }", PIPE), PIPES_LATER("processor resource"));
	check(PIPES("c", "debug: {}, file: { path: y.json }", PIPE), PIPES_LATER("processor resource, exporter file"));
	check(PIPES("c", "debug: {}, file: { path: y.json }, file/2: { path: z.json }", PIPE), NOTHING); /* it is not used */
	check(PIPES("c", "debug: {}, file: { path: y.json }, file/2: { path: z.json }",
		    PIPE ", profiles/2: { receivers: [profiling], exporters: [file/2] }"),
	      PIPES_LATER("pipeline profiles/2 (new), exporter file/2 (new)"));
	check(PIPES("c", "debug: {}, file/2: { path: z.json }",
		    "profiles/2: { receivers: [profiling], exporters: [debug, file/2] }"),
	      PIPES_LATER("pipeline profiles/2, pipeline profiles (gone), processor resource (gone), exporter file (gone)"));
}

/* How much is said counts at once. */
static void test_quiet(void **state)
{
	char text[256];

	(void)state;
	snprintf(text, sizeof(text), "%squiet: true\n", first);
	check(text, NOW("--quiet"));
	assert_false(log_is_enabled(LOG_INFO));
	assert_true(log_is_enabled(LOG_WARN));
	snprintf(text, sizeof(text), "%sverbose: true\n", first);
	check(text, "");
	assert_true(log_is_enabled(LOG_DEBUG));
	check(first, NOW("--verbose"));
	assert_false(log_is_enabled(LOG_DEBUG));
	assert_true(log_is_enabled(LOG_INFO));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_each_kind), TEST(test_mistakes), TEST(test_pipelines),
					    TEST(test_quiet) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
