/* SPDX-License-Identifier: Apache-2.0 */
/* A loop of its own, of two descriptors: nothing that the rest of hearth needs is made in this process. */
#include "cmd/halves/keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/calls.h"
#include "base/capabilities.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/halves/backend_half.h"
#include "cmd/halves/confine.h"
#include "cmd/halves/hand_over.h"

enum {
	LOOK_MS = 1000,	      /* how often files with secrets are looked at */
	FIRST_PAUSE_MS = 100, /* before a backend that died is started again; doubled each time */
	LONGEST_PAUSE_MS = 30000,
	LONG_LIFE_S = 60, /* one that lived so long begins anew */
	END_MS = 2000,	  /* the backend's time beyond what it was given, when the agent has ended */
};

struct keeper {
	struct backend_task task;
	struct handed_over handed;
	int control;
	pid_t backend; /* 0: none */
	int backend_fd;
	uint64_t started_ns, pause_ms;
	bool is_over;
	char addresses[PAGE_PORTS][256];
};

static void tell_end(struct keeper *k, pid_t pid, int status, uint64_t pause_ns)
{
	const struct keeper_note note = { .pid = pid, .wait_status = status, .pause_ns = pause_ns };

	(void)send(k->control, &note, sizeof(note), MSG_NOSIGNAL);
}

/* The backend has ended. */
static void reap(struct keeper *k)
{
	const pid_t pid = k->backend;
	int status = 0;

	(void)waitpid(pid, &status, 0);
	close(MOVE_FD(k->backend_fd));
	k->backend = 0;
	if (clock_mono_ns() - k->started_ns > LONG_LIFE_S * NSEC_PER_SEC)
		k->pause_ms = FIRST_PAUSE_MS;
	k->is_over |= WIFEXITED(status) && (WEXITSTATUS(status) == BACKEND_DONE || WEXITSTATUS(status) == BACKEND_REFUSED);
	tell_end(k, pid, status, k->is_over ? UINT64_MAX : k->pause_ms * NSEC_PER_MSEC);
}

/* Where it cannot, none is there: another one is tried after a pause. */
static void start_backend(struct keeper *k)
{
	k->started_ns = clock_mono_ns();
	k->backend = fork();
	if (!k->backend) {
		close(k->control);
		backend_half(&k->task);
	}
	if (k->backend < 0) {
		log_error("cannot start the half of hearth that listens: %s", strerror(errno));
		k->backend = 0;
		return;
	}
	k->task.is_first = false;
	k->backend_fd = pidfd_open(k->backend, 0);
	if (k->backend_fd >= 0)
		return;
	log_error("cannot watch the half of hearth that listens (pidfd_open: %s), so it is started anew", strerror(errno));
	kill(k->backend, SIGKILL);
	reap(k);
}

/* --- addresses --- */

static void take_port(struct keeper *k, size_t i, const char **address, uint16_t port)
{
	const char *colon = *address ? strrchr(*address, ':') : NULL;

	if (!port || !colon)
		return;
	snprintf(k->addresses[i], sizeof(k->addresses[i]), "%.*s:%u", (int)(colon - *address), *address, port);
	*address = k->addresses[i];
}

static void take_ports(struct keeper *k, const struct keeper_ports *p)
{
	struct config *c = &k->task.share->backend;

	take_port(k, PAGE_PORT_SHOWN, c->page_address ? &c->page_address : &c->http_address, p->ports[PAGE_PORT_SHOWN]);
	take_port(k, PAGE_PORT_RECEIVER, &c->http_address, p->ports[PAGE_PORT_RECEIVER]);
	take_port(k, PAGE_PORT_METRICS, &c->metrics_address, p->ports[PAGE_PORT_METRICS]);
	take_port(k, PAGE_PORT_GRPC, &c->grpc_address, p->ports[PAGE_PORT_GRPC]);
	take_port(k, PAGE_PORT_PPROF, &c->pprof_address, p->ports[PAGE_PORT_PPROF]);
	take_port(k, PAGE_PORT_REST, &c->rest_address, p->ports[PAGE_PORT_REST]);
	share_renew_senders(k->task.share);
}

/* What the agent says; false: it has gone. */
static bool hear(struct keeper *k)
{
	struct keeper_ports ports;
	ssize_t n = recv(k->control, &ports, sizeof(ports), MSG_DONTWAIT);

	if (n == sizeof(ports))
		take_ports(k, &ports);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* --- the loop --- */

/* Waits until something happens or @timeout_ms are over; false: the agent has gone. */
static bool wait_a_while(struct keeper *k, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = k->control, .events = POLLIN }, { .fd = k->backend_fd, .events = POLLIN } };
	bool is_there = true;

	if (poll(fds, ARRAY_LEN(fds), timeout_ms) <= 0)
		return true;
	if (fds[0].revents)
		is_there = hear(k);
	if (fds[1].revents)
		reap(k);
	return is_there;
}

