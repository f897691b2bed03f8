/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labels that may name a process are tried in an order of certainty, each with the thread that the span says, and the
 * first that has samples in the range is taken; without any, once more without the thread. Numbers of threads are tried as
 * the kernel's: an SDK may say one of its own (OpenTelemetry's `thread.id` is the managed thread's), which then fits none,
 * and its name is tried.
 */
#include "backend/api/api_join.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/hex.h"
#include "base/text/parse.h"

enum { SPAN_DIGITS = 16, MOST_NAMED = 2000, THREAD_NAME_BYTES = 15 /* TASK_COMM_LEN - 1 */ };

/* Around a log line, and around what has links, whose span may begin before its first sample was taken. */
#define AROUND_NS NSEC_PER_SEC

static const char *const processes[] = { "service.instance.id", "container.id", "process.pid", "service.name" };

const char *api_joined_name(enum api_joined joined)
{
	static const char *const names[] = { [JOINED_NONE] = "none", [JOINED_LINK] = "link", [JOINED_TIME] = "time" };

	return names[joined];
}

void api_join_fini(struct api_join *join)
{
	buf_fini(&join->query);
}

static int add_events(void *arg, const struct store_kind *kind)
{
	*(uint64_t *)arg += kind->events;
	return 0;
}

/* The events of all kinds that @matchers select. */
static int count_events(struct api_call *call, const struct store_matcher *matchers, size_t count, uint64_t from_ns,
			uint64_t to_ns, uint64_t *ret)
{
	const struct store_selection sel = {
		.from_ns = from_ns,
		.to_ns = to_ns ? to_ns : UINT64_MAX,
		.matchers = matchers,
		.matcher_count = count,
		.deadline_ns = call->ctx.deadline_ns,
		.is_unwanted = call->ctx.is_unwanted,
	};

	*ret = 0;
	return call->ctx.store->read->kinds(call->ctx.store, &sel, add_events, ret);
}

static void write_selector(const struct store_matcher *matchers, size_t count, struct buf *out)
{
	buf_putc(out, '{');
	for (size_t i = 0; i < count; i++) {
		buf_printf(out, "%s%s=\"", i ? ", " : "", matchers[i].label);
		for (const char *c = matchers[i].value; *c; c++) {
			if (*c == '"' || *c == '\\')
				buf_putc(out, '\\');
			buf_putc(out, *c);
		}
		buf_putc(out, '"');
	}
	buf_putc(out, '}');
}

/* Tries what may name the process, with @thread where it is not NULL. */
static int try_processes(struct api_call *call, const struct kept_resource *r, const struct store_matcher *thread,
			 struct api_join *join)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(processes) && !err && !join->joined; i++) {
		const char *value = signals_resource_value(r, processes[i]), *host = signals_resource_value(r, "host.name");
		const bool is_pid = !strcmp(processes[i], "process.pid");
		struct store_matcher matchers[3] = { { processes[i], MATCH_EQUAL, value, NULL } };
		size_t count = 1;
		uint64_t events = 0;

		/* A container's first process has this number in it: here it is another. */
		if (!value || !*value || (is_pid && !strcmp(value, "1")))
			continue;
		if (is_pid && host && *host) /* a number is one of its host, or container, alone */
			matchers[count++] = (struct store_matcher){ "host.name", MATCH_EQUAL, host, NULL };
		if (thread)
			matchers[count++] = *thread;
		err = count_events(call, matchers, count, join->from_ns, join->to_ns, &events);
		if (err || !events)
			continue;
		write_selector(matchers, count, &join->query);
		join->joined = JOINED_TIME;
	}
	return err;
}

int api_join_by_time(struct api_call *call, const struct kept_resource *r, int64_t thread_id, const char *thread_name,
		     uint64_t from_ns, uint64_t to_ns, struct api_join *join)
{
	char id[24], name[THREAD_NAME_BYTES + 1];
	const struct store_matcher by_id = { "thread.id", MATCH_EQUAL, id, NULL },
				   by_name = { STORE_THREAD_LABEL, MATCH_EQUAL, name, NULL };
	int err = 0;

	snprintf(id, sizeof(id), "%" PRId64, thread_id);
	snprintf(name, sizeof(name), "%s", thread_name);
	join->from_ns = from_ns;
	join->to_ns = to_ns;
	if (thread_id >= 0)
		err = try_processes(call, r, &by_id, join);
	if (!err && !join->joined && *name)
		err = try_processes(call, r, &by_name, join);
	if (!err && !join->joined)
		err = try_processes(call, r, NULL, join);
	return err ? err : join->query.failed ? -ENOMEM : 0;
}

/* --- a span --- */

struct span_join {
	struct api_call *call;
	struct api_join *join;
	bool is_found;
};

static int join_kept(void *arg, const struct kept_span *span)
{
	struct span_join *s = arg;
	int err = api_join_by_time(s->call, &span->resource, span->thread_id, span->thread_name, span->start_ns,
				   span->end_ns + 1, s->join);

	return err ? err : 1;
}

/* Where the span itself came in, its time is known. */
static int take_range(void *arg, const struct kept_span *span)
{
	struct api_join *join = arg;

	join->from_ns = span->start_ns < AROUND_NS ? 0 : span->start_ns - AROUND_NS;
	join->to_ns = span->end_ns + AROUND_NS;
	return 1;
}

