/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of what came in beside profiles: "/api/v1/traces", "/api/v1/logs", "/api/v1/exemplars". A selector's labels are
 * those of the record and its resource; for traces it also selects samples, and the traces that these have links to are
 * listed, too, with what they weigh.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api/api_call.h"
#include "backend/signals/signals.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/text/hex.h"
#include "base/vec.h"

enum {
	TRACE_BYTES = 16,
	SERVICE_BYTES = 64,
	MOST_ROWS = 5000,
	USUAL_ROWS = 200,
	MOST_SEEN = 200000, /* spans that a list of traces looks at, the newest */
	MOST_TRACES = 20000,
};

static int read_question(struct api_call *call, struct query *q, struct signals_question *ret)
{
	int err = query_read(q, &call->ctx, call->params, "", &call->error);

	*ret = (struct signals_question){
		.from_ns = q->sel.from_ns,
		.to_ns = q->sel.to_ns,
		.matchers = q->selector.items,
		.matcher_count = q->selector.count,
		.deadline_ns = call->ctx.deadline_ns,
	};
	return err;
}

static void write_id(struct json *j, const char *key, const uint8_t *id, size_t len)
{
	static const uint8_t none[TRACE_BYTES];
	char text[2 * TRACE_BYTES + 1];

	if (!memcmp(id, none, len))
		return;
	hex_encode(text, id, len);
	api_write_text(j, key, text);
}

/* --- logs and exemplars --- */

struct listing {
	struct json *json;
	uint64_t most, count;
	bool is_more;
};

/* Room for one more? */
static bool may_write(struct listing *l)
{
	l->is_more = l->count == l->most;
	return !l->is_more && ++l->count;
}

static int write_log(void *arg, const struct kept_log *log)
{
	struct listing *l = arg;
	struct json *j = l->json;

	if (!may_write(l))
		return 1;
	json_object_begin(j);
	api_write_number(j, "id", log->id);
	api_write_time(j, "time", log->time_ns);
	api_write_number(j, "severity", log->severity);
	api_write_text(j, "service", log->resource.service);
	api_write_text(j, "body", log->body);
	write_id(j, "trace_id", log->trace, sizeof(log->trace));
	write_id(j, "span_id", log->span, sizeof(log->span));
	json_object_end(j);
	return 0;
}

static int write_exemplar(void *arg, const struct kept_exemplar *e)
{
	struct listing *l = arg;
	struct json *j = l->json;

	if (!may_write(l))
		return 1;
	json_object_begin(j);
	api_write_time(j, "time", e->time_ns);
	json_key(j, "value");
	json_double(j, e->value);
	api_write_text(j, "metric", e->metric);
	api_write_text(j, "unit", e->unit);
	api_write_text(j, "service", e->resource.service);
	write_id(j, "trace_id", e->trace, sizeof(e->trace));
	write_id(j, "span_id", e->span, sizeof(e->span));
	json_object_end(j);
	return 0;
}

/* Severities as OTLP numbers them, or the lowest of a name's. */
static int read_severity(struct api_call *call, uint8_t *ret)
{
	static const char *const names[] = { "trace", "debug", "info", "warn", "error", "fatal" };
	const char *text = query_param(call->params, "severity");
	uint64_t number = 0;
	int err;

	for (size_t i = 0; text && i < ARRAY_LEN(names); i++)
		if (!strcasecmp(text, names[i])) {
			*ret = (uint8_t)(1 + 4 * i);
			return 0;
		}
	err = query_number(call->params, "severity", 0, 0, 24, &number, &call->error);
	*ret = (uint8_t)number;
	return err;
}

