/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the tables of a pprof profile (proto/formats/pprof_tables.h). They are interned by content, so several struct
 * profiles, and the several dictionaries of a long capture, add up. An array a table maps the indices of the current
 * dictionary to new ids, 0 where nobody asked yet.
 */
#include "proto/formats/pprof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "proto/formats/pprof_tables.h"
#include "proto/pprof/profile.pb.h"
#include "proto/unnamed.h"
#include "proto/weights.h"

/* All tables with what every profile has in them. 0 or -ENOMEM, with some of them. */
static int make_tables(struct pprof *pp)
{
	struct intern **tables[] = { &pp->strings, &pp->functions, &pp->mappings, &pp->locations, &pp->stacks,
				     &pp->labels,  &pp->samples,   &pp->columns,  &pp->comments };
	uint32_t zero;

	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		*tables[i] = intern_new();
		if (!*tables[i])
			return -ENOMEM;
	}
	return intern_add(pp->strings, "", 0, &zero) < 0 ? -ENOMEM : 0;
}

struct pprof *pprof_new(void)
{
	struct pprof *pp = calloc(1, sizeof(*pp));

	if (!pp)
		return NULL;
	if (make_tables(pp)) {
		pprof_free(pp);
		return NULL;
	}
	pp->start_ns = UINT64_MAX;
	return pp;
}

static void known_fini(struct pprof_known *k)
{
	free(k->strings);
	free(k->functions);
	free(k->mappings);
	free(k->locations);
	free(k->stacks);
	free(k->labels);
	*k = (struct pprof_known){ 0 };
}

void pprof_free(struct pprof *pp)
{
	if (!pp)
		return;
	intern_free(pp->strings);
	intern_free(pp->functions);
	intern_free(pp->mappings);
	intern_free(pp->locations);
	intern_free(pp->stacks);
	intern_free(pp->labels);
	intern_free(pp->samples);
	intern_free(pp->columns);
	intern_free(pp->comments);
	for (size_t i = 0; i < PPROF_MAX_COLUMNS; i++)
		free(pp->values[i].items);
	known_fini(&pp->known);
	buf_fini(&pp->location);
	buf_fini(&pp->part);
	buf_fini(&pp->sample);
	buf_fini(&pp->text);
	free(pp);
}

size_t pprof_memory_bytes(const struct pprof *pp)
{
	const struct intern *tables[] = { pp->strings, pp->functions, pp->mappings, pp->locations, pp->stacks,
					  pp->labels,  pp->samples,   pp->columns,  pp->comments };
	size_t bytes = 0;

	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		bytes += intern_memory_bytes(tables[i]);
	for (size_t i = 0; i < PPROF_MAX_COLUMNS; i++)
		bytes += pp->values[i].cap * sizeof(*pp->values[i].items);
	return bytes;
}

const struct pprof_losses *pprof_losses(const struct pprof *pp)
{
	return &pp->losses;
}

/* --- tables --- */

/* The index of @key; 0 with the error kept when there is no memory. */
static uint32_t add(struct pprof *pp, struct intern *table, const void *key, size_t len)
{
	uint32_t index = 0;
	int r = intern_add(table, key, len, &index);

	if (r < 0 && !pp->error)
		pp->error = r;
	return index;
}

static uint32_t add_text(struct pprof *pp, struct str s)
{
	return add(pp, pp->strings, s.data, s.len);
}

/* The same of a key that may be incomplete. */
static uint32_t add_buf(struct pprof *pp, struct intern *table, const struct buf *key)
{
	if (key->failed)
		pp->error = -ENOMEM;
	return add(pp, table, key->data, key->len);
}

static uint32_t string_of(struct pprof *pp, const struct profiles *p, int32_t index)
{
	uint32_t *known = &pp->known.strings[index];

	if (!*known)
		*known = add_text(pp, profiles_string(p, index)) + 1;
	return *known - 1;
}

