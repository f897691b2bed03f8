/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about one trace or one span: "/api/v1/trace/ID" lists its spans and what each weighs in each kind of samples;
 * "/api/v1/trace/ID/flamegraph", "/api/v1/span/ID/flamegraph" and ".../top" are those questions about its samples alone, of
 * all time where none is given; "/api/v1/span/ID/where" and "/api/v1/log/ID/where" tell how to ask for them. Samples are
 * those with a link, or, where a span that came in has none, those of its process, its thread and its time: answers say
 * which, and never mix the two in one span.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api/api_call.h"
#include "backend/api/api_join.h"
#include "backend/query/kinds.h"
#include "backend/signals/signals.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/text/hex.h"
#include "base/vec.h"

enum {
	MOST_PARAMS = 40,
	MOST_KINDS = 16,
	MOST_SPANS = 2000,
	MOST_TIMED = 200, /* spans of a trace that are joined by time, which costs a question each */
	TRACE_DIGITS = 32,
	SPAN_DIGITS = 16,
	LOG_DIGITS = 19,
	SERVICE_BYTES = 64,
};

/* The call's parameters, and more in front of them. */
struct more_params {
	struct query_param items[MOST_PARAMS];
	struct query_params params;
	char times[2][24];
	struct api_join join; /* its query is owned */
};

static void more_params_fini(struct more_params *p)
{
	api_join_fini(&p->join);
}

/* A path apart: "/api/v1/trace/ID/WHAT". */
struct path {
	char id[TRACE_DIGITS + 1]; /* in lower case */
	enum { OF_TRACE, OF_SPAN, OF_LOG } of;
	const char *what; /* behind the id; "": nothing */
};

static bool take_apart(const char *text, struct path *ret)
{
	static const struct {
		const char *begin, *digits;
		size_t least, most;
	} forms[] = {
		[OF_TRACE] = { "/api/v1/trace/", "0123456789abcdefABCDEF", TRACE_DIGITS, TRACE_DIGITS },
		[OF_SPAN] = { "/api/v1/span/", "0123456789abcdefABCDEF", SPAN_DIGITS, SPAN_DIGITS },
		[OF_LOG] = { "/api/v1/log/", "0123456789", 1, LOG_DIGITS },
	};
	size_t of = 0, len;

	while (of < ARRAY_LEN(forms) && strncmp(text, forms[of].begin, strlen(forms[of].begin)) != 0)
		of++;
	if (of == ARRAY_LEN(forms))
		return false;
	ret->of = of;
	text += strlen(forms[of].begin);
	len = strspn(text, forms[of].digits);
	if (len < forms[of].least || len > forms[of].most || (text[len] && (text[len] != '/' || !text[len + 1])))
		return false;
	for (size_t i = 0; i < len; i++)
		ret->id[i] = (char)tolower((unsigned char)text[i]);
	ret->id[len] = '\0';
	ret->what = text[len] ? text + len + 1 : "";
	return true;
}

static int list_spans(struct api_call *call, const struct path *path);

/* What may stand behind an id of a trace or span. The path says which samples, so there is no query. */
static const struct question {
	const char *what;
	int (*answer)(struct api_call *call);
	const char *params;
} questions[] = { { "flamegraph", api_flamegraph, API_RANGE API_OF_GRAPH }, { "top", api_top, API_RANGE API_OF_TOP } };

static const struct question *find_question(const char *what)
{
	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		if (!strcmp(questions[i].what, what))
			return &questions[i];
	return NULL;
}

const char *api_trace_params(const char *text)
{
	const struct question *question;
	struct path path;

	if (!take_apart(text, &path))
		return NULL;
	if (path.of != OF_TRACE && !strcmp(path.what, "where"))
		return path.of == OF_LOG ? "of" : "";
	if (!*path.what)
		return path.of == OF_TRACE ? API_RANGE : NULL;
	question = path.of != OF_LOG ? find_question(path.what) : NULL;
	return question ? question->params : NULL;
}

