/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session without an agent. The main thread reads the channel; the page has a thread of its own, and so have the sinks.
 * Profiles are acknowledged when the store has committed them, from the store's thread; without a store when the senders
 * have taken them. Requests that senders hold in memory die with this process: no collector has acknowledged them.
 */
#include "cmd/halves/backend_half.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_write.h"
#include "base/buf.h"
#include "base/calls.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/ourselves.h"
#include "base/thread.h"
#include "base/usage.h"
#include "cmd/halves/confine.h"
#include "cmd/halves/fetch.h"
#include "cmd/halves/wire.h"
#include "cmd/options/command.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/setup/enrich_of.h"
#include "cmd/setup/own_profiles_of.h"
#include "cmd/setup/page.h"
#include "cmd/setup/pipelines_of.h"
#include "cmd/setup/session.h"
#include "cmd/setup/sinks_of.h"
#include "cmd/setup/store_of.h"
#include "cmd/setup/tcp_ports.h"
#include "cmd/setup/workloads_of.h"
#include "proto/arena.h"
#include "proto/otlp/otlp.h"
#include "proto/sink.h"

enum {
	RETRY_MS = 20,
	RETRIES = 50,
	LAST_MS = 1500, /* for what is left when the agent has died: who starts hearth again wants store, spool and ports ...
			 */
	BUSY_MS = 100,	/* ... and waits twice as long for them */
	BUSY_RETRIES = 30,
	GIVE_BACK_MS = 5000,
};

struct half {
	struct sink into;   /* the store and the senders ... */
	struct sink *first; /* ... and in front of them what names pods; NULL: not yet */
	const struct backend_task *task;
	struct session session; /* its sink is the store's writer, or what stands for it */
	struct sink *senders;	/* NULL: none */
	struct page *page;	/* NULL: none */
	struct fetch *fetch;	/* of debug files; NULL: no server is named */
	struct loop_watch *memory_timer;
	struct wire_message message;
	bool is_welcome, is_done, is_held, is_page_stopped;
	_Atomic bool has_flushed;
};

/* --- profiles --- */

struct kept {
	struct ack ack;
	int sock;
	uint64_t number;
};

static void acknowledge(int sock, uint64_t number, int error)
{
	(void)wire_send_note(sock, &(struct wire_note){ .kind = NOTE_ACK, .number = number, .status = error }, -1);
}

static void on_kept(struct ack *ack, int error)
{
	struct kept *kept = (struct kept *)ack;

	acknowledge(kept->sock, kept->number, error);
	free(kept);
}

/* Hands @p to the store, waiting a moment where its queue is full: the agent holds back what comes after. */
static int store_profiles(struct sink *store, struct profiles *p, struct kept *kept)
{
	const struct timespec pause = { .tv_nsec = RETRY_MS * (long)NSEC_PER_MSEC };
	int err = sink_consume(store, p, &kept->ack);

	for (int i = 0; err == -EAGAIN && i < RETRIES; i++) {
		nanosleep(&pause, NULL);
		err = sink_consume(store, p, &kept->ack);
	}
	return err;
}

/* The sink that stands for the store and the senders. */
static int into_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct half *h = (struct half *)sink;
	struct kept *kept = (struct kept *)ack;

	if (h->senders)
		(void)sink_consume(h->senders, p, NULL); /* which counts what it does not take */
	if (!h->session.sink)
		return 0;
	*kept = (struct kept){ .ack.done = on_kept, .sock = h->task->sock, .number = kept->number };
	return store_profiles(h->session.sink, p, kept);
}

static void into_free(struct sink *sink)
{
	(void)sink;
}

static const struct sink_ops into_ops = { .name = "backend", .consume = into_consume, .free = into_free };

static void take_profiles(struct half *h, uint64_t number)
{
	struct sink *store = h->session.sink;
	struct kept *kept = calloc(1, sizeof(*kept));
	struct profiles *p = NULL;
	struct otlp_error why;
	size_t len;
	uint8_t *bytes = buf_take(&h->message.body, &len);
	int err = kept && bytes ? otlp_decode(bytes, len, true, &p, &why) : -ENOMEM;

	if (err) {
		free(bytes);
	} else {
		kept->number = number;
		err = sink_consume(h->first, p, &kept->ack);
		profiles_put(p);
	}
	if (store && !err)
		return; /* the store acknowledges, and may have */
	free(kept);
	acknowledge(h->task->sock, number, err);
}

