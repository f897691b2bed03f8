/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session, its other half and its page that do nothing but write down, in order, what was called with which arguments, and
 * fail where the test says so. Include it after cmocka.h, in the one file of a binary.
 */
#ifndef HEARTH_TESTS_CMD_TOLD_SESSION_H
#define HEARTH_TESTS_CMD_TOLD_SESSION_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "backend/store/store.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "cmd/halves/as_owner.h"
#include "cmd/halves/halves.h"
#include "cmd/setup/own_profiles_of.h"
#include "cmd/setup/page.h"
#include "cmd/setup/session.h"
#include "cmd/setup/workloads_of.h"
#include "proto/sink.h"
#include "sinks/sinks.h"

static struct {
	struct buf calls;
	const char *failing;
	int failure;
	const char *url;	 /* of the page; NULL: none */
	bool has_halves;	 /* the process forks */
	bool leaves_agent_alone; /* ... and only samples */
	void (*while_it_runs)(struct session *s);
	uint64_t log_count; /* messages before */
	struct session *session;
} told;

static int told_call(const char *name)
{
	buf_printf(&told.calls, "%s ", name);
	return told.failing && !strcmp(told.failing, name) ? told.failure : 0;
}

#define told_call_with(name, ...) (buf_printf(&told.calls, __VA_ARGS__), told_call(name))

/* --- what is handed about --- */

static struct agent *const told_agent = (struct agent *)&told;
static struct halves *const told_halves = (struct halves *)&told.calls;
static struct page *const told_page = (struct page *)&told.url;

struct told_sink {
	struct sink base;
	const char *name;
	struct sink *parts[2]; /* that it owns */
};

static void told_sink_free(struct sink *sink)
{
	struct told_sink *s = (struct told_sink *)sink;

	buf_printf(&told.calls, "~%s ", s->name);
	for (int i = 0; i < 2; i++)
		sink_free(s->parts[i]);
}

static const struct sink_ops told_sink_ops = { .name = "told", .free = told_sink_free };
static struct told_sink told_backend, told_tee;

static struct sink *told_sink_new(struct told_sink *s, const char *name)
{
	*s = (struct told_sink){ .base.ops = &told_sink_ops, .name = name };
	return &s->base;
}

static const char *told_name(const struct sink *s)
{
	return !s ? "nothing" : s->ops == &told_sink_ops ? ((const struct told_sink *)s)->name : s->ops->name;
}

int sink_tee_new(struct sink *first, struct sink *second, struct metrics *metrics, struct sink **ret)
{
	assert_ptr_equal(metrics, told.session->metrics);
	*ret = told_sink_new(&told_tee, "tee");
	told_tee.parts[0] = first;
	told_tee.parts[1] = second;
	return told_call_with("tee", "%s+%s=", told_name(first), told_name(second));
}

/* --- the session --- */

int session_check_options(struct session *s, const struct config *config)
{
	s->config = config;
	told.session = s;
	return told_call("check");
}

int session_open(struct session *s, const struct config *config)
{
	int err = told_call("open");

	told.session = s;
	s->config = config;
	return err || loop_new(&s->loop) || !(s->metrics = metrics_new()) ? -ENOMEM : 0;
}

int session_end_on_signals(struct session *s)
{
	return told_call(s->is_agent_half ? "signals-half" : "signals");
}

void session_end_on_closed_stdout(struct session *s)
{
	assert_ptr_equal(s, told.session);
	told_call("closed-stdout");
}

int session_add_malloc(struct session *s, pid_t pid)
{
	(void)s;
	(void)pid;
	return told_call("add-malloc");
}

int session_confine(struct session *s, bool writes_files, pid_t command)
{
	assert_ptr_equal(s, told.session);
	assert_int_equal(command, 0);
	return told_call(writes_files ? "confine-files" : "confine");
}

int session_load_agent(struct session *s, uint32_t pid)
{
	assert_int_equal(pid, 0);
	s->agent = told_agent;
	return told_call_with("load", "%s:", told_name(s->sink));
}

int session_start_agent(struct session *s, const char *target)
{
	s->start_ns = 1;
	return told_call_with("start", "[%s]", target ? target : "");
}

int session_run(struct session *s)
{
	int err = told_call("run");

	if (told.while_it_runs)
		told.while_it_runs(s);
	return err;
}

int session_drain(struct session *s, void (*stop)(void *arg, uint64_t deadline_ns), void *arg)
{
	assert_ptr_equal(s, told.session);
	if (stop)
		stop(arg, 77);
	return told_call("drain");
}

void session_log_undelivered(const struct session *s, int err)
{
	assert_ptr_equal(s, told.session);
	buf_printf(&told.calls, "undelivered=%d ", err);
}

void session_log_truth(struct session *s)
{
	assert_ptr_equal(s, told.session);
	told_call("truth");
}

void session_log_kinds(struct session *s)
{
	assert_ptr_equal(s, told.session);
	told_call("kinds");
}

void session_account(struct session *s, struct buf *out)
{
	assert_ptr_equal(s, told.session);
	buf_puts(out, "the account");
}

void session_print_account(const struct agent_stats *stats, const char *losses, struct metrics *metrics, struct buf *out)
{
	(void)stats;
	(void)losses;
	(void)metrics;
	(void)out;
}