static void add_param(struct more_params *p, const char *key, const char *value)
{
	if (p->params.count < MOST_PARAMS)
		p->items[p->params.count++] = (struct query_param){ key, value };
}

static void add_time(struct more_params *p, size_t i, const char *key, uint64_t ns)
{
	snprintf(p->times[i], sizeof(p->times[i]), "%" PRIu64 ".%09" PRIu64, (uint64_t)(ns / NSEC_PER_SEC),
		 (uint64_t)(ns % NSEC_PER_SEC));
	add_param(p, key, p->times[i]);
}

/* How long after its last span that came in a trace may go on, and before its first. */
#define TRACE_MARGIN_NS (60 * NSEC_PER_SEC)

struct trace_time {
	uint64_t from_ns, to_ns;
	bool has_root;
};

static int add_time_of(void *arg, const struct kept_span *span)
{
	static const uint8_t none[sizeof(span->parent)];
	struct trace_time *t = arg;

	t->from_ns = !t->to_ns || span->start_ns < t->from_ns ? span->start_ns : t->from_ns;
	t->to_ns = span->end_ns > t->to_ns ? span->end_ns : t->to_ns;
	t->has_root |= !memcmp(span->parent, none, sizeof(none));
	return 0;
}

/* Narrows the question to the trace's time, if that came in, so that not all that is kept is read. */
static int find_time(struct api_call *call, const char *id, struct api_join *join)
{
	struct signals_question q = { .to_ns = UINT64_MAX, .deadline_ns = call->ctx.deadline_ns };
	struct trace_time t = { 0 };
	uint8_t trace[TRACE_DIGITS / 2];
	size_t len;
	int err = 0;

	q.trace = trace;
	if (hex_decode(id, TRACE_DIGITS, trace, &len) && call->api->config.signals)
		err = signals_spans(call->api->config.signals, &q, add_time_of, &t);
	if (err || !t.has_root)
		return err;
	join->from_ns = t.from_ns < TRACE_MARGIN_NS ? 0 : t.from_ns - TRACE_MARGIN_NS;
	join->to_ns = t.to_ns + TRACE_MARGIN_NS;
	return 0;
}

/* Begins with what the path says; the call's own parameters follow, of which the first of a name counts. */
static int begin_params(struct api_call *call, const struct path *path, struct more_params *p)
{
	const bool has_time = query_param(call->params, "from");
	int err = 0;

	p->params = (struct query_params){ p->items, 0 };
	p->join = (struct api_join){ 0 };
	if (path->of == OF_SPAN)
		err = api_join_span(call, path->id, 0, 0, &p->join);
	else if (path->of == OF_TRACE)
		err = find_time(call, path->id, &p->join);
	if (err)
		return err;
	if (p->join.joined == JOINED_NONE) {
		if (path->of == OF_SPAN)
			p->join.to_ns = 0;
		buf_printf(&p->join.query, "{%s=\"%s\"}", path->of == OF_TRACE ? STORE_TRACE_LABEL : STORE_SPAN_LABEL,
			   path->id);
	}
	add_param(p, "query", buf_text(&p->join.query));
	if (p->join.to_ns && (!has_time || p->join.joined == JOINED_TIME)) {
		add_time(p, 0, "from", p->join.from_ns);
		add_time(p, 1, "to", p->join.to_ns);
	} else if (!has_time) {
		add_param(p, "from", "first");
	}
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
	AUTO(more_params_fini) struct more_params more = { 0 };
	const struct question *question;
	struct path path;
	int err;

	if (!take_apart(text, &path))
		return -ENOENT;
	if (!strcmp(path.what, "where"))
		return path.of == OF_LOG ? api_where_log(call, path.id) : api_where_span(call, path.id);
	if (!*path.what)
		return list_spans(call, &path);
	question = find_question(path.what);
	if (!question)
		return -ENOENT;
	err = begin_params(call, &path, &more);
	if (err)
		return err;
	end_params(call, &more);
	call->params = &more.params;
	call->joined = path.of == OF_TRACE ? api_joined_name(JOINED_LINK) : api_joined_name(more.join.joined);
	err = question->answer(call);
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
	enum api_joined joined;
	uint64_t start_ns, end_ns; /* 0: the span itself did not come in, or is forgotten */
	uint8_t kind, status;
	char name[SIGNAL_NAME_BYTES], service[SERVICE_BYTES], thread_name[SIGNAL_NAME_BYTES];
	int64_t thread_id;
	uint32_t resource; /* place among the list's */
};

