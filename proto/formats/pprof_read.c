/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a pprof profile (google/pprof, proto/profile.proto), not compressed, through the builder: each column of values
 * becomes a profile. A column of CPU nanoseconds that is but the count times the period is left out, as it says nothing more
 * and hearth makes it anew. The text that hearth wrote for code without a name becomes code without a name again. Two
 * passes: the texts, which all else points to, may come last.
 */
#include "proto/formats/pprof_read.h"
#include "proto/unnamed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/otlp/fields.h"
#include "proto/pprof/profile.pb.h"
#include "proto/stack_maker.h"

bool pprof_bad(struct pprof_reader *r, const uint8_t *at, const char *what)
{
	if (!r->err)
		r->err = read_fail(r->error, "byte %zu: %s", (size_t)(at - r->start), what);
	return false;
}

bool pprof_next(struct pprof_reader *r, struct slice *s, struct field *f)
{
	const uint8_t *p;
	unsigned wire;
	size_t len;

	if (r->err || s->at >= s->end)
		return false;
	f->at = s->at;
	p = wire_tag(s->at, s->end, &f->number, &wire);
	if (!p)
		return pprof_bad(r, f->at, "cut, or no protobuf");
	f->is_bytes = wire == WIRE_BYTES;
	if (wire == WIRE_VARINT) {
		p = varint_read(p, s->end, &f->value);
	} else if (f->is_bytes) {
		p = wire_length(p, s->end, &len);
		f->bytes = (struct slice){ p, p ? p + len : NULL };
		p = f->bytes.end;
	} else {
		f->number = 0; /* the schema has no other */
		p = wire_skip(p, s->end, wire);
	}
	if (!p)
		return pprof_bad(r, f->at, "cut, or no protobuf");
	s->at = p;
	return true;
}

static void keep(struct pprof_reader *r, struct slices *s, struct slice bytes)
{
	buf_append(&s->list, &bytes, sizeof(bytes));
	if (s->list.failed)
		r->err = -ENOMEM;
}

struct str pprof_text(struct pprof_reader *r, const uint8_t *at, uint64_t index)
{
	struct slice s;

	if (index >= slice_count(&r->strings)) {
		pprof_bad(r, at, "a text that is not in the table");
		return STR("");
	}
	s = slice_at(&r->strings, (uint32_t)index);
	return (struct str){ (const char *)s.at, (uint32_t)(s.end - s.at) };
}

void pprof_numbers(struct pprof_reader *r, const struct field *f, struct buf *out)
{
	const uint8_t *p = f->bytes.at;
	uint64_t value;

	if (!f->is_bytes)
		buf_append(out, &f->value, sizeof(f->value));
	while (f->is_bytes && p < f->bytes.end) {
		p = varint_read(p, f->bytes.end, &value);
		if (!p) {
			pprof_bad(r, f->at, "a broken list of numbers");
			return;
		}
		buf_append(out, &value, sizeof(value));
	}
	if (out->failed)
		r->err = -ENOMEM;
}

/* --- the message taken apart --- */

static void take_number(struct pprof_reader *r, const struct field *f)
{
	switch (f->number) {
	case pprof_Profile_drop_frames_tag:
		r->drop_frames = f->value;
		break;
	case pprof_Profile_keep_frames_tag:
		r->keep_frames = f->value;
		break;
	case pprof_Profile_time_nanos_tag:
		r->time_ns = (int64_t)f->value > 0 ? f->value : 0;
		break;
	case pprof_Profile_duration_nanos_tag:
		r->duration_ns = (int64_t)f->value > 0 ? f->value : 0;
		break;
	case pprof_Profile_period_tag:
		r->period = (int64_t)f->value;
		break;
	case pprof_Profile_default_sample_type_tag:
		r->default_type = f->value;
		break;
	case pprof_Profile_doc_url_tag:
		r->doc_url = f->value;
		break;
	}
}