/* The id of the function with these strings. */
static uint32_t add_function(struct pprof *pp, uint32_t name, uint32_t system_name, uint32_t filename, int64_t start_line)
{
	buf_reset(&pp->part);
	pprof_put_number(&pp->part, pprof_Function_name_tag, name);
	pprof_put_number(&pp->part, pprof_Function_system_name_tag, system_name ? system_name : name);
	pprof_put_number(&pp->part, pprof_Function_filename_tag, filename);
	pprof_put_number(&pp->part, pprof_Function_start_line_tag, (uint64_t)start_line);
	return add_buf(pp, pp->functions, &pp->part) + 1;
}

static uint32_t function_of(struct pprof *pp, const struct profiles *p, int32_t index)
{
	const struct profile_function *f = &p->dict.functions[index];
	uint32_t *known = &pp->known.functions[index];

	if (!*known) {
		uint32_t name = string_of(pp, p, f->name_strindex ? f->name_strindex : f->system_name_strindex);
		uint32_t system_name = string_of(pp, p, f->system_name_strindex);

		*known = add_function(pp, name, system_name, string_of(pp, p, f->filename_strindex), f->start_line);
	}
	return *known;
}

/* The first build id there is, the linker's before others. */
static uint32_t build_id_of(struct pprof *pp, const struct profiles *p, const struct profile_mapping *m)
{
	static const char *const keys[] = { "process.executable.build_id.gnu", "process.executable.build_id.go",
					    "process.executable.build_id.htlhash" };
	bool has = false;
	struct str id;

	for (size_t i = 0; i < ARRAY_LEN(keys) && !has; i++) {
		const struct any_value *value = profiles_find_attribute(p, &m->attributes, keys[i]);

		has = value && profiles_value_string(p, value, &id);
	}
	pp->losses.other_attributes += m->attributes.count - (has ? 1 : 0);
	return has ? add_text(pp, id) : 0;
}

static uint32_t mapping_of(struct pprof *pp, const struct profiles *p, int32_t index)
{
	const struct profile_mapping *m = &p->dict.mappings[index];
	uint32_t *known = &pp->known.mappings[index];

	if (!index)
		return 0;
	if (!*known) {
		struct pprof_mapping key = { .start = m->memory_start,
					     .limit = m->memory_limit,
					     .offset = m->file_offset,
					     .filename = string_of(pp, p, m->filename_strindex),
					     .build_id = build_id_of(pp, p, m) };

		*known = add(pp, pp->mappings, &key, sizeof(key)) + 1;
	}
	return *known;
}

/* The function that stands for code without a name. */
static uint32_t nameless(struct pprof *pp, const struct profiles *p, const struct profile_location *l)
{
	struct unnamed u = unnamed_of_location(p, l);

	buf_reset(&pp->text);
	unnamed_print(&u, &pp->text);
	return add_function(pp, add_buf(pp, pp->strings, &pp->text), 0, 0, 0);
}

static void add_line(struct pprof *pp, uint32_t function, int64_t number, int64_t column)
{
	buf_reset(&pp->part);
	pprof_put_number(&pp->part, pprof_Line_function_id_tag, function);
	pprof_put_number(&pp->part, pprof_Line_line_tag, (uint64_t)number);
	pprof_put_number(&pp->part, pprof_Line_column_tag, (uint64_t)column);
	pprof_put_part(&pp->location, pprof_Location_line_tag, &pp->part);
}

static uint32_t location_of(struct pprof *pp, const struct profiles *p, int32_t index)
{
	const struct profile_location *l = &p->dict.locations[index];
	uint32_t *known = &pp->known.locations[index];
	const struct any_value *folded;

	if (*known)
		return *known;
	buf_reset(&pp->location);
	pprof_put_number(&pp->location, pprof_Location_mapping_id_tag, mapping_of(pp, p, l->mapping_index));
	pprof_put_number(&pp->location, pprof_Location_address_tag, l->address);
	for (uint32_t i = 0; i < l->line_count; i++) {
		int32_t f = l->lines[i].function_index;
		const struct profile_function *function = &p->dict.functions[f];
		bool has_name = function->name_strindex || function->system_name_strindex;

		add_line(pp, has_name ? function_of(pp, p, f) : nameless(pp, p, l), l->lines[i].line, l->lines[i].column);
	}
	if (!l->line_count)
		add_line(pp, nameless(pp, p, l), 0, 0);
	pp->losses.frame_attributes += l->attributes.count;
	folded = profiles_find_attribute(p, &l->attributes, "pprof.location.is_folded");
	if (folded) {
		pp->losses.frame_attributes--;
		pprof_put_number(&pp->location, pprof_Location_is_folded_tag, folded->kind == VALUE_BOOL && folded->boolean);
	}
	*known = add_buf(pp, pp->locations, &pp->location) + 1;
	return *known;
}