struct span_list {
	struct span *items; /* owned */
	size_t count, cap, left_out;
	char *kinds[MOST_KINDS]; /* owned */
	char units[MOST_KINDS][32];
	uint64_t weight_ns[MOST_KINDS];
	size_t kind_cnt, kind;
	struct intern *resources; /* labels of kept_resource; owned */
};

static void span_list_fini(struct span_list *s)
{
	for (size_t i = 0; i < s->kind_cnt; i++)
		free(s->kinds[i]);
	free(s->items);
	intern_free(s->resources);
}

static int take_kind(void *arg, const struct store_kind *kind)
{
	const struct query q = { .about = *kind };
	struct span_list *s = arg;

	for (size_t i = 0; i < s->kind_cnt; i++)
		if (!strcmp(s->kinds[i], kind->type))
			return 0;
	if (s->kind_cnt == MOST_KINDS)
		return 0;
	s->kinds[s->kind_cnt] = strdup(kind->type);
	s->weight_ns[s->kind_cnt] = query_weight_ns(&q);
	snprintf(s->units[s->kind_cnt], sizeof(s->units[s->kind_cnt]), "%s", kind->unit);
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

	if (span) {
		span->of[s->kind] = (struct weight){ weight, events };
		span->joined = JOINED_LINK;
	}
	return err;
}

