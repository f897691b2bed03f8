/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session owns its loop, metrics, agent and sink. The agent feeds the sink and both count in the metrics, so they are
 * taken down in that order. Signals are blocked from session_end_on_signals() (threads inherit that) until the drain, where
 * they are let through again with their default action: waiting there is done in blocking calls.
 */
#include "cmd/setup/session.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/confine.h"
#include "agent/proc/proc_root.h"
#include "backend/http/server.h"
#include "backend/signals/signals.h"
#include "backend/store/store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "cmd/options/config.h"
#include "cmd/setup/enrich_of.h"
#include "cmd/setup/own_profiles_of.h"
#include "cmd/setup/reload.h"
#include "cmd/setup/workloads_of.h"
#include "cmd/terminal/terminal.h"
#include "proto/arena.h"
#include "proto/sink.h"

static const int ending_signals[] = { SIGINT, SIGTERM, SIGHUP };

/* An address that cannot be one is refused before anything begins, also where hearth goes on without a page. */
static int check_addresses(const struct config *c)
{
	const char *const all[] = { c->http_address,	c->page_address,  c->grpc_address,
				    c->metrics_address, c->pprof_address, c->rest_address };
	struct server_error error = { "" };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (!all[i] || !*all[i] || !strcmp(all[i], "off") || !listen_check(all[i], &error))
			continue;
		log_error("%s", error.message);
		return -EINVAL;
	}
	return 0;
}

int session_check_options(struct session *s, const struct config *config)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	int err = agent_setup_init(&s->setup, config);

	err = err ? err : check_addresses(config);
	if (!err)
		err = enrich_check_options(config);
	if (!err && schedule_init(&s->schedule, config, &error)) {
		log_error("%s", buf_text(&error));
		err = -EINVAL;
	}
	return err;
}

static void tell_memory(void *metrics)
{
	memory_tell(metrics, "profiles", arenas_memory_bytes());
	memory_tell(metrics, "room for profiles", arenas_spare_bytes());
	memory_tell_process(metrics);
}

int session_open(struct session *s, const struct config *config)
{
	int err;

	s->config = s->current = config;
	err = loop_new(&s->loop);
	if (!err) {
		s->metrics = metrics_new();
		err = s->metrics ? metrics_on_collect(s->metrics, tell_memory, s->metrics) : -ENOMEM;
	}
	if (err)
		log_error("cannot start: %s", strerror(-err));
	return err;
}

static void on_signal(void *arg, int signo)
{
	struct session *s = arg;

	if (signo == SIGHUP && s->is_service && reload_is_wanted(s->config)) {
		reload(s);
		return;
	}
	log_debug("%s: stopping", strsignal(signo));
	s->is_signalled = true;
	loop_stop(s->loop);
}

/* Under nohup SIGHUP is ignored and stays so. */
static bool is_ours(int signo)
{
	struct sigaction action;

	return signo != SIGHUP || sigaction(signo, NULL, &action) || action.sa_handler != SIG_IGN;
}

int session_end_on_signals(struct session *s)
{
	sigset_t set;
	int err;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(ending_signals); i++) {
		if (is_ours(ending_signals[i]))
			sigaddset(&set, ending_signals[i]);
	}
	err = loop_add_signals(s->loop, &set, on_signal, s, NULL);
	if (err)
		log_error("cannot wait for signals: %s", strerror(-err));
	return err;
}

static void on_stdout(void *arg, int fd, uint32_t events)
{
	(void)fd;
	if (events & (EPOLLERR | EPOLLHUP))
		loop_stop(((struct session *)arg)->loop);
}

void session_end_on_closed_stdout(struct session *s)
{
	/* If it cannot be watched (a regular file), nobody closes it either. */
	loop_add_fd(s->loop, STDOUT_FILENO, 0, on_stdout, s, NULL);
}

static int check_pids(const struct pid_list *pids, const char *option, const char *what)
{
	char path[PROC_PATH_BYTES];

	for (size_t i = 0; i < pids->count; i++) {
		if (!access(proc_path(path, pids->items[i], ""), F_OK))
			continue;
		log_error("--%s: there is no %s %" PRIu32 "%s%s", option, what, pids->items[i],
			  proc_root_is_whole()
				  ? ""
				  : " among those of this pid namespace (container), which are all that shows in ",
			  proc_root_is_whole() ? "" : proc_root());
		return -ESRCH;
	}
	return 0;
}

