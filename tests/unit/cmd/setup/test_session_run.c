/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's life with an agent that does nothing but say what it was told: what is checked first, what ends the session,
 * in which order it is brought to an end, and what is said of it.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/confine.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "cmd/setup/session.h"
#include "proto/sink.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"

static struct session session;
static struct config config;
static struct buf told; /* what was called, in order */

/* --- the agent, and the sink behind it --- */

static const char *failing, *explanation;
static int failure;
static struct agent_stats stats;
static const char *kinds;
static struct agent_duties duties;
static uint64_t names_deadline_ns, flush_deadline_ns, stop_deadline_ns;
static struct agent *const an_agent = (struct agent *)&told;

static int call(const char *name)
{
	buf_printf(&told, "%s ", name);
	return failing && !strcmp(failing, name) ? failure : 0;
}

static int call_with(const char *name, struct agent_error *error)
{
	int err = call(name);

	if (err && explanation)
		snprintf(error->message, sizeof(error->message), "%s", explanation);
	return err;
}

int agent_new(const struct agent_config *c, struct loop *loop, struct metrics *metrics, struct sink *out, struct agent **ret,
	      struct agent_error *err)
{
	int failed = call_with("new", err);

	assert_true(loop == session.loop && metrics == session.metrics && out == session.sink);
	if (c->filter.follow_pids_only)
		call("follows");
	*ret = failed ? NULL : an_agent;
	return failed;
}

int agent_start(struct agent *a, struct agent_error *err)
{
	assert_ptr_equal(a, an_agent);
	return call_with("start", err);
}

int agent_pause(struct agent *a, bool on)
{
	(void)a;
	return call(on ? "pause" : "resume");
}

int agent_add_pid(struct agent *a, uint32_t pid)
{
	(void)a;
	assert_int_equal(pid, getpid());
	return call("add_pid");
}

int agent_stop(struct agent *a, uint64_t deadline_ns)
{
	assert_ptr_equal(a, an_agent);
	names_deadline_ns = deadline_ns;
	return call("stop_agent");
}

void agent_free(struct agent *a)
{
	if (a)
		call("free_agent");
}

void agent_stats_read(struct agent *a, struct agent_stats *ret)
{
	(void)a;
	*ret = stats;
}

void agent_kinds_print(struct agent *a, struct buf *out)
{
	(void)a;
	buf_puts(out, kinds);
}

void agent_losses_print(struct agent *a, struct buf *out)
{
	(void)a;
	buf_puts(out, "ring full 2");
}

void agent_describe(struct agent *a, struct buf *out)
{
	(void)a;
	buf_puts(out, "sampling");
}

void agent_set_interval(struct agent *a, uint64_t ns, double jitter)
{
	(void)a;
	(void)ns;
	(void)jitter;
}

int agent_config_settle(struct agent_config *c, const char **option_ret, struct agent_error *err)
{
	(void)c;
	(void)option_ret;
	(void)err;
	return 0;
}

int agent_config_add_malloc(const struct agent_config *c, uint32_t pid, struct agent_error *err)
{
	assert_ptr_equal(c, &session.setup.agent);
	assert_int_equal(pid, getpid());
	return call_with("add_malloc", err);
}

void agent_config_fini(struct agent_config *c)
{
	(void)c;
}

bool agent_is_probe(const char *event)
{
	(void)event;
	return false;
}

int agent_report_at(struct agent *a, uint64_t at_ns)
{
	(void)a;
	(void)at_ns;
	return 0;
}

int agent_prepare(struct agent_config *c, struct metrics *metrics, struct agent_error *err)
{
	assert_ptr_equal(c, &session.setup.agent);
	assert_ptr_equal(metrics, session.metrics);
	return call_with("prepare", err);
}

int agent_confine(const struct agent_config *c, const struct agent_duties *given, struct metrics *metrics)
{
	assert_ptr_equal(c, &session.setup.agent);
	assert_ptr_equal(metrics, session.metrics);
	duties = *given;
	return call("confine");
}

static int consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	(void)sink;
	(void)p;
	(void)ack;
	return 0;
}