static int each_kept(struct api_call *call, const uint8_t *span, int (*fn)(void *arg, const struct kept_span *span),
		     void *arg)
{
	const struct signals_question q = { .to_ns = UINT64_MAX, .span = span, .deadline_ns = call->ctx.deadline_ns };
	int err = call->api->config.signals ? signals_spans(call->api->config.signals, &q, fn, arg) : 0;

	return err < 0 ? err : 0;
}

int api_join_span(struct api_call *call, const char *id, uint64_t from_ns, uint64_t to_ns, struct api_join *join)
{
	const struct store_matcher m = { STORE_SPAN_LABEL, MATCH_EQUAL, id, NULL };
	struct span_join s = { .call = call, .join = join };
	uint8_t span[SPAN_DIGITS / 2];
	uint64_t events = 0;
	size_t len;
	int err;

	if (!hex_decode(id, SPAN_DIGITS, span, &len))
		return -EINVAL;
	join->from_ns = from_ns;
	join->to_ns = to_ns;
	err = from_ns || to_ns ? 0 : each_kept(call, span, take_range, join);
	err = err ? err : count_events(call, &m, 1, join->from_ns, join->to_ns, &events);
	if (err || !events)
		return err ? err : each_kept(call, span, join_kept, &s);
	join->joined = JOINED_LINK;
	write_selector(&m, 1, &join->query);
	return join->query.failed ? -ENOMEM : 0;
}

/* --- answers --- */

static int write_where(struct api_call *call, struct api_join *join)
{
	struct json *j = &call->json;

	json_object_begin(j);
	api_write_text(j, "joined", api_joined_name(join->joined));
	api_write_text(j, "query", buf_text(&join->query));
	if (join->to_ns) {
		api_write_time(j, "from", join->from_ns);
		api_write_time(j, "to", join->to_ns);
	}
	json_object_end(j);
	return 0;
}

int api_where_span(struct api_call *call, const char *id)
{
	AUTO(api_join_fini) struct api_join join = { 0 };
	int err = api_join_span(call, id, 0, 0, &join);

	return err ? err : write_where(call, &join);
}

struct log_join {
	struct api_call *call;
	struct api_join *join;
	bool is_found, of_process;
};

static int join_log(void *arg, const struct kept_log *log)
{
	static const uint8_t none[sizeof(log->trace)];
	struct log_join *l = arg;
	const uint64_t from_ns = log->time_ns < AROUND_NS ? 0 : log->time_ns - AROUND_NS, to_ns = log->time_ns + AROUND_NS;
	char text[2 * sizeof(log->trace) + 1];
	const struct store_matcher m = { STORE_TRACE_LABEL, MATCH_EQUAL, text, NULL };
	uint64_t events = 0;
	int err = 0;

	l->is_found = true;
	hex_encode(text, log->trace, sizeof(log->trace));
	if (!l->of_process && memcmp(log->trace, none, sizeof(none)) != 0)
		err = count_events(l->call, &m, 1, from_ns, to_ns, &events);
	if (err || !events)
		return err ? err : api_join_by_time(l->call, &log->resource, -1, "", from_ns, to_ns, l->join) ?: 1;
	l->join->joined = JOINED_LINK;
	l->join->from_ns = from_ns;
	l->join->to_ns = to_ns;
	write_selector(&m, 1, &l->join->query);
	return l->join->query.failed ? -ENOMEM : 1;
}

int api_where_log(struct api_call *call, const char *id)
{
	const char *of = query_param(call->params, "of");
	AUTO(api_join_fini) struct api_join join = { 0 };
	struct log_join l = { .call = call, .join = &join, .of_process = of && !strcmp(of, "process") };
	struct signals_question q = { .to_ns = UINT64_MAX, .deadline_ns = call->ctx.deadline_ns };
	uint64_t number = 0;
	int err = parse_u64(id, &number) || !number || number > INT64_MAX ? -ENOENT : 0;

	q.id = (int64_t)number;
	if (!err && call->api->config.signals)
		err = signals_logs(call->api->config.signals, &q, join_log, &l);
	if (err < 0 && err != -ENOENT)
		return err;
	if (!l.is_found) {
		buf_puts(&call->error, "there is no such log line, or it has made place for newer ones");
		return -ENOENT;
	}
	return write_where(call, &join);
}

/* --- names of spans in selectors --- */

struct naming {
	struct buf *ids;
	size_t count;
};

static int take_named(void *arg, const struct kept_span *span)
{
	struct naming *n = arg;
	char text[SPAN_DIGITS + 1];

	if (n->count++ == MOST_NAMED)
		return 1;
	hex_encode(text, span->span, sizeof(span->span));
	buf_printf(n->ids, "%s%s", n->ids->len ? "|" : "", text);
	return n->ids->failed ? -ENOMEM : 0;
}

int api_name_spans(void *arg, const struct store_matcher *m, uint64_t from_ns, uint64_t to_ns, struct buf *ids,
		   struct buf *error)
{
	struct api_call *call = arg;
	const struct signals_question q = {
		.from_ns = from_ns, .to_ns = to_ns, .matchers = m, .matcher_count = 1, .deadline_ns = call->ctx.deadline_ns
	};
	struct naming n = { ids, 0 };
	int err = call->api->config.signals ? signals_spans(call->api->config.signals, &q, take_named, &n) : 0;

	if (err <= 0)
		return err;
	buf_printf(error, "span_name: more than %d spans of this range have such a name: ask for a shorter range",
		   MOST_NAMED);
	return -EINVAL;
}
