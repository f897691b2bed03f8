/* SPDX-License-Identifier: Apache-2.0 */
/* Turns requests into records, and gives them to the store that keeps such, or makes rows of them. The room's thread. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "backend/signals/signals_internal.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/text/utf8.h"
#include "proto/otlp/metrics.h"

enum { ANY_DEPTH = 4 };

/* A request on its way: which resource it is at, and what is known of that. */
struct walk {
	struct signals *s;
	const struct profiles *p; /* the request's texts */
	const struct resource *resource;
	struct buf labels, service; /* owned; of @resource, once is_known */
	struct kept_resource kept;
	bool is_known;
	uint64_t *count; /* of records that were kept */
};

static void walk_fini(struct walk *w)
{
	buf_fini(&w->labels);
	buf_fini(&w->service);
}

/* --- values as text --- */

static void append_text(const struct profiles *p, const struct any_value *v, unsigned depth, struct buf *out)
{
	if (profiles_value_append(p, v, out))
		return;
	switch (v->kind) {
	case VALUE_ARRAY:
		for (uint32_t i = 0; i < v->array.count && depth && out->len < SIGNAL_BODY_BYTES; i++) {
			buf_puts(out, i ? " " : "");
			append_text(p, &v->array.items[i], depth - 1, out);
		}
		break;
	case VALUE_KVLIST:
		for (uint32_t i = 0; i < v->kvlist.count && depth && out->len < SIGNAL_BODY_BYTES; i++) {
			const struct str key = profiles_key(p, &v->kvlist.items[i]);

			buf_printf(out, "%s%.*s=", i ? " " : "", (int)key.len, key.data);
			append_text(p, &v->kvlist.items[i].value, depth - 1, out);
		}
		break;
	default: /* bytes say nothing to readers */
		break;
	}
}

/* Writes @text into @to, @most bytes with its NUL at most. */
static const char *cut(struct str text, char *to, size_t most)
{
	const size_t len = text.len < most ? text.len : utf8_cut(text.data, text.len, most - 1);

	if (len)
		memcpy(to, text.data, len);
	to[len] = '\0';
	return to;
}

/* Ids of other lengths are none. */
static void take_id(struct str id, uint8_t *to, size_t len)
{
	if (id.len == len)
		memcpy(to, id.data, len);
	else
		memset(to, 0, len);
}

/* --- resources --- */

static void begin_resource(struct walk *w, const struct resource *resource)
{
	w->resource = resource;
	w->is_known = false;
}

static int append_labels(const struct walk *w, struct buf *labels)
{
	AUTO(buf_fini) struct buf one = BUF_EMPTY;

	for (uint32_t i = 0; i < w->resource->attributes.count; i++) {
		const struct key_value *kv = &w->resource->attributes.items[i];
		const struct str key = profiles_key(w->p, kv);

		buf_reset(&one);
		buf_append(&one, key.data, key.len);
		buf_putc(&one, '\0');
		append_text(w->p, &kv->value, 1, &one);
		buf_putc(&one, '\0');
		if (labels->len + one.len <= SIGNAL_LABELS_BYTES && memchr(one.data, 0, one.len) == one.data + key.len)
			buf_append(labels, one.data, one.len);
	}
	return labels->failed || one.failed ? -ENOMEM : 0;
}

/* Looks at the resource when the first record of it is met: most metrics have no exemplar. */
static int know_resource(struct walk *w)
{
	const struct str service = profiles_value_text(w->p,
						       profiles_find_key(w->p, &w->resource->attributes, "service.name"));
	int err;

	if (w->is_known)
		return 0;
	buf_reset(&w->labels);
	buf_reset(&w->service);
	err = append_labels(w, &w->labels);
	buf_append(&w->service, service.data, service.len);
	if (err || w->service.failed)
		return -ENOMEM;
	w->kept = (struct kept_resource){ buf_text(&w->service), buf_text(&w->labels), w->labels.len };
	err = w->s->config.store ? 0 : signals_row_resource(w->s, &w->kept);
	w->is_known = !err;
	return err;
}

/* --- records --- */

static const struct store_record_ops *ops_of(const struct walk *w)
{
	return w->s->config.store ? w->s->config.store->records : NULL;
}

static int put_span(struct walk *w, const struct span *span)
{
	const struct any_value *thread = profiles_find_key(w->p, &span->attributes, "thread.id");
	const struct str thread_name = profiles_value_text(w->p, profiles_find_key(w->p, &span->attributes, "thread.name"));
	char name[SIGNAL_NAME_BYTES], thread_text[SIGNAL_NAME_BYTES];
	struct kept_span kept = {
		.start_ns = span->start_time_unix_ns,
		.end_ns = span->end_time_unix_ns < span->start_time_unix_ns ? span->start_time_unix_ns
									    : span->end_time_unix_ns,
		.kind = (uint8_t)span->kind,
		.status = (uint8_t)(span->has_status ? span->status.code : 0),
		.name = cut(span->name, name, sizeof(name)),
		.thread_id = thread && thread->kind == VALUE_INT ? thread->integer : -1,
		.thread_name = cut(thread_name, thread_text, sizeof(thread_text)),
	};
	int err;

	if (span->trace_id.len != sizeof(kept.trace) || span->span_id.len != sizeof(kept.span)) {
		metric_add(w->s->metrics.incomplete, 1);
		return 0;
	}
	take_id(span->trace_id, kept.trace, sizeof(kept.trace));
	take_id(span->span_id, kept.span, sizeof(kept.span));
	take_id(span->parent_span_id, kept.parent, sizeof(kept.parent));
	err = know_resource(w);
	kept.resource = w->kept;
	if (!err)
		err = ops_of(w) ? ops_of(w)->add_span(w->s->config.store, &kept) : signals_row_span(w->s, &kept);
	*w->count += !err;
	return err;
}

