/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages wait in two lists: profiles, at most so many bytes of them, and all else, which goes first. Few profiles are
 * under way at a time; each stays until its acknowledgement, so that another backend gets it when this one dies. The oldest
 * go when there is no room, and are counted.
 *
 *   consume() ──> [profiles] ──> [under way] ──ack──> gone          ^ a backend that died: back to the front
 *   each second: state, series, messages ──> [others] ──> gone
 *
 * Notes are numbers of a size that is known. Nothing that they hold is used but as a number that is looked up, and bounded.
 */
#include "cmd/halves/channel.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/ourselves.h"
#include "base/usage.h"
#include "cmd/halves/messages.h"
#include "proto/otlp/otlp.h"
#include "symbols/find/debuginfod.h"

enum {
	UNDER_WAY = 8, /* fewer than a store's writer queues */
	QUEUE_BYTES = 64 << 20,
	TELL_MS = 1000,
	MESSAGES = 100,
	MAX_WANTS = 256,
	MAX_WINDOW_S = 3600,
	WINDOW_LEAST_MS = 100, /* an interval is not ended more often than that */
	WINDOW_LATE_S = 5,     /* until a window's last profiles have their names */
	LOG_SECONDS = 10,
	LEFT_NOTES = 4096, /* more than a socket holds of one that died */
};

struct want {
	uint64_t number; /* 0: free */
	char id[WIRE_ID_BYTES];
};

struct channel {
	struct sink sink;
	struct channel_config config;
	struct loop_watch *watch, *timer;
	struct message_list profiles, others, under_way;
	unsigned under_way_count;
	uint64_t last_number;
	uint64_t backend; /* its NOTE_HELLO's number, while it is connected */
	bool is_connected, is_lost, waits_for_room, sends_none;
	bool is_flushed;
	struct wire_note flushed;
	uint64_t log_count;
	bool holds_log;
	uint64_t window_ns; /* when the last one was asked for */
	uint64_t wanted_ns; /* until then profiles go also to a backend that keeps none: a window's, and what comes late */
	struct want wants[MAX_WANTS];
	struct debuginfod *servers;
	struct log_limit refused_limit;
	struct metric *sent_samples, *queue_bytes;
	struct metric *dropped_full, *dropped_error, *dropped_shutdown;
	struct metric *bad_notes;
};

/* --- sending --- */

static void be_lost(struct channel *c)
{
	if (c->is_lost)
		return;
	c->is_lost = true;
	c->is_connected = false;
	loop_remove(MOVE(c->watch));
	if (c->config.lost)
		c->config.lost(c->config.arg);
}

/* The entry to send from: one that was begun, others first. NULL: none may go now. */
static struct message_list *next_list(struct channel *c)
{
	if (c->profiles.first && c->profiles.first->sent)
		return &c->profiles;
	if (c->others.first)
		return &c->others;
	return c->profiles.first && c->under_way_count < UNDER_WAY ? &c->profiles : NULL;
}

static void be_sent(struct channel *c, struct message_list *from)
{
	struct message_entry *e = message_list_take(from, &from->first);

	if (from != &c->profiles) {
		message_entry_free(e);
		return;
	}
	metric_add(c->sent_samples, e->samples);
	message_list_put(&c->under_way, e);
	c->under_way_count++;
}

/* Sends as much as goes without waiting. */
static void pump(struct channel *c)
{
	struct message_list *from;
	ptrdiff_t n = 0;

	while (c->is_connected && (from = next_list(c))) {
		struct message_entry *e = from->first;

		n = wire_send_piece(c->config.sock, &e->head, e->body.data, e->sent);
		if (n < 0)
			break;
		e->sent += (size_t)n;
		if (e->sent == e->head.total_bytes)
			be_sent(c, from);
	}
	if (n == -EPIPE || n == -ECONNRESET)
		be_lost(c);
	metric_set(c->queue_bytes, c->profiles.bytes + c->under_way.bytes);
	if (c->watch && c->waits_for_room != (n == -EAGAIN)) {
		c->waits_for_room = n == -EAGAIN;
		(void)loop_change_fd(c->watch, EPOLLIN | (c->waits_for_room ? EPOLLOUT : 0));
	}
}

/* Sends @e, which is taken over, without an acknowledgement. */
static void say(struct channel *c, struct message_entry *e)
{
	if (!e)
		return;
	if (e->body.failed || !c->is_connected) {
		message_entry_free(e);
		return;
	}
	e->head.total_bytes = (uint32_t)e->body.len;
	message_list_put(&c->others, e);
}

static void say_number(struct channel *c, enum wire_kind kind, uint64_t number)
{
	say(c, message_entry_new(kind, number));
}

