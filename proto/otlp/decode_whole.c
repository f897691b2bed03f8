/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole message in one layout: tables that were left out get their element 0, and indices are checked. The walk that finds
 * the index that leads nowhere goes by the tables and keeps the path, so that a person can find the place; it only runs when
 * the decoder saw an index larger than its table.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "proto/otlp/decode.h"

/* --- the index that leads nowhere --- */

struct walk {
	const struct profiles *profiles;
	struct otlp_error *err;
	bool json;
	char path[160]; /* what does not fit is left out of the message */
};

static size_t push(struct walk *w, size_t at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static size_t push(struct walk *w, size_t at, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(w->path + at, sizeof(w->path) - at, fmt, args);
	va_end(args);
	return n < 0 || at + (size_t)n >= sizeof(w->path) ? sizeof(w->path) - 1 : at + (size_t)n;
}

static bool check_index(struct walk *w, const struct otlp_field *f, int32_t index)
{
	const struct otlp_field *table = &otlp_dictionary.fields[f->table];
	uint32_t count = *(const uint32_t *)((const char *)&w->profiles->dict + table->count);
	char name[OTLP_JSON_NAME_BYTES];

	if ((uint32_t)index < count)
		return true;
	if (w->json)
		otlp_json_name(table->name, name);
	snprintf(w->err->message, sizeof(w->err->message), "%s is %d, but %s has %u elements", w->path, index,
		 w->json ? name : table->name, count);
	return false;
}

static bool check_message(struct walk *w, size_t at, const struct otlp_message *m, const void *base);

/* The field @f of @base, whose path ends at @at. */
static bool check_field(struct walk *w, size_t at, const struct otlp_field *f, const void *base)
{
	const void *value = (const char *)base + f->offset;
	char name[OTLP_JSON_NAME_BYTES];
	const void *items;
	uint32_t count;

	if (w->json)
		otlp_json_name(f->name, name);
	at = push(w, at, "%s%s", at ? "." : "", w->json ? name : f->name);
	if (f->kind == KIND_INDEX)
		return check_index(w, f, *(const int32_t *)value);
	if (f->kind == KIND_MESSAGE)
		return check_message(w, at, f->sub, value);
	items = *(void *const *)value;
	count = *(const uint32_t *)((const char *)base + f->count);
	for (uint32_t i = 0; i < count; i++) {
		size_t end = push(w, at, "[%u]", i);

		if (f->kind == KIND_INDICES ? !check_index(w, f, ((const int32_t *)items)[i])
					    : !check_message(w, end, f->sub, (const char *)items + (size_t)i * f->sub->size))
			return false;
	}
	return true;
}

static bool check_message(struct walk *w, size_t at, const struct otlp_message *m, const void *base)
{
	for (unsigned i = 0; i < m->field_count; i++) {
		const struct otlp_field *f = &m->fields[i];

		if (f->kind != KIND_INDEX && f->kind != KIND_INDICES && f->kind != KIND_MESSAGE && f->kind != KIND_MESSAGES)
			continue;
		if (f->variant && ((const struct any_value *)base)->kind != f->variant)
			continue;
		if (!check_field(w, at, f, base))
			return false;
	}
	return true;
}

bool otlp_check_indices(const struct profiles *p, bool json, struct otlp_error *err)
{
	struct walk w = { .profiles = p, .err = err, .json = json };

	return check_message(&w, 0, &otlp_profiles_data, p);
}

/* --- the whole --- */

/* Gives each table that has no element its element 0; false without memory. */
static bool fill_tables(struct otlp_decoder *d)
{
	struct dictionary *dict = &d->profiles->dict;

	for (unsigned t = 1; t < otlp_dictionary.field_count; t++) {
		const struct otlp_field *f = &otlp_dictionary.fields[t];
		void *item;

		if (*(const uint32_t *)((const char *)dict + f->count))
			continue;
		d->lacks_table = true;
		item = otlp_decode_extend(d, dict, f, f->sub ? f->sub->size : sizeof(struct str), 1);
		if (!item)
			return false;
		if (f->sub)
			otlp_init_strings(f->sub, item);
		else
			*(struct str *)item = STR("");
	}
	return true;
}

static bool indices_fit(const struct otlp_decoder *d)
{
	for (unsigned t = 1; t < otlp_dictionary.field_count; t++) {
		if (d->max_index[t] >=
		    *(const uint32_t *)((const char *)&d->profiles->dict + otlp_dictionary.fields[t].count))
			return false;
	}
	return true;
}

int otlp_decode_finish(struct otlp_decoder *d)
{
	if (!fill_tables(d))
		return d->error = -ENOMEM;
	if (d->forgets_references)
		return 0;
	/* An index that a later field replaced does not count, so the walk has the last word. */
	if (!indices_fit(d) && !otlp_check_indices(d->profiles, d->is_json, d->text))
		d->error = -EBADMSG;
	return d->error;
}

void *otlp_decode_root(struct otlp_decoder *d, const struct otlp_layout *layout)
{
	void *root;

	d->profiles = profiles_new();
	root = d->profiles && layout->size_bytes ? profiles_alloc(d->profiles, layout->size_bytes) : d->profiles;
	if (!root) {
		d->error = -ENOMEM;
		return NULL;
	}
	if (d->continues && !fill_tables(d))
		return NULL;
	if (d->len && !otlp_decode_message(d, layout->root, root, d->start, d->start + d->len))
		return NULL;
	if (layout->convert && !layout->convert(d, root))
		return NULL;
	d->whole = true;
	return otlp_decode_finish(d) ? NULL : root;
}
