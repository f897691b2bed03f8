/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth run`, and `hearth` alone: profiles until a signal ends it, into the sinks that were named or, as `hearth top`,
 * onto the terminal. */
#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/halves/as_owner.h"
#include "cmd/halves/halves.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/setup/pipelines_of.h"
#include "cmd/setup/own_profiles_of.h"
#include "cmd/setup/page.h"
#include "cmd/setup/session.h"
#include "cmd/setup/sinks_of.h"
#include "cmd/setup/workloads_of.h"
#include "cmd/top.h"
#include "sinks/sinks.h"

/* The sinks of this process. 0 or an exit status. */
static int open_own(struct session *s, struct buf *names)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	int err = sinks_of(s->config, s->metrics, &s->sink, &s->store, names, &error);

	if (!err)
		err = workloads_wrap(s->config, s->metrics, &s->sink);
	if (!err)
		err = own_profiles_wrap(s->config, s->store, &s->sink);
	if (err)
		log_error("%s", buf_text(&error));
	return !err ? 0 : err == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}

/* With those that are the backend's, where it is another process. */
static int open_both(struct session *s, struct halves *halves)
{
	AUTO(buf_fini) struct buf ignored = BUF_EMPTY;
	struct sink *backend = NULL, *own;
	int status = sinks_are_named(s->config) ? open_own(s, &ignored) : 0;

	if (status)
		return status;
	if (halves_connect(halves, s, &backend))
		return STATUS_FAILED;
	own = s->sink;
	s->sink = backend;
	return own && sink_tee_new(backend, own, s->metrics, &s->sink) ? STATUS_FAILED : 0;
}

/* 0 or an exit status. */
static int open_sink(struct session *s, struct halves *halves, struct buf *names)
{
	int status;

	if (sinks_use_stdout(s->config))
		session_end_on_closed_stdout(s);
	status = halves ? open_both(s, halves) : open_own(s, names);
	if (halves)
		sinks_name(s->current, names);
	return status;
}

static void free_halves(struct halves **halves)
{
	halves_end(*halves);
}

static void free_page(struct page **page)
{
	page_free(*page);
}

static bool writes_files(const struct config *config)
{
	return config->sinks.count || (config->pipelines && pipelines_write_files(config->pipelines));
}

static int profile(struct session *s, struct halves *halves)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	AUTO(buf_fini) struct buf account = BUF_EMPTY;
	AUTO(free_page) struct page *page = NULL;
	const char *url;
	int run_err, err, status;

	s->is_agent_half = halves;
	if (session_end_on_signals(s) ||
	    (halves_leave_agent_alone(halves, s->config, false) && session_confine(s, writes_files(s->config), 0)))
		return STATUS_FAILED;
	status = open_sink(s, halves, &names);
	if (status)
		return status;
	if (!halves)
		page_warn_of_nothing(s);
	err = session_load_agent(s, 0);
	status = halves ? halves_wait(halves) : 0;
	if (status)
		return status;
	if (err || (!halves && page_start(s, &page)))
		return STATUS_FAILED;
	url = halves ? halves_page_url(halves) : page_url(page);
	if (url)
		log_info("page at %s", url);
	if (session_start_agent(s, buf_text(&names)))
		return STATUS_FAILED;
	run_err = session_run(s);
	err = halves ? session_drain(s, halves_quiesce, halves) : session_drain(s, page_stop, page);
	session_log_undelivered(s, err);
	session_log_truth(s);
	session_log_kinds(s);
	session_account(s, &account);
	log_info("%s", buf_text(&account));
	return run_err || err ? STATUS_FAILED : STATUS_DONE;
}

/* Pipelines of which none is fed by what is sampled: no agent, and no privileges. */
static int run_made_up(struct session *s)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	AUTO(free_page) struct page *page = NULL;
	int run_err, err, status;

	if (session_end_on_signals(s))
		return STATUS_FAILED;
	status = open_sink(s, NULL, &names);
	if (status)
		return status;
	if (page_start(s, &page))
		return STATUS_FAILED;
	log_info("nothing is sampled here: %s go to %s",
		 !pipelines_have_source(s->config->pipelines, SOURCE_HOST) ? "profiles that are made up"
		 : !pipelines_have_source(s->config->pipelines, SOURCE_MADE_UP)
			 ? "metrics of the host"
			 : "metrics of the host, and profiles that are "
			   "made up,",
		 buf_text(&names));
	run_err = session_run(s);
	err = session_drain(s, page_stop, page);
	session_log_undelivered(s, err);
	return run_err || err ? STATUS_FAILED : STATUS_DONE;
}

static int run_run(const struct config *config)
{
	bool is_made_up = config->pipelines && !pipelines_have_source(config->pipelines, SOURCE_AGENT);
	struct config own = *config;			/* its lists stay @config's */
	AUTO(free_halves) struct halves *halves = NULL; /* ends after the session */
	AUTO(session_close) struct session s = { 0 };

	if (!sinks_are_named(config) || (sinks_are_a_store(config) && isatty(STDOUT_FILENO)))
		return top_run(config, true);
	if (config->pipelines)
		pipelines_say(config);
	if (config->one_process && config->pipelines && !is_made_up &&
	    pipelines_have_source(config->pipelines, SOURCE_OTLP)) {
		log_error("the file has receivers that sample and that hear a network: not with --one-process, as what "
			  "samples "
			  "is root");
		return STATUS_USAGE;
	}
	if (session_check_options(&s, config))
		return STATUS_USAGE;
	if ((is_made_up ? as_owner_serve(&own) : halves_fork(config, false, false, &halves)) ||
	    session_open(&s, halves ? halves_config(halves) : &own))
		return STATUS_FAILED;
	s.current = config;
	s.is_service = true;
	return is_made_up ? run_made_up(&s) : profile(&s, halves);
}

const struct cmd cmd_run = {
	.name = "run",
	.bit = ON_RUN,
	.summary = "profile until Ctrl-C, onto the terminal or to a collector (also: hearth alone)",
	.operands = "",
	.description =
		"Profiles the whole machine, or the processes of --pid, until Ctrl-C. Without --print, "
		"--collector or --sink it shows the live table of 'hearth top', keeps the profiles in a store and "
		"shows them on a page at --http-address ('hearth' alone is the same); with --store the table is shown on "
		"a terminal only. Needs root.",
	.example = "sudo hearth run --collector http://127.0.0.1:4318",
	.run = run_run,
};