static void take_field(struct pprof_reader *r, const struct field *f)
{
	struct slices *const tables[] = {
		[pprof_Profile_sample_type_tag] = &r->types,  [pprof_Profile_sample_tag] = &r->samples,
		[pprof_Profile_mapping_tag] = &r->mappings,   [pprof_Profile_location_tag] = &r->locations,
		[pprof_Profile_function_tag] = &r->functions, [pprof_Profile_string_table_tag] = &r->strings,
	};

	if (f->number == pprof_Profile_comment_tag)
		pprof_numbers(r, f, &r->comments);
	else if (!f->is_bytes)
		take_number(r, f);
	else if (f->number < ARRAY_LEN(tables) && tables[f->number])
		keep(r, tables[f->number], f->bytes);
	else if (f->number == pprof_Profile_period_type_tag)
		r->period_type = f->bytes;
}

/* --- tables --- */

/* Refuses an id twice or 0, as pprof does. */
static bool put_entry(struct pprof_reader *r, struct map *ids, const uint8_t *at, uint64_t id, const struct pprof_entry *e)
{
	if (r->err)
		return false;
	if (!id || map_get(ids, id))
		return pprof_bad(r, at, id ? "an id that stands there twice" : "an entry without an id");
	buf_append(&r->entries, e, sizeof(*e));
	if (r->entries.failed || map_put(ids, id, (void *)(uintptr_t)(r->entries.len / sizeof(*e))))
		r->err = -ENOMEM;
	return !r->err;
}

const struct pprof_entry *pprof_find(struct pprof_reader *r, const struct map *ids, const uint8_t *at, uint64_t id)
{
	uintptr_t place = id ? (uintptr_t)map_get(ids, id) : 0;

	if (id && !place)
		pprof_bad(r, at, "an id that leads nowhere");
	return place ? (const struct pprof_entry *)(const void *)r->entries.data + place - 1 : NULL;
}

static bool read_function(struct pprof_reader *r, struct slice s)
{
	struct str text[3] = { STR(""), STR(""), STR("") }; /* name, system name, file */
	const uint8_t *at = s.at;
	struct pprof_entry e;
	int64_t start_line = 0;
	uint64_t id = 0;
	struct field f;
	bool is_same;

	while (pprof_next(r, &s, &f)) {
		if (f.is_bytes)
			continue;
		if (f.number == pprof_Function_id_tag)
			id = f.value;
		else if (f.number >= pprof_Function_name_tag && f.number <= pprof_Function_filename_tag)
			text[f.number - pprof_Function_name_tag] = pprof_text(r, f.at, f.value);
		else if (f.number == pprof_Function_start_line_tag)
			start_line = (int64_t)f.value;
	}
	is_same = text[0].len == text[1].len && !memcmp(text[0].data, text[1].data, text[0].len);
	e = (struct pprof_entry){ .name = text[0], .file = text[2] };
	e.is_bare = (is_same || !text[1].len) && !text[2].len && !start_line;
	e.index = builder_function(r->b, builder_string(r->b, text[0]), is_same ? 0 : builder_string(r->b, text[1]),
				   builder_string(r->b, text[2]), start_line);
	return put_entry(r, &r->function_of, at, id, &e);
}

static bool read_mapping(struct pprof_reader *r, struct slice s)
{
	static const char *const flags[] = { "pprof.mapping.has_functions", "pprof.mapping.has_filenames",
					     "pprof.mapping.has_line_numbers", "pprof.mapping.has_inline_frames" };
	uint64_t number[pprof_Mapping_has_inline_frames_tag + 1] = { 0 };
	const uint64_t *has = &number[pprof_Mapping_has_functions_tag];
	int32_t attributes[1 + ARRAY_LEN(flags)];
	const uint8_t *at = s.at;
	struct pprof_entry e;
	struct str build_id;
	uint32_t count = 0;
	struct field f;

	while (pprof_next(r, &s, &f)) {
		if (f.number < ARRAY_LEN(number) && !f.is_bytes)
			number[f.number] = f.value;
	}
	e = (struct pprof_entry){ .name = pprof_text(r, at, number[pprof_Mapping_filename_tag]), .file = STR("") };
	build_id = pprof_text(r, at, number[pprof_Mapping_build_id_tag]);
	if (build_id.len) /* Go's has slashes, the linker's is hex */
		attributes[count++] = builder_attribute_string(r->b,
							       memchr(build_id.data, '/', build_id.len)
								       ? "process.executable.build_id.go"
								       : "process.executable.build_id.gnu",
							       build_id);
	for (size_t i = 0; i < ARRAY_LEN(flags) && !(has[0] && has[1] && has[2] && has[3]); i++)
		attributes[count++] = builder_attribute_bool(r->b, flags[i], has[i] != 0);
	e.index = builder_mapping(r->b, number[pprof_Mapping_memory_start_tag], number[pprof_Mapping_memory_limit_tag],
				  number[pprof_Mapping_file_offset_tag], builder_string(r->b, e.name), attributes, count);
	return put_entry(r, &r->mapping_of, at, number[pprof_Mapping_id_tag], &e);
}

