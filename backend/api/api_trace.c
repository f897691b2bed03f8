/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about one trace or one span, by the links that samples carry: "/api/v1/trace/ID" lists its spans and what each
 * weighs in each kind of samples; "/api/v1/trace/ID/flamegraph", "/api/v1/span/ID/flamegraph" and ".../top" are those
 * questions about its samples alone, of all time where none is given. Only exact links count, which answers say.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api/api_call.h"
#include "backend/query/kinds.h"
#include "backend/spans/spans.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/text/hex.h"
#include "base/vec.h"

enum { MOST_PARAMS = 40, MOST_KINDS = 16, MOST_SPANS = 2000, TRACE_DIGITS = 32, SPAN_DIGITS = 16 };

/* The call's parameters, and more in front of them. */
struct more_params {
	struct query_param items[MOST_PARAMS];
	struct query_params params;
	char query[64];
};

/* A path apart: "/api/v1/trace/ID/WHAT". */
struct path {
	char id[TRACE_DIGITS + 1]; /* in lower case */
	bool is_trace;
	const char *what; /* behind the id; "": nothing */
};

static bool take_apart(const char *text, struct path *ret)
{
	static const char trace[] = "/api/v1/trace/", span[] = "/api/v1/span/";
	size_t len;

	ret->is_trace = !strncmp(text, trace, sizeof(trace) - 1);
	if (!ret->is_trace && strncmp(text, span, sizeof(span) - 1) != 0)
		return false;
	text += ret->is_trace ? sizeof(trace) - 1 : sizeof(span) - 1;
	len = strspn(text, "0123456789abcdefABCDEF");
	if (len != (ret->is_trace ? TRACE_DIGITS : SPAN_DIGITS) || (text[len] && (text[len] != '/' || !text[len + 1])))
		return false;
	for (size_t i = 0; i < len; i++)
		ret->id[i] = (char)tolower((unsigned char)text[i]);
	ret->id[len] = '\0';
	ret->what = text[len] ? text + len + 1 : "";
	return true;
}

static int list_spans(struct api_call *call, const struct path *path);

/* What may stand behind an id; "": a trace alone. */
static const struct {
	const char *what;
	int (*answer)(struct api_call *call);
} questions[] = { { "flamegraph", api_flamegraph }, { "top", api_top } };

static int (*find_question(const char *what))(struct api_call *call)
{
	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		if (!strcmp(questions[i].what, what))
			return questions[i].answer;
	return NULL;
}

bool api_is_trace_path(const char *text)
{
	struct path path;

	return take_apart(text, &path) && (*path.what ? find_question(path.what) != NULL : path.is_trace);
}

static void add_param(struct more_params *p, const char *key, const char *value)
{
	if (p->params.count < MOST_PARAMS)
		p->items[p->params.count++] = (struct query_param){ key, value };
}

/* Begins with what the path says; the call's own parameters follow, of which the first of a name counts. */
static int begin_params(struct api_call *call, const struct path *path, struct more_params *p)
{
	const bool has_time = query_param(call->params, "from");
	const char *query = query_param(call->params, "query");

	if (query && *query) {
		buf_puts(&call->error,
			 "query: the path says which samples; ask /api/v1/flamegraph with trace_id= or span_id=");
		return -EINVAL;
	}
	p->params = (struct query_params){ p->items, 0 };
	snprintf(p->query, sizeof(p->query), "{%s=\"%s\"}", path->is_trace ? STORE_TRACE_LABEL : STORE_SPAN_LABEL, path->id);
	add_param(p, "query", p->query);
	if (!has_time)
		add_param(p, "from", "first");
	return 0;
}

static void end_params(const struct api_call *call, struct more_params *p)
{
	for (size_t i = 0; i < call->params->count; i++)
		add_param(p, call->params->items[i].key, call->params->items[i].value);
}

int api_trace_path(struct api_call *call, const char *text)
{
	const struct query_params *given = call->params;
	struct more_params more;
	struct path path;
	int err;

	if (!take_apart(text, &path))
		return -ENOENT;
	if (!*path.what)
		return list_spans(call, &path);
	err = begin_params(call, &path, &more);
	if (err)
		return err;
	end_params(call, &more);
	call->params = &more.params;
	err = find_question(path.what)(call);
	call->params = given;
	return err;
}

/* --- the spans of a trace --- */

struct weight {
	int64_t weight;
	uint64_t events;
};