static int write_list(struct api_call *call, const char *key, bool is_logs)
{
	AUTO(query_fini) struct query q = { 0 };
	struct listing l = { .json = &call->json };
	struct signals *signals = call->api->config.signals;
	struct json *j = &call->json;
	struct signals_question question;
	int err = query_number(call->params, "limit", USUAL_ROWS, 1, MOST_ROWS, &l.most, &call->error);

	err = err ? err : read_question(call, &q, &question);
	if (!err && is_logs)
		err = read_severity(call, &question.severity);
	if (err)
		return err;
	question.text = query_param(call->params, "text");
	json_object_begin(j);
	api_write_time(j, "from", q.sel.from_ns);
	api_write_time(j, "to", q.sel.to_ns);
	json_key(j, key);
	json_array_begin(j);
	if (signals)
		err = is_logs ? signals_logs(signals, &question, write_log, &l)
			      : signals_exemplars(signals, &question, write_exemplar, &l);
	json_array_end(j);
	json_key(j, "more");
	json_bool(j, l.is_more);
	json_object_end(j);
	return err < 0 ? err : 0;
}

int api_logs(struct api_call *call)
{
	return write_list(call, "logs", true);
}

int api_exemplars(struct api_call *call)
{
	return write_list(call, "exemplars", false);
}

/* --- traces --- */

struct trace {
	uint8_t id[TRACE_BYTES];
	uint64_t start_ns, end_ns, spans, errors;
	uint64_t root_start_ns; /* of what @name is the name of: the span without a parent, else the first */
	bool has_root;
	char name[SIGNAL_NAME_BYTES], service[SERVICE_BYTES];
	int64_t weight; /* of samples with a link to it */
	uint64_t events;
};

struct trace_list {
	struct intern *ids;
	struct trace *items; /* owned, as are the ids */
	size_t cap;
	uint64_t seen;
	bool is_more;
	const char *by;
};

static void trace_list_fini(struct trace_list *t)
{
	intern_free(t->ids);
	free(t->items);
}

/* The trace with @id in *@ret; NULL: there are too many. */
static int find_trace(struct trace_list *t, const uint8_t id[static TRACE_BYTES], struct trace **ret)
{
	uint32_t i;
	int is_new = 0;

	*ret = NULL;
	if (!intern_find(t->ids, id, TRACE_BYTES, &i)) {
		if (intern_count(t->ids) == MOST_TRACES) {
			t->is_more = true;
			return 0;
		}
		is_new = intern_add(t->ids, id, TRACE_BYTES, &i);
		if (is_new < 0 || vec_reach(&t->items, &t->cap, i))
			return -ENOMEM;
		t->items[i] = (struct trace){ 0 };
		memcpy(t->items[i].id, id, TRACE_BYTES);
	}
	*ret = &t->items[i];
	return 0;
}

static int take_span(void *arg, const struct kept_span *span)
{
	static const uint8_t none[sizeof(span->parent)];
	const bool is_root = !memcmp(span->parent, none, sizeof(none));
	struct trace_list *t = arg;
	struct trace *trace;
	int err = find_trace(t, span->trace, &trace);

	if (++t->seen > MOST_SEEN) {
		t->is_more = true;
		return 1;
	}
	if (err || !trace)
		return err;
	trace->errors += span->status == 2;
	trace->start_ns = !trace->spans++ || span->start_ns < trace->start_ns ? span->start_ns : trace->start_ns;
	trace->end_ns = span->end_ns > trace->end_ns ? span->end_ns : trace->end_ns;
	if (trace->has_root || (!is_root && *trace->name && span->start_ns >= trace->root_start_ns))
		return 0;
	trace->has_root = is_root;
	trace->root_start_ns = span->start_ns;
	snprintf(trace->name, sizeof(trace->name), "%s", span->name);
	snprintf(trace->service, sizeof(trace->service), "%s", span->resource.service);
	return 0;
}

static int take_linked(void *arg, const char *value, int64_t weight, uint64_t events)
{
	struct trace_list *t = arg;
	uint8_t id[TRACE_BYTES];
	struct trace *trace;
	size_t len;
	int err;

	if (strlen(value) != sizeof(id) * 2 || !hex_decode(value, strlen(value), id, &len))
		return 0;
	err = find_trace(t, id, &trace);
	if (trace) {
		trace->weight = weights_add(trace->weight, weight);
		trace->events += events;
	}
	return err;
}

