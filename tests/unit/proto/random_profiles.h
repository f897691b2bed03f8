/* SPDX-License-Identifier: Apache-2.0 */
/* Random profiles that the formats can hold, out of a seed, and what they say as sorted lines of text: equal texts, equal
 * profiles. */
#ifndef HEARTH_TESTS_RANDOM_PROFILES_H
#define HEARTH_TESTS_RANDOM_PROFILES_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "proto/profiles_builder.h"

static uint64_t random_state;

static inline uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* One of some, so that equal ones come again. */
static inline struct str random_text(const char *kind, uint32_t n)
{
	static char texts[64][40];
	static uint32_t next;
	char *text = texts[next++ % 64];

	snprintf(text, sizeof(texts[0]), random_below(8) ? "%s%u" : "%s \xc3\xa9\"<%u>\\", kind, random_below(n));
	return (struct str){ text, (uint32_t)strlen(text) };
}

static const struct builder_profile_spec random_specs[] = {
	{ .scope_name = "hearth",
	  .scope_version = "1",
	  .sample_type = "samples",
	  .sample_unit = "count",
	  .period_type = "cpu",
	  .period_unit = "nanoseconds",
	  .period = 10101010 },
	{ .scope_name = "hearth",
	  .scope_version = "1",
	  .sample_type = "off_cpu",
	  .sample_unit = "nanoseconds",
	  .period_type = "",
	  .period_unit = "" },
	{ .scope_name = "hearth",
	  .scope_version = "1",
	  .sample_type = "inuse_space",
	  .sample_unit = "bytes",
	  .period_type = "",
	  .period_unit = "" },
};

static inline int32_t random_function(struct builder *b)
{
	int32_t name = builder_string(b, random_text("fun", 30));
	int32_t mangled = random_below(2) ? builder_string(b, random_text("_Z", 30)) : 0;
	int32_t file = random_below(2) ? builder_string(b, random_text("/src/file", 9)) : 0;

	return builder_function(b, name, mangled, file, random_below(3) ? random_below(1000) : 0);
}

static inline int32_t random_mapping(struct builder *b)
{
	int32_t id = builder_attribute_string(b, "process.executable.build_id.gnu", random_text("00ab", 5));
	uint64_t start = random_below(4) * 0x1000ull + (random_below(2) ? 0xffffffff80000000 : 0);

	return random_below(6) ? builder_mapping(b, start, start + 0x100000, random_below(2) * 0x2000ull,
						 builder_string(b, random_text("/lib/lib", 6)), &id, random_below(2))
			       : 0;
}

static inline int32_t random_location(struct builder *b)
{
	int32_t type = builder_attribute_string(b, "profile.frame.type", STR("native"));
	uint32_t count = random_below(4);
	struct profile_line lines[4];

	for (uint32_t i = 0; i < count; i++)
		lines[i] = (struct profile_line){ .function_index = random_function(b),
						  .line = random_below(500) + 1,
						  .column = random_below(80) };
	return builder_location(b, random_mapping(b), random_below(50) * 0x10ull + 1, lines, count, &type, 1);
}

static inline uint32_t random_attributes(struct builder *b, int32_t *ids)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < 6; i++) {
		struct any_value items[] = { { .kind = VALUE_STRING, .string = random_text("one", 3) },
					     { .kind = VALUE_STRING, .string = random_text("two", 3) } };
		const struct any_value values[] = {
			{ .kind = VALUE_STRING, .string = random_text("value", 4) },
			{ .kind = VALUE_INT, .integer = (int64_t)random_below(5) - 2 },
			{ .kind = VALUE_BOOL, .boolean = random_below(2) },
			{ .kind = VALUE_DOUBLE, .real = random_below(100) / 8.0 },
			{ .kind = VALUE_ARRAY, .array = { items, 2 } },
			{ .kind = VALUE_INT, .integer = INT64_MAX - random_below(3) },
		};
		char key[16];

		if (random_below(3))
			continue;
		snprintf(key, sizeof(key), "key%" PRIu32, i);
		ids[count++] = builder_attribute(b, (struct str){ key, (uint32_t)strlen(key) }, &values[i],
						 i == 1 ? builder_string_z(b, "bytes") : 0);
	}
	return count;
}

