/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth run`, and `hearth` alone: profiles until a signal ends it, into the sinks that were named or, as `hearth top`,
 * onto the terminal. */
#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/setup/page.h"
#include "cmd/setup/session.h"
#include "cmd/setup/sinks_of.h"
#include "cmd/top.h"

static int open_sink(struct session *s, struct buf *names)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	int err;

	if (sinks_use_stdout(s->config))
		session_end_on_closed_stdout(s);
	err = sinks_of(s->config, s->metrics, &s->sink, &s->store, names, &error);
	if (err)
		log_error("%s", buf_text(&error));
	return err;
}

static void free_page(struct page **page)
{
	page_free(*page);
}

static int profile(struct session *s)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	AUTO(buf_fini) struct buf account = BUF_EMPTY;
	AUTO(free_page) struct page *page = NULL;
	int run_err, err;

	if (session_end_on_signals(s))
		return STATUS_FAILED;
	err = open_sink(s, &names);
	if (err)
		return err == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	page_warn_of_nothing(s);
	if (session_load_agent(s, 0) || page_start(s, &page))
		return STATUS_FAILED;
	if (page_url(page))
		log_info("page at %s", page_url(page));
	if (session_start_agent(s, buf_text(&names)))
		return STATUS_FAILED;
	run_err = session_run(s);
	err = session_drain(s, page_stop, page);
	session_log_undelivered(s, err);
	session_log_truth(s);
	session_log_kinds(s);
	session_account(s, &account);
	log_info("%s", buf_text(&account));
	return run_err || err ? STATUS_FAILED : STATUS_DONE;
}

static int run_run(const struct config *config)
{
	AUTO(session_close) struct session s = { 0 };

	if (!sinks_are_named(config) || (sinks_are_a_store(config) && isatty(STDOUT_FILENO)))
		return top_run(config, true);
	if (session_check_options(&s, config))
		return STATUS_USAGE;
	if (session_open(&s, config))
		return STATUS_FAILED;
	s.is_service = true;
	return profile(&s);
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