static uint32_t stack_of(struct pprof *pp, const struct profiles *p, int32_t index)
{
	const struct indices *s = &p->dict.stacks[index];
	uint32_t *known = &pp->known.stacks[index];

	if (*known)
		return *known - 1;
	buf_reset(&pp->sample);
	for (uint32_t i = 0; i < s->count; i++)
		varint_append(&pp->sample, location_of(pp, p, s->items[i]));
	*known = add_buf(pp, pp->stacks, &pp->sample) + 1;
	return *known - 1;
}

/* --- labels --- */

/* The id of the label; 0: the format has no such value. */
static uint32_t label_of(struct pprof *pp, const struct profiles *p, struct str key, const struct any_value *value,
			 struct str unit)
{
	bool is_number = value->kind == VALUE_INT;
	uint32_t string = 0, unit_string = 0;
	struct str text;

	if (is_number) {
		unit_string = add_text(pp, unit);
	} else if (value->kind == VALUE_BOOL) {
		string = add_text(pp, value->boolean ? STR("true") : STR("false"));
	} else if (value->kind == VALUE_DOUBLE) {
		buf_reset(&pp->text);
		buf_printf(&pp->text, "%.17g", value->real);
		string = add_buf(pp, pp->strings, &pp->text);
	} else if (profiles_value_string(p, value, &text)) {
		string = add_text(pp, text);
	}
	if (!key.len || (!is_number && !string)) {
		pp->losses.other_attributes++;
		return 0;
	}
	buf_reset(&pp->part);
	pprof_put_number(&pp->part, pprof_Label_key_tag, add_text(pp, key));
	pprof_put_number(&pp->part, pprof_Label_str_tag, string);
	pprof_put_number(&pp->part, pprof_Label_num_tag, is_number ? (uint64_t)value->integer : 0);
	pprof_put_number(&pp->part, pprof_Label_num_unit_tag, unit_string);
	return add_buf(pp, pp->labels, &pp->part) + 1;
}

static uint32_t attribute_label(struct pprof *pp, const struct profiles *p, int32_t index)
{
	const struct profile_attribute *a = &p->dict.attributes[index];
	uint32_t *known = &pp->known.labels[index];

	if (!*known) /* + 1: 0 is an answer */
		*known = label_of(pp, p, profiles_string(p, a->key_strindex), &a->value,
				  profiles_string(p, a->unit_strindex)) +
			 1;
	return *known - 1;
}

static void put_label(struct buf *key, uint32_t label)
{
	if (label)
		varint_append(key, label);
}

/* A list becomes several labels of one key. */
static void put_value(struct pprof *pp, const struct profiles *p, struct str name, const struct any_value *value,
		      struct buf *key)
{
	bool is_list = value->kind == VALUE_ARRAY;

	for (uint32_t i = 0; is_list && i < value->array.count; i++)
		put_label(key, label_of(pp, p, name, &value->array.items[i], STR("")));
	if (!is_list)
		put_label(key, label_of(pp, p, name, value, STR("")));
}

static void put_attribute(struct pprof *pp, const struct profiles *p, int32_t index)
{
	const struct profile_attribute *a = &p->dict.attributes[index];

	if (a->value.kind == VALUE_ARRAY)
		put_value(pp, p, profiles_string(p, a->key_strindex), &a->value, &pp->sample);
	else
		put_label(&pp->sample, attribute_label(pp, p, index));
}

