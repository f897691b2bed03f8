/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth run` with a session that only tells: what is done in which order, with one process and with two, and with which
 * status each failure ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "cmd/top.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/cmd/told_session.h"
#include "tests/unit/descriptors.h"

static bool is_terminal;
static char file[64];

int isatty(int fd)
{
	return fd == STDOUT_FILENO && is_terminal;
}

int top_run(const struct config *config, bool keep)
{
	(void)config;
	return told_call(keep ? "top-keeping" : "top") ? STATUS_FAILED : 9;
}

const struct cmd cmd_top = { .name = "top" };

static int run(const char *const *words)
{
	struct config config = parse_words(&cmd_run, words);
	int status = cmd_run.run(&config);

	config_fini(&config);
	return status;
}

#define RUN(...) run((const char *const[]){ __VA_ARGS__, NULL })

static void write_file(const char *text)
{
	AUTO_FCLOSE FILE *f = fopen(file, "we");

	assert_non_null(f);
	fputs(text, f);
}

/* `hearth run` is the live table without sinks, and on a terminal with a store alone. */
static void test_table(void **state)
{
	(void)state;
	told_begin();
	is_terminal = false;
	assert_int_equal(RUN(NULL), 9);
	assert_told("top-keeping close ");
	is_terminal = true;
	assert_int_equal(RUN(NULL), 9);
	assert_told("top-keeping close ");
	assert_int_equal(RUN("--store", ":memory:"), 9);
	assert_told("top-keeping close ");
	told_fails("check", -EINVAL);
	assert_int_equal(RUN("--store", ":memory:", "--print"), STATUS_USAGE);
	assert_told("check close ");
	is_terminal = false;
	assert_int_equal(RUN("--store", ":memory:"), STATUS_USAGE);
	assert_told("check close ");
}

static void test_one_process(void **state)
{
	(void)state;
	is_terminal = false;
	told_begin();
	assert_int_equal(RUN("--sink", "null"), STATUS_DONE);
	assert_told(
		"check fork open signals alone? workloads own-profiles nothing? null:load page [null]start run stop-nothing "
		"drain undelivered=0 truth kinds close ");
	assert_true(told_said("the account"));
	assert_false(told_said("page at"));

	told_begin();
	told.url = "http://h/";
	told.leaves_agent_alone = true;
	assert_int_equal(RUN("--sink", "null"), STATUS_DONE);
	assert_told("check fork open signals alone? confine-files workloads own-profiles nothing? null:load page "
		    "[null]start run "
		    "stop-page drain undelivered=0 truth kinds free-page close ");
	assert_true(told_said("page at http://h/"));

	told_begin();
	told.leaves_agent_alone = true;
	assert_int_equal(RUN("--print"), STATUS_DONE);
	assert_told("check fork open signals alone? confine closed-stdout workloads own-profiles nothing? fanout:load page "
		    "[print]start run stop-nothing drain undelivered=0 truth kinds close ");
}

static void test_two_processes(void **state)
{
	(void)state;
	is_terminal = false;
	told_begin();
	told.has_halves = told.leaves_agent_alone = true;
	told.url = "http://h/";
	assert_int_equal(RUN("--sink", "null"), STATUS_DONE);
	assert_told(
		"check fork open signals-half alone? confine-files workloads own-profiles connect backend+null=tee tee:load "
		"wait [null]start run quiesce drain undelivered=0 truth kinds ~tee ~backend close end ");
	assert_true(told_said("page at http://h/"));
	assert_true(told_said("the account"));
}

#define ONE "check fork open signals alone? confine closed-stdout workloads own-profiles nothing? fanout:load "
#define TWO "check fork open signals-half alone? confine closed-stdout workloads own-profiles connect "

/* Each failure ends it where it is, with its status, and all that was begun ends. */
static void test_failures(void **state)
{
	static const struct {
		const char *failing;
		int failure, status;
		bool has_halves;
		const char *calls;
	} rows[] = {
		{ "check", -EINVAL, STATUS_USAGE, false, "check close " },
		{ "fork", -EAGAIN, STATUS_FAILED, false, "check fork close " },
		{ "open", -ENOMEM, STATUS_FAILED, true, "check fork open close end " },
		{ "signals", -EIO, STATUS_FAILED, false, "check fork open signals close " },
		{ "confine", -EPERM, STATUS_FAILED, false, "check fork open signals alone? confine close " },
		{ "workloads", -ENOMEM, STATUS_FAILED, false,
		  "check fork open signals alone? confine closed-stdout workloads close " },
		{ "workloads", -EINVAL, STATUS_USAGE, false,
		  "check fork open signals alone? confine closed-stdout workloads close " },
		{ "own-profiles", -ENOMEM, STATUS_FAILED, false,
		  "check fork open signals alone? confine closed-stdout workloads own-profiles close " },
		{ "own-profiles", -EINVAL, STATUS_USAGE, true,
		  "check fork open signals-half alone? confine closed-stdout workloads own-profiles close end " },
		{ "connect", -EPIPE, STATUS_FAILED, true, TWO "close end " },
		{ "tee", -ENOMEM, STATUS_FAILED, true, TWO "backend+fanout=tee ~tee ~backend close end " },
		{ "load", -EPERM, STATUS_FAILED, false, ONE "close " },
		{ "load", -EPERM, STATUS_FAILED, true, TWO "backend+fanout=tee tee:load wait ~tee ~backend close end " },
		{ "wait", STATUS_USAGE, STATUS_USAGE, true,
		  TWO "backend+fanout=tee tee:load wait ~tee ~backend close end " },
		{ "page", -EADDRINUSE, STATUS_FAILED, false, ONE "page close " },
		{ "start", -EBUSY, STATUS_FAILED, false, ONE "page [print]start close " },
		{ "run", -EIO, STATUS_FAILED, false,
		  ONE "page [print]start run stop-nothing drain undelivered=0 truth kinds close " },
		{ "drain", -ETIMEDOUT, STATUS_FAILED, false,
		  ONE "page [print]start run stop-nothing drain undelivered=-110 truth kinds close " },
	};

	(void)state;
	is_terminal = false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int status;

		told_begin();
		told.has_halves = rows[i].has_halves;
		told.leaves_agent_alone = true;
		told_fails(rows[i].failing, rows[i].failure);
		status = RUN("--print");
		if (status != rows[i].status)
			fail_msg("%s: status %d", rows[i].failing, status);
		assert_told(rows[i].calls);
	}
}

/* Sinks that cannot be: wrong usage, or a failure. */
static void test_sinks(void **state)
{
	(void)state;
	is_terminal = false;
	told_begin();
	assert_int_equal(RUN("--sink", "nul"), STATUS_USAGE);
	assert_told("check fork open signals alone? close ");
	assert_true(told_said("there is no sink 'nul'"));
	told_begin();
	assert_int_equal(RUN("--sink", "file=/nowhere/x"), STATUS_FAILED);
	assert_told("check fork open signals alone? close ");
	assert_true(told_said("cannot write to /nowhere/x"));
}

static const char made_up[] =
	"receivers: { customprofilesreceiver: { report_interval: 10s } }\nexporters: { nop: }\n"
	"service: { pipelines: { profiles: { receivers: [customprofilesreceiver], exporters: [nop] } } }\n";

/* A file whose pipelines sample nothing needs no agent. */
static void test_made_up(void **state)
{
	static const struct {
		const char *failing;
		int failure, status;
		const char *calls;
	} rows[] = {
		{ NULL, 0, STATUS_DONE,
		  "check owner open signals workloads own-profiles page run stop-nothing drain undelivered=0 close " },
		{ "owner", -EPERM, STATUS_FAILED, "check owner close " },
		{ "signals", -EIO, STATUS_FAILED, "check owner open signals close " },
		{ "workloads", -EINVAL, STATUS_USAGE, "check owner open signals workloads close " },
		{ "page", -EADDRINUSE, STATUS_FAILED, "check owner open signals workloads own-profiles page close " },
		{ "run", -EIO, STATUS_FAILED,
		  "check owner open signals workloads own-profiles page run stop-nothing drain undelivered=0 close " },
		{ "drain", -EIO, STATUS_FAILED,
		  "check owner open signals workloads own-profiles page run stop-nothing drain undelivered=-5 close " },
	};

	(void)state;
	is_terminal = true;
	write_file(made_up);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		told_begin();
		told_fails(rows[i].failing, rows[i].failure);
		assert_int_equal(RUN("--config", file), rows[i].status);
		assert_told(rows[i].calls);
	}
	assert_true(told_said("nothing is sampled here: profiles that are made up go to n"));
	write_file("receivers: { hostmetrics: { scrapers: { cpu: } } }\nexporters: { nop: }\n"
		   "service: { pipelines: { metrics: { receivers: [hostmetrics], exporters: [nop] } } }\n");
	told_begin();
	assert_int_equal(RUN("--config", file), STATUS_DONE);
	assert_true(told_said("nothing is sampled here: metrics of the host go to n"));
	write_file("receivers: { hostmetrics: { scrapers: { cpu: } }, customprofilesreceiver: { report_interval: 10s } "
		   "}\nexporters: { nop: }\n"
		   "service: { pipelines: { metrics: { receivers: [hostmetrics], exporters: [nop] },\n"
		   "  profiles: { receivers: [customprofilesreceiver], exporters: [nop] } } }\n");
	told_begin();
	assert_int_equal(RUN("--config", file), STATUS_DONE);
	assert_true(told_said("nothing is sampled here: metrics of the host, and profiles that are made up, go to n"));
}

/* One that samples has an agent, and with --one-process hears no network. */
static void test_sampling_file(void **state)
{
	(void)state;
	is_terminal = false;
	write_file("receivers: { profiling: }\nexporters: { nop: }\n"
		   "service: { pipelines: { profiles: { receivers: [profiling], exporters: [nop] } } }\n");
	told_begin();
	told.leaves_agent_alone = true;
	assert_int_equal(RUN("--config", file, "--one-process"), STATUS_DONE);
	assert_non_null(strstr(buf_text(&told.calls), "check fork open signals alone? confine workloads "));
	write_file("receivers: { profiling: }\nexporters: { file: { path: /tmp/x.json } }\n"
		   "service: { pipelines: { profiles: { receivers: [profiling], exporters: [file] } } }\n");
	told_begin();
	told.leaves_agent_alone = true;
	assert_int_equal(RUN("--config", file), STATUS_DONE);
	assert_non_null(strstr(buf_text(&told.calls), "alone? confine-files "));
	write_file("receivers: { profiling: , otlp: { protocols: { http: } } }\nexporters: { nop: }\n"
		   "service: { pipelines: { profiles: { receivers: [profiling, otlp], exporters: [nop] } } }\n");
	told_begin();
	assert_int_equal(RUN("--config", file, "--one-process"), STATUS_USAGE);
	assert_told("close ");
	assert_true(told_said("not with --one-process"));
	told.has_halves = true;
	assert_int_equal(RUN("--config", file), STATUS_DONE);
}

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(file, "/tmp/test_run.XXXXXX");
	fd = mkstemp(file);
	return fd < 0 || close(fd);
}

static int teardown(void **state)
{
	(void)state;
	buf_fini(&told.calls);
	return unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),	      cmocka_unit_test(test_one_process),
		cmocka_unit_test(test_two_processes), cmocka_unit_test(test_failures),
		cmocka_unit_test(test_sinks),	      cmocka_unit_test(test_made_up),
		cmocka_unit_test(test_sampling_file),
	};

	setenv("HEARTH_CONFIG", "/dev/null", 1);
	return run_group_of_descriptors(tests, setup, teardown);
}
