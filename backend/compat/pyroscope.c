/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of Pyroscope's query service that Grafana's data source asks for, over our own queries: kinds of samples are
 * profile types there, label names have no dots, times are milliseconds, and a flame graph is a list of levels.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/compat/pyroscope.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/intern.h"

void pyroscope_answer(struct api_call *call, struct connect_writer *w)
{
	const char *codec = query_param(call->params, "codec");
	bool is_json = codec && !strcmp(codec, "json");

	call->answer->content_type = is_json ? "application/json" : "application/proto";
	connect_writer_begin(w, is_json, &call->answer->body);
}

/* --- profile types --- */

/* Calls @fn with each type that @kind is shown as: CPU time where samples are so much of it, and their number. */
static int each_type(const struct store_kind *kind, int (*fn)(void *arg, const struct profile_type *type), void *arg)
{
	bool is_time = !strcmp(kind->unit, "count") && !strcmp(kind->period_unit, "nanoseconds") && kind->period > 0;
	struct profile_type type = {
		.kind = kind->type,
		.name = is_time && !strcmp(kind->period_type, "cpu") ? "process_cpu" : kind->type,
		.sample_type = is_time ? kind->period_type : kind->type,
		.sample_unit = is_time ? kind->period_unit : kind->unit,
		.period_type = kind->period_type,
		.period_unit = kind->period_unit,
		.scale = is_time ? kind->period : 1,
	};
	int err = fn(arg, &type);

	if (err || !is_time)
		return err;
	type.sample_type = kind->type;
	type.sample_unit = kind->unit;
	type.scale = 1;
	return fn(arg, &type);
}

void profile_type_id(const struct profile_type *t, struct buf *out)
{
	buf_printf(out, "%s:%s:%s:%s:%s", t->name, t->sample_type, t->sample_unit, t->period_type, t->period_unit);
}

struct type_visit {
	int (*fn)(void *arg, const struct profile_type *type);
	void *arg;
};

static int visit_kind(void *arg, const struct store_kind *kind)
{
	const struct type_visit *visit = arg;

	return each_type(kind, visit->fn, visit->arg);
}

int pyroscope_types(struct api_call *call, const struct store_selection *sel,
		    int (*fn)(void *arg, const struct profile_type *type), void *arg)
{
	struct type_visit visit = { fn, arg };

	return call->ctx.store->read->kinds(call->ctx.store, sel, visit_kind, &visit);
}

struct type_search {
	struct question *question;
	const char *id;
};

static int find_type(void *arg, const struct profile_type *type)
{
	struct type_search *search = arg;
	struct question *question = search->question;
	AUTO(buf_fini) struct buf id = BUF_EMPTY;

	profile_type_id(type, &id);
	if (id.failed)
		return -ENOMEM;
	if (question->kind || strcmp(buf_text(&id), search->id) != 0)
		return 0;
	question->scale = type->scale;
	question->kind = strdup(type->kind);
	return question->kind ? 0 : -ENOMEM;
}

/* --- labels --- */

char pyroscope_char(char c)
{
	return isalnum((unsigned char)c) ? c : '_';
}

/* Whether @key is what @name says without its dots. */
static bool is_plain_name(const char *name, const char *key)
{
	for (; *name && pyroscope_char(*key) == *name && *key; name++)
		key++;
	return !*name && !*key;
}

struct label_search {
	const char *name;
	char *key; /* owned */
};

static int find_label(void *arg, const char *key)
{
	struct label_search *search = arg;

	if (search->key || !is_plain_name(search->name, key))
		return 0;
	search->key = strdup(key);
	return search->key ? 0 : -ENOMEM;
}

int pyroscope_label(struct api_call *call, const struct store_selection *range, const char *name, char **ret)
{
	const char *known = selector_label(name);
	struct label_search search = { .name = name };
	int err = 0;

	if (!known && strchr(name, '_'))
		err = call->ctx.store->read->labels(call->ctx.store, range, find_label, &search);
	*ret = search.key ? search.key : strdup(known ? known : name);
	return err ? err : *ret ? 0 : -ENOMEM;
}

/* --- questions --- */

void question_fini(struct question *qu)
{
	query_fini(&qu->q);
	free(qu->kind);
	free(qu->by);
}