static void say_state(struct channel *c)
{
	struct message_entry *e = message_entry_new(WIRE_STATE, 0);
	const struct usage u = usage_of_process();
	struct wire_state state = {
		.cpu_ns = u.cpu_ns,
		.resident_bytes = u.resident_bytes,
		.pid = u.pid,
		.log_level = log_is_enabled(LOG_DEBUG)	? LOG_DEBUG
			     : log_is_enabled(LOG_INFO) ? LOG_INFO
							: LOG_WARN,
		.holds_log = c->holds_log,
	};

	ourselves_known(&state.processes);
	if (e)
		buf_append(&e->body, &state, sizeof(state));
	say(c, e);
}

static void say_log(struct channel *c)
{
	AUTO_FREE struct log_message *messages = calloc(MESSAGES, sizeof(*messages));
	struct message_entry *e = message_entry_new(WIRE_LOG, 0);
	size_t count = messages ? log_since(&c->log_count, messages, MESSAGES) : 0;

	if (e && count)
		buf_append(&e->body, messages, count * sizeof(*messages));
	if (e && count)
		say(c, e);
	else
		message_entry_free(e);
}

/* What is told each second; nothing while the last time still waits. */
static void tell(struct channel *c)
{
	struct message_entry *e = c->is_connected && !c->others.first ? message_entry_new(WIRE_METRICS, 0) : NULL;

	if (!e)
		return;
	say_state(c);
	say_log(c);
	wire_put_series(c->config.metrics, &e->body);
	say(c, e);
	pump(c);
}

static void on_timer(void *arg)
{
	tell(arg);
}

/* --- a backend that comes and goes --- */

static void go_down(struct channel *c)
{
	struct message_list back;

	c->is_connected = false;
	message_list_clear(&c->others);
	message_list_init(&back);
	message_list_take_back(&back, &c->under_way);
	message_list_take_back(&back, &c->profiles);
	message_list_take_back(&c->profiles, &back);
	c->under_way_count = 0;
	for (size_t i = 0; i < MAX_WANTS; i++) {
		if (c->wants[i].number && c->servers)
			debuginfod_answer(c->servers, c->wants[i].id, -EIO, -1);
		c->wants[i].number = 0;
	}
}

static void take_hello(struct channel *c, const struct wire_note *note)
{
	go_down(c);
	c->is_connected = true;
	c->backend = note->number;
	c->log_count = 0;
	say_number(c, WIRE_WELCOME, note->number);
	say_state(c);
	pump(c);
}

/* --- notes --- */

static void take_ack(struct channel *c, const struct wire_note *note)
{
	for (struct message_entry **link = &c->under_way.first; *link; link = &(*link)->next) {
		struct message_entry *e = *link;

		if (e->head.number != note->number)
			continue;
		message_list_take(&c->under_way, link);
		c->under_way_count--;
		if (note->status) {
			metric_add(c->dropped_error, e->samples);
			log_limited(&c->refused_limit, LOG_SECONDS * NSEC_PER_SEC, LOG_ERROR,
				    "the backend could not keep profiles; %" PRIu64 " samples are missing there so far",
				    metric_get(c->dropped_error));
		}
		message_entry_free(e);
		return;
	}
	metric_add(c->bad_notes, 1);
}

/* A window ends between now and an hour from now; a backend that asks all the time is not heard. */
static void take_window(struct channel *c, const struct wire_note *note)
{
	const uint64_t now = clock_mono_ns();

	if (note->number > now + (MAX_WINDOW_S + 1) * NSEC_PER_SEC ||
	    (c->window_ns && now - c->window_ns < WINDOW_LEAST_MS * NSEC_PER_MSEC)) {
		metric_add(c->bad_notes, 1);
		return;
	}
	c->window_ns = now;
	if (note->number + WINDOW_LATE_S * NSEC_PER_SEC > c->wanted_ns)
		c->wanted_ns = note->number + WINDOW_LATE_S * NSEC_PER_SEC;
	if (c->config.window)
		c->config.window(c->config.arg, note->number > now ? note->number : now);
	say_state(c); /* with the processes that are hearth, which are being looked for now */
	pump(c);
}

/* A file is handed to a process without privileges, which reads it; here it only must be one whose reading ends. */
static void take_served(struct channel *c, const struct wire_note *note, int *fd)
{
	struct stat st;
	int status = note->status < 0 && note->status > -4096 ? note->status : -EIO;

	for (size_t i = 0; i < MAX_WANTS; i++) {
		if (!note->number || c->wants[i].number != note->number)
			continue;
		c->wants[i].number = 0;
		if (!note->status && *fd >= 0 && !fstat(*fd, &st) && S_ISREG(st.st_mode))
			debuginfod_answer(c->servers, c->wants[i].id, 0, MOVE_FD(*fd));
		else
			debuginfod_answer(c->servers, c->wants[i].id, status, -1);
		return;
	}
	metric_add(c->bad_notes, 1);
}

