/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of Pyroscope's query service that Grafana's data source asks for, over Connect's unary calls (POST, protobuf or
 * JSON, plain or packed): a request becomes the parameters of a question like any other, which backend/compat/pyroscope.c
 * answers. Field numbers and names are those of Pyroscope's querier.v1 and types.v1. Loop's thread only.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api/api.h"
#include "backend/routes/handlers.h"
#include "backend/ingest/unpack.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "proto/compat/connect.h"

enum { MAX_BYTES = 64 << 10, MAX_ITEMS = 24 };

/* A field's use is the parameter that it becomes; without one it narrows by what we do not have, and must be empty. */
#define TEXT(n, name_, json_, param_)                 \
	{                                             \
		n, name_, json_, CONNECT_TEXT, param_ \
	}
#define INT64(n, name_, json_, param_)                 \
	{                                              \
		n, name_, json_, CONNECT_INT64, param_ \
	}
#define START(n)                                         \
	{                                                \
		n, "start", "start", CONNECT_INT64, FROM \
	}
#define END(n)                                     \
	{                                          \
		n, "end", "end", CONNECT_INT64, TO \
	}

/* Times come as Unix ms and are wanted in seconds. */
static const char FROM[] = "from", TO[] = "to";

static const struct connect_field profile_types[] = { START(1), END(2) };
static const struct connect_field label_names[] = { TEXT(1, "matchers", "matchers", "selector"), START(2), END(3) };
static const struct connect_field label_values[] = { TEXT(1, "name", "name", "label"),
						     TEXT(2, "matchers", "matchers", "selector"), START(3), END(4) };
static const struct connect_field series[] = { TEXT(1, "matchers", "matchers", "selector"),
					       TEXT(2, "label_names", "labelNames", "by"), START(3), END(4) };
static const struct connect_field select_series[] = {
	TEXT(1, "profile_typeID", "profileTypeID", "profile_type"),
	TEXT(2, "label_selector", "labelSelector", "selector"),
	START(3),
	END(4),
	TEXT(5, "group_by", "groupBy", "by"),
	{ 6, "step", "step", CONNECT_DOUBLE, "step" },
	{ 7, "aggregation", "aggregation", CONNECT_ENUM, NULL }, /* 0: sum */
	{ 8, "stack_trace_selector", "stackTraceSelector", CONNECT_MESSAGE, NULL },
	INT64(9, "limit", "limit", "limit"),
};
static const struct connect_field select_merge_stacktraces[] = {
	TEXT(1, "profile_typeID", "profileTypeID", "profile_type"),
	TEXT(2, "label_selector", "labelSelector", "selector"),
	START(3),
	END(4),
	INT64(5, "max_nodes", "maxNodes", "max_nodes"),
	{ 6, "format", "format", CONNECT_ENUM, "format" },
	{ 7, "stack_trace_selector", "stackTraceSelector", CONNECT_MESSAGE, NULL },
	{ 8, "profile_id_selector", "profileIdSelector", CONNECT_TEXT, NULL },
	{ 10, "trace_id_selector", "traceIdSelector", CONNECT_TEXT, NULL },
	{ 11, "span_selector", "spanSelector", CONNECT_TEXT, NULL },
};

static const struct method {
	const char *name;
	const struct connect_field *fields;
	size_t count;
} methods[] = {
	{ "ProfileTypes", profile_types, ARRAY_LEN(profile_types) },
	{ "LabelNames", label_names, ARRAY_LEN(label_names) },
	{ "LabelValues", label_values, ARRAY_LEN(label_values) },
	{ "Series", series, ARRAY_LEN(series) },
	{ "SelectSeries", select_series, ARRAY_LEN(select_series) },
	{ "SelectMergeStacktraces", select_merge_stacktraces, ARRAY_LEN(select_merge_stacktraces) },
};

static const struct method *find_method(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (strcmp(path + strlen(CONNECT_PATH), methods[i].name) == 0)
			return &methods[i];
	return NULL;
}

static void refuse(struct request *r, unsigned status, enum rejection why, const char *text)
{
	metric_add(r->server->stats.rejected[why], 1);
	buf_reset(&r->reply.body);
	api_write_connect_error(&r->reply.body, status, text);
	reply_body(r, status, CONTENT_TYPE_JSON);
}

/* "application/proto" or "application/json", whatever parameters follow. */
static bool is_type(const char *value, const char *type)
{
	size_t len = value ? strcspn(value, "; \t") : 0;

	return len == strlen(type) && strncasecmp(value, type, len) == 0;
}

static bool is_json(const struct request *r)
{
	return is_type(request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE), CONTENT_TYPE_JSON);
}