/* A user who chose processes of this namespace does not miss the others. */
static void warn_of_others(const struct config *config, uint32_t pid)
{
	if (proc_root_is_whole() || pid || config->pids.count || config->tids.count)
		return;
	log_warn("this is a pid namespace of its own (a container): what runs outside of it is counted as [not in /proc], "
		 "without "
		 "names and stacks. %s",
		 access("/host/proc/1", F_OK)
			 ? "To see it: docker --pid=host, in Kubernetes hostPID: true; or mount the host's "
			   "/proc, and give its place as --proc or HOST_PROC"
			 : "The host's /proc seems to be mounted: take --proc /host/proc");
}

int session_confine(struct session *s, bool writes_files, pid_t command)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	const struct agent_duties duties = {
		.writes_files = writes_files,
		.has_network = !s->is_agent_half && ((urls && *urls) || enrich_asks_network(s->config)),
		.command = command,
	};
	struct agent_error error = { "" };
	int err = agent_prepare(&s->setup.agent, s->metrics, &error);

	if (err) {
		log_error("%s", error.message[0] ? error.message : strerror(-err));
		return err;
	}
	err = agent_confine(&s->setup.agent, &duties, s->metrics);
	if (err)
		log_error("cannot give up privileges that sampling does not need: %s", strerror(-err));
	return err;
}

int session_add_malloc(struct session *s, pid_t pid)
{
	struct agent_error error = { "" };
	uint32_t number = 0;
	int err = proc_root_pid((uint32_t)pid, &number);

	if (!err)
		err = agent_config_add_malloc(&s->setup.agent, number, &error);
	if (err)
		log_error("%s", error.message[0] ? error.message : strerror(-err));
	return err;
}

int session_load_agent(struct session *s, uint32_t pid)
{
	struct agent_error error = { "" };
	int err = check_pids(&s->config->pids, "pid", "process");

	if (!err)
		err = check_pids(&s->config->tids, "tid", "thread");
	if (err)
		return err;
	s->setup.agent.filter.follow_pids_only = pid != 0;
	memory_map_large();
	err = enrich_wrap(s->config, s->is_agent_half ? ENRICH_OF_AGENT : ENRICH_WHOLE, s->metrics, &s->sink);
	if (err)
		return err;
	err = agent_new(&s->setup.agent, s->loop, s->metrics, s->sink, &s->agent, &error);
	if (err) {
		log_error("%s", error.message[0] ? error.message : strerror(-err));
		return err;
	}
	warn_of_others(s->config, pid);
	err = pid ? proc_root_pid(pid, &pid) : 0;
	if (!err && pid)
		err = agent_add_pid(s->agent, pid);
	if (err)
		log_error("cannot follow process %" PRIu32 ": %s", pid, strerror(-err));
	return err;
}

int session_start_agent(struct session *s, const char *target)
{
	AUTO(buf_fini) struct buf line = BUF_EMPTY;
	struct agent_error error = { "" };
	int err = schedule_is_on(&s->schedule) ? agent_pause(s->agent, true) : 0;

	if (!err)
		err = agent_start(s->agent, &error);
	if (!err)
		err = schedule_start(&s->schedule, s->loop, s->agent);
	if (err) {
		log_error("%s", error.message[0] ? error.message : strerror(-err));
		return err;
	}
	__atomic_store_n(&s->start_ns, clock_mono_ns() + s->config->delay_ns, __ATOMIC_RELAXED); /* the page's thread asks */
	agent_describe(s->agent, &line);
	if (target)
		buf_printf(&line, "; profiles go to %s", target);
	log_info("%s", buf_text(&line));
	return 0;
}

int session_run(struct session *s)
{
	int err = loop_run(s->loop);

	s->end_ns = clock_mono_ns();
	if (err)
		log_error("cannot wait for events: %s", strerror(-err));
	return err;
}

enum { TWIN_NS = 100 * 1000 * 1000 };

static uint64_t first_signal_ns; /* of those that may end the process; 0: none came */
static bool leaves_screen;

/* The second signal ends the process at once. timeout(1) sends each twice, to the process and to its group: two that come
 * together are one. On a screen that is left and the cursor shown again, or the shell would come back on a ruined terminal.
 */
static void end_at_second(int signo)
{
	const uint64_t now_ns = clock_mono_ns();

	if (!first_signal_ns)
		first_signal_ns = now_ns;
	if (now_ns - first_signal_ns < TWIN_NS)
		return;
	if (leaves_screen)
		terminal_restore(true);
	signal(signo, SIG_DFL);
	raise(signo);
}

