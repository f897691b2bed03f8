/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the samples of a pprof profile: each column of values becomes a profile, the one that is shown first before the
 * others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/pprof/profile.pb.h"
#include "proto/formats/pprof_read.h"

enum { MAX_COLUMNS = 64, MAX_NAME_BYTES = 128 };

/* A column, and the profile that it becomes. */
struct column {
	char type[MAX_NAME_BYTES], unit[MAX_NAME_BYTES];
	uint64_t type_index;
	bool is_derived; /* from another one: the count times the period */
	struct builder_profile_spec spec;
};

struct pprof_columns {
	struct column items[MAX_COLUMNS];
	uint32_t count;
	uint32_t first; /* the one that is shown first */
	char period_type[MAX_NAME_BYTES], period_unit[MAX_NAME_BYTES];
	struct buf attributes; /* int32_t: of the profiles */
};

/* Cut to fit. */
static void keep_text(struct pprof_reader *r, const struct field *f, char *out)
{
	struct str text = pprof_text(r, f->at, f->value);
	size_t len = text.len < MAX_NAME_BYTES - 1 ? text.len : MAX_NAME_BYTES - 1;

	memcpy(out, text.data, len);
	out[len] = '\0';
}

/* The numbers of the type are left in *@type_index. */
static void read_type(struct pprof_reader *r, struct slice s, char *type, char *unit, uint64_t *type_index)
{
	struct field f;

	while (pprof_next(r, &s, &f)) {
		if (f.number == pprof_ValueType_type_tag && !f.is_bytes) {
			keep_text(r, &f, type);
			*type_index = f.value;
		} else if (f.number == pprof_ValueType_unit_tag && !f.is_bytes) {
			keep_text(r, &f, unit);
		}
	}
}

/* --- one sample --- */

/* @r->numbers: locations, @r->values: values, both uint64_t; @r->sample_labels. */
static bool take_apart(struct pprof_reader *r, struct slice s, uint32_t columns)
{
	const uint8_t *at = s.at;
	struct field f;

	buf_reset(&r->numbers);
	buf_reset(&r->values);
	buf_reset(&r->sample_labels.list);
	while (pprof_next(r, &s, &f)) {
		if (f.number == pprof_Sample_location_id_tag)
			pprof_numbers(r, &f, &r->numbers);
		else if (f.number == pprof_Sample_value_tag)
			pprof_numbers(r, &f, &r->values);
		else if (f.number == pprof_Sample_label_tag && f.is_bytes)
			buf_append(&r->sample_labels.list, &f.bytes, sizeof(f.bytes));
	}
	if (r->sample_labels.list.failed)
		r->err = -ENOMEM;
	if (!r->err && r->values.len != columns * sizeof(uint64_t))
		return pprof_bad(r, at, "a sample with another number of values than there are sample types");
	return !r->err;
}

static int64_t value_at(const struct pprof_reader *r, uint32_t column)
{
	return ((const int64_t *)(const void *)r->values.data)[column];
}

static int32_t read_stack(struct pprof_reader *r, const uint8_t *at)
{
	uint64_t *ids = (void *)r->numbers.data;
	int32_t *locations = (void *)r->numbers.data; /* in place: they are half as wide */
	uint32_t count = (uint32_t)(r->numbers.len / sizeof(*ids));

	for (uint32_t i = 0; i < count; i++) {
		const struct pprof_entry *location = pprof_find(r, &r->location_of, at, ids[i]);

		if (!location) {
			pprof_bad(r, at, "a sample of a location without an id");
			return 0;
		}
		memcpy(&locations[i], &location->index, sizeof(location->index));
	}
	return builder_stack(r->b, locations, count);
}

static bool read_sample(struct pprof_reader *r, struct slice s, struct pprof_columns *c)
{
	const uint8_t *at = s.at;
	int32_t stack, link;
	uint32_t resource;
	bool is_zero = true;

	if (!take_apart(r, s, c->count) || !pprof_read_labels(r, &r->sample_labels, &resource, &link))
		return false;
	stack = read_stack(r, at);
	for (uint32_t i = 0; i < c->count; i++)
		is_zero &= !value_at(r, i);
	for (uint32_t i = 0; i < c->count && !r->err; i++) {
		const struct column *column = &c->items[i];

		if (column->is_derived || !(value_at(r, i) || (is_zero && i == c->first)))
			continue;
		builder_value(r->b, builder_profile(r->b, resource, &column->spec), stack,
			      (const int32_t *)(const void *)r->attributes.data,
			      (uint32_t)(r->attributes.len / sizeof(int32_t)), link, value_at(r, i));
	}
	return !r->err;
}

/* --- columns --- */

static bool is_type(const struct column *c, const char *type, const char *unit)
{
	return (!type || !strcmp(c->type, type)) && !strcmp(c->unit, unit);
}

/* Whether the column @time holds nothing but @count times the period. */
static bool is_product(struct pprof_reader *r, uint32_t count, uint32_t time, uint32_t columns)
{
	for (uint32_t i = 0; i < slice_count(&r->samples); i++) {
		int64_t product;

		if (!take_apart(r, slice_at(&r->samples, i), columns) ||
		    __builtin_mul_overflow(value_at(r, count), r->period, &product) || product != value_at(r, time))
			return false;
	}
	return true;
}