struct span {
	char id[SPAN_DIGITS + 1], parent[SPAN_DIGITS + 1];
	struct weight of[MOST_KINDS]; /* by kind */
	uint64_t start_ns, end_ns;    /* 0: the span itself did not come in, or is forgotten */
	uint8_t kind, status;
	char name[SPAN_NAME_BYTES], service[SPAN_SERVICE_BYTES];
};

struct span_list {
	struct span *items; /* owned */
	size_t count, cap, left_out;
	char *kinds[MOST_KINDS]; /* owned */
	char units[MOST_KINDS][32];
	uint64_t weight_ns[MOST_KINDS];
	size_t kind_cnt, kind;
};

static void span_list_fini(struct span_list *s)
{
	for (size_t i = 0; i < s->kind_cnt; i++)
		free(s->kinds[i]);
	free(s->items);
}

static int take_kind(void *arg, const struct store_kind *kind)
{
	struct span_list *s = arg;

	for (size_t i = 0; i < s->kind_cnt; i++)
		if (!strcmp(s->kinds[i], kind->type))
			return 0;
	if (s->kind_cnt == MOST_KINDS)
		return 0;
	s->kinds[s->kind_cnt] = strdup(kind->type);
	return s->kinds[s->kind_cnt++] ? 0 : -ENOMEM;
}

/* The span with @id in *@ret; NULL: there is no room for more. 0 or -ENOMEM. */
static int find_span(struct span_list *s, const char *id, struct span **ret)
{
	size_t i = 0;

	while (i < s->count && strcmp(s->items[i].id, id) != 0)
		i++;
	*ret = NULL;
	if (i == MOST_SPANS) {
		s->left_out++;
		return 0;
	}
	if (i == s->count) {
		if (vec_reach(&s->items, &s->cap, i))
			return -ENOMEM;
		s->items[s->count++] = (struct span){ 0 };
		snprintf(s->items[i].id, sizeof(s->items[i].id), "%s", id);
	}
	*ret = &s->items[i];
	return 0;
}

static int take_span(void *arg, const char *id, int64_t weight, uint64_t events)
{
	struct span_list *s = arg;
	struct span *span;
	int err = find_span(s, id, &span);

	if (span)
		span->of[s->kind] = (struct weight){ weight, events };
	return err;
}

/* A span that came in itself. */
static int take_kept(void *arg, const struct kept_span *kept)
{
	static const uint8_t none[sizeof(kept->parent)];
	char id[SPAN_DIGITS + 1];
	struct span *span;
	int err;

	hex_encode(id, kept->span, sizeof(kept->span));
	err = find_span(arg, id, &span);
	if (!span)
		return err;
	if (memcmp(kept->parent, none, sizeof(none)) != 0)
		hex_encode(span->parent, kept->parent, sizeof(kept->parent));
	span->start_ns = kept->start_ns;
	span->end_ns = kept->end_ns;
	span->kind = kept->kind;
	span->status = kept->status;
	memcpy(span->name, kept->name, sizeof(span->name));
	memcpy(span->service, kept->service, sizeof(span->service));
	return 0;
}

/* Finds the kinds of samples that the trace has, in the range that the parameters say. */
static int find_kinds(struct api_call *call, struct more_params *more, struct span_list *s, struct query *q)
{
	int err;

	call->params = &more->params;
	err = api_read(call, q, "");
	return err ? err : kinds_each(call->ctx.store, &q->sel, take_kind, s);
}

static int find_spans(struct api_call *call, const struct more_params *more, struct span_list *s)
{
	for (s->kind = 0; s->kind < s->kind_cnt; s->kind++) {
		AUTO(query_fini) struct query q = { 0 };
		struct more_params of_kind = *more;
		int err;

		of_kind.params.items = of_kind.items;
		if (of_kind.params.count == MOST_PARAMS)
			of_kind.params.count--;
		memmove(of_kind.items + 1, of_kind.items, of_kind.params.count * sizeof(*of_kind.items));
		of_kind.items[0] = (struct query_param){ "kind", s->kinds[s->kind] };
		of_kind.params.count++;
		call->params = &of_kind.params;
		err = api_read(call, &q, "");
		if (!err)
			err = call->ctx.store->read->label_values(call->ctx.store, &q.sel, STORE_SPAN_LABEL, take_span, s);
		call->params = &more->params;
		if (err)
			return err;
		s->weight_ns[s->kind] = query_weight_ns(&q);
		snprintf(s->units[s->kind], sizeof(s->units[s->kind]), "%s", q.about.unit);
	}
	return 0;
}

