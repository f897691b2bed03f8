/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the index that leads nowhere, for a message that has one: walks the model by the decoder's tables and keeps the
 * path, so that a person can find the place. Only runs when the decoder saw an index larger than its table.
 */
#include <stdarg.h>
#include <stdio.h>

#include "proto/otlp_decode.h"

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