static int flush(struct sink *sink, uint64_t deadline_ns)
{
	(void)sink;
	flush_deadline_ns = deadline_ns;
	return call("flush");
}

static void free_sink(struct sink *sink)
{
	(void)sink;
	call("free_sink");
}

static const struct sink_ops ops = { .name = "test", .consume = consume, .flush = flush, .free = free_sink };
static struct sink sink = { .ops = &ops };

/* --- --- */

static void begin_with(const char *const *words)
{
	config = parse_words(&cmd_record, words);
	session = (struct session){ 0 };
	failing = explanation = NULL;
	stats = (struct agent_stats){ .taken = 9, .delivered = 7, .lost = 2 };
	kinds = "";
	buf_reset(&told);
	unsetenv("DEBUGINFOD_URLS");
	assert_int_equal(session_check_options(&session, &config), 0);
	assert_int_equal(session_open(&session, &config), 0);
	session.sink = &sink;
}

#define BEGIN(...) begin_with((const char *const[]){ __VA_ARGS__, NULL })

static void end(void)
{
	session_close(&session);
	assert_null(session.loop);
	config_fini(&config);
}

static void fails(const char *what, int err, const char *says)
{
	failing = what;
	failure = err;
	explanation = says;
	buf_reset(&told);
}

static void test_load(void **state)
{
	(void)state;
	BEGIN("-F", "20");
	assert_int_equal(session_load_agent(&session, 0), 0);
	assert_string_equal(buf_text(&told), "new ");
	session.agent = NULL;
	buf_reset(&told);
	assert_int_equal(session_load_agent(&session, (uint32_t)getpid()), 0);
	assert_string_equal(buf_text(&told), "new follows add_pid ");
	fails("add_pid", -ESRCH, NULL);
	assert_int_equal(session_load_agent(&session, (uint32_t)getpid()), -ESRCH);
	assert_true(is_said_last("cannot follow process"));
	session.agent = NULL;
	fails("new", -EPERM, "the agent says why");
	assert_int_equal(session_load_agent(&session, 0), -EPERM);
	assert_true(is_said_last("the agent says why"));
	fails("new", -EPERM, NULL);
	assert_int_equal(session_load_agent(&session, 0), -EPERM);
	assert_true(is_said_last("Operation not permitted"));
	end();
	BEGIN("-p", "4194304,1");
	assert_int_equal(session_load_agent(&session, 0), -ESRCH);
	assert_true(is_said_last("--pid: there is no process 4194304"));
	assert_string_equal(buf_text(&told), "");
	end();
	BEGIN("--tid", "1,4194305");
	assert_int_equal(session_load_agent(&session, 0), -ESRCH);
	assert_true(is_said_last("--tid: there is no thread 4194305"));
	end();
}

static void test_confine(void **state)
{
	(void)state;
	BEGIN("-F", "20");
	assert_int_equal(session_confine(&session, true, 77), 0);
	assert_string_equal(buf_text(&told), "prepare confine ");
	assert_true(duties.writes_files && !duties.has_network && duties.command == 77);
	setenv("DEBUGINFOD_URLS", "", 1);
	assert_int_equal(session_confine(&session, false, 0), 0);
	assert_true(!duties.writes_files && !duties.has_network && duties.command == 0);
	setenv("DEBUGINFOD_URLS", "http://h", 1);
	assert_int_equal(session_confine(&session, false, 0), 0);
	assert_true(duties.has_network);
	session.is_agent_half = true; /* the other half asks */
	assert_int_equal(session_confine(&session, false, 0), 0);
	assert_false(duties.has_network);
	fails("prepare", -EINVAL, "so it is");
	assert_int_equal(session_confine(&session, false, 0), -EINVAL);
	assert_string_equal(buf_text(&told), "prepare ");
	assert_true(is_said_last("so it is"));
	fails("prepare", -ENOSYS, NULL);
	assert_int_equal(session_confine(&session, false, 0), -ENOSYS);
	assert_true(is_said_last("Function not implemented"));
	fails("confine", -EPERM, NULL);
	assert_int_equal(session_confine(&session, false, 0), -EPERM);
	assert_true(is_said_last("cannot give up privileges that sampling does not need: Operation not permitted"));
	assert_int_equal(session_add_malloc(&session, getpid()), 0);
	fails("add_malloc", -ENOENT, "no allocator");
	assert_int_equal(session_add_malloc(&session, getpid()), -ENOENT);
	assert_true(is_said_last("no allocator"));
	end();
}