/* A span that came in itself. */
static int take_kept(void *arg, const struct kept_span *kept)
{
	static const uint8_t none[sizeof(kept->parent)];
	struct span_list *s = arg;
	char id[SPAN_DIGITS + 1];
	struct span *span;
	int err;

	hex_encode(id, kept->span, sizeof(kept->span));
	err = find_span(s, id, &span);
	if (!span)
		return err;
	if (intern_add(s->resources, kept->resource.labels ? kept->resource.labels : "", kept->resource.len,
		       &span->resource) < 0)
		return -ENOMEM;
	if (memcmp(kept->parent, none, sizeof(none)) != 0)
		hex_encode(span->parent, kept->parent, sizeof(kept->parent));
	span->start_ns = kept->start_ns;
	span->end_ns = kept->end_ns;
	span->kind = kept->kind;
	span->status = kept->status;
	span->thread_id = kept->thread_id;
	snprintf(span->name, sizeof(span->name), "%s", kept->name);
	snprintf(span->thread_name, sizeof(span->thread_name), "%s", kept->thread_name);
	snprintf(span->service, sizeof(span->service), "%s", kept->resource.service);
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

static int find_spans(struct api_call *call, const struct query *q, struct span_list *s)
{
	struct store_selection sel = q->sel;
	int err = 0;

	for (s->kind = 0; s->kind < s->kind_cnt && !err; s->kind++) {
		sel.kind = s->kinds[s->kind];
		err = call->ctx.store->read->label_values(call->ctx.store, &sel, STORE_SPAN_LABEL, take_span, s);
	}
	return err;
}

/* --- by time --- */

static int take_weight(void *arg, const char *value, int64_t weight, uint64_t events)
{
	struct weight *of = arg;

	(void)value;
	of->weight = weights_add(of->weight, weight);
	of->events += events;
	return 0;
}

/* The kinds of one span's samples, by place among the list's. */
struct kinds_of {
	struct span_list *list;
	unsigned kinds;
};

static int take_kind_of_span(void *arg, const struct store_kind *kind)
{
	struct kinds_of *of = arg;
	int err = take_kind(of->list, kind);

	for (size_t i = 0; i < of->list->kind_cnt && !err; i++)
		if (!strcmp(of->list->kinds[i], kind->type))
			of->kinds |= 1u << i;
	return err;
}

/* Weighs @span by what its thread, or its process, did in its time; what its children did there included. */
static int weigh_by_time(struct api_call *call, struct span_list *s, struct span *span)
{
	AUTO(api_join_fini) struct api_join join = { 0 };
	AUTO(selector_fini) struct selector selector = { 0 };
	struct store_selection sel = { .deadline_ns = call->ctx.deadline_ns, .is_unwanted = call->ctx.is_unwanted };
	struct kept_resource r = { .service = span->service };
	struct kinds_of of = { s, 0 };
	int err;

	r.labels = intern_get(s->resources, span->resource, &r.len);
	err = api_join_by_time(call, &r, span->thread_id, span->thread_name, span->start_ns, span->end_ns + 1, &join);
	if (err || !join.joined)
		return err;
	err = selector_parse(buf_text(&join.query), &selector, &call->error);
	sel.from_ns = join.from_ns;
	sel.to_ns = join.to_ns;
	sel.matchers = selector.items;
	sel.matcher_count = selector.count;
	err = err ? err : call->ctx.store->read->kinds(call->ctx.store, &sel, take_kind_of_span, &of);
	for (size_t i = 0; i < s->kind_cnt && !err; i++) {
		if (!(of.kinds & 1u << i))
			continue;
		sel.kind = s->kinds[i];
		err = call->ctx.store->read->label_values(call->ctx.store, &sel, STORE_SPAN_LABEL, take_weight,
							  &span->of[i]);
	}
	span->joined = JOINED_TIME;
	return err;
}

static int weigh_rest(struct api_call *call, struct span_list *s)
{
	size_t timed = 0;
	int err = 0;

	for (size_t i = 0; i < s->count && !err && timed < MOST_TIMED; i++) {
		if (s->items[i].joined || !s->items[i].start_ns)
			continue;
		timed++;
		err = weigh_by_time(call, s, &s->items[i]);
	}
	return err;
}

/* --- the answer --- */

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
	if (span->joined)
		api_write_text(j, "joined", api_joined_name(span->joined));
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

static int find_kept(struct api_call *call, const struct path *path, struct span_list *s)
{
	struct signals_question q = { .to_ns = UINT64_MAX, .deadline_ns = call->ctx.deadline_ns };
	uint8_t trace[TRACE_DIGITS / 2];
	size_t len;

	s->resources = intern_new();
	if (!s->resources)
		return -ENOMEM;
	q.trace = trace;
	return hex_decode(path->id, TRACE_DIGITS, trace, &len) && call->api->config.signals
		       ? signals_spans(call->api->config.signals, &q, take_kept, s)
		       : 0;
}

/* By what the answer's samples are joined, all in all. */
static enum api_joined joined_of(const struct span_list *s)
{
	enum api_joined joined = JOINED_NONE;

	for (size_t i = 0; i < s->count && joined != JOINED_LINK; i++)
		if (s->items[i].joined)
			joined = s->items[i].joined;
	return joined;
}

static int list_spans(struct api_call *call, const struct path *path)
{
	const struct query_params *given = call->params;
	AUTO(span_list_fini) struct span_list s = { 0 };
	AUTO(query_fini) struct query q = { 0 };
	struct json *j = &call->json;
	AUTO(more_params_fini) struct more_params more = { 0 };
	int err = begin_params(call, path, &more);

	if (err)
		return err;
	end_params(call, &more);
	err = find_kinds(call, &more, &s, &q);
	err = err ? err : find_spans(call, &q, &s);
	err = err ? err : find_kept(call, path, &s);
	err = err ? err : weigh_rest(call, &s);
	call->params = given;
	if (err)
		return err;
	sort_spans(&s);
	json_object_begin(j);
	api_write_text(j, "trace_id", path->id);
	api_write_text(j, "joined", api_joined_name(joined_of(&s)));
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