int pyroscope_param(struct api_call *call, const char *key, const char **ret)
{
	*ret = "";
	for (size_t i = 0; i < call->params->count; i++) {
		const struct query_param *p = &call->params->items[i];

		if (strcmp(p->key, key) != 0 || !*p->value || !strcmp(p->value, "{}"))
			continue;
		if (**ret) {
			buf_printf(&call->error, "%s: hearth takes one", key);
			return -EINVAL;
		}
		*ret = p->value;
	}
	return 0;
}

/* Takes the matcher of profile types out of the selector: *@id_ret gets its value, the caller's to free. */
static int take_type_matcher(struct api_call *call, struct selector *s, char **id_ret)
{
	for (size_t i = 0; i < s->count; i++) {
		struct store_matcher *m = &s->items[i];

		if (strcmp(m->label, PROFILE_TYPE_LABEL) != 0)
			continue;
		if (m->match != MATCH_EQUAL || *id_ret) {
			buf_puts(&call->error, PROFILE_TYPE_LABEL ": hearth takes = and one of them");
			return -EINVAL;
		}
		*id_ret = (char *)(uintptr_t)m->value;
		free((char *)(uintptr_t)m->label);
		*m = s->items[--s->count];
		i--;
	}
	return 0;
}

static int resolve_matchers(struct api_call *call, struct question *qu)
{
	struct store_selection range = { .from_ns = qu->q.sel.from_ns, .to_ns = qu->q.sel.to_ns };
	int err = 0;

	for (size_t i = 0; i < qu->q.selector.count && !err; i++) {
		struct store_matcher *m = &qu->q.selector.items[i];
		char *key = NULL;

		err = pyroscope_label(call, &range, m->label, &key);
		if (err) {
			free(key);
		} else {
			free((char *)(uintptr_t)m->label);
			m->label = key;
		}
	}
	qu->q.sel.matchers = qu->q.selector.items;
	qu->q.sel.matcher_count = qu->q.selector.count;
	return err;
}

static bool is_zero_time(const char *text)
{
	return !text || !*text || !strcmp(text, "0.000");
}

/* The range of time: that asked for, or, as older clients mean with none, all there is. */
static int read_range(struct api_call *call, struct question *qu)
{
	const char *from = query_param(call->params, "from"), *to = query_param(call->params, "to");
	bool is_open = is_zero_time(from) && is_zero_time(to);
	const struct query_param items[] = { { "from", is_open ? "first"
						       : from  ? from
							       : "0" },
					     { "to", is_open ? "now" : to } };
	const struct query_params params = { items, ARRAY_LEN(items) };

	return query_read(&qu->q, &call->ctx, &params, "", &call->error);
}

/* Finds the kind of samples: of the profile type in the request, or of the selector's; else the one with the most events. */
static int read_type(struct api_call *call, struct question *qu, const char *of_selector)
{
	const char *id = query_param(call->params, "profile_type");
	struct store_selection range = { .from_ns = qu->q.sel.from_ns, .to_ns = qu->q.sel.to_ns };
	struct type_search search = { .question = qu, .id = id && *id ? id : of_selector };
	int err = search.id ? pyroscope_types(call, &range, find_type, &search) : 0;

	qu->is_absent = search.id && !qu->kind;
	if (qu->kind)
		qu->q.sel.kind = qu->kind;
	return err;
}

int pyroscope_read(struct api_call *call, struct question *qu)
{
	AUTO_FREE char *type = NULL;
	const char *selector;
	int err = read_range(call, qu);

	qu->scale = 1;
	err = err ? err : pyroscope_param(call, "selector", &selector);
	selector_fini(&qu->q.selector); /* the empty one of read_range() */
	err = err ? err : selector_parse(selector, &qu->q.selector, &call->error);
	if (!err && qu->q.selector.word) {
		buf_puts(&call->error, "a word beside the labels of a selector: only /api/v1 looks it up");
		return -EINVAL;
	}
	err = err ? err : take_type_matcher(call, &qu->q.selector, &type);
	err = err ? err : resolve_matchers(call, qu);
	return err ? err : read_type(call, qu, type);
}

/* --- errors --- */

void api_write_connect_error(struct buf *out, unsigned status, const char *text)
{
	static const struct {
		unsigned status;
		const char *code;
	} codes[] = {
		{ 400, "invalid_argument" },   { 403, "permission_denied" }, { 404, "not_found" },
		{ 413, "resource_exhausted" }, { 415, "invalid_argument" },  { 501, "unimplemented" },
		{ 503, "unavailable" },
	};
	const char *code = "internal";
	struct json j;

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i].status == status)
			code = codes[i].code;
	json_init(&j, out, 0);
	json_object_begin(&j);
	api_write_text(&j, "code", code);
	api_write_text(&j, "message", text);
	json_object_end(&j);
}