static void test_start(void **state)
{
	uint64_t before;

	(void)state;
	BEGIN("-F", "20");
	session.agent = an_agent;
	before = clock_mono_ns();
	assert_int_equal(session_start_agent(&session, "here"), 0);
	assert_string_equal(buf_text(&told), "start ");
	assert_true(is_said_last("sampling; profiles go to here"));
	assert_in_range(session.start_ns, before, clock_mono_ns());
	assert_int_equal(session_start_agent(&session, NULL), 0);
	assert_false(is_said_last("profiles go to"));
	fails("start", -EBUSY, "too many");
	assert_int_equal(session_start_agent(&session, "here"), -EBUSY);
	assert_true(is_said_last("too many"));
	fails("start", -EBUSY, NULL);
	assert_int_equal(session_start_agent(&session, "here"), -EBUSY);
	assert_true(is_said_last("Device or resource busy"));
	end();
	BEGIN("--delay", "100s");
	session.agent = an_agent;
	before = clock_mono_ns();
	assert_int_equal(session_start_agent(&session, NULL), 0);
	assert_string_equal(buf_text(&told), "pause start ");
	assert_in_range(session.start_ns - 100 * NSEC_PER_SEC, before, clock_mono_ns());
	fails("pause", -EIO, NULL);
	assert_int_equal(session_start_agent(&session, NULL), -EIO);
	assert_string_equal(buf_text(&told), "pause ");
	end();
}

/* --- ends --- */

static void end_session(void *arg)
{
	loop_stop(arg);
}

static void test_signals(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		BEGIN("-F", "20");
		assert_int_equal(session_end_on_signals(&session), 0);
		assert_false(session.is_signalled);
		kill(getpid(), signals[i]);
		assert_int_equal(session_run(&session), 0);
		assert_true(session.is_signalled);
		assert_true(session.end_ns <= clock_mono_ns() && session.end_ns);
		end();
	}
}

/* Under nohup the terminal's end is no end; a pipe's is. */
static void test_other_ends(void **state)
{
	struct loop_watch *timer;
	int pair[2], out = dup(STDOUT_FILENO);

	(void)state;
	signal(SIGHUP, SIG_IGN);
	BEGIN("-F", "20");
	assert_int_equal(session_end_on_signals(&session), 0);
	kill(getpid(), SIGHUP);
	assert_int_equal(loop_add_timer(session.loop, end_session, session.loop, &timer), 0);
	assert_int_equal(loop_set_timer(timer, NSEC_PER_MSEC, 0), 0);
	assert_int_equal(session_run(&session), 0);
	assert_false(session.is_signalled);
	loop_remove(timer);
	end();
	signal(SIGHUP, SIG_DFL);

	BEGIN("-F", "20");
	assert_int_equal(pipe(pair), 0);
	fflush(stdout);
	dup2(pair[1], STDOUT_FILENO);
	close(pair[1]);
	session_end_on_closed_stdout(&session);
	assert_int_equal(loop_step(session.loop, 0), 0);
	close(pair[0]);
	assert_int_equal(session_run(&session), 0);
	dup2(out, STDOUT_FILENO);
	close(out);
	assert_false(session.is_signalled);
	end();
}

static void stop(void *arg, uint64_t deadline_ns)
{
	assert_ptr_equal(arg, &session);
	stop_deadline_ns = deadline_ns;
	call("stop");
}