static inline uint32_t random_resource(struct builder *b)
{
	const struct key_value kvs[] = {
		{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = random_below(3) } },
		{ .key = STR("container.id"), .value = { .kind = VALUE_STRING, .string = random_text("c", 2) } },
	};

	return builder_resource(b, kvs, random_below(3));
}

static inline int32_t random_link(struct builder *b)
{
	uint8_t trace[16] = { 0xab, (uint8_t)random_below(4) }, span[8] = { 1, (uint8_t)random_below(3) };

	return random_below(3) ? 0 : builder_link(b, trace, span);
}

/* NULL for want of memory. */
static inline struct profiles *random_profiles(uint64_t seed)
{
	struct builder *b = builder_new();
	int32_t stacks[8], attributes[8], locations[12];
	struct profiles *p = NULL;

	random_state = seed;
	for (uint32_t i = 0; b && i < ARRAY_LEN(stacks); i++) {
		uint32_t depth = random_below(12);

		for (uint32_t k = 0; k < depth; k++)
			locations[k] = random_location(b);
		stacks[i] = builder_stack(b, locations, depth);
	}
	for (uint32_t i = random_below(40) + 1; b && i > 0; i--) {
		uint32_t which = random_below(ARRAY_LEN(random_specs)), count = random_attributes(b, attributes);
		uint32_t profile = builder_profile(b, random_resource(b), &random_specs[which]);
		int32_t stack = stacks[random_below(ARRAY_LEN(stacks))];

		if (which == 2)
			builder_value(b, profile, stack, attributes, count, random_link(b), random_below(1000) + 1);
		else
			builder_event(b, profile, stack, attributes, count, random_link(b), 1000000 + random_below(1000),
				      which == 1, random_below(1000) + 1);
	}
	if (b && builder_freeze(b, 1000000, 1001000, &p))
		p = NULL;
	builder_free(b);
	return p;
}

/* --- what they say --- */

static inline void say_str(const struct profiles *p, int32_t index, struct buf *out)
{
	struct str s = profiles_string(p, index);

	buf_printf(out, "'%.*s' ", (int)s.len, s.data);
}

/* @as_pprof: as a label of pprof has it, where only texts and numbers are. */
static inline void say_value(const struct profiles *p, const struct any_value *v, bool as_pprof, struct buf *out)
{
	struct str text;

	if (profiles_value_string(p, v, &text))
		buf_printf(out, "'%.*s'", (int)text.len, text.data);
	else if (v->kind == VALUE_INT)
		buf_printf(out, "%" PRId64, v->integer);
	else if (v->kind == VALUE_BOOL)
		buf_printf(out, as_pprof ? "'%s'" : "%s", v->boolean ? "true" : "false");
	else if (v->kind == VALUE_DOUBLE)
		buf_printf(out, as_pprof ? "'%.17g'" : "%.17g", v->real);
	for (uint32_t i = 0; v->kind == VALUE_ARRAY && i < v->array.count; i++)
		say_value(p, &v->array.items[i], as_pprof, out);
}

static inline void say_mapping(const struct profiles *p, const struct profile_mapping *m, struct buf *out)
{
	const struct any_value *id = profiles_find_attribute(p, &m->attributes, "process.executable.build_id.gnu");

	buf_printf(out, "%" PRIx64 "-%" PRIx64 "+%" PRIx64, m->memory_start, m->memory_limit, m->file_offset);
	say_str(p, m->filename_strindex, out);
	if (id)
		say_value(p, id, false, out);
}

