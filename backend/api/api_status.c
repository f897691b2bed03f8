/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about the data and about hearth itself: executables, truth, status. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api/api_call.h"
#include "backend/http/recent.h"
#include "backend/query/kinds.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/handed.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/usage.h"
#include "proto/unnamed.h"

#define TRUNCATED "hearth.stack.truncated"
#define SCRIPT	  "hearth.script" /* "RUNTIME: OUTCOME" (proto/sums/truth.h) */

enum { NAMED_PERCENT = 90 };

/* --- executables --- */

/* Advice on code without names. */
static const char *advice_for(const struct store_executable *e)
{
	if (unnamed_is_generated(str_z(e->path)))
		return unnamed_generated_advice(e->process);
	if (!*e->path || e->path[0] == '[')
		return "code without a file";
	if (!*e->build_id)
		return "it has no build id, so debug symbols cannot be found for it: link with -Wl,--build-id, or keep the "
		       "symbols in it";
	return "install its debug symbols (a package such as NAME-dbgsym), set DEBUGINFOD_URLS, or send the file: hearth "
	       "symbols "
	       "push FILE URL";
}

static int write_executable(void *arg, const struct store_executable *e)
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY;
	struct json *j = arg;
	const char *status = "named", *advice = "";

	if (!e->path)
		return 0;
	if (e->named_frames * 100 < e->frames * NAMED_PERCENT) {
		status = e->named_frames ? "partly" : "unnamed";
		advice = advice_for(e);
	}
	if (unnamed_is_generated(str_z(e->path)))
		unnamed_print(&(struct unnamed){ .process = str_z(e->process), .is_generated = true }, &path);
	else
		buf_puts(&path, e->path);
	if (path.failed)
		return -ENOMEM;
	json_object_begin(j);
	api_write_text(j, "path", buf_text(&path));
	api_write_text(j, "build_id", e->build_id);
	api_write_text(j, "id_kind", e->id_kind);
	api_write_number(j, "events", (int64_t)e->events);
	api_write_number(j, "frames", (int64_t)e->frames);
	api_write_number(j, "named_frames", (int64_t)e->named_frames);
	api_write_number(j, "self", e->self);
	api_write_number(j, "named_self", e->named_self);
	api_write_text(j, "status", status);
	api_write_text(j, "advice", advice);
	json_object_end(j);
	return 0;
}

static int list_executables(struct api_call *call, const struct store_selection *sel)
{
	return call->ctx.store->read->executables(call->ctx.store, sel, write_executable, &call->json);
}

int api_executables(struct api_call *call)
{
	return api_write_list(call, "executables", list_executables);
}

/* --- counters --- */

static void write_counter(void *arg, const char *name, const char *labels, uint64_t value)
{
	AUTO(buf_fini) struct buf key = BUF_EMPTY;
	struct json *j = arg;

	buf_puts(&key, name);
	if (labels && *labels)
		buf_printf(&key, "{%s}", labels);
	json_key(j, buf_text(&key));
	json_u64(j, value);
}