static int put_spans(struct walk *w, const struct span_request *request)
{
	int err = 0;

	for (uint32_t r = 0; r < request->resource_count && !err; r++) {
		const struct resource_spans *of = &request->resources[r];

		begin_resource(w, &of->resource);
		for (uint32_t i = 0; i < of->scope_count && !err; i++)
			for (uint32_t k = 0; k < of->scopes[i].span_count && !err; k++)
				err = put_span(w, &of->scopes[i].spans[k]);
	}
	return err;
}

static int put_log(struct walk *w, const struct log_record *record)
{
	const uint64_t time_ns = record->time_unix_ns ? record->time_unix_ns : record->observed_time_unix_ns;
	AUTO(buf_fini) struct buf body = BUF_EMPTY;
	struct kept_log kept = { .time_ns = time_ns ? time_ns : clock_unix_ns(),
				 .severity = (uint8_t)record->severity_number };
	char text[SIGNAL_BODY_BYTES];
	int err;

	append_text(w->p, &record->body, ANY_DEPTH, &body);
	if (!body.len)
		buf_append(&body, record->event_name.data, record->event_name.len);
	if (body.failed)
		return -ENOMEM;
	kept.body = cut((struct str){ buf_text(&body), (uint32_t)body.len }, text, sizeof(text));
	take_id(record->trace_id, kept.trace, sizeof(kept.trace));
	take_id(record->span_id, kept.span, sizeof(kept.span));
	err = know_resource(w);
	kept.resource = w->kept;
	if (!err)
		err = ops_of(w) ? ops_of(w)->add_log(w->s->config.store, &kept) : signals_row_log(w->s, &kept);
	*w->count += !err;
	return err;
}

static int put_logs(struct walk *w, const struct logs *request)
{
	int err = 0;

	for (uint32_t r = 0; r < request->resource_count && !err; r++) {
		const struct resource_logs *of = &request->resources[r];

		begin_resource(w, &of->resource);
		for (uint32_t i = 0; i < of->scope_count && !err; i++)
			for (uint32_t k = 0; k < of->scopes[i].record_count && !err; k++)
				err = put_log(w, &of->scopes[i].records[k]);
	}
	return err;
}

static int put_exemplar(struct walk *w, const struct metric_data *metric, const struct exemplar *e)
{
	char name[SIGNAL_NAME_BYTES], unit[SIGNAL_NAME_BYTES];
	struct kept_exemplar kept = {
		.time_ns = e->time_unix_ns,
		.value = e->has_int ? (double)e->as_int : e->as_double,
		.metric = cut(metric->name, name, sizeof(name)),
		.unit = cut(metric->unit, unit, sizeof(unit)),
	};
	int err;

	if (!e->time_unix_ns) {
		metric_add(w->s->metrics.incomplete, 1);
		return 0;
	}
	err = know_resource(w);
	take_id(e->trace_id, kept.trace, sizeof(kept.trace));
	take_id(e->span_id, kept.span, sizeof(kept.span));
	kept.resource = w->kept;
	if (!err)
		err = ops_of(w) ? ops_of(w)->add_exemplar(w->s->config.store, &kept) : signals_row_exemplar(w->s, &kept);
	*w->count += !err;
	return err;
}

static int put_points(struct walk *w, const struct metric_data *metric, const struct points *points)
{
	int err = 0;

	for (uint32_t i = 0; i < points->count && !err; i++)
		for (uint32_t k = 0; k < points->items[i].exemplar_count && !err; k++)
			err = put_exemplar(w, metric, &points->items[i].exemplars[k]);
	return err;
}

static int put_metric(struct walk *w, const struct metric_data *m)
{
	const struct points *const all[] = { &m->gauge, &m->sum, &m->histogram, &m->exponential_histogram };
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(all) && !err; i++)
		err = put_points(w, m, all[i]);
	return err;
}

static int put_exemplars(struct walk *w, const struct metric_request *request)
{
	int err = 0;

	for (uint32_t r = 0; r < request->resource_count && !err; r++) {
		const struct resource_metrics *of = &request->resources[r];

		begin_resource(w, &of->resource);
		for (uint32_t i = 0; i < of->scope_count && !err; i++)
			for (uint32_t k = 0; k < of->scopes[i].metric_count && !err; k++)
				err = put_metric(w, &of->scopes[i].metrics[k]);
	}
	return err;
}

int signals_put(struct signals *s, const struct otlp_other *other, uint64_t *kept_ret)
{
	AUTO(walk_fini) struct walk w = { .s = s, .p = other->memory, .count = kept_ret };

	switch (other->signal) {
	case OTLP_TRACES:
		return put_spans(&w, other->root);
	case OTLP_LOGS:
		return put_logs(&w, other->root);
	case OTLP_METRICS:
		return put_exemplars(&w, other->root);
	default:
		return 0;
	}
}