static void test_drain(void **state)
{
	static const struct {
		const char *failing;
		int failure, err;
	} rows[] = { { NULL, 0, 0 },
		     { "stop_agent", -ETIMEDOUT, -ETIMEDOUT },
		     { "flush", -EIO, -EIO },
		     { "flush", -EPIPE, 0 },
		     { "stop_agent", -EPIPE, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t before, after;

		BEGIN("--drain-timeout", "10s");
		session.agent = an_agent;
		fails(rows[i].failing, rows[i].failure, NULL);
		before = clock_mono_ns();
		assert_int_equal(session_drain(&session, stop, &session), rows[i].err);
		after = clock_mono_ns();
		assert_string_equal(buf_text(&told), "stop stop_agent flush ");
		assert_in_range(stop_deadline_ns, before + 10 * NSEC_PER_SEC, after + 10 * NSEC_PER_SEC);
		assert_int_equal(flush_deadline_ns, stop_deadline_ns);
		assert_in_range(names_deadline_ns, before + 5 * NSEC_PER_SEC, after + 5 * NSEC_PER_SEC);
		buf_reset(&told);
		end();
		assert_string_equal(buf_text(&told), "free_agent free_sink ");
	}
	BEGIN("-F", "20");
	assert_int_equal(session_drain(&session, NULL, NULL), 0); /* without an agent */
	assert_string_equal(buf_text(&told), "flush ");
	end();
}

/* While it drains, a second signal kills: the first one is heard here where none has come before. One that comes together
 * with the first, as timeout(1) sends them, is the same. */
static void test_impatience(void **state)
{
	static const struct {
		bool is_signalled;
		unsigned pause_us;
		bool is_killed;
	} rows[] = { { true, 0, false }, { true, 150000, true }, { false, 0, false }, { false, 150000, true } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			signal(SIGTERM, SIG_DFL);
			BEGIN("-F", "20");
			(void)session_end_on_signals(&session);
			session.is_signalled = rows[i].is_signalled;
			(void)session_drain(&session, NULL, NULL);
			if (!rows[i].is_signalled)
				kill(getpid(), SIGTERM);
			usleep(rows[i].pause_us);
			kill(getpid(), SIGTERM);
			_exit(9);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (rows[i].is_killed)
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
		else
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
	}
}

/* --- what is said --- */

static void test_said(void **state)
{
	AUTO(buf_fini) struct buf line = BUF_EMPTY;

	(void)state;
	BEGIN("--drain-timeout", "1500ms");
	session.agent = an_agent;
	session_log_undelivered(&session, -ETIMEDOUT);
	assert_true(is_said_last("not everything could be delivered within --drain-timeout (1.5 s)"));
	session_log_undelivered(&session, -EIO);
	assert_true(is_said_last("not everything could be delivered: Input/output error"));
	log_warn("nothing else");
	session_log_undelivered(&session, 0);
	session_log_truth(&session);
	session_log_kinds(&session);
	assert_true(is_said_last("nothing else"));
	stats = (struct agent_stats){ .complete = 90, .truncated = 10, .chief = "no rows", .chief_count = 10 };
	session_log_truth(&session);
	assert_true(is_said_last("10 of 100 user stacks are not complete: no rows"));
	stats.chief_count = 9;
	session_log_truth(&session);
	assert_true(is_said_last("10 of 100 user stacks are not complete, most of them (9) for: no rows"));
	kinds = "off_cpu: 3\n\nmemory: 4\n";
	session_log_kinds(&session);
	assert_true(is_said_last("memory: 4"));
	stats = (struct agent_stats){ .taken = 9, .delivered = 7, .lost = 2 };
	session_account(&session, &line);
	assert_string_equal(buf_text(&line), "9 samples taken = 7 delivered + 2 lost (ring full 2); 0 not sampled");
	end();
}

static int fini(void **state)
{
	(void)state;
	buf_fini(&told);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load),	   cmocka_unit_test(test_confine),    cmocka_unit_test(test_start),
		cmocka_unit_test(test_signals),	   cmocka_unit_test(test_other_ends), cmocka_unit_test(test_drain),
		cmocka_unit_test(test_impatience), cmocka_unit_test(test_said),
	};

	return run_group_of_descriptors(tests, NULL, fini);
}