static bool is_loss(const char *name)
{
	static const char *const words[] = { "lost", "dropped", "truncated", "not_sampled", "rejected", "uncounted" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

static void write_loss(void *arg, const char *name, const char *labels, uint64_t value)
{
	if (is_loss(name))
		write_counter(arg, name, labels, value);
}

static void write_counters(struct api_call *call,
			   void (*write)(void *arg, const char *name, const char *labels, uint64_t value))
{
	json_key(&call->json, "counters");
	json_object_begin(&call->json);
	if (call->api->config.metrics)
		metrics_each(call->api->config.metrics, write, &call->json);
	json_object_end(&call->json);
}

/* Writes the time and memory that hearth itself takes. */
static void write_overhead(struct api_call *call)
{
	const struct usage self = usage_of_process(), other = usage_of_other();
	struct json *j = &call->json;

	json_key(j, "cpu_seconds");
	json_double(j, (double)(self.cpu_ns + other.cpu_ns) / (double)NSEC_PER_SEC);
	json_key(j, "uptime_seconds");
	json_double(j, (double)(call->ctx.now_ns - call->api->start_ns) / (double)NSEC_PER_SEC);
	api_write_number(j, "resident_bytes", (int64_t)(self.resident_bytes + other.resident_bytes));
}

/* --- truth --- */

struct truth {
	struct json *j;
	uint64_t events, complete, frames, named_frames;
	int64_t total, named_self;
};

static int count_reason(void *arg, const char *reason, int64_t weight, uint64_t events)
{
	struct truth *t = arg;

	t->events += events;
	t->total = weights_add(t->total, weight);
	if (!*reason) {
		t->complete += events;
		return 0;
	}
	json_object_begin(t->j);
	api_write_text(t->j, "reason", reason);
	api_write_number(t->j, "events", (int64_t)events);
	json_object_end(t->j);
	return 0;
}

/* How the stacks with functions of scripts came out. */
static int write_script(void *arg, const char *outcome, int64_t weight, uint64_t events)
{
	struct truth *t = arg;

	(void)weight;
	if (!*outcome)
		return 0;
	json_object_begin(t->j);
	api_write_text(t->j, "outcome", outcome);
	api_write_number(t->j, "events", (int64_t)events);
	json_object_end(t->j);
	return 0;
}

static int count_frames(void *arg, const struct store_executable *e)
{
	struct truth *t = arg;

	t->named_self = weights_add(t->named_self, e->named_self);
	if (!e->path)
		return 0;
	t->frames += e->frames;
	t->named_frames += e->named_frames;
	return 0;
}

int api_truth(struct api_call *call)
{
	AUTO(query_fini) struct query q = { 0 };
	struct truth t = { .j = &call->json };
	struct store *store = call->ctx.store;
	int err = query_read(&q, &call->ctx, call->params, "", &call->error);

	if (err)
		return err;
	json_object_begin(t.j);
	api_write_about(call, &q);
	json_key(t.j, "truncated");
	json_array_begin(t.j);
	err = store->read->label_values(store, &q.sel, TRUNCATED, count_reason, &t);
	json_array_end(t.j);
	json_key(t.j, "scripts");
	json_array_begin(t.j);
	if (!err)
		err = store->read->label_values(store, &q.sel, SCRIPT, write_script, &t);
	json_array_end(t.j);
	if (!err)
		err = store->read->executables(store, &q.sel, count_frames, &t);
	api_write_number(t.j, "events", (int64_t)t.events);
	api_write_number(t.j, "complete", (int64_t)t.complete);
	api_write_number(t.j, "total", t.total);
	api_write_number(t.j, "named_self", t.named_self);
	api_write_number(t.j, "frames", (int64_t)t.frames);
	api_write_number(t.j, "unnamed_frames", (int64_t)(t.frames - t.named_frames));
	write_counters(call, write_loss);
	write_overhead(call);
	json_object_end(t.j);
	return err;
}

/* --- status --- */

static int write_kind(void *arg, const struct store_kind *kind)
{
	struct json *j = arg;

	json_object_begin(j);
	api_write_text(j, "type", kind->type);
	api_write_text(j, "unit", kind->unit);
	api_write_text(j, "period_type", kind->period_type);
	api_write_text(j, "period_unit", kind->period_unit);
	api_write_number(j, "period", kind->period);
	api_write_number(j, "events", (int64_t)kind->events);
	json_object_end(j);
	return 0;
}

static int write_store(struct api_call *call)
{
	struct store *store = call->ctx.store;
	struct json *j = &call->json;
	struct store_status status = { 0 };
	int err = store->read->status(store, &status);

	if (err)
		return err;
	json_key(j, "store");
	json_object_begin(j);
	api_write_text(j, "kind", status.kind);
	api_write_text(j, "place", handed_name(status.place));
	api_write_number(j, "bytes", (int64_t)status.bytes);
	api_write_number(j, "events", (int64_t)status.events);
	api_write_number(j, "series", (int64_t)status.series);
	api_write_number(j, "nodes", (int64_t)status.nodes);
	api_write_number(j, "frames", (int64_t)status.frames);
	api_write_time(j, "first", status.first_ns);
	api_write_time(j, "last", status.last_ns);
	json_object_end(j);
	return 0;
}

static void write_log(struct json *j)
{
	enum { MESSAGES = 100 };
	AUTO_FREE struct log_message *messages = calloc(MESSAGES, sizeof(*messages));
	size_t count = messages ? log_recent(messages, MESSAGES) : 0;

	json_key(j, "log");
	json_array_begin(j);
	for (size_t i = 0; i < count; i++) {
		json_object_begin(j);
		api_write_time(j, "time", messages[i].unix_ns);
		api_write_text(j, "level", log_level_name(messages[i].level));
		api_write_text(j, "text", messages[i].text);
		json_object_end(j);
	}
	json_array_end(j);
}

static void write_headers(struct json *j, const struct recent_headers *headers)
{
	const char *at = headers->text, *const end = at + headers->len;

	json_key(j, "headers");
	json_array_begin(j);
	for (const char *newline; at < end && (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1)
		json_string_n(j, at, (size_t)(newline - at));
	json_array_end(j);
}

static void write_requests(struct json *j)
{
	enum { REQUESTS = 50 };
	AUTO_FREE struct recent_request *requests = calloc(REQUESTS, sizeof(*requests));
	size_t count = requests ? recent_list(requests, REQUESTS) : 0;

	json_key(j, "requests");
	json_array_begin(j);
	for (size_t i = 0; i < count; i++) {
		json_object_begin(j);
		api_write_time(j, "time", requests[i].unix_ns);
		api_write_text(j, "path", requests[i].path);
		api_write_number(j, "status", requests[i].status);
		api_write_number(j, "bytes", (int64_t)requests[i].bytes);
		write_headers(j, &requests[i].headers);
		json_object_end(j);
	}
	json_array_end(j);
}

int api_status(struct api_call *call)
{
	struct store_selection everything = {
		.to_ns = UINT64_MAX,
		.deadline_ns = call->ctx.deadline_ns,
		.is_unwanted = call->ctx.is_unwanted,
	};
	struct store *store = call->ctx.store;
	struct json *j = &call->json;
	int err;

	json_object_begin(j);
	api_write_text(j, "version", HEARTH_VERSION);
	api_write_time(j, "now", call->ctx.now_ns);
	json_key(j, "live");
	json_bool(j, call->api->config.is_live);
	if (call->api->config.trace_url)
		api_write_text(j, "trace_url", call->api->config.trace_url);
	json_key(j, "receives");
	json_bool(j, !call->api->config.is_page_alone);
	write_overhead(call);
	err = write_store(call);
	json_key(j, "kinds");
	json_array_begin(j);
	if (!err)
		err = kinds_each(store, &everything, write_kind, j);
	json_array_end(j);
	write_log(j);
	write_requests(j);
	write_counters(call, write_counter);
	json_object_end(j);
	return err;
}