/* --- the end --- */

struct undelivered {
	uint64_t dropped, spooled;
};

static void add_undelivered(void *arg, const char *name, const char *labels, uint64_t value)
{
	static const char suffix[] = "_dropped_samples_total";
	size_t len = strlen(name), suffix_len = sizeof(suffix) - 1;
	struct undelivered *u = arg;

	(void)labels;
	if (!strcmp(name, "hearth_spool_samples"))
		u->spooled += value;
	else if (strncmp(name, "hearth_channel_", 15) && len > suffix_len && !strcmp(name + len - suffix_len, suffix))
		u->dropped += value;
}

/* An agent that goes while we bring out what is left was told to hurry. */
static void *leave_with_agent(void *arg)
{
	const struct half *h = arg;
	struct pollfd agent = { .fd = h->task->sock };

	while (poll(&agent, 1, -1) <= 0 || !(agent.revents & (POLLHUP | POLLERR)))
		;
	if (!atomic_load(&h->has_flushed))
		_exit(BACKEND_DONE);
	return NULL;
}

static void stop_page(struct half *h, uint64_t deadline_ns)
{
	if (!h->is_page_stopped)
		page_stop(h->page, deadline_ns);
	h->is_page_stopped = true;
}

static int flush(struct half *h, uint64_t deadline_ns)
{
	int err, other;

	stop_page(h, deadline_ns);
	err = sink_flush(h->session.sink, deadline_ns);
	other = sink_flush(h->senders, deadline_ns);
	return err ? err : other;
}

static void take_flush(struct half *h, uint64_t within_ns)
{
	struct undelivered u = { 0 };
	pthread_t watcher;
	int err;

	(void)thread_start(&watcher, "ends", leave_with_agent, h);
	err = flush(h, clock_mono_ns() + within_ns);
	atomic_store(&h->has_flushed, true);
	metrics_each(h->session.metrics, add_undelivered, &u);
	(void)wire_send_note(h->task->sock,
			     &(struct wire_note){ .kind = NOTE_FLUSHED, .status = err, .values = { u.dropped, u.spooled } },
			     -1);
	h->is_done = true;
	loop_stop(h->session.loop);
}

static void lose_agent(struct half *h)
{
	const uint64_t most_ns = LAST_MS * NSEC_PER_MSEC, limit_ns = h->session.config->drain_timeout_ns;

	log_warn("the half of hearth that samples has ended; what it sent is kept, and hearth ends: start it again");
	(void)flush(h, clock_mono_ns() + (limit_ns < most_ns ? limit_ns : most_ns));
	h->is_done = true;
	loop_stop(h->session.loop);
}

/* --- messages --- */

static void take_state(struct half *h)
{
	struct wire_state state;

	if (h->message.body.len != sizeof(state))
		return;
	memcpy(&state, h->message.body.data, sizeof(state));
	usage_set_other(&(struct usage){ .cpu_ns = state.cpu_ns, .resident_bytes = state.resident_bytes, .pid = state.pid });
	ourselves_saw(&state.processes);
	log_set_level((enum log_level)state.log_level);
	if (h->is_held != state.holds_log)
		log_hold(state.holds_log);
	h->is_held = state.holds_log;
}

static void take_log(const struct buf *body)
{
	struct log_message m;

	for (size_t at = 0; at + sizeof(m) <= body->len; at += sizeof(m)) {
		memcpy(&m, body->data + at, sizeof(m));
		m.text[sizeof(m.text) - 1] = '\0';
		log_remember(&m);
	}
}

static void take_message(struct half *h)
{
	const struct wire_head *head = &h->message.head;

	if (head->kind == WIRE_WELCOME)
		h->is_welcome |= head->number == (uint64_t)getpid();
	if (!h->is_welcome)
		return; /* to another one, which has died */
	switch (head->kind) {
	case WIRE_PROFILES:
		take_profiles(h, head->number);
		break;
	case WIRE_STATE:
		take_state(h);
		break;
	case WIRE_METRICS:
		(void)wire_take_series(h->session.metrics, &h->message.body);
		break;
	case WIRE_LOG:
		take_log(&h->message.body);
		break;
	case WIRE_WANT:
		fetch_ask(h->fetch, h->task->sock, head->number, buf_text(&h->message.body));
		break;
	case WIRE_QUIESCE:
		stop_page(h, clock_mono_ns() + head->number);
		break;
	case WIRE_FLUSH:
		take_flush(h, head->number);
		break;
	default:
		break;
	}
}