/* Waits for the time before the next backend; false: the agent has gone. */
static bool pause_for(struct keeper *k)
{
	const uint64_t until_ns = clock_mono_ns() + k->pause_ms * NSEC_PER_MSEC;
	bool is_there = true;

	for (uint64_t now = clock_mono_ns(); is_there && now < until_ns; now = clock_mono_ns())
		is_there = wait_a_while(k, (int)((until_ns - now) / NSEC_PER_MSEC) + 1);
	k->pause_ms = k->pause_ms * 2 < LONGEST_PAUSE_MS ? k->pause_ms * 2 : LONGEST_PAUSE_MS;
	return is_there;
}

/* The agent has gone: the backend hears that itself, brings out what it has, and ends. */
static void end(struct keeper *k)
{
	const uint64_t limit_ns = k->task.share->backend.drain_timeout_ns;
	struct pollfd ended = { .fd = k->backend_fd, .events = POLLIN };
	const uint64_t ms = limit_ns / NSEC_PER_MSEC;

	if (!k->backend)
		return;
	close(k->task.sock);
	if (poll(&ended, 1, ms < INT32_MAX / 2 ? (int)ms + END_MS : INT32_MAX) <= 0)
		kill(k->backend, SIGKILL);
	(void)waitpid(k->backend, NULL, 0);
}

/* Lets it make backends, which give up more (confine_calls() allows nothing that this does not). They bind ports before
 * that, and name files that root alone may read. */
static int confine(void)
{
	static const int more[] = {
		SCMP_SYS(wait4),	 SCMP_SYS(waitid),    SCMP_SYS(pidfd_open),   SCMP_SYS(setgroups),
		SCMP_SYS(setresgid),	 SCMP_SYS(setresuid), SCMP_SYS(capget),	      SCMP_SYS(capset),
		SCMP_SYS(prctl),	 SCMP_SYS(seccomp),   SCMP_SYS(setpriority),  SCMP_SYS(tgkill),
		LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE,   LANDLOCK_RESTRICT_SELF,
	};
	static const unsigned long requests[] = { SIOCGIFNAME, SIOCGIFINDEX };

	return calls_filter(&(struct calls){ .more = more,
					     .more_count = ARRAY_LEN(more),
					     .requests = requests,
					     .request_count = ARRAY_LEN(requests),
					     .network = true,
					     .forks = true,
					     .kills = true });
}

__attribute__((noreturn)) static void keep(struct keeper *k)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE, SIGUSR1, SIGUSR2 };
	bool is_there = true;

	(void)prctl(PR_SET_NAME, "hearth-keeper");
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	hand_over(k->task.share, k->task.keeps, &k->handed);
	/* to make backends what they are, to end one, and to read secrets that have changed */
	if (capabilities_keep(capabilities_of(CAPABILITY_KEEPER, capabilities_effective())) || confine())
		_exit(1);
	k->backend_fd = -1;
	start_backend(k);
	while (is_there && !k->is_over) {
		is_there = wait_a_while(k, !k->backend ? 0 : k->handed.secret_count ? LOOK_MS : -1);
		hand_over_again(&k->handed);
		if (!is_there || k->is_over || k->backend)
			continue;
		is_there = pause_for(k);
		if (is_there)
			start_backend(k);
	}
	end(k);
	_exit(0);
}

pid_t keeper_fork(struct share *share, bool keeps, bool is_lenient, int *sock_ret, int *control_ret)
{
	struct keeper k = {
		.task = { .share = share, .keeps = keeps, .is_lenient = is_lenient, .is_first = true },
		.pause_ms = FIRST_PAUSE_MS,
	};
	int channel[2], control[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel))
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control)) {
		int err = -errno;

		close(channel[0]);
		close(channel[1]);
		return err;
	}
	pid = fork();
	if (!pid) {
		close(channel[0]);
		close(control[0]);
		k.task.sock = channel[1];
		k.task.handed = &k.handed;
		k.control = control[1];
		keep(&k);
	}
	if (pid < 0)
		pid = -errno;
	close(channel[1]);
	close(control[1]);
	*sock_ret = channel[0];
	*control_ret = control[0];
	return pid;
}