void page_connect_begin(struct request *r)
{
	if (!find_method(r->path))
		refuse(r, MHD_HTTP_NOT_IMPLEMENTED, REJECTED_PATH, "hearth does not have this one");
	else if (!is_json(r) && !is_type(request_header(r, MHD_HTTP_HEADER_CONTENT_TYPE), "application/proto"))
		refuse(r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, REJECTED_CONTENT_TYPE,
		       "send application/proto or application/json");
	else if (r->announced_bytes > MAX_BYTES && r->announced_bytes != UINT64_MAX)
		refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, REJECTED_TOO_LARGE, "no question is so long");
	else
		request_encoding(r, &r->ingest.encoding);
}

struct question {
	const struct method *method;
	struct query_param items[MAX_ITEMS]; /* their values owned */
	size_t count;
	const char *trouble; /* the part that is not understood, or NULL */
};

static void question_fini(struct question *q)
{
	for (size_t i = 0; i < q->count; i++)
		free((char *)q->items[i].value);
}

static int add(struct question *q, const char *key, const struct buf *text)
{
	char *value = text->failed ? NULL : strndup(text->data ? (const char *)text->data : "", text->len);

	if (!value)
		return -ENOMEM;
	if (q->count == MAX_ITEMS) {
		free(value);
		q->trouble = "too many fields";
		return -EINVAL;
	}
	q->items[q->count++] = (struct query_param){ key, value };
	return 0;
}

static bool is_empty(const struct connect_value *v)
{
	return !v->integer && (!v->text || !v->len || (v->len == 2 && !memcmp(v->text, "{}", 2)));
}

static int take_field(void *arg, const struct connect_field *field, const struct connect_value *v)
{
	struct question *q = arg;
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	bool is_time = field->use == FROM || field->use == TO;

	if (!field->use && is_empty(v))
		return 0;
	if (!field->use) {
		q->trouble = "hearth does not select by profile, trace, span or call site, and adds up only";
		return -EOPNOTSUPP;
	}
	if (is_time && v->integer < 0) {
		q->trouble = "start, end: milliseconds since 1970";
		return -EINVAL;
	}
	if (is_time)
		buf_printf(&text, "%" PRId64 ".%03d", v->integer / 1000, (int)(v->integer % 1000));
	else if (v->text)
		buf_append(&text, v->text, v->len);
	else if (field->kind == CONNECT_DOUBLE)
		buf_printf(&text, "%.9g", v->real);
	else
		buf_printf(&text, "%" PRId64, v->integer);
	return add(q, field->use, &text);
}

/* Reads what is packed in @b. 0, -EBADMSG, -EFBIG, -ENOMEM, or as connect_read(). */
static int read_packed(struct question *q, bool json, enum ingest_encoding encoding, const struct body *b)
{
	struct unpacker *u = unpacker_new();
	AUTO_FREE uint8_t *plain = malloc(MAX_BYTES);
	size_t len = 0;
	int err = u && plain ? unpack(u, encoding, b->data, b->len, plain, MAX_BYTES, &len) : -ENOMEM;

	unpacker_free(u);
	return err == -ENOSPC ? -EFBIG
	       : err	      ? err
			      : connect_read(q->method->fields, q->method->count, json, plain, len, take_field, q);
}

void page_connect(struct request *r)
{
	AUTO(question_fini) struct question q = { .method = find_method(r->path) };
	const struct body *b = &r->ingest.body;
	const struct buf codec = { .data = (uint8_t *)(uintptr_t)(is_json(r) ? "json" : "proto"),
				   .len = is_json(r) ? 4 : 5 };
	int err = add(&q, "codec", &codec);

	if (!err && b->len > MAX_BYTES)
		err = -EFBIG;
	else if (!err && r->ingest.encoding == ENCODING_IDENTITY)
		err = connect_read(q.method->fields, q.method->count, is_json(r), b->data, b->len, take_field, &q);
	else if (!err)
		err = read_packed(&q, is_json(r), r->ingest.encoding, b);
	if (!err)
		page_api_question(r, q.items, q.count);
	else if (err == -EOPNOTSUPP)
		refuse(r, MHD_HTTP_NOT_IMPLEMENTED, REJECTED_MALFORMED, q.trouble);
	else if (err == -ENOMEM)
		refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_MEMORY, "no memory for this now: try again");
	else if (err == -EFBIG)
		refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, REJECTED_TOO_LARGE, "no question is so long");
	else
		refuse(r, MHD_HTTP_BAD_REQUEST, REJECTED_MALFORMED, q.trouble ? q.trouble : "this is no such message");
}
