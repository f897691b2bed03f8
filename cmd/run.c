/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth run`, and `hearth` alone: profiles until a signal ends it, onto the terminal or into the sinks that were named. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/config.h"
#include "cmd/session.h"
#include "cmd/sinks_of.h"
#include "sinks/sinks.h"

/* The line above the live table. */
struct status {
	const struct session *session;
	uint64_t last_ns, last_taken;
	double per_second;
};

enum { RATE_LEAST_NS = NSEC_PER_MSEC * 100 }; /* a rate over less would jump about */

static void write_status(void *arg, struct buf *line)
{
	struct status *status = arg;
	uint64_t now = clock_mono_ns();
	struct agent_stats stats;

	if (!status->session->agent)
		return;
	agent_stats_read(status->session->agent, &stats);
	if (!status->last_ns)
		status->last_ns = status->session->start_ns;
	if (now - status->last_ns >= RATE_LEAST_NS) {
		status->per_second = (double)(stats.taken - status->last_taken) * (double)NSEC_PER_SEC /
				     (double)(now - status->last_ns);
		status->last_ns = now;
		status->last_taken = stats.taken;
	}
	buf_printf(line,
		   "hearth  %.0f samples/s on %" PRIu64 " CPUs, %" PRIu64 " processes  %" PRIu64 " taken  %" PRIu64 " lost",
		   status->per_second, stats.cpus, stats.processes, stats.taken, stats.lost);
}

static int open_summary(struct session *s, struct status *status)
{
	const char *no_colour = getenv("NO_COLOR");
	bool is_terminal = isatty(STDOUT_FILENO);
	struct summary_options options = {
		.out = stdout,
		.live = is_terminal,
		.colour = is_terminal && !(no_colour && *no_colour),
		.status = write_status,
		.status_arg = status,
	};
	int err = sink_summary_new(&options, &s->sink);

	s->has_screen = is_terminal;
	if (err)
		log_error("cannot open the summary: %s", strerror(-err));
	return err;
}

/* The sinks that were named, or the summary. @names stays empty for the summary. */
static int open_sink(struct session *s, struct status *status, struct buf *names)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	int err;

	if (sinks_use_stdout(s->config) || !sinks_are_named(s->config))
		session_end_on_closed_stdout(s);
	if (!sinks_are_named(s->config))
		return open_summary(s, status);
	err = sinks_of(s->config, s->metrics, &s->sink, names, &error);
	if (err)
		log_error("%s", buf_text(&error));
	return err;
}

static int profile(struct session *s, struct status *status)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	AUTO(buf_fini) struct buf account = BUF_EMPTY;
	int run_err, err;

	if (session_end_on_signals(s))
		return STATUS_FAILED;
	err = open_sink(s, status, &names);
	if (err)
		return err == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	if (session_load_agent(s, 0) || session_start_agent(s, names.len ? buf_text(&names) : NULL))
		return STATUS_FAILED;
	run_err = session_run(s);
	err = session_drain(s, NULL, NULL);
	session_log_undelivered(s, err);
	session_log_truth(s);
	session_account(s, &account);
	log_info("%s", buf_text(&account));
	return run_err || err ? STATUS_FAILED : STATUS_DONE;
}

static int run_run(const struct config *config)
{
	struct status status = { 0 };
	AUTO(session_close) struct session s = { 0 };

	status.session = &s;
	if (session_check_options(config))
		return STATUS_USAGE;
	if (session_open(&s, config))
		return STATUS_FAILED;
	return profile(&s, &status);
}

const struct cmd cmd_run = {
	.name = "run",
	.bit = ON_RUN,
	.summary = "profile until Ctrl-C, onto the terminal or to a collector (also: hearth alone)",
	.operands = "",
	.description = "Profiles the whole machine, or the processes of --pid, until Ctrl-C. Without --print, --collector "
		       "or --sink it shows "
		       "a live table of the functions that take the time. 'hearth' alone is the same. Needs root.",
	.example = "sudo hearth run --collector http://127.0.0.1:4318",
	.run = run_run,
};