/* From here on one signal ends the process at once, or two when none has come yet. */
static void let_signals_through(const struct session *s)
{
	struct sigaction action = { .sa_handler = end_at_second, .sa_flags = SA_NODEFER | SA_RESTART };
	sigset_t set;

	first_signal_ns = s->is_signalled ? clock_mono_ns() : 0;
	leaves_screen = s->has_screen;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(ending_signals); i++) {
		if (!is_ours(ending_signals[i]))
			continue;
		sigaddset(&set, ending_signals[i]);
		sigaction(ending_signals[i], &action, NULL);
	}
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int session_drain(struct session *s, void (*stop)(void *arg, uint64_t deadline_ns), void *arg)
{
	uint64_t deadline_ns = clock_mono_ns() + s->config->drain_timeout_ns, names_ns;
	int agent_err, err;

	let_signals_through(s);
	if (stop)
		stop(arg, deadline_ns);
	/* Names may take half of it: what was sampled must still be sent. */
	names_ns = clock_mono_ns() + s->config->drain_timeout_ns / 2;
	agent_err = s->agent ? agent_stop(s->agent, names_ns) : 0;
	err = sink_flush(s->sink, deadline_ns);
	if (!err)
		err = agent_err;
	return err == -EPIPE ? 0 : err; /* the reader of our output has gone, and knows */
}

void session_log_undelivered(const struct session *s, int err)
{
	if (err == -ETIMEDOUT)
		log_error("not everything could be delivered within --drain-timeout (%.1f s)",
			  (double)s->config->drain_timeout_ns / (double)NSEC_PER_SEC);
	else if (err)
		log_error("not everything could be delivered: %s", strerror(-err));
}

void session_log_truth(struct session *s)
{
	struct agent_stats stats;

	agent_stats_read(s->agent, &stats);
	if (!stats.truncated)
		return;
	if (stats.chief_count == stats.truncated)
		log_info("%" PRIu64 " of %" PRIu64 " user stacks are not complete: %s", stats.truncated,
			 stats.complete + stats.truncated, stats.chief);
	else
		log_info("%" PRIu64 " of %" PRIu64 " user stacks are not complete, most of them (%" PRIu64 ") for: %s",
			 stats.truncated, stats.complete + stats.truncated, stats.chief_count, stats.chief);
}

/* Appends what a sink took and could not deliver, and what waits in a spool, with the series' labels. */
static void add_undelivered(void *arg, const char *name, const char *labels, uint64_t value)
{
	static const char suffix[] = "_dropped_samples_total";
	size_t len = strlen(name), suffix_len = sizeof(suffix) - 1;
	bool is_dropped = len > suffix_len && !strcmp(name + len - suffix_len, suffix);

	if (!value || (!is_dropped && strcmp(name, "hearth_spool_samples")))
		return;
	buf_printf(arg, "; %" PRIu64 " %s", value, is_dropped ? "dropped by a sink" : "kept for the next start");
	if (labels && labels[0])
		buf_printf(arg, " (%s)", labels);
}

void session_log_kinds(struct session *s)
{
	AUTO(buf_fini) struct buf lines = BUF_EMPTY;
	char *rest, *line;

	agent_kinds_print(s->agent, &lines);
	if (!buf_text(&lines)[0])
		return;
	rest = (char *)lines.data;
	while ((line = strsep(&rest, "\n")))
		if (*line)
			log_info("%s", line);
}

void session_print_account(const struct agent_stats *stats, const char *losses, struct metrics *metrics, struct buf *out)
{
	const uint64_t walked = stats->complete + stats->truncated;

	buf_printf(out, "%" PRIu64 " samples taken = %" PRIu64 " delivered + %" PRIu64 " lost", stats->taken,
		   stats->delivered, stats->lost);
	if (*losses)
		buf_printf(out, " (%s)", losses);
	metrics_each(metrics, add_undelivered, out);
	buf_printf(out, "; %" PRIu64 " not sampled", stats->not_sampled);
	if (walked)
		buf_printf(out, "; %.1f %% of user stacks complete", 100.0 * (double)stats->complete / (double)walked);
}

void session_account(struct session *s, struct buf *out)
{
	AUTO(buf_fini) struct buf losses = BUF_EMPTY;
	struct agent_stats stats;

	agent_stats_read(s->agent, &stats);
	agent_losses_print(s->agent, &losses);
	session_print_account(&stats, buf_text(&losses), s->metrics, out);
}

void session_close(struct session *s)
{
	agent_free(s->agent);
	agent_setup_fini(&s->setup);
	sink_free(s->sink);
	signals_free(s->signals);
	workloads_end();
	own_profiles_end();
	if (s->store)
		s->store->close(s->store);
	metrics_free(s->metrics);
	loop_free(s->loop);
	if (s->reloaded)
		config_fini(s->reloaded);
	free(s->reloaded);
	*s = (struct session){ 0 };
}
