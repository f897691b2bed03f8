/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the keeper's notes: a backend that died is another's beginning, until the keeper itself has gone. */
#include "cmd/halves/halves.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "cmd/halves/channel.h"
#include "cmd/halves/keeper.h"
#include "cmd/halves/share.h"
#include "cmd/options/command.h"
#include "cmd/setup/own_profiles_of.h"
#include "cmd/setup/page.h"
#include "cmd/setup/session.h"

struct halves {
	struct share share;
	pid_t keeper;
	int sock, control; /* -1: given away, closed */
	struct session *session;
	struct channel *channel; /* the session's sink or a part of it; NULL: not yet, or there was nothing to do */
	struct loop_watch *control_watch;
	bool is_ready, is_down, is_ending, has_ports;
	struct wire_note ready;
	struct buf url;
	struct metric *restarts;
};

int halves_fork(const struct config *config, bool keeps, bool is_lenient, struct halves **ret)
{
	struct halves *h;
	int err;

	if (config->one_process || !share_needs_backend(config, keeps))
		return 0;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->sock = h->control = -1;
	err = share_divide(config, &h->share);
	if (!err) {
		h->keeper = keeper_fork(&h->share, keeps, is_lenient, &h->sock, &h->control);
		err = h->keeper < 0 ? h->keeper : 0;
	}
	if (err) {
		log_error("cannot start the half of hearth that listens: %s", strerror(-err));
		halves_end(h);
		return err;
	}
	*ret = h;
	return 0;
}

bool halves_leave_agent_alone(const struct halves *h, const struct config *config, bool keeps)
{
	return h || !share_needs_one_process(config, keeps);
}

const struct config *halves_config(const struct halves *h)
{
	return &h->share.agent;
}

/* --- the keeper's notes --- */

static void describe_end(int status, struct buf *out)
{
	if (WIFSIGNALED(status))
		buf_printf(out, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		buf_printf(out, "ended with status %d", WEXITSTATUS(status));
}

static void take_end(struct halves *h, const struct keeper_note *note)
{
	AUTO(buf_fini) struct buf end = BUF_EMPTY;

	h->is_down = true;
	if (!h->channel || h->is_ending)
		return;
	channel_went_down(h->channel, (uint64_t)note->pid);
	describe_end(note->wait_status, &end);
	if (note->pause_ns == UINT64_MAX)
		return;
	metric_add(h->restarts, 1);
	log_warn("the half of hearth that listens (process %d) %s; it is started again in %.1f s, samples wait meanwhile",
		 (int)note->pid, buf_text(&end), (double)note->pause_ns / (double)NSEC_PER_SEC);
}

static void lose_keeper(struct halves *h)
{
	loop_remove(MOVE(h->control_watch));
	h->is_down = true;
	if (h->is_ready && !h->is_ending && h->channel)
		log_error("the process that starts the half of hearth that listens has gone: when that half ends, too, what "
			  "is sampled is lost until hearth is started again");
}

static void on_keeper(void *arg, int control, uint32_t events)
{
	struct halves *h = arg;
	struct keeper_note note;
	ssize_t n = recv(control, &note, sizeof(note), MSG_DONTWAIT);

	(void)events;
	if (n == sizeof(note))
		take_end(h, &note);
	else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		lose_keeper(h);
}

/* --- the channel's --- */

static bool keeps(const struct wire_note *ready)
{
	return !ready->status && ready->values[2] & READY_KEEPS;
}

/* Only the first one counts: the next ones take the same ports, or are not ready. One that had nothing to do ends, and that
 * may be heard before anything else is done here. */
static void on_ready(void *arg, const struct wire_note *note)
{
	struct halves *h = arg;
	struct keeper_ports ports;

	if (h->is_ready)
		return;
	for (unsigned i = 0; i < PAGE_PORTS; i++) {
		ports.ports[i] = ready_port(note, i);
		h->has_ports |= ports.ports[i];
	}
	h->is_ready = true;
	h->is_ending = note->status || !(keeps(note) || h->has_ports);
	h->ready = *note;
	if (ports.ports[PAGE_PORT_SHOWN])
		page_write_url(&h->share.backend, ports.ports[PAGE_PORT_SHOWN], &h->url);
	(void)send(h->control, &ports, sizeof(ports), MSG_NOSIGNAL);
}

static void on_window(void *arg, uint64_t at_ns)
{
	struct halves *h = arg;

	own_profiles_look(h->session, at_ns);
	if (h->session->agent)
		(void)agent_report_at(h->session->agent, at_ns);
}

static void on_lost(void *arg)
{
	struct halves *h = arg;

	if (h->is_ready && !h->is_ending)
		log_error("nobody keeps or sends profiles any more: start hearth again");
}

/* --- for commands --- */

/* An exit status as a backend may say it. */
static int status_of(const struct halves *h)
{
	if (!h->is_ready)
		return STATUS_FAILED;
	return h->ready.status == 0 ? 0 : h->ready.status == STATUS_USAGE ? STATUS_USAGE : STATUS_FAILED;
}

static int wait_for_backend(struct halves *h)
{
	struct loop *loop = h->session->loop;
	int err = 0;

	while (!err && !h->is_ready && !h->is_down && !h->session->is_signalled)
		err = loop_step(loop, -1);
	if (err || h->session->is_signalled)
		return STATUS_FAILED;
	if (!h->is_ready) /* the keeper's note came first */
		(void)loop_step(loop, 0);
	if (!h->is_ready)
		log_error("the half of hearth that listens has ended at its start; --one-process goes without it");
	return status_of(h);
}

int halves_connect(struct halves *h, struct session *s, struct sink **sink_ret)
{
	const struct channel_config config = {
		.sock = MOVE_FD(h->sock),
		.loop = s->loop,
		.metrics = s->metrics,
		.ready = on_ready,
		.window = on_window,
		.lost = on_lost,
		.arg = h,
	};
	int err = channel_new(&config, &h->channel);

	h->session = s;
	if (!err)
		err = loop_add_fd(s->loop, h->control, EPOLLIN, on_keeper, h, &h->control_watch);
	if (err) {
		log_error("cannot speak to the half of hearth that listens: %s", strerror(-err));
		return err;
	}
	h->restarts = metrics_counter(s->metrics, "hearth_backend_restarts_total", NULL,
				      "How often the half that listens was started again after its death.");
	if (getenv("DEBUGINFOD_URLS"))
		s->setup.agent.servers = channel_debuginfod(h->channel);
	*sink_ret = channel_sink(h->channel);
	return 0;
}

int halves_wait(struct halves *h)
{
	int status = wait_for_backend(h);

	if (status || !keeps(&h->ready))
		channel_send_none(h->channel);
	h->is_ending |= !h->is_ready;
	return status;
}

const char *halves_page_url(const struct halves *h)
{
	return h && h->url.len ? buf_text((struct buf *)(uintptr_t)&h->url) : NULL;
}

void halves_hold_log(struct halves *h, bool on)
{
	if (h && h->channel)
		channel_hold_log(h->channel, on);
}

void halves_quiesce(void *halves, uint64_t deadline_ns)
{
	struct halves *h = halves;

	if (!h || !h->channel)
		return;
	h->is_ending = true;
	channel_quiesce(h->channel, deadline_ns);
}

void halves_end(struct halves *h)
{
	if (!h)
		return;
	if (h->sock >= 0)
		close(h->sock);
	if (h->control >= 0)
		close(h->control);
	while (h->keeper > 0 && waitpid(h->keeper, NULL, 0) < 0 && errno == EINTR)
		;
	share_fini(&h->share);
	buf_fini(&h->url);
	free(h);
}
