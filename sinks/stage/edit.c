/* SPDX-License-Identifier: Apache-2.0 */
/* Edits attributes of resources: the processors resource and attributes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/text/pattern.h"
#include "proto/resource_edit.h"
#include "sinks/stage/stage_sink.h"
#include "sinks/value_text.h"

struct edit_stage {
	struct stage stage;
	const struct stage_edits *edits;
	struct metric *unchanged;
};

static void delete_keys(struct resource_edit *e, const struct stage_edit *edit)
{
	for (uint32_t i = 0;;) {
		struct key_values list = resource_edit_list(e);
		struct str key;
		bool is_meant;

		if (i >= list.count || e->failed)
			return;
		key = profiles_key(e->from, &list.items[i]);
		is_meant = edit->pattern ? stage_pattern_matches(edit->pattern, key) : str_is(key, edit->key);
		if (is_meant)
			resource_edit_remove(e, i);
		else
			i++;
	}
}

/* The value @text as a number; false: it is none. */
static bool read_number(const char *text, enum value_kind kind, struct any_value *ret)
{
	char *end;

	*ret = (struct any_value){ .kind = kind };
	errno = 0;
	if (kind == VALUE_INT)
		ret->integer = strtoll(text, &end, 10);
	else
		ret->real = strtod(text, &end);
	return *text && !*end && !errno;
}

/* What is no number stays as it is. */
static void convert(struct resource_edit *e, const struct stage_edit *edit, const struct any_value *value)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct any_value result;

	if (value->kind == edit->value.kind)
		return;
	value_text(e->from, value, &text);
	if (edit->value.kind == VALUE_STRING)
		result = (struct any_value){ .kind = VALUE_STRING, .string = str_z(buf_text(&text)) };
	else if (value->kind == VALUE_DOUBLE && value->real > -9e18 && value->real < 9e18)
		result = (struct any_value){ .kind = VALUE_INT, .integer = (int64_t)value->real };
	else if (!read_number(buf_text(&text), edit->value.kind, &result))
		return;
	resource_edit_set(e, str_z(edit->key), &result);
}

static void apply(struct resource_edit *e, const struct stage_edit *edit)
{
	const struct any_value *there = edit->key ? resource_edit_find(e, edit->key) : NULL;
	const struct any_value *value = edit->from ? resource_edit_find(e, edit->from) : &edit->value;

	switch (edit->action) {
	case EDIT_DELETE:
		delete_keys(e, edit);
		return;
	case EDIT_CONVERT:
		if (there)
			convert(e, edit, there);
		return;
	case EDIT_INSERT:
		if (there)
			return;
		break;
	case EDIT_UPDATE:
		if (!there)
			return;
		break;
	case EDIT_UPSERT:
		break;
	}
	if (value)
		resource_edit_set(e, str_z(edit->key), value);
}

static int edit_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct edit_stage *s = (struct edit_stage *)sink;
	struct resource_edit e = { .from = p };
	struct profiles *out;
	int err;

	for (bool more = p->resource_count; more; more = resource_edit_next(&e)) {
		const struct resource_profiles *r = &p->resources[e.resource];

		if ((s->edits->has_include && !stage_matches(&s->edits->include, p, r)) ||
		    (s->edits->has_exclude && stage_matches(&s->edits->exclude, p, r)))
			continue;
		for (size_t i = 0; i < s->edits->count; i++)
			apply(&e, &s->edits->items[i]);
	}
	if (e.failed)
		metric_add(s->unchanged, p->sample_events);
	out = resource_edit_end(&e);
	err = sink_consume(s->stage.next, out, ack);
	profiles_put(out);
	return err;
}

static void edit_free(struct sink *sink)
{
	struct edit_stage *s = (struct edit_stage *)sink;

	sink_free(s->stage.next);
	free(s);
}

int stage_edit_new(const struct stage_edits *edits, struct sink *next, struct metrics *metrics, struct sink **ret)
{
	struct edit_stage *s = calloc(1, sizeof(*s));

	if (!s) {
		sink_free(next);
		return -ENOMEM;
	}
	stage_init(&s->stage, next, edit_consume, edit_free);
	s->edits = edits;
	s->unchanged = stage_unchanged(metrics);
	*ret = &s->stage.sink;
	return 0;
}