/* The function of the line, after it is put into @r->lines. */
static const struct pprof_entry *read_line_message(struct pprof_reader *r, struct slice s)
{
	const struct pprof_entry *function;
	struct profile_line line = { 0 };
	const uint8_t *at = s.at;
	uint64_t id = 0;
	struct field f;

	while (pprof_next(r, &s, &f)) {
		if (f.number == pprof_Line_function_id_tag)
			id = f.value;
		else if (f.number == pprof_Line_line_tag)
			line.line = (int64_t)f.value;
		else if (f.number == pprof_Line_column_tag)
			line.column = (int64_t)f.value;
	}
	function = pprof_find(r, &r->function_of, at, id);
	line.function_index = function ? function->index : 0;
	buf_append(&r->lines, &line, sizeof(line));
	if (r->lines.failed)
		r->err = -ENOMEM;
	return function;
}

/* Is it the name that hearth gives code without one, as proto/unnamed.h has it, and does it fit? Fills in what it says. */
static bool is_made_up(const struct pprof_entry *function, const struct pprof_entry *mapping, uint64_t address,
		       struct unnamed *ret)
{
	struct str file = mapping ? mapping->name : STR("");
	const char *slash = file.len ? memrchr(file.data, '/', file.len) : NULL;
	size_t skip = slash ? (size_t)(slash + 1 - file.data) : 0;

	if (!function || !function->is_bare || !unnamed_read(function->name, ret))
		return false;
	if (ret->is_generated)
		return unnamed_is_generated(file);
	return ret->module.len == file.len - skip && !memcmp(ret->module.data, file.data + skip, ret->module.len) &&
	       (!ret->address || ret->address == address) && (!ret->size || address - ret->start < ret->size);
}

/* The mapping of memory with code that @process generated. */
static int32_t generated_mapping(struct pprof_reader *r, const struct pprof_entry *mapping, struct str process)
{
	int32_t attribute = builder_attribute_string(r->b, CODE_PROCESS_KEY, process);

	return builder_mapping(r->b, 0, 0, 0, builder_string(r->b, mapping->name), &attribute, 1);
}

static bool read_location(struct pprof_reader *r, struct slice s)
{
	uint64_t number[pprof_Location_is_folded_tag + 1] = { 0 };
	const struct pprof_entry *function = NULL, *mapping;
	struct unnamed unnamed = UNNAMED_NOTHING;
	int32_t attributes[4], mapping_index;
	const uint8_t *at = s.at;
	const struct profile_line *line;
	uint32_t count = 0, lines;
	struct pprof_entry e = { .name = STR(""), .file = STR("") };
	struct field f;

	buf_reset(&r->lines);
	while (pprof_next(r, &s, &f)) {
		if (f.number == pprof_Location_line_tag && f.is_bytes)
			function = read_line_message(r, f.bytes);
		else if (f.number < ARRAY_LEN(number) && !f.is_bytes)
			number[f.number] = f.value;
	}
	mapping = pprof_find(r, &r->mapping_of, at, number[pprof_Location_mapping_id_tag]);
	if (r->err)
		return false;
	line = (const void *)r->lines.data;
	lines = (uint32_t)(r->lines.len / sizeof(*line));
	mapping_index = mapping ? mapping->index : 0;
	if (lines == 1 && !line->line && !line->column &&
	    is_made_up(function, mapping, number[pprof_Location_address_tag], &unnamed)) {
		lines = 0;
		if (unnamed.process.len)
			mapping_index = generated_mapping(r, mapping, unnamed.process);
		if (unnamed.size) {
			attributes[count++] = builder_attribute_int(r->b, CODE_START_KEY, (int64_t)unnamed.start);
			attributes[count++] = builder_attribute_int(r->b, CODE_SIZE_KEY, (int64_t)unnamed.size);
		}
	}
	attributes[count++] = builder_attribute_string(
		r->b, "profile.frame.type",
		stack_maker_guess_type(mapping ? mapping->name : STR(""), function ? function->file : STR("")));
	if (number[pprof_Location_is_folded_tag])
		attributes[count++] = builder_attribute_bool(r->b, "pprof.location.is_folded", true);
	e.index = builder_location(r->b, mapping_index, number[pprof_Location_address_tag], line, lines, attributes, count);
	return put_entry(r, &r->location_of, at, number[pprof_Location_id_tag], &e);
}