/* --- ProfileTypes, LabelNames, LabelValues --- */

static int write_type(void *arg, const struct profile_type *t)
{
	struct connect_writer *w = arg;
	AUTO(buf_fini) struct buf id = BUF_EMPTY;

	profile_type_id(t, &id);
	if (id.failed)
		return -ENOMEM;
	connect_message_begin(w, 1, NULL);
	connect_text(w, 1, "ID", buf_text(&id));
	connect_text(w, 2, "name", t->name);
	connect_text(w, 4, "sampleType", t->sample_type);
	connect_text(w, 5, "sampleUnit", t->sample_unit);
	connect_text(w, 6, "periodType", t->period_type);
	connect_text(w, 7, "periodUnit", t->period_unit);
	connect_message_end(w);
	return 0;
}

int api_profile_types(struct api_call *call)
{
	AUTO(question_fini) struct question qu = { 0 };
	struct connect_writer w;
	int err = pyroscope_read(call, &qu);

	if (err)
		return err;
	pyroscope_answer(call, &w);
	connect_list_begin(&w, "profileTypes");
	err = pyroscope_types(call, &qu.q.sel, write_type, &w);
	connect_list_end(&w);
	connect_writer_end(&w);
	return err;
}

/* Texts, each once. */
static int add_text(struct intern *names, const char *text)
{
	uint32_t number;
	int err = intern_add(names, text, strlen(text) + 1, &number);

	return err < 0 ? err : 0;
}

static int add_label(void *arg, const char *key)
{
	AUTO(buf_fini) struct buf name = BUF_EMPTY;

	for (; *key; key++)
		buf_putc(&name, pyroscope_char(*key));
	return name.failed ? -ENOMEM : add_text(arg, buf_text(&name));
}

static int add_value(void *arg, const char *value, int64_t weight, uint64_t events)
{
	(void)weight;
	(void)events;
	return *value ? add_text(arg, value) : 0;
}

static int add_type(void *arg, const struct profile_type *type)
{
	AUTO(buf_fini) struct buf id = BUF_EMPTY;

	profile_type_id(type, &id);
	return id.failed ? -ENOMEM : add_text(arg, buf_text(&id));
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A message with field 1 "names": all of @names, sorted. */
static int write_names(struct api_call *call, const struct intern *names)
{
	uint32_t count = intern_count(names);
	AUTO_FREE const char **sorted = calloc(count + 1, sizeof(*sorted));
	struct connect_writer w;

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = intern_get(names, i, NULL);
	qsort(sorted, count, sizeof(*sorted), by_text);
	pyroscope_answer(call, &w);
	connect_list_begin(&w, "names");
	for (uint32_t i = 0; i < count; i++)
		connect_text(&w, 1, NULL, sorted[i]);
	connect_list_end(&w);
	connect_writer_end(&w);
	return 0;
}

int api_label_names(struct api_call *call)
{
	AUTO(question_fini) struct question qu = { 0 };
	struct intern *names = intern_new();
	int err = names ? pyroscope_read(call, &qu) : -ENOMEM;

	if (!err && !qu.is_absent)
		err = call->ctx.store->read->labels(call->ctx.store, &qu.q.sel, add_label, names);
	err = err ? err : add_text(names, PROFILE_TYPE_LABEL);
	err = err ? err : write_names(call, names);
	intern_free(names);
	return err;
}

int api_label_values(struct api_call *call)
{
	AUTO(question_fini) struct question qu = { 0 };
	const char *label = query_param(call->params, "label");
	struct intern *names = intern_new();
	AUTO_FREE char *key = NULL;
	int err = names ? pyroscope_read(call, &qu) : -ENOMEM;

	if (!err && (!label || !*label)) {
		buf_puts(&call->error, "name: say of which label");
		err = -EINVAL;
	}
	err = err ? err : pyroscope_label(call, &qu.q.sel, label, &key);
	if (!err && !strcmp(label, PROFILE_TYPE_LABEL))
		err = pyroscope_types(call, &qu.q.sel, add_type, names);
	else if (!err && !qu.is_absent)
		err = call->ctx.store->read->label_values(call->ctx.store, &qu.q.sel, key, add_value, names);
	err = err ? err : write_names(call, names);
	intern_free(names);
	return err;
}