static int64_t all_ns(const struct span_list *s, const struct span *span)
{
	int64_t sum = 0;

	for (size_t i = 0; i < s->kind_cnt; i++)
		sum = weights_add(sum, (int64_t)((double)span->of[i].weight * (double)s->weight_ns[i]));
	return sum;
}

static void write_span(struct json *j, const struct span_list *s, const struct span *span)
{
	json_object_begin(j);
	api_write_text(j, "span_id", span->id);
	if (span->start_ns) {
		api_write_text(j, "parent", span->parent);
		api_write_text(j, "name", span->name);
		api_write_text(j, "service", span->service);
		api_write_time(j, "start", span->start_ns);
		api_write_number(j, "duration_ns",
				 (int64_t)(span->end_ns > span->start_ns ? span->end_ns - span->start_ns : 0));
		api_write_number(j, "span_kind", span->kind);
		api_write_number(j, "status", span->status);
	}
	api_write_number(j, "ns", all_ns(s, span));
	json_key(j, "kinds");
	json_object_begin(j);
	for (size_t i = 0; i < s->kind_cnt; i++) {
		if (!span->of[i].events)
			continue;
		json_key(j, s->kinds[i]);
		json_object_begin(j);
		api_write_number(j, "weight", span->of[i].weight);
		api_write_number(j, "events", (int64_t)span->of[i].events);
		json_object_end(j);
	}
	json_object_end(j);
	json_object_end(j);
}

static void write_kinds(struct json *j, const struct span_list *s)
{
	json_key(j, "kinds");
	json_array_begin(j);
	for (size_t i = 0; i < s->kind_cnt; i++) {
		json_object_begin(j);
		api_write_text(j, "type", s->kinds[i]);
		api_write_text(j, "unit", s->units[i]);
		api_write_number(j, "weight_ns", (int64_t)s->weight_ns[i]);
		json_object_end(j);
	}
	json_array_end(j);
}

static int compare_spans(const void *a, const void *b, void *arg)
{
	const struct span *x = a, *y = b;
	const int64_t x_ns = all_ns(arg, x), y_ns = all_ns(arg, y);

	if (x->start_ns != y->start_ns)
		return !x->start_ns ? 1 : !y->start_ns ? -1 : x->start_ns < y->start_ns ? -1 : 1;
	return x_ns != y_ns ? (x_ns > y_ns ? -1 : 1) : strcmp(x->id, y->id);
}

/* Those that came in themselves by their begin, then the others, the heaviest first. */
static void sort_spans(struct span_list *s)
{
	if (s->count)
		qsort_r(s->items, s->count, sizeof(*s->items), compare_spans, s);
}

static int find_kept(struct spans *kept, const struct path *path, struct span_list *s)
{
	uint8_t trace[TRACE_DIGITS / 2];
	size_t len;

	return hex_decode(path->id, TRACE_DIGITS, trace, &len) ? spans_of_trace(kept, trace, take_kept, s) : 0;
}

static int list_spans(struct api_call *call, const struct path *path)
{
	const struct query_params *given = call->params;
	AUTO(span_list_fini) struct span_list s = { 0 };
	AUTO(query_fini) struct query q = { 0 };
	struct json *j = &call->json;
	struct more_params more;
	int err = begin_params(call, path, &more);

	if (err)
		return err;
	end_params(call, &more);
	err = find_kinds(call, &more, &s, &q);
	err = err ? err : find_spans(call, &more, &s);
	if (!err && call->api->config.spans)
		err = find_kept(call->api->config.spans, path, &s);
	call->params = given;
	if (err)
		return err;
	sort_spans(&s);
	json_object_begin(j);
	api_write_text(j, "trace_id", path->id);
	api_write_text(j, "joined", "link");
	api_write_time(j, "from", q.sel.from_ns);
	api_write_time(j, "to", q.sel.to_ns);
	write_kinds(j, &s);
	json_key(j, "spans");
	json_array_begin(j);
	for (size_t i = 0; i < s.count; i++)
		write_span(j, &s, &s.items[i]);
	json_array_end(j);
	api_write_number(j, "left_out", (int64_t)s.left_out);
	json_object_end(j);
	return 0;
}
