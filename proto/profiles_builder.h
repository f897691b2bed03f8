/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a struct profiles of what the agent saw in one interval: interns every table, aggregates samples of equal identity
 * (stack, set of attributes, link), and freezes. Index 0 of every table stands from the start. Running out of memory sticks:
 * adders return 0 and builder_freeze says -ENOMEM. Not shared between threads.
 *
 * The result keeps the rules of OTLP 1.11 that every known receiver accepts: all seven tables with their zero element,
 * Resource and Scope attributes inline, sample_type and period_type always present, windows half open, random profile ids.
 */
#ifndef HEARTH_PROTO_PROFILES_BUILDER_H
#define HEARTH_PROTO_PROFILES_BUILDER_H

#include "proto/profiles.h"

struct builder;

struct builder *builder_new(void);
void builder_free(struct builder *b);

/* Strings and string values come from anywhere: bytes in them that are no UTF-8 become U+FFFD. Keys are literals and
 * UTF-8. */
int32_t builder_string(struct builder *b, struct str s);
int32_t builder_string_z(struct builder *b, const char *s);

/* Attributes of samples, locations and mappings. A list of them must not name a key twice; its order does not matter. */
int32_t builder_attribute_string(struct builder *b, const char *key, struct str value);
int32_t builder_attribute_int(struct builder *b, const char *key, int64_t value);
int32_t builder_attribute_bool(struct builder *b, const char *key, bool value);

/* Adds an attribute of any key; kinds string, bool, int, double, and array of strings. @unit is a string of this builder. */
int32_t builder_attribute(struct builder *b, struct str key, const struct any_value *value, int32_t unit);

/* The strings are indices of this builder; 0 where there is none. */
int32_t builder_function(struct builder *b, int32_t name, int32_t system_name, int32_t filename, int64_t start_line);
int32_t builder_mapping(struct builder *b, uint64_t memory_start, uint64_t memory_limit, uint64_t file_offset,
			int32_t filename, const int32_t *attributes, uint32_t attribute_count);
int32_t builder_location(struct builder *b, int32_t mapping, uint64_t address, const struct profile_line *lines,
			 uint32_t line_count, const int32_t *attributes, uint32_t attribute_count);
/* Leaf first. */
int32_t builder_stack(struct builder *b, const int32_t *locations, uint32_t count);
int32_t builder_link(struct builder *b, const uint8_t trace_id[16], const uint8_t span_id[8]);

/* A resource by its attributes: equal ones give the same handle. Keys and values are copied; values may be of the kinds
 * string, bool, int, double. */
uint32_t builder_resource(struct builder *b, const struct key_value *attributes, uint32_t count);

/* The quantity that a profile measures. The names are literals that outlive the builder. */
struct builder_profile_spec {
	const char *scope_name;
	const char *scope_version;
	const char *sample_type, *sample_unit; /* samples/count */
	const char *period_type, *period_unit; /* cpu/nanoseconds, or "" */
	int64_t period;
	const int32_t *attributes; /* of this builder */
	uint32_t attribute_count;
};

/* The profile of @spec (by address: one spec object a kind of profile; it outlives the builder) within @resource. */
uint32_t builder_profile(struct builder *b, uint32_t resource, const struct builder_profile_spec *spec);

/* One event. @value is stored only when @has_value (off-CPU time); otherwise the sample carries timestamps alone. All
 * samples of a profile have one shape: where one event has a value, the others without one count 1. */
void builder_event(struct builder *b, uint32_t profile, int32_t stack, const int32_t *attributes, uint32_t attribute_count,
		   int32_t link, uint64_t time_unix_ns, bool has_value, int64_t value);

/* Adds @value to the one value of a sample that has no times: what formats know that hold sums. All samples of a profile
 * come by this or by builder_event. */
void builder_value(struct builder *b, uint32_t profile, int32_t stack, const int32_t *attributes, uint32_t attribute_count,
		   int32_t link, int64_t value);

/* Events and values since the last freeze. */
uint64_t builder_event_count(const struct builder *b);

/* Bytes of memory held. Memory that an interval left unused by far is given back at its freeze. */
size_t builder_memory_bytes(const struct builder *b);

/*
 * Freezes what was gathered into *@ret (one reference, the caller's) and starts empty: no index or handle from before is
 * valid any more. Resources stand as first seen, profiles in the order their specs were first seen, timestamps ascending; a
 * profile without events is left out. The window of each profile is [@start_unix_ns, @end_unix_ns) widened to hold all its
 * timestamps. 0, or -ENOMEM (what was gathered is gone: count it), or why there was no
 * randomness for the ids.
 */
int builder_freeze(struct builder *b, uint64_t start_unix_ns, uint64_t end_unix_ns, struct profiles **ret);

#endif
