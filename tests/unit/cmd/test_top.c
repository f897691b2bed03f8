/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hearth top` and the table of `hearth run`, with a session, a terminal and a table that only tell: the order of things,
 * the line above the table, keys and signals, and where each failure ends it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cmd/terminal/terminal.h"
#include "cmd/top.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/cmd/told_session.h"
#include "tests/unit/descriptors.h"

static bool out_is_terminal, messages_are_on_terminal, has_keys;
static struct agent_stats stats;
static struct summary_options options; /* of the table */
static struct told_sink summary;
static int keyboard; /* the writing end */

/* --- the terminal and the table --- */

int isatty(int fd)
{
	return fd == STDOUT_FILENO ? out_is_terminal : fd == STDERR_FILENO ? messages_are_on_terminal : 0;
}

int kill(pid_t pid, int signo)
{
	assert_int_equal(pid, getpid());
	return told_call(signo == SIGSTOP ? "stop-me" : "kill");
}

bool terminal_has_keys(void)
{
	return has_keys;
}

int terminal_enter(void)
{
	return told_call("enter");
}

void terminal_restore(bool leave_screen)
{
	told_call(leave_screen ? "restore-screen" : "restore");
}

int sink_summary_new(const struct summary_options *given, struct sink **ret)
{
	int err = told_call("summary");

	options = *given;
	*ret = err ? NULL : told_sink_new(&summary, "table");
	return err;
}

int sink_summary_keys(struct sink *sink, const char *bytes, size_t len, bool *quit_ret)
{
	assert_ptr_equal(sink, &summary);
	*quit_ret = memchr(bytes, 'q', len);
	return told_call_with("keys", "%.*s=", (int)len, bytes);
}

int sink_summary_redraw(struct sink *sink)
{
	assert_ptr_equal(sink, &summary);
	return told_call("redraw");
}

int sink_summary_leave(struct sink *sink)
{
	assert_ptr_equal(sink, &summary);
	return told_call("leave");
}

void agent_stats_read(struct agent *a, struct agent_stats *ret)
{
	assert_ptr_equal(a, told_agent);
	*ret = stats;
}

/* --- --- */

static void begin(void)
{
	told_begin();
	out_is_terminal = messages_are_on_terminal = has_keys = false;
	stats = (struct agent_stats){ 0 };
	options = (struct summary_options){ 0 };
}

/* With a keyboard that nobody has touched. */
static void begin_on_terminal(void)
{
	int keys[2];

	begin();
	close(keyboard);
	assert_int_equal(pipe(keys), 0);
	assert_return_code(dup2(keys[0], STDIN_FILENO), errno);
	close(keys[0]);
	keyboard = keys[1];
	out_is_terminal = messages_are_on_terminal = has_keys = true;
}

static int top(const char *const *words)
{
	struct config config = parse_words(&cmd_top, words);
	int status = cmd_top.run(&config);

	config_fini(&config);
	return status;
}

#define TOP(...) top((const char *const[]){ __VA_ARGS__, NULL })

/* The table of `hearth run`. */
static int kept(bool keep, const char *const *words)
{
	struct config config = parse_words(&cmd_run, words);
	int status = top_run(&config, keep);

	config_fini(&config);
	return status;
}

#define KEPT(...) kept(true, (const char *const[]){ __VA_ARGS__, NULL })

static void test_plain(void **state)
{
	(void)state;
	begin();
	assert_int_equal(TOP(NULL), STATUS_DONE);
	assert_told("check lenient-fork open signals alone? summary workloads own-profiles closed-stdout table:load page "
		    "[]start "
		    "redraw run restore stop-nothing drain undelivered=0 truth kinds restore ~table close ");
	assert_true(told_said("the account"));
	assert_false(told_said("page at"));
	assert_ptr_equal(options.out, stdout);
	assert_false(options.live || options.keys || options.colour);
	assert_true(options.lines);

	begin();
	told.url = "http://h/";
	told.leaves_agent_alone = true;
	assert_int_equal(TOP(NULL), STATUS_DONE);
	assert_told("check lenient-fork open signals alone? confine summary workloads own-profiles closed-stdout table:load "
		    "page "
		    "[]start redraw run restore stop-page drain undelivered=0 truth kinds restore free-page ~table close ");
	assert_true(told_said("page at http://h/"));
}

static void test_on_terminal(void **state)
{
	(void)state;
	begin_on_terminal();
	assert_int_equal(TOP(NULL), STATUS_DONE);
	assert_told(
		"check lenient-fork open signals alone? summary workloads own-profiles closed-stdout enter table:load page "
		"[]start redraw run restore stop-nothing drain undelivered=0 truth kinds restore ~table close ");
	assert_true(options.live && options.keys && options.colour);
	begin_on_terminal();
	has_keys = false;
	setenv("NO_COLOR", "", 1);
	assert_int_equal(TOP(NULL), STATUS_DONE);
	assert_null(strstr(buf_text(&told.calls), "enter"));
	assert_true(options.live && options.colour && !options.keys);
	setenv("NO_COLOR", "1", 1);
	assert_int_equal(TOP(NULL), STATUS_DONE);
	assert_true(options.live && !options.colour);
	unsetenv("NO_COLOR");
	begin_on_terminal();
	out_is_terminal = false; /* keys would have nothing to change */
	assert_int_equal(TOP(NULL), STATUS_DONE);
	assert_false(options.live || options.keys || options.colour);
}

static void test_two_processes(void **state)
{
	(void)state;
	begin_on_terminal();
	told.has_halves = told.leaves_agent_alone = true;
	told.url = "http://h/";
	assert_int_equal(KEPT(NULL), STATUS_DONE);
	assert_told("check keeping-lenient-fork open signals-half alone-keeping? confine summary connect table+backend=tee "
		    "closed-stdout enter tee:load wait []start hold redraw run restore release quiesce drain undelivered=0 "
		    "truth "
		    "kinds restore ~tee ~table ~backend close end ");
	assert_true(told_said("page at http://h/"));
}

/* In one process the store is here; the default one may be missing, one that was asked for may not. */
static void test_store(void **state)
{
	(void)state;
	begin();
	assert_int_equal(KEPT("--store", ":memory:"), STATUS_DONE);
	assert_non_null(strstr(buf_text(&told.calls), " summary table+"));
	assert_non_null(strstr(buf_text(&told.calls), "=tee workloads own-profiles closed-stdout tee:load page "));
	begin();
	assert_int_equal(KEPT("--store", "/dev/null/x"), STATUS_FAILED);
	assert_told("check keeping-lenient-fork open signals alone-keeping? summary restore ~table close ");
	begin();
	setenv("STATE_DIRECTORY", "/dev/null/x", 1);
	assert_int_equal(KEPT(NULL), STATUS_DONE);
	unsetenv("STATE_DIRECTORY");
	assert_non_null(strstr(buf_text(&told.calls), " summary workloads own-profiles closed-stdout table:load page "));
	assert_true(told_said("profiles are not kept, and there is no page: "));
}

/* --- the settings --- */

static void look_at_settings(struct session *s)
{
	assert_int_equal(s->config->report_interval_ns, 3 * NSEC_PER_SEC);
	assert_true(s->config->report_jitter >= 0 && s->config->report_jitter <= 0);
	assert_int_equal(s->config->freq_hz, 77);
	assert_false(s->store);
	assert_ptr_equal(options.metrics, s->metrics);
}

static void test_settings(void **state)
{
	(void)state;
	begin();
	told.while_it_runs = look_at_settings;
	assert_int_equal(TOP("--refresh", "3s", "-F", "77"), STATUS_DONE);
	assert_null(options.kind);
	begin();
	assert_int_equal(TOP("--off-cpu", "--kind", "wall"), STATUS_DONE);
	assert_string_equal(options.kind, "wall");
}

static const char *wanted_kinds;

static void look_at_kinds(struct session *s)
{
	AUTO(buf_fini) struct buf kinds = BUF_EMPTY;

	(void)s;
	for (const char *const *kind = options.kinds; *kind; kind++)
		buf_printf(&kinds, "%s ", *kind);
	assert_string_equal(buf_text(&kinds), wanted_kinds);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *words[4];
		const char *kinds;
	} rows[] = {
		{ { NULL }, "samples " },
		{ { "--off-cpu" }, "samples off_cpu runnable wall " },
		{ { "--memory" }, "samples memory " },
		{ { "--heap" }, "samples alloc_space " },
		{ { "--off-cpu", "--memory", "--heap" }, "samples off_cpu runnable wall memory alloc_space " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		begin();
		wanted_kinds = rows[i].kinds;
		told.while_it_runs = look_at_kinds;
		assert_int_equal(top(rows[i].words), STATUS_DONE);
	}
}

/* --- the line above the table, and links of its rows --- */

static const char *status_line(void)
{
	static char text[256];
	AUTO(buf_fini) struct buf line = BUF_EMPTY;

	options.status(options.status_arg, &line);
	snprintf(text, sizeof(text), "%s", buf_text(&line));
	return text;
}

static void look_at_status(struct session *s)
{
	double rate;

	stats = (struct agent_stats){ .taken = 1000, .lost = 2, .cpus = 3, .processes = 4 };
	s->start_ns = clock_mono_ns() - 10 * NSEC_PER_SEC;
	assert_string_equal(status_line(), "hearth  http://h/  100 samples/s  2 lost  1000 taken  3 CPUs  4 processes");
	stats.taken = 2000; /* too soon for another rate */
	assert_string_equal(status_line(), "hearth  http://h/  100 samples/s  2 lost  2000 taken  3 CPUs  4 processes");
	usleep(110000);
	assert_int_equal(sscanf(status_line(), "hearth  http://h/  %lf samples/s", &rate), 1);
	assert_true(rate > 1000 && rate < 9200); /* 1000 of them since the first one */
	told.url = NULL;
	assert_memory_equal(status_line(), "hearth  ", 8);
	assert_null(strstr(status_line(), "http"));
	s->agent = NULL;
	assert_string_equal(status_line(), "");
	s->agent = told_agent;
}

static void look_at_early_status(struct session *s)
{
	stats.taken = 500;
	s->start_ns = clock_mono_ns() + NSEC_PER_SEC; /* --delay: it has not begun */
	assert_string_equal(status_line(), "hearth  0 samples/s  0 lost  500 taken  0 CPUs  0 processes");
}

static const char *link_of(const char *name, const char *module)
{
	static char text[256];
	AUTO(buf_fini) struct buf url = BUF_EMPTY;

	options.link(options.link_arg, name, module, &url);
	snprintf(text, sizeof(text), "%s", buf_text(&url));
	return text;
}

static void look_at_links(struct session *s)
{
	(void)s;
	assert_string_equal(link_of("a b", "lib&c.so"), "http://h/#view=sandwich&fn=a%20b&mod=lib%26c.so");
	assert_string_equal(link_of("main", ""), "http://h/#view=sandwich&fn=main");
	told.url = NULL;
	assert_string_equal(link_of("main", "x"), "");
}

static void test_status_and_links(void **state)
{
	static void (*const looks[])(struct session * s) = { look_at_status, look_at_links };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		begin();
		told.url = "http://h/";
		told.has_halves = i < 2;
		told.while_it_runs = looks[i % 2];
		assert_int_equal(TOP(NULL), STATUS_DONE);
	}
	begin();
	told.while_it_runs = look_at_early_status;
	assert_int_equal(TOP(NULL), STATUS_DONE);
}

/* --- keys, signals and time --- */

static void run_loop(struct session *s)
{
	alarm(20);
	assert_int_equal(loop_run(s->loop), 0);
	alarm(0);
}

static void press(struct session *s)
{
	buf_reset(&told.calls);
	assert_int_equal(write(keyboard, "sf", 2), 2);
	assert_int_equal(loop_step(s->loop, 1000), 0);
	assert_told("sf=keys ");
	assert_int_equal(write(keyboard, "q", 1), 1);
	run_loop(s);
	assert_told("q=keys ");
}

static void press_in_vain(struct session *s)
{
	buf_reset(&told.calls);
	told_fails("keys", -EIO);
	assert_int_equal(write(keyboard, "s", 1), 1);
	run_loop(s); /* which ends, as nothing can be drawn any more */
	assert_told("s=keys ");
}

static void hang_up(struct session *s)
{
	buf_reset(&told.calls);
	close(keyboard);
	keyboard = dup(STDIN_FILENO);
	run_loop(s);
	assert_told("");
}

static void test_keys(void **state)
{
	static void (*const looks[])(struct session * s) = { press, press_in_vain, hang_up };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(looks); i++) {
		begin_on_terminal();
		told.while_it_runs = looks[i];
		assert_int_equal(TOP(NULL), STATUS_DONE);
	}
}

static void signals(struct session *s)
{
	buf_reset(&told.calls);
	raise(SIGWINCH);
	assert_int_equal(loop_step(s->loop, 1000), 0);
	assert_told("hold redraw ");
	raise(SIGTSTP);
	assert_int_equal(loop_step(s->loop, 1000), 0);
	assert_told("leave restore release stop-me enter hold redraw ");
	raise(SIGCONT);
	assert_int_equal(loop_step(s->loop, 1000), 0);
	assert_told("enter hold redraw ");
	messages_are_on_terminal = false;
	raise(SIGWINCH);
	assert_int_equal(loop_step(s->loop, 1000), 0);
	assert_told("release redraw ");
	told_fails("redraw", -EPIPE); /* who looked has gone */
	raise(SIGWINCH);
	run_loop(s);
	assert_told("release redraw ");
}

static void signals_without_keys(struct session *s)
{
	buf_reset(&told.calls);
	raise(SIGTSTP);
	assert_int_equal(loop_step(s->loop, 1000), 0);
	assert_told("leave restore release stop-me hold redraw ");
}

static void test_signals(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		begin_on_terminal();
		has_keys = !i;
		told.has_halves = true;
		told.while_it_runs = i ? signals_without_keys : signals;
		assert_int_equal(TOP(NULL), STATUS_DONE);
	}
}

/* Messages would stand in the middle of the table: they wait until it has gone. */
static FILE *messages;

static long written(void)
{
	fflush(stderr);
	return (long)lseek(fileno(messages), 0, SEEK_END);
}

static void say_while_drawn(struct session *s)
{
	long before = written();

	(void)s;
	log_warn("in the middle");
	if (messages_are_on_terminal)
		assert_int_equal(written(), before);
	else
		assert_true(written() > before);
}

static void test_messages(void **state)
{
	int err = dup(STDERR_FILENO);

	(void)state;
	messages = tmpfile();
	fflush(stderr);
	dup2(fileno(messages), STDERR_FILENO);
	for (int i = 0; i < 2; i++) {
		char text[4096] = "";

		begin_on_terminal();
		has_keys = false;
		messages_are_on_terminal = !i;
		told.while_it_runs = say_while_drawn;
		assert_int_equal(TOP(NULL), STATUS_DONE);
		fflush(stderr);
		(void)!pread(fileno(messages), text, sizeof(text) - 1, 0);
		assert_non_null(strstr(text, "in the middle"));
		assert_int_equal(ftruncate(fileno(messages), 0), 0);
	}
	dup2(err, STDERR_FILENO);
	close(err);
	fclose(messages);
}

static void test_duration(void **state)
{
	uint64_t before = clock_mono_ns();

	(void)state;
	begin();
	told.while_it_runs = run_loop;
	assert_int_equal(TOP("-d", "40ms"), STATUS_DONE);
	assert_in_range(clock_mono_ns() - before, 40 * NSEC_PER_MSEC, 10 * NSEC_PER_SEC);
	before = clock_mono_ns();
	assert_int_equal(TOP("-d", "1ms", "--delay", "60ms"), STATUS_DONE);
	assert_in_range(clock_mono_ns() - before, 61 * NSEC_PER_MSEC, 10 * NSEC_PER_SEC);
}

/* A table that cannot be drawn at first ends it. */
static void test_first_drawing(void **state)
{
	(void)state;
	begin();
	told_fails("redraw", -EPIPE);
	told.while_it_runs = run_loop;
	assert_int_equal(TOP(NULL), STATUS_DONE);
}

#define ONE	"check lenient-fork open signals alone? confine summary "
#define TWO	"check lenient-fork open signals-half alone? confine summary connect "
#define TAKEN	"workloads own-profiles closed-stdout enter "
#define TWO_END "table+backend=tee closed-stdout enter tee:load wait restore ~tee ~table ~backend close end "

static void test_failures(void **state)
{
	static const struct {
		const char *failing;
		int failure, status;
		bool has_halves;
		const char *calls;
	} rows[] = {
		{ "check", -EINVAL, STATUS_USAGE, false, "check restore close " },
		{ "fork", -EAGAIN, STATUS_FAILED, false, "check lenient-fork restore close " },
		{ "open", -ENOMEM, STATUS_FAILED, true, "check lenient-fork open restore close end " },
		{ "signals", -EIO, STATUS_FAILED, false, "check lenient-fork open signals restore close " },
		{ "confine", -EPERM, STATUS_FAILED, false, "check lenient-fork open signals alone? confine restore close " },
		{ "summary", -ENOMEM, STATUS_FAILED, false, ONE "restore close " },
		{ "workloads", -ENOMEM, STATUS_FAILED, false, ONE "workloads restore ~table close " },
		{ "workloads", -EINVAL, STATUS_USAGE, false, ONE "workloads restore ~table close " },
		{ "own-profiles", -EINVAL, STATUS_USAGE, false, ONE "workloads own-profiles restore ~table close " },
		{ "connect", -EPIPE, STATUS_FAILED, true, TWO "restore ~table close end " },
		{ "tee", -ENOMEM, STATUS_FAILED, true, TWO "table+backend=tee restore ~tee ~table ~backend close end " },
		{ "enter", -EIO, STATUS_FAILED, false, ONE TAKEN "restore ~table close " },
		{ "load", -EPERM, STATUS_FAILED, false, ONE TAKEN "table:load restore ~table close " },
		{ "wait", STATUS_USAGE, STATUS_USAGE, true, TWO TWO_END },
		{ "load", -EPERM, STATUS_FAILED, true, TWO TWO_END },
		{ "start", -EBUSY, STATUS_FAILED, false, ONE TAKEN "table:load page []start restore ~table close " },
		{ "page", -EADDRINUSE, STATUS_DONE, false, /* the table goes on */
		  ONE TAKEN "table:load page []start redraw run restore stop-nothing drain undelivered=0 truth "
			    "kinds restore ~table close " },
		{ "run", -EIO, STATUS_FAILED, false, NULL },
		{ "drain", -ETIMEDOUT, STATUS_FAILED, false,
		  ONE TAKEN "table:load page []start redraw run restore stop-nothing drain undelivered=-110 truth "
			    "kinds restore ~table close " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int status;

		begin_on_terminal();
		told.has_halves = rows[i].has_halves;
		told.leaves_agent_alone = true;
		told_fails(rows[i].failing, rows[i].failure);
		status = TOP(NULL);
		if (status != rows[i].status)
			fail_msg("%s: status %d", rows[i].failing, status);
		if (rows[i].calls)
			assert_told(rows[i].calls);
	}
}

static int teardown(void **state)
{
	(void)state;
	buf_fini(&told.calls);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),	 cmocka_unit_test(test_on_terminal),
		cmocka_unit_test(test_store),	 cmocka_unit_test(test_two_processes),
		cmocka_unit_test(test_settings), cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_keys),	 cmocka_unit_test(test_status_and_links),
		cmocka_unit_test(test_signals),	 cmocka_unit_test(test_messages),
		cmocka_unit_test(test_duration), cmocka_unit_test(test_first_drawing),
		cmocka_unit_test(test_failures),
	};

	keyboard = dup(STDIN_FILENO);
	setenv("HEARTH_CONFIG", "/dev/null", 1);
	return run_group_of_descriptors(tests, NULL, teardown);
}