/* Looks at all spans of traces that samples have links to; those of the selection are known. */
static int complete(struct api_call *call, struct trace_list *t, uint64_t most)
{
	const size_t count = intern_count(t->ids);
	int err = 0;

	for (size_t i = 0; i < count && most && err >= 0; i++) {
		struct signals_question q = { .to_ns = UINT64_MAX, .deadline_ns = call->ctx.deadline_ns };
		uint8_t id[TRACE_BYTES];

		if (t->items[i].spans)
			continue;
		memcpy(id, t->items[i].id, sizeof(id));
		q.trace = id;
		most--;
		err = signals_spans(call->api->config.signals, &q, take_span, t);
	}
	return err < 0 ? err : 0;
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct trace *x = a, *y = b;
	const uint64_t x_ns = x->end_ns - x->start_ns, y_ns = y->end_ns - y->start_ns;
	const char *by = arg;

	if (!strcmp(by, "heaviest") && x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	if (!strcmp(by, "newest") && x->start_ns != y->start_ns)
		return x->start_ns > y->start_ns ? -1 : 1;
	if (x_ns != y_ns)
		return x_ns > y_ns ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return memcmp(x->id, y->id, sizeof(x->id));
}

static void write_trace(struct json *j, const struct trace *t)
{
	json_object_begin(j);
	write_id(j, "trace_id", t->id, sizeof(t->id));
	if (t->spans) {
		api_write_text(j, "name", t->name);
		api_write_text(j, "service", t->service);
		api_write_time(j, "start", t->start_ns);
		api_write_number(j, "duration_ns", (int64_t)(t->end_ns - t->start_ns));
		api_write_number(j, "spans", (int64_t)t->spans);
		api_write_number(j, "errors", (int64_t)t->errors);
	}
	if (t->events) {
		api_write_text(j, "joined", "link");
		api_write_number(j, "weight", t->weight);
		api_write_number(j, "events", (int64_t)t->events);
	}
	json_object_end(j);
}

/* Filters over frames are about samples: then only traces with links are meant. */
static bool is_of_samples(const struct query *q)
{
	return q->sel.stacks || q->word.as;
}

static int find_traces(struct api_call *call, struct trace_list *t, const struct query *q, uint64_t most)
{
	struct store *store = call->ctx.store;
	struct signals *signals = call->api->config.signals;
	struct signals_question of_range = { .from_ns = q->sel.from_ns,
					     .to_ns = q->sel.to_ns,
					     .deadline_ns = call->ctx.deadline_ns };
	AUTO(selector_fini) struct selector selector = { 0 };
	const char *text = query_param(call->params, "query");
	int err = store->read->label_values(store, &q->sel, STORE_TRACE_LABEL, take_linked, t);

	if (err || !signals)
		return err;
	err = selector_parse(text ? text : "", &selector, &call->error); /* with names of spans, not their ids */
	of_range.matchers = selector.items;
	of_range.matcher_count = selector.count;
	if (!err && !is_of_samples(q))
		err = signals_spans(signals, &of_range, take_span, t);
	return err < 0 ? err : complete(call, t, most);
}

int api_traces(struct api_call *call)
{
	const char *by = query_param(call->params, "sort");
	AUTO(trace_list_fini) struct trace_list t = { .ids = intern_new() };
	AUTO(query_fini) struct query q = { 0 };
	struct json *j = &call->json;
	uint64_t most;
	size_t count;
	int err = query_number(call->params, "limit", USUAL_ROWS, 1, MOST_ROWS, &most, &call->error);

	if (!t.ids)
		return -ENOMEM;
	err = err ? err : query_read(&q, &call->ctx, call->params, "", &call->error);
	err = err ? err : find_traces(call, &t, &q, most);
	if (err)
		return err;
	count = intern_count(t.ids);
	if (count)
		qsort_r(t.items, count, sizeof(*t.items), compare, (void *)(uintptr_t)(by ? by : "slowest"));
	json_object_begin(j);
	api_write_about(call, &q);
	json_key(j, "traces");
	json_array_begin(j);
	for (size_t i = 0; i < count && i < most; i++)
		write_trace(j, &t.items[i]);
	json_array_end(j);
	json_key(j, "more");
	json_bool(j, t.is_more || count > most);
	json_object_end(j);
	return 0;
}