static void on_agent(void *arg, int sock, uint32_t events)
{
	struct half *h = arg;
	int err = wire_receive(sock, &h->message);

	(void)events;
	if (err == -EPIPE)
		lose_agent(h);
	else if (!err && h->message.is_whole)
		take_message(h);
}

/* What a burst of profiles took goes back to the system, as it does in the agent after each report. */
static void give_back(void *arg)
{
	(void)arg;
	arenas_give_back();
	memory_give_back();
}

static void ask_for_report(void *arg, uint64_t at_ns)
{
	const struct half *h = arg;

	(void)wire_send_note(h->task->sock, &(struct wire_note){ .kind = NOTE_WINDOW, .number = at_ns }, -1);
}

/* --- the beginning --- */

static void quit(struct half *h, int status)
{
	log_hold(false);
	page_free(h->page);
	fetch_free(h->fetch);
	sink_free(h->session.received);
	sink_free(h->first);
	sink_free(h->senders);
	session_close(&h->session);
	_exit(status);
}

/* Signals that end or stop hearth are the agent's, which tells us what to do. */
static void prepare_process(bool prints)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE, SIGUSR1, SIGUSR2 };
	AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	(void)prctl(PR_SET_NAME, "hearth-backend");
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		if (!prints)
			dup2(null, STDOUT_FILENO);
	}
}

/* The folder /proc of the host that metrics are told of, where it is mounted elsewhere; NULL: it is not. */
static const char *host_proc(const struct config *config, struct buf *text)
{
	const char *root = config->pipelines ? pipelines_host_root(config->pipelines) : NULL;

	if (root)
		buf_printf(text, "%s/proc", root);
	return root && !text->failed ? buf_text(text) : NULL;
}

/* Paths outside of the system's folders that libraries read, as the environment says; and the host's /proc. */
static int confine(const struct backend_task *task)
{
	const struct enrich_config enrich = enrich_config_of(&task->share->backend);
	AUTO(buf_fini) struct buf host = BUF_EMPTY;
	const char *paths[] = { getenv("SSL_CERT_FILE"),
				getenv("SSL_CERT_DIR"),
				getenv("CURL_CA_BUNDLE"),
				enrich_account(&enrich),
				host_proc(&task->share->backend, &host),
				NULL };
	const char *readable[ARRAY_LEN(paths)] = { NULL };
	const struct handed_over *handed = task->handed;
	int folders[MAX_FOLDERS + 1];
	size_t count = handed->folder_count, n = 0;
	struct tcp_ports ports = { .count = 0 };
	int err;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (paths[i])
			readable[n++] = paths[i];
	memcpy(folders, handed->folders, count * sizeof(*folders));
	if (!count) /* a store in memory takes symbols there */
		folders[count++] = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	tcp_ports_add_config(&ports, &task->share->backend);
	tcp_ports_add_config(&ports, &task->share->senders);
	err = owner_become(&handed->owner);
	if (!err)
		err = confine_by_landlock(folders, folders[count - 1] < 0 ? count - 1 : count, readable, &ports);
	if (err == -ENOSYS)
		log_debug("this kernel has no Landlock: the user id alone keeps the backend from others' files");
	if (err >= 0 || err == -ENOSYS)
		err = confine_calls();
	if (err)
		log_error("the half of hearth that listens cannot give up its privileges: %s; --one-process goes without",
			  strerror(-err));
	return err;
}

/* Profiles are kept in the default store, as no other is named. */
static bool is_default_store(const struct half *h)
{
	return h->task->keeps && !h->task->share->backend.store;
}

static int try_store(struct half *h, struct buf *error)
{
	const struct config *config = &h->task->share->backend;
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	struct session *s = &h->session;
	int err;

	if (!is_default_store(h))
		return config->store || config->sinks.count
			       ? sinks_of(config, s->metrics, &s->sink, &s->store, &names, error)
			       : 0;
	err = store_of(config, NULL, false, s->metrics, &s->store, error);
	return err ? err : s->store->write->writer(s->store, &s->sink);
}

static int try_senders(struct half *h, struct buf *error)
{
	const struct config *config = &h->task->share->senders;
	AUTO(buf_fini) struct buf names = BUF_EMPTY;

	if (!config->collectors.count && !config->sinks.count && !config->pipelines)
		return 0;
	return sinks_of(config, h->session.metrics, &h->senders, &h->session.store, &names, error);
}