static void take_note(struct channel *c, const struct wire_note *note, int *fd)
{
	switch (note->kind) {
	case NOTE_HELLO:
		take_hello(c, note);
		break;
	case NOTE_READY:
		if (c->config.ready)
			c->config.ready(c->config.arg, note);
		break;
	case NOTE_ACK:
		take_ack(c, note);
		break;
	case NOTE_WINDOW:
		take_window(c, note);
		break;
	case NOTE_SERVED:
		take_served(c, note, fd);
		break;
	case NOTE_FLUSHED:
		c->flushed = *note;
		c->is_flushed = true;
		break;
	default:
		metric_add(c->bad_notes, 1);
	}
}

static void take_notes(struct channel *c, int at_most)
{
	for (int i = 0; i < at_most && !c->is_lost; i++) {
		AUTO_CLOSE int fd = -1;
		struct wire_note note;
		int err = wire_receive_note(c->config.sock, &note, &fd);

		if (err == -EAGAIN)
			break;
		if (err == -EBADMSG)
			metric_add(c->bad_notes, 1);
		else if (err)
			be_lost(c);
		else
			take_note(c, &note, &fd);
	}
}

static void on_sock(void *arg, int sock, uint32_t events)
{
	struct channel *c = arg;

	(void)sock;
	(void)events;
	take_notes(c, UNDER_WAY * 2); /* others on this loop have their turn, too */
	pump(c);
}

/* What it acknowledged before it died is not sent again; and the next one may have come before we heard of the death. */
void channel_went_down(struct channel *c, uint64_t backend)
{
	take_notes(c, LEFT_NOTES);
	if (!c->is_connected || c->backend == backend)
		go_down(c);
}

/* --- as a sink --- */

static void make_room(struct channel *c)
{
	struct message_entry **link = &c->profiles.first;

	if (*link && (*link)->sent) /* a part of it went */
		link = &(*link)->next;
	while (c->profiles.bytes + c->under_way.bytes > QUEUE_BYTES && *link && (*link)->next) {
		struct message_entry *e = message_list_take(&c->profiles, link);

		metric_add(c->dropped_full, e->samples);
		message_entry_free(e);
	}
}

/* Never refuses: what there is no room for is dropped, the oldest first, and counted here. */
static int channel_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct channel *c = (struct channel *)sink;
	const bool is_unwanted = c->sends_none && clock_mono_ns() >= c->wanted_ns;
	struct message_entry *e = is_unwanted ? NULL : message_entry_new(WIRE_PROFILES, ++c->last_number);
	int err = e ? otlp_encode(p, NULL, &e->body) : -ENOMEM;

	(void)ack;
	if (is_unwanted)
		return 0;
	if (!err && e->body.len > UINT32_MAX / 4)
		err = -E2BIG;
	if (err || c->is_lost) {
		metric_add(c->dropped_error, p->sample_events);
		message_entry_free(e);
		return 0;
	}
	buf_fit(&e->body);
	e->samples = p->sample_events;
	e->head.total_bytes = (uint32_t)e->body.len;
	message_list_put(&c->profiles, e);
	make_room(c);
	pump(c);
	return 0;
}

/* Reads notes until @is_done says so, nobody is there, or the deadline. */
static bool wait_for(struct channel *c, bool (*is_done)(const struct channel *c), uint64_t deadline_ns)
{
	while (!is_done(c) && !c->is_lost) {
		const uint64_t now = clock_mono_ns();
		struct pollfd wait = { .fd = c->config.sock, .events = POLLIN | (c->waits_for_room ? POLLOUT : 0) };

		if (now >= deadline_ns)
			return false;
		(void)poll(&wait, 1, (int)((deadline_ns - now) / NSEC_PER_MSEC) + 1);
		on_sock(c, c->config.sock, 0);
	}
	return is_done(c);
}

static bool has_nothing_left(const struct channel *c)
{
	return !c->profiles.first && !c->under_way.first && !c->others.first;
}

static bool has_flushed(const struct channel *c)
{
	return c->is_flushed;
}

static void drop_rest(struct channel *c, struct message_list *l)
{
	for (const struct message_entry *e = l->first; e; e = e->next)
		metric_add(c->dropped_shutdown, e->samples);
	message_list_clear(l);
}

static uint64_t ns_until(uint64_t deadline_ns)
{
	const uint64_t now = clock_mono_ns();

	return deadline_ns > now ? deadline_ns - now : 0;
}