void session_close(struct session *s)
{
	sink_free(s->sink);
	if (s->store)
		s->store->close(s->store);
	loop_free(s->loop);
	metrics_free(s->metrics);
	told_call("close");
	*s = (struct session){ 0 };
}

/* --- the other half --- */

int as_owner_serve(struct config *config)
{
	(void)config;
	return told_call("owner");
}

int as_owner_store(struct config *config)
{
	(void)config;
	return told_call("owner-store");
}

static const struct config *told_config;

int halves_fork(const struct config *config, bool keeps, bool is_lenient, struct halves **ret)
{
	told_config = config;
	*ret = told.has_halves ? told_halves : NULL;
	return told_call_with("fork", "%s%s", keeps ? "keeping-" : "", is_lenient ? "lenient-" : "");
}

bool halves_leave_agent_alone(const struct halves *h, const struct config *config, bool keeps)
{
	assert_true(h == (told.has_halves ? told_halves : NULL) && config == told.session->config);
	told_call(keeps ? "alone-keeping?" : "alone?");
	return told.leaves_agent_alone;
}

const struct config *halves_config(const struct halves *h)
{
	assert_ptr_equal(h, told_halves);
	return told_config;
}

int halves_connect(struct halves *h, struct session *s, struct sink **sink_ret)
{
	int err = told_call("connect");

	assert_true(h == told_halves && s == told.session);
	*sink_ret = err ? NULL : told_sink_new(&told_backend, "backend");
	return err;
}

int halves_wait(struct halves *h)
{
	assert_ptr_equal(h, told_halves);
	return told_call("wait");
}

const char *halves_page_url(const struct halves *h)
{
	return h ? told.url : NULL;
}

void halves_hold_log(struct halves *h, bool on)
{
	if (h)
		told_call(on ? "hold" : "release");
}

void halves_quiesce(void *halves, uint64_t deadline_ns)
{
	assert_ptr_equal(halves, told_halves);
	assert_int_equal(deadline_ns, 77);
	told_call("quiesce");
}

void halves_end(struct halves *h)
{
	if (h)
		told_call("end");
}

/* --- the page --- */

bool page_is_wanted(const struct session *s)
{
	return s->store;
}

void page_warn_of_nothing(const struct session *s)
{
	assert_ptr_equal(s, told.session);
	told_call("nothing?");
}

int page_signals(struct session *s, bool is_read_only)
{
	(void)s;
	(void)is_read_only;
	return 0;
}

int page_queries(struct session *s, struct loop *loop, bool is_live, struct query_thread **ret)
{
	(void)s;
	(void)loop;
	(void)is_live;
	*ret = NULL;
	return 0;
}

int page_start(struct session *s, struct page **ret)
{
	int err = told_call("page");

	assert_ptr_equal(s, told.session);
	*ret = err || !told.url ? NULL : told_page;
	return err;
}

void page_ports(const struct page *page, uint16_t ports[static PAGE_PORTS])
{
	(void)page;
	memset(ports, 0, PAGE_PORTS * sizeof(*ports));
}

void page_write_url(const struct config *config, uint16_t port, struct buf *out)
{
	(void)config;
	(void)port;
	(void)out;
}

const char *page_url(const struct page *page)
{
	return page ? told.url : NULL;
}

void page_stop(void *page, uint64_t deadline_ns)
{
	assert_int_equal(deadline_ns, 77);
	told_call(page ? "stop-page" : "stop-nothing");
}

void page_free(struct page *page)
{
	if (page)
		told_call("free-page");
}

/* --- what is put in front of the sink --- */

struct workloads *workloads_here(void)
{
	return NULL;
}

int workloads_wrap(const struct config *config, struct metrics *metrics, struct sink **sink)
{
	assert_true(config == told.session->config && metrics == told.session->metrics && sink == &told.session->sink);
	return told_call("workloads");
}

int workloads_exporter(const struct config *config, struct metrics *metrics, struct sink **ret)
{
	(void)config;
	(void)metrics;
	(void)ret;
	return -ENOTSUP;
}

void workloads_end(void)
{
}

struct own_profiles *own_profiles_here(void)
{
	return NULL;
}

int own_profiles_wrap(const struct config *config, const struct store *store, struct sink **sink)
{
	assert_true(config == told.session->config && sink == &told.session->sink && store == told.session->store);
	return told_call("own-profiles");
}

void own_profiles_look(struct session *s, uint64_t until_ns)
{
	(void)s;
	(void)until_ns;
}

void own_profiles_end(void)
{
}

/* --- for the test --- */

static void told_begin(void)
{
	struct log_message last;

	buf_fini(&told.calls);
	memset(&told, 0, sizeof(told));
	while (log_since(&told.log_count, &last, 1))
		;
}

static void told_fails(const char *what, int failure)
{
	told.failing = what;
	told.failure = failure;
}

/* Whether @text was logged since told_begin(). */
static bool told_said(const char *text)
{
	uint64_t count = told.log_count;
	struct log_message m;

	while (log_since(&count, &m, 1))
		if (strstr(m.text, text))
			return true;
	return false;
}

/* What was called since the last time this was asked. */
#define assert_told(wanted)                                         \
	do {                                                        \
		assert_string_equal(buf_text(&told.calls), wanted); \
		buf_reset(&told.calls);                             \
	} while (0)

#endif