/* The backend of an agent that has just died may still have the store or the spool. */
static int open_patiently(struct half *h, int (*try)(struct half *h, struct buf *error), struct buf *error)
{
	const struct timespec pause = { .tv_nsec = BUSY_MS * (long)NSEC_PER_MSEC };
	int err = try(h, error);

	for (int i = 0; err == -EBUSY && i < BUSY_RETRIES; i++) {
		nanosleep(&pause, NULL);
		buf_reset(error);
		err = try(h, error);
	}
	if (err && !error->len)
		buf_puts(error, strerror(-err));
	return err;
}

static int open_store(struct half *h)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	int err = h->task->handed->store_errno;

	if (err)
		buf_puts(&error, h->task->handed->store_error);
	else
		err = open_patiently(h, try_store, &error);
	if (err && is_default_store(h)) {
		log_warn("profiles are not kept, and there is no page: %s", buf_text(&error));
		return 0;
	}
	if (err)
		log_error("%s", buf_text(&error));
	return err;
}

static int open_senders(struct half *h)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	int err = open_patiently(h, try_senders, &error);

	if (err)
		log_error("%s", buf_text(&error));
	return err;
}

/* 0, or an exit status for the agent's. */
static int open_all(struct half *h)
{
	struct session *s = &h->session;
	int err;

	if (session_open(s, &h->task->share->backend))
		return STATUS_FAILED;
	calls_tell(s->metrics, "backend");
	s->report_at = ask_for_report;
	s->report_arg = h;
	err = open_store(h);
	if (!err)
		err = open_senders(h);
	if (err)
		return err == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
	s->received = pipelines_received(h->senders);
	h->into.ops = &into_ops;
	h->first = &h->into;
	if (workloads_wrap(s->config, s->metrics, &h->first) || own_profiles_wrap(s->config, s->store, &h->first))
		return STATUS_FAILED;
	if ((s->sink || h->senders) && enrich_wrap(s->config, ENRICH_OF_BACKEND, s->metrics, &h->first))
		return STATUS_FAILED;
	if (!h->task->is_lenient)
		page_warn_of_nothing(s);
	if (page_start(s, &h->page) && !h->task->is_lenient)
		return STATUS_FAILED;
	h->fetch = fetch_new(s->loop);
	if (loop_add_timer(s->loop, give_back, h, &h->memory_timer) ||
	    loop_set_timer(h->memory_timer, GIVE_BACK_MS * NSEC_PER_MSEC, GIVE_BACK_MS * NSEC_PER_MSEC))
		return STATUS_FAILED;
	return loop_add_fd(s->loop, h->task->sock, EPOLLIN, on_agent, h, NULL) ? STATUS_FAILED : 0;
}

static int say_ready(const struct half *h, int status)
{
	struct wire_note note = { .kind = NOTE_READY, .status = status };
	uint16_t ports[PAGE_PORTS];

	page_ports(h->page, ports);
	for (unsigned i = 0; i < PAGE_PORTS; i++)
		ready_set_port(&note, i, ports[i]);
	if (h->session.sink || h->senders)
		note.values[2] |= READY_KEEPS;
	return wire_send_note(h->task->sock, &note, -1);
}

void backend_half(const struct backend_task *task)
{
	struct half h = { .task = task };
	bool is_needed;
	int status;

	prepare_process(sinks_use_stdout(&task->share->senders));
	memory_map_large(); /* or tables of a question stay in the heap of the thread that answered it */
	hand_over_ports(&task->share->backend);
	if (task->handed->owner.changes && store_sqlite_keep_paths())
		_exit(BACKEND_FAILED);
	status = confine(task) ? STATUS_FAILED : open_all(&h);
	if (status && !task->is_first)
		quit(&h, BACKEND_FAILED);
	is_needed = h.session.sink || h.senders || h.page;
	if (!status && is_needed)
		(void)wire_send_note(task->sock, &(struct wire_note){ .kind = NOTE_HELLO, .number = (uint64_t)getpid() },
				     -1);
	(void)say_ready(&h, status);
	if (status || !is_needed)
		quit(&h, BACKEND_REFUSED);
	(void)loop_run(h.session.loop);
	quit(&h, h.is_done ? BACKEND_DONE : BACKEND_FAILED);
	abort();
}