/* Also after the deadline the backend gets a moment to say what it could not do. */
static int channel_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct channel *c = (struct channel *)sink;
	bool is_done;

	if (c->sends_none && !c->is_connected)
		return 0;
	tell(c);
	(void)wait_for(c, has_nothing_left, deadline_ns);
	say_number(c, WIRE_FLUSH, ns_until(deadline_ns));
	pump(c);
	is_done = wait_for(c, has_flushed, deadline_ns + NSEC_PER_SEC);
	drop_rest(c, &c->profiles);
	drop_rest(c, &c->under_way);
	if (!is_done)
		return c->is_lost ? -ECONNRESET : -ETIMEDOUT;
	/* A number out of it, that it may have made up, for people. */
	metric_set(metrics_counter(c->config.metrics, "hearth_backend_dropped_samples_total", NULL,
				   "Samples that the backend's sinks dropped."),
		   c->flushed.values[0]);
	metric_set(metrics_gauge(c->config.metrics, "hearth_spool_samples", NULL, "Samples that wait in the spool."),
		   c->flushed.values[1]);
	return c->flushed.status < 0 && c->flushed.status > -4096 ? c->flushed.status : 0;
}

static void channel_free(struct sink *sink)
{
	struct channel *c = (struct channel *)sink;

	loop_remove(c->watch);
	loop_remove(c->timer);
	message_list_clear(&c->profiles);
	message_list_clear(&c->others);
	message_list_clear(&c->under_way);
	if (c->config.sock >= 0)
		close(c->config.sock);
	free(c);
}

static const struct sink_ops channel_ops = {
	.name = "backend", .consume = channel_consume, .flush = channel_flush, .free = channel_free
};

/* --- the rest --- */

void channel_send_none(struct channel *c)
{
	c->sends_none = true;
}

void channel_hold_log(struct channel *c, bool on)
{
	c->holds_log = on;
	say_state(c);
	pump(c);
}

void channel_quiesce(struct channel *c, uint64_t deadline_ns)
{
	say_number(c, WIRE_QUIESCE, ns_until(deadline_ns));
	pump(c);
}

static int ask_backend(void *arg, const char *build_id)
{
	struct channel *c = arg;
	struct message_entry *e = c->is_connected ? message_entry_new(WIRE_WANT, ++c->last_number) : NULL;

	for (size_t i = 0; e && i < MAX_WANTS; i++) {
		if (c->wants[i].number)
			continue;
		c->wants[i].number = e->head.number;
		strncpy(c->wants[i].id, build_id, WIRE_ID_BYTES - 1);
		buf_append(&e->body, build_id, strlen(build_id) + 1);
		say(c, e);
		pump(c);
		return 0;
	}
	message_entry_free(e);
	return -EAGAIN;
}

struct debuginfod *channel_debuginfod(struct channel *c)
{
	if (!c->servers && debuginfod_new_far(ask_backend, c, &c->servers))
		return NULL;
	return c->servers;
}

static struct metric *dropped_counter(struct metrics *metrics, const char *labels)
{
	return metrics_counter(metrics, "hearth_channel_dropped_samples_total", labels,
			       "Samples that did not get from the agent to the backend.");
}

static void register_counters(struct channel *c, struct metrics *metrics)
{
	c->sent_samples = metrics_counter(metrics, "hearth_channel_samples_total", NULL,
					  "Samples sent to the backend, once more after each of its deaths.");
	c->queue_bytes = metrics_gauge(metrics, "hearth_channel_queue_bytes", NULL,
				       "Profiles that the backend has not acknowledged.");
	c->dropped_full = dropped_counter(metrics, "reason=\"queue full\"");
	c->dropped_error = dropped_counter(metrics, "reason=\"error\"");
	c->dropped_shutdown = dropped_counter(metrics, "reason=\"shutdown\"");
	c->bad_notes = metrics_counter(metrics, "hearth_channel_bad_notes_total", NULL,
				       "Notes from the backend that made no sense.");
}

struct sink *channel_sink(struct channel *c)
{
	return &c->sink;
}

int channel_new(const struct channel_config *config, struct channel **ret)
{
	struct channel *c = calloc(1, sizeof(*c));
	int err;

	if (!c) {
		close(config->sock);
		return -ENOMEM;
	}
	c->sink.ops = &channel_ops;
	c->config = *config;
	message_list_init(&c->profiles);
	message_list_init(&c->others);
	message_list_init(&c->under_way);
	register_counters(c, config->metrics);
	err = loop_add_fd(config->loop, config->sock, EPOLLIN, on_sock, c, &c->watch);
	if (!err)
		err = loop_add_timer(config->loop, on_timer, c, &c->timer);
	if (!err)
		err = loop_set_timer(c->timer, TELL_MS * NSEC_PER_MSEC, TELL_MS * NSEC_PER_MSEC);
	if (err) {
		channel_free(&c->sink);
		return err;
	}
	*ret = c;
	return 0;
}