static void put_link(struct pprof *pp, const struct profiles *p, int32_t index)
{
	static const struct str keys[] = { { "trace_id", 8 }, { "span_id", 7 } };
	const struct profile_link *l = &p->dict.links[index];
	const struct str ids[] = { l->trace_id, l->span_id };

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		char hex[33] = "";
		struct any_value value = { .kind = VALUE_STRING };

		for (uint32_t j = 0; j < ids[i].len && j < 16; j++)
			snprintf(hex + 2 * j, 3, "%02x", (uint8_t)ids[i].data[j]);
		value.string = (struct str){ hex, (uint32_t)strlen(hex) };
		if (hex[0])
			put_label(&pp->sample, label_of(pp, p, keys[i], &value, STR("")));
	}
}

/* --- samples --- */

/* The number of the column; PPROF_MAX_COLUMNS: there is no room for one more. */
static uint32_t column_of(struct pprof *pp, uint32_t type, uint32_t unit)
{
	struct pprof_column key = { type, unit };
	uint32_t count = intern_count(pp->columns), index;

	index = add(pp, pp->columns, &key, sizeof(key));
	return index < PPROF_MAX_COLUMNS && (index < count || count < PPROF_MAX_COLUMNS) ? index : PPROF_MAX_COLUMNS;
}

/* The columns and the period of a profile's samples. */
struct measure {
	uint32_t column, time_column; /* PPROF_MAX_COLUMNS: none */
	int64_t period;
};

static struct measure measure_of(struct pprof *pp, const struct profiles *p, const struct profile *profile)
{
	struct str unit = profiles_string(p, profile->sample_type.unit_strindex);
	bool is_time = str_is(profiles_string(p, profile->period_type.type_strindex), "cpu") &&
		       str_is(profiles_string(p, profile->period_type.unit_strindex), "nanoseconds");
	struct measure m = { .time_column = PPROF_MAX_COLUMNS, .period = profile->period };

	m.column = column_of(pp, string_of(pp, p, profile->sample_type.type_strindex),
			     string_of(pp, p, profile->sample_type.unit_strindex));
	if (is_time && profile->period > 0 && str_is(unit, "count"))
		m.time_column = column_of(pp, add_text(pp, STR("cpu")), add_text(pp, STR("nanoseconds")));
	if (profile->period) {
		pp->period_type.type = string_of(pp, p, profile->period_type.type_strindex);
		pp->period_type.unit = string_of(pp, p, profile->period_type.unit_strindex);
		pp->period = profile->period;
	}
	return m;
}

/* Adds @weight to the value of sample @index in a column. */
static void add_value(struct pprof *pp, uint32_t index, uint32_t column, int64_t weight)
{
	struct pprof_values *values = &pp->values[column];

	if (vec_reach_zero(&values->items, &values->cap, index))
		pp->error = -ENOMEM;
	else
		values->items[index] = weights_add(values->items[index], weight);
}

/* @resource_labels stand in front of the sample's own. */
static void add_sample(struct pprof *pp, const struct profiles *p, const struct measure *m, const struct sample *s,
		       const struct buf *resource_labels)
{
	uint32_t stack = stack_of(pp, p, s->stack_index), index;
	int64_t weight = s->timestamp_count;

	for (uint32_t i = 0; i < s->value_count; i++)
		weight = weights_add(i ? weight : 0, s->values[i]);
	if (m->column == PPROF_MAX_COLUMNS) {
		pp->losses.events += s->timestamp_count ? s->timestamp_count : 1;
		return;
	}
	buf_reset(&pp->sample);
	varint_append(&pp->sample, stack);
	buf_append(&pp->sample, resource_labels->data, resource_labels->len);
	for (uint32_t i = 0; i < s->attributes.count; i++)
		put_attribute(pp, p, s->attributes.items[i]);
	if (s->link_index)
		put_link(pp, p, s->link_index);
	index = add_buf(pp, pp->samples, &pp->sample);
	if (pp->error)
		return;
	add_value(pp, index, m->column, weight);
	if (m->time_column < PPROF_MAX_COLUMNS)
		add_value(pp, index, m->time_column, weights_times(weight, m->period));
	pp->losses.timestamps += s->timestamp_count;
}

static void add_comment(struct pprof *pp, const struct profiles *p, const struct any_value *value)
{
	uint32_t string;
	struct str text;

	if (profiles_value_string(p, value, &text)) {
		string = add_text(pp, text);
		add(pp, pp->comments, &string, sizeof(string));
	}
}