static inline void say_stack(const struct profiles *p, int32_t index, struct buf *out)
{
	const struct indices *stack = &p->dict.stacks[index];

	for (uint32_t i = 0; i < stack->count; i++) {
		const struct profile_location *l = &p->dict.locations[stack->items[i]];

		buf_printf(out, " [%" PRIx64 " ", l->address);
		say_mapping(p, &p->dict.mappings[l->mapping_index], out);
		for (uint32_t k = 0; k < l->line_count; k++) {
			const struct profile_function *f = &p->dict.functions[l->lines[k].function_index];

			say_str(p, f->name_strindex, out);
			say_str(p, f->system_name_strindex, out);
			say_str(p, f->filename_strindex, out);
			buf_printf(out, "%" PRId64 ":%" PRId64 ":%" PRId64 " ", f->start_line, l->lines[k].line,
				   l->lines[k].column);
		}
		buf_puts(out, "]");
	}
}

static inline int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void say_attributes(const struct profiles *p, const struct resource *r, const struct sample *s,
				  struct buf *out)
{
	char *lines[32];
	size_t count = 0;

	for (uint32_t i = 0; i < r->attributes.count + s->attributes.count && count < ARRAY_LEN(lines); i++) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY;

		if (i < r->attributes.count) {
			struct str key = profiles_key(p, &r->attributes.items[i]);

			buf_printf(&text, "resource.%.*s=", (int)key.len, key.data);
			say_value(p, &r->attributes.items[i].value, true, &text);
		} else {
			const struct profile_attribute *a =
				&p->dict.attributes[s->attributes.items[i - r->attributes.count]];

			say_str(p, a->key_strindex, &text);
			say_value(p, &a->value, true, &text);
			say_str(p, a->unit_strindex, &text);
		}
		lines[count++] = strdup(buf_text(&text));
	}
	qsort(lines, count, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < count; i++) {
		buf_printf(out, " {%s}", lines[i]);
		free(lines[i]);
	}
}

/* One line a sample: what it counts, its context, its weight. */
static inline char *say_sample(const struct profiles *p, const struct resource *r, const struct profile *profile,
			       const struct sample *s)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const struct profile_link *l = &p->dict.links[s->link_index];
	int64_t weight = s->timestamp_count;

	for (uint32_t i = 0; i < s->value_count; i++)
		weight = (i ? weight : 0) + s->values[i];
	say_str(p, profile->sample_type.type_strindex, &text);
	say_str(p, profile->sample_type.unit_strindex, &text);
	say_str(p, profile->period_type.type_strindex, &text);
	say_str(p, profile->period_type.unit_strindex, &text);
	buf_printf(&text, "%" PRId64 " %" PRIu64 "+%" PRIu64, profile->period, profile->time_unix_ns, profile->duration_ns);
	say_attributes(p, r, s, &text);
	for (uint32_t i = 0; i < l->trace_id.len; i++)
		buf_printf(&text, "%02x", (uint8_t)l->trace_id.data[i]);
	for (uint32_t i = 0; i < l->span_id.len; i++)
		buf_printf(&text, "%02x", (uint8_t)l->span_id.data[i]);
	say_stack(p, s->stack_index, &text);
	buf_printf(&text, " = %" PRId64 "\n", weight);
	return strdup(buf_text(&text));
}

static inline void say_profiles(const struct profiles *p, struct buf *out)
{
	char *lines[256];
	size_t count = 0;

	for (uint32_t r = 0; r < p->resource_count; r++)
		for (uint32_t c = 0; c < p->resources[r].scope_count; c++)
			for (uint32_t i = 0; i < p->resources[r].scopes[c].profile_count; i++) {
				const struct profile *profile = &p->resources[r].scopes[c].profiles[i];

				for (uint32_t s = 0; s < profile->sample_count && count < ARRAY_LEN(lines); s++)
					lines[count++] = say_sample(p, &p->resources[r].resource, profile,
								    &profile->samples[s]);
			}
	qsort(lines, count, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < count; i++) {
		buf_puts(out, lines[i]);
		free(lines[i]);
	}
}

#endif
