/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hearth top`, and `hearth` alone: a session whose sink is the terminal summary (sinks/summary/summary.c), which gets the
 * keys, the changes of size and the suspensions of the terminal from here.
 */
#include "cmd/top.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/agent.h"
#include "backend/store/store_write.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "cmd/halves/halves.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/setup/own_profiles_of.h"
#include "cmd/setup/page.h"
#include "cmd/setup/session.h"
#include "cmd/setup/store_of.h"
#include "cmd/setup/workloads_of.h"
#include "cmd/terminal/terminal.h"
#include "proto/sums/view.h"
#include "sinks/sinks.h"

struct live {
	struct session session;
	struct config config; /* the user's, with what is different here */
	bool has_keys;
	bool keeps;	       /* in a store, which a page shows */
	struct sink *summary;  /* the session's, or a part of it */
	struct halves *halves; /* NULL: the backend is in this process */
	struct page *page;     /* NULL: none, or the other half's */
	const char *kinds[8];  /* that can be shown; NULL behind the last */
	/* of the line above the table */
	uint64_t last_ns, last_taken;
	double per_second;
};

enum { RATE_LEAST_NS = NSEC_PER_MSEC * 100 }; /* a rate over less would jump about */

static const char *page_of(const struct live *live)
{
	return live->halves ? halves_page_url(live->halves) : page_url(live->page);
}

static void write_status(void *arg, struct buf *line)
{
	struct live *live = arg;
	uint64_t now = clock_mono_ns();
	struct agent_stats stats;

	if (!live->session.agent)
		return;
	agent_stats_read(live->session.agent, &stats);
	if (!live->last_ns)
		live->last_ns = live->session.start_ns;
	if (now > live->last_ns && now - live->last_ns >= RATE_LEAST_NS) {
		live->per_second = (double)(stats.taken - live->last_taken) * (double)NSEC_PER_SEC /
				   (double)(now - live->last_ns);
		live->last_ns = now;
		live->last_taken = stats.taken;
	}
	/* The facts that a narrow terminal must not lose come first. */
	buf_puts(line, "hearth  ");
	if (page_of(live))
		buf_printf(line, "%s  ", page_of(live));
	buf_printf(line, "%.0f samples/s  %" PRIu64 " lost  %" PRIu64 " taken  %" PRIu64 " CPUs  %" PRIu64 " processes",
		   live->per_second, stats.lost, stats.taken, stats.cpus, stats.processes);
}

/* The page's view of a function's callers, by the keys of backend/page/state.js. */
static void write_link(void *arg, const char *name, const char *module, struct buf *url)
{
	struct live *live = arg;

	if (!page_of(live))
		return;
	buf_printf(url, "%s#view=sandwich&fn=", page_of(live));
	buf_percent(url, name, strlen(name), URL_PLAIN);
	if (!*module)
		return;
	buf_puts(url, "&mod=");
	buf_percent(url, module, strlen(module), URL_PLAIN);
}

/* Chooses what can be shown: sums alone, not what is in use at a moment. */
static void choose_kinds(struct live *live)
{
	static const char *const waits[] = { "off_cpu", "runnable", VIEW_WALL };
	uint32_t n = 0;

	live->kinds[n++] = "samples";
	for (size_t i = 0; i < ARRAY_LEN(waits) && live->config.off_cpu; i++)
		live->kinds[n++] = waits[i];
	if (live->config.memory)
		live->kinds[n++] = "memory";
	if (live->config.heap)
		live->kinds[n++] = "alloc_space";
}

static int open_summary(struct live *live)
{
	const char *no_colour = getenv("NO_COLOR");
	bool is_terminal = isatty(STDOUT_FILENO);
	struct summary_options options = {
		.out = stdout,
		.live = is_terminal,
		.keys = is_terminal && terminal_has_keys(),
		.lines = true,
		.colour = is_terminal && !(no_colour && *no_colour),
		.status = write_status,
		.status_arg = live,
		.link = write_link,
		.link_arg = live,
		.metrics = live->session.metrics,
		.kinds = live->kinds,
		.kind = live->config.live_kind,
	};
	int err;

	choose_kinds(live);
	err = sink_summary_new(&options, &live->summary);

	live->session.sink = live->summary;
	live->has_keys = options.keys;
	live->session.has_screen = is_terminal;
	if (err)
		log_error("cannot open the summary: %s", strerror(-err));
	return err;
}

static void stop_on_error(struct live *live, int err)
{
	if (err)
		loop_stop(live->session.loop); /* who looked at it has gone */
}

static void on_keys(void *arg, int fd, uint32_t events)
{
	struct live *live = arg;
	char bytes[256];
	ssize_t len = read(fd, bytes, sizeof(bytes));
	bool quit = false;

	(void)events;
	if (len <= 0) { /* the terminal has gone */
		loop_stop(live->session.loop);
		return;
	}
	stop_on_error(live, sink_summary_keys(live->summary, bytes, (size_t)len, &quit));
	if (quit)
		loop_stop(live->session.loop);
}

/* Messages of both halves wait, or are written. */
static void hold(struct live *live, bool on)
{
	log_hold(on);
	halves_hold_log(live->halves, on);
}

/* SIGTSTP: as if we had not caught it, but on a screen that is in order. */
static void suspend(struct live *live)
{
	(void)sink_summary_leave(live->summary);
	terminal_restore(false);
	hold(live, false);
	kill(getpid(), SIGSTOP);
}

/* A message on the terminal would stand in the middle of the table: it waits, and the line above the table tells it. */
static void hold_messages(struct live *live)
{
	hold(live, live->session.has_screen && isatty(STDERR_FILENO));
}

static void on_terminal_signal(void *arg, int signo)
{
	struct live *live = arg;

	if (signo == SIGTSTP)
		suspend(live);
	if (signo != SIGWINCH && live->has_keys)
		(void)terminal_enter();
	hold_messages(live);
	stop_on_error(live, sink_summary_redraw(live->summary));
}

/* Called before threads start. */
static int watch_terminal(struct live *live)
{
	struct session *s = &live->session;
	sigset_t set;
	int err;

	session_end_on_closed_stdout(s);
	if (!s->has_screen)
		return 0;
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGCONT);
	err = loop_add_signals(s->loop, &set, on_terminal_signal, live, NULL);
	if (!err && live->has_keys)
		err = loop_add_fd(s->loop, STDIN_FILENO, EPOLLIN, on_keys, live, NULL);
	if (!err && live->has_keys)
		err = terminal_enter();
	if (err)
		log_error("cannot take the terminal: %s", strerror(-err));
	return err;
}

static void on_time(void *arg)
{
	loop_stop(((struct live *)arg)->session.loop);
}

static int set_end(struct live *live)
{
	struct loop_watch *timer;
	int err;

	if (!live->config.duration_ns)
		return 0;
	err = loop_add_timer(live->session.loop, on_time, live, &timer);
	return err ? err : loop_set_timer(timer, live->config.delay_ns + live->config.duration_ns, 0);
}

/* Opens the store beside the summary. Without one the table goes on with a message, unless a store was asked for. */
static int open_store(struct live *live)
{
	struct session *s = &live->session;
	const struct config *config = s->config;
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct sink *writer = NULL;
	int err = store_of(config, config->store, false, s->metrics, &s->store, &error);

	if (!err)
		err = s->store->write->writer(s->store, &writer);
	if (err && config->store) {
		log_error("%s", error.len ? buf_text(&error) : strerror(-err));
		return err;
	}
	if (err) {
		log_warn("profiles are not kept, and there is no page: %s", error.len ? buf_text(&error) : strerror(-err));
		return 0;
	}
	return sink_tee_new(live->summary, writer, s->metrics, &s->sink);
}

/* Does the same in the other half. 0 or an exit status. */
static int open_backend(struct live *live)
{
	struct session *s = &live->session;
	struct sink *backend = NULL;

	if (halves_connect(live->halves, s, &backend))
		return STATUS_FAILED;
	return sink_tee_new(live->summary, backend, s->metrics, &s->sink) ? STATUS_FAILED : 0;
}

/* 0 or an exit status. */
static int open_kept(struct live *live)
{
	int err;

	if (live->halves)
		return open_backend(live);
	err = live->keeps ? open_store(live) : 0;
	if (!err)
		err = workloads_wrap(live->session.config, live->session.metrics, &live->session.sink);
	if (!err)
		err = own_profiles_wrap(live->session.config, live->session.store, &live->session.sink);
	return !err ? 0 : err == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}

/* The page, where there is a store, and /metrics. Without them the table goes on too. */
static void open_page(struct live *live)
{
	if (!live->halves && page_start(&live->session, &live->page))
		return;
	if (page_of(live))
		log_info("page at %s", page_of(live));
}

static int profile(struct live *live)
{
	AUTO(buf_fini) struct buf account = BUF_EMPTY;
	struct session *s = &live->session;
	int run_err, err, status;

	s->is_agent_half = live->halves;
	if (session_end_on_signals(s) || (halves_leave_agent_alone(live->halves, s->config, live->keeps) &&
					  session_confine(s, s->config->sinks.count, 0)))
		return STATUS_FAILED;
	if (open_summary(live))
		return STATUS_FAILED;
	status = open_kept(live);
	if (status || watch_terminal(live))
		return status ? status : STATUS_FAILED;
	err = session_load_agent(s, 0);
	status = live->halves ? halves_wait(live->halves) : 0;
	if (status || err)
		return status ? status : STATUS_FAILED;
	open_page(live);
	if (session_start_agent(s, NULL) || set_end(live))
		return STATUS_FAILED;
	hold_messages(live);
	stop_on_error(live, sink_summary_redraw(live->summary));
	run_err = session_run(s);
	terminal_restore(false);
	halves_hold_log(live->halves, false);
	err = live->halves ? session_drain(s, halves_quiesce, live->halves) : session_drain(s, page_stop, live->page);
	log_hold(false);
	session_log_undelivered(s, err);
	session_log_truth(s);
	session_log_kinds(s);
	session_account(s, &account);
	log_info("%s", buf_text(&account));
	return run_err || err ? STATUS_FAILED : STATUS_DONE;
}

int top_run(const struct config *config, bool keep)
{
	struct live live = { .config = *config, .keeps = keep };
	int status = STATUS_FAILED;

	live.config.report_interval_ns = config->refresh_ns;
	live.config.report_jitter = 0;
	if (session_check_options(&live.session, &live.config))
		status = STATUS_USAGE;
	else if (!halves_fork(&live.config, keep, true, &live.halves) &&
		 !session_open(&live.session, live.halves ? halves_config(live.halves) : &live.config))
		status = profile(&live);
	terminal_restore(false);
	page_free(live.page);
	session_close(&live.session);
	halves_end(live.halves);
	return status;
}

static int run_top(const struct config *config)
{
	struct config own = *config; /* borrows what it holds */

	own.freq_hz = config->top_freq_hz;
	return top_run(&own, false);
}

const struct cmd cmd_top = {
	.name = "top",
	.bit = ON_TOP,
	.summary = "show live which functions, modules and processes take the time",
	.operands = "",
	.description =
		"Shows where the time goes, drawn anew each --refresh until q or Ctrl-C, which leaves a last table. Rows "
		"are "
		"ordered by what they took in about the last 10 s, so that they stay put. Keys "
		"choose functions, modules or processes, sort, filter, freeze, and show who calls a function; ? lists "
		"them. Where standard output is no terminal, a few lines are printed each time. Needs root.",
	.example = "sudo hearth top -F 99",
	.run = run_top,
};