/* Takes over an attribute for which pprof has a field of the whole profile, by OpenTelemetry's name for it. */
static void add_attribute(struct pprof *pp, const struct profiles *p, const struct profile_attribute *a)
{
	const struct {
		const char *key;
		uint32_t *string;
	} known[] = {
		{ "pprof.profile.drop_frames", &pp->drop_frames },
		{ "pprof.profile.keep_frames", &pp->keep_frames },
		{ "pprof.profile.doc_url", &pp->doc_url },
	};
	struct str key = profiles_string(p, a->key_strindex), text;

	if (str_is(key, "pprof.profile.comment")) {
		for (uint32_t i = 0; a->value.kind == VALUE_ARRAY && i < a->value.array.count; i++)
			add_comment(pp, p, &a->value.array.items[i]);
		if (a->value.kind != VALUE_ARRAY)
			add_comment(pp, p, &a->value);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (str_is(key, known[i].key) && profiles_value_string(p, &a->value, &text)) {
			*known[i].string = add_text(pp, text);
			return;
		}
	}
	pp->losses.other_attributes++;
}

/* There are samples of @program, a string. */
static void note_program(struct pprof *pp, uint32_t program)
{
	pp->has_several |= pp->has_program && program != pp->program;
	pp->program = pp->has_several ? 0 : program;
	pp->has_program = true;
}

static uint32_t program_of(struct pprof *pp, const struct profiles *p, const struct resource_profiles *resource)
{
	return add_text(
		pp, profiles_value_text(p, profiles_find_key(p, &resource->resource.attributes, "process.executable.path")));
}

static void add_profile(struct pprof *pp, const struct profiles *p, const struct profile *profile,
			const struct buf *resource_labels)
{
	struct measure m = measure_of(pp, p, profile);

	for (uint32_t i = 0; i < profile->attributes.count; i++)
		add_attribute(pp, p, &p->dict.attributes[profile->attributes.items[i]]);
	if (profile->time_unix_ns && profile->time_unix_ns < pp->start_ns)
		pp->start_ns = profile->time_unix_ns;
	if (profile->time_unix_ns + profile->duration_ns > pp->end_ns)
		pp->end_ns = profile->time_unix_ns + profile->duration_ns;
	for (uint32_t i = 0; i < profile->sample_count && !pp->error; i++)
		add_sample(pp, p, &m, &profile->samples[i], resource_labels);
}

static int know_nothing(struct pprof_known *k, const struct dictionary *d)
{
	*k = (struct pprof_known){
		.strings = calloc(d->string_count, sizeof(uint32_t)),
		.functions = calloc(d->function_count, sizeof(uint32_t)),
		.mappings = calloc(d->mapping_count, sizeof(uint32_t)),
		.locations = calloc(d->location_count, sizeof(uint32_t)),
		.stacks = calloc(d->stack_count, sizeof(uint32_t)),
		.labels = calloc(d->attribute_count, sizeof(uint32_t)),
	};
	return k->strings && k->functions && k->mappings && k->locations && k->stacks && k->labels ? 0 : -ENOMEM;
}

int pprof_add(struct pprof *pp, const struct profiles *p)
{
	AUTO(buf_fini) struct buf labels = BUF_EMPTY;

	if (know_nothing(&pp->known, &p->dict))
		pp->error = -ENOMEM;
	for (uint32_t r = 0; r < p->resource_count && !pp->error; r++) {
		const struct resource_profiles *resource = &p->resources[r];
		const struct key_values *kvs = &resource->resource.attributes;

		buf_reset(&labels);
		for (uint32_t i = 0; i < kvs->count; i++)
			put_value(pp, p, profiles_key(p, &kvs->items[i]), &kvs->items[i].value, &labels);
		if (labels.failed)
			pp->error = -ENOMEM;
		for (uint32_t s = 0; s < resource->scope_count; s++) {
			for (uint32_t i = 0; i < resource->scopes[s].profile_count; i++) {
				add_profile(pp, p, &resource->scopes[s].profiles[i], &labels);
				if (resource->scopes[s].profiles[i].sample_count)
					note_program(pp, program_of(pp, p, resource));
			}
		}
	}
	known_fini(&pp->known);
	return pp->error;
}