static bool read_table(struct pprof_reader *r, const struct slices *table,
		       bool (*read)(struct pprof_reader *r, struct slice s))
{
	for (uint32_t i = 0; i < slice_count(table); i++) {
		if (!read(r, slice_at(table, i)))
			return false;
	}
	return true;
}

static bool read_all(struct pprof_reader *r, const uint8_t *data, size_t len)
{
	struct slice message = { data, data + len };
	struct field f;

	while (pprof_next(r, &message, &f))
		take_field(r, &f);
	if (!r->err && (!slice_count(&r->strings) || slice_at(&r->strings, 0).at != slice_at(&r->strings, 0).end))
		return pprof_bad(r, data + len, "no table of texts that begins with the empty one");
	return !r->err && read_table(r, &r->functions, read_function) && read_table(r, &r->mappings, read_mapping) &&
	       read_table(r, &r->locations, read_location) && pprof_read_samples(r);
}

static void reader_fini(struct pprof_reader *r)
{
	struct buf *const bufs[] = { &r->strings.list,	 &r->types.list,     &r->samples.list, &r->mappings.list,
				     &r->locations.list, &r->functions.list, &r->entries,      &r->comments,
				     &r->labels,	 &r->numbers,	     &r->values,       &r->lines,
				     &r->attributes,	 &r->key_values,     &r->items,	       &r->sample_labels.list };

	for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
		buf_fini(bufs[i]);
	map_fini(&r->mapping_of);
	map_fini(&r->location_of);
	map_fini(&r->function_of);
	intern_free(r->label_bytes);
	pprof_columns_free(r->columns);
}

int pprof_read(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error)
{
	AUTO(reader_fini) struct pprof_reader r = { .start = data, .error = error, .b = builder_new() };
	uint64_t end_ns;

	r.label_bytes = intern_new();
	if (!r.b || !r.label_bytes)
		r.err = -ENOMEM;
	if (r.err || !read_all(&r, data, len)) {
		builder_free(r.b);
		return r.err;
	}
	if (__builtin_add_overflow(r.time_ns, r.duration_ns, &end_ns))
		end_ns = UINT64_MAX;
	return read_freeze(r.b, false, r.time_ns, end_ns, ret);
}

/* Does the first field of the message @s hold a number? */
static bool begins_with_number(struct slice s)
{
	uint32_t number;
	unsigned wire;

	return s.at < s.end && wire_tag(s.at, s.end, &number, &wire) && wire == WIRE_VARINT;
}

/* Where OTLP has a ResourceProfiles, which is made of messages, pprof has a ValueType, which is made of numbers. Go writes
 * the time before it. An empty one says nothing; then the further fields decide, which OTLP's messages do not have. */
bool pprof_fits(const uint8_t *data, size_t len)
{
	struct otlp_error unwanted;
	struct pprof_reader r = { .start = data, .error = &unwanted };
	struct slice message = { data, data + len };
	bool has_type = false, has_table = false;
	struct field f;

	while (!(has_type && has_table) && pprof_next(&r, &message, &f)) {
		if (f.number < pprof_Profile_sample_type_tag || f.number > pprof_Profile_doc_url_tag)
			return false;
		if (f.number == pprof_Profile_sample_type_tag && f.is_bytes && f.bytes.at < f.bytes.end)
			return begins_with_number(f.bytes);
		if (f.number == pprof_Profile_sample_type_tag && !f.is_bytes)
			return false;
		has_type |= f.number == pprof_Profile_sample_type_tag;
		has_table |= f.number >= pprof_Profile_mapping_tag;
	}
	return has_type && has_table;
}