/* The column that counts what the period stands for, when another is derived from it; -1: none is. */
static int find_derived(struct pprof_reader *r, struct pprof_columns *c)
{
	int count = -1, time = -1;

	for (uint32_t i = 0; i < c->count; i++) {
		if (count < 0 && is_type(&c->items[i], NULL, "count"))
			count = (int)i;
		if (time < 0 && is_type(&c->items[i], "cpu", "nanoseconds"))
			time = (int)i;
	}
	if (count < 0 || time < 0 || r->period <= 0 || strcmp(c->period_type, "cpu") != 0 ||
	    strcmp(c->period_unit, "nanoseconds") != 0 || !is_product(r, (uint32_t)count, (uint32_t)time, c->count))
		return -1;
	c->items[time].is_derived = true;
	return count;
}

static void add_text(struct pprof_reader *r, struct pprof_columns *c, const char *key, uint64_t index)
{
	struct str text = pprof_text(r, r->start, index);
	int32_t attribute;

	if (!text.len)
		return;
	attribute = builder_attribute_string(r->b, key, text);
	buf_append(&c->attributes, &attribute, sizeof(attribute));
}

/* Reads the attributes of the profile as a whole. */
static void read_attributes(struct pprof_reader *r, struct pprof_columns *c)
{
	uint32_t count = (uint32_t)(r->comments.len / sizeof(uint64_t));
	AUTO_FREE struct any_value *items = calloc(count + 1, sizeof(*items));
	const struct any_value list = { .kind = VALUE_ARRAY, .array = { items, count } };
	int32_t attribute;

	if (!items) {
		r->err = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		items[i].kind = VALUE_STRING;
		items[i].string = pprof_text(r, r->start, ((const uint64_t *)(const void *)r->comments.data)[i]);
	}
	if (count) {
		attribute = builder_attribute(r->b, STR("pprof.profile.comment"), &list, 0);
		buf_append(&c->attributes, &attribute, sizeof(attribute));
	}
	add_text(r, c, "pprof.profile.drop_frames", r->drop_frames);
	add_text(r, c, "pprof.profile.keep_frames", r->keep_frames);
	add_text(r, c, "pprof.profile.doc_url", r->doc_url);
	if (c->attributes.failed)
		r->err = -ENOMEM;
}

/* The columns in the order in which they are to stand: the one that pprof shows (the default, or the last) first. */
static void make_profiles(struct pprof_reader *r, struct pprof_columns *c, int counted)
{
	uint32_t nowhere = builder_resource(r->b, NULL, 0);

	c->first = c->count - 1;
	for (uint32_t i = 0; i < c->count && r->default_type; i++) {
		if (c->items[i].type_index == r->default_type)
			c->first = i;
	}
	if (c->items[c->first].is_derived)
		c->first = (uint32_t)counted;
	for (uint32_t i = 0; i < c->count; i++) {
		struct column *column = &c->items[i];
		bool has_period = r->period && (counted < 0 || (int)i == counted);

		column->spec = (struct builder_profile_spec){ .scope_name = "hearth",
							      .scope_version = HEARTH_VERSION,
							      .sample_type = column->type,
							      .sample_unit = column->unit,
							      .period_type = has_period ? c->period_type : "",
							      .period_unit = has_period ? c->period_unit : "",
							      .period = has_period ? r->period : 0,
							      .attributes = (const void *)c->attributes.data,
							      .attribute_count = (uint32_t)(c->attributes.len /
											    sizeof(int32_t)) };
	}
	builder_profile(r->b, nowhere, &c->items[c->first].spec);
	for (uint32_t i = 0; i < c->count; i++)
		builder_profile(r->b, nowhere, &c->items[i].spec);
}

static bool read_columns(struct pprof_reader *r, struct pprof_columns *c)
{
	uint64_t unwanted;

	if (!slice_count(&r->types) || slice_count(&r->types) > MAX_COLUMNS)
		return pprof_bad(r, r->start, slice_count(&r->types) ? "more than 64 sample types" : "no sample types");
	for (c->count = 0; c->count < slice_count(&r->types); c->count++) {
		struct column *column = &c->items[c->count];

		read_type(r, slice_at(&r->types, c->count), column->type, column->unit, &column->type_index);
	}
	if (r->period_type.at)
		read_type(r, r->period_type, c->period_type, c->period_unit, &unwanted);
	if (!r->err)
		read_attributes(r, c);
	if (!r->err)
		make_profiles(r, c, find_derived(r, c));
	return !r->err;
}

void pprof_columns_free(struct pprof_columns *c)
{
	if (c)
		buf_fini(&c->attributes);
	free(c);
}

bool pprof_read_samples(struct pprof_reader *r)
{
	bool done;

	r->columns = calloc(1, sizeof(*r->columns));
	if (!r->columns) {
		r->err = -ENOMEM;
		return false;
	}
	done = read_columns(r, r->columns);
	for (uint32_t i = 0; done && i < slice_count(&r->samples); i++)
		done = read_sample(r, slice_at(&r->samples, i), r->columns);
	return done;
}
