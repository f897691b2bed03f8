/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile model: a lossless, frozen image of OTLP's ProfilesData (release 1.11; field names and meanings are those of
 * opentelemetry/proto/profiles/v1development/profiles.proto). Order, links, payloads, schema URLs, duplicates and
 * reference-encoded attributes all stay as they came, so that a printer can be byte for byte and a re-encoding loses
 * nothing.
 *
 * A struct profiles and everything below it lives in one arena and is never written after it was built; it is shared between
 * threads by an atomic reference count. Times are Unix nanoseconds.
 *
 * The producers (decoder, builder) guarantee that every index is in range: dictionary tables have at least their element 0
 * (made up when the input brought none), and an index that led nowhere was refused at the door.
 */
#ifndef HEARTH_PROTO_PROFILES_H
#define HEARTH_PROTO_PROFILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes inside the arena or the request it keeps; not NUL-terminated. data is never NULL ("" when empty). */
struct str {
	const char *data;
	uint32_t len;
};

#define STR(literal) ((struct str){ (literal), sizeof(literal) - 1 })

static inline struct str str_z(const char *text)
{
	return (struct str){ text, (uint32_t)strlen(text) };
}

struct key_value;
struct buf;

enum value_kind {
	VALUE_NONE, /* the oneof is not set */
	VALUE_STRING,
	VALUE_BOOL,
	VALUE_INT,
	VALUE_DOUBLE,
	VALUE_ARRAY,
	VALUE_KVLIST,
	VALUE_BYTES,
	VALUE_STRINDEX, /* string_value_strindex: read it with profiles_value_string() */
};

struct any_value {
	enum value_kind kind;
	union {
		struct str string; /* VALUE_STRING, VALUE_BYTES */
		bool boolean;
		int64_t integer;
		double real;
		int32_t strindex;
		struct {
			struct any_value *items;
			uint32_t count;
		} array;
		struct {
			struct key_value *items;
			uint32_t count;
		} kvlist;
	};
};

struct key_value {
	struct str key;
	int32_t key_strindex; /* not 0: the key is that string and @key is empty */
	struct any_value value;
};

struct key_values {
	struct key_value *items;
	uint32_t count;
};

struct indices {
	int32_t *items;
	uint32_t count;
};

struct profile_attribute { /* KeyValueAndUnit */
	int32_t key_strindex;
	int32_t unit_strindex;
	struct any_value value;
};

struct profile_mapping {
	uint64_t memory_start;
	uint64_t memory_limit;
	uint64_t file_offset;
	int32_t filename_strindex;
	struct indices attributes;
};

struct profile_line {
	int32_t function_index;
	int64_t line;
	int64_t column;
};

struct profile_location {
	int32_t mapping_index;
	uint64_t address;
	struct profile_line *lines; /* innermost inlined call first */
	uint32_t line_count;
	struct indices attributes;
};

struct profile_function {
	int32_t name_strindex;
	int32_t system_name_strindex;
	int32_t filename_strindex;
	int64_t start_line;
};

struct profile_link {
	struct str trace_id; /* raw bytes as they came: 0 or 16 */
	struct str span_id;  /* 0 or 8 */
};

/* The seven tables. Element 0 of each is the "none" element. A stack is its location indices, leaf first. */
struct dictionary {
	struct profile_mapping *mappings;
	struct profile_location *locations;
	struct profile_function *functions;
	struct profile_link *links;
	struct str *strings;
	struct profile_attribute *attributes;
	struct indices *stacks;
	uint32_t mapping_count;
	uint32_t location_count;
	uint32_t function_count;
	uint32_t link_count;
	uint32_t string_count;
	uint32_t attribute_count;
	uint32_t stack_count;
};

struct value_type {
	int32_t type_strindex;
	int32_t unit_strindex;
	uint32_t temporality; /* of releases before 1.9: 0 unspecified, 1 delta, 2 cumulative */
};

struct sample {
	int32_t stack_index;
	int32_t link_index;
	struct indices attributes;
	int64_t *values;
	uint64_t *timestamps_unix_ns;
	uint32_t value_count;
	uint32_t timestamp_count;
};

struct profile {
	struct value_type sample_type;
	struct value_type period_type;
	struct sample *samples;
	uint32_t sample_count;
	uint32_t dropped_attributes_count;
	uint64_t time_unix_ns;
	uint64_t duration_ns;
	int64_t period;
	struct str profile_id; /* raw bytes as they came: 0 or 16 */
	struct str original_payload_format;
	struct str original_payload;
	struct indices attributes;
};

struct scope {
	struct str name;
	struct str version;
	struct key_values attributes;
	uint32_t dropped_attributes_count;
};

struct scope_profiles {
	bool has_scope; /* the message was there, even if empty */
	struct scope scope;
	struct profile *profiles;
	uint32_t profile_count;
	struct str schema_url;
};

struct entity_ref {
	struct str schema_url;
	struct str type;
	struct str *id_keys;
	struct str *description_keys;
	uint32_t id_key_count;
	uint32_t description_key_count;
};

struct resource {
	struct key_values attributes;
	uint32_t dropped_attributes_count;
	struct entity_ref *entity_refs;
	uint32_t entity_ref_count;
};

struct resource_profiles {
	bool has_resource;
	struct resource resource;
	struct scope_profiles *scopes;
	uint32_t scope_count;
	struct str schema_url;
};

struct arena;

struct profiles {
	struct resource_profiles *resources;
	uint32_t resource_count;
	struct dictionary dict;
	uint64_t sample_events; /* sum over samples of max(timestamps, 1): what one interval of hearth delivers */
	struct str message;	/* what it was decoded from, when that says just this as otlp_encode() would; else empty */
	/* private to profiles.c */
	_Atomic uint32_t refs;
	struct arena *arena;   /* owns everything above */
	void *source;	       /* owned request body that strings point into, or NULL */
	struct profiles *base; /* a reference: what it shares memory with, or NULL */
	void (*freed)(void *arg);
	void *freed_arg;
};

/* An empty, unshared object with an arena, one reference. For producers only. NULL without memory. */
struct profiles *profiles_new(void);

/* An unshared object that says what @p says and shares its memory, of which it takes a reference; its array of resources is
 * its own, to be changed before it is handed out. NULL without memory. */
struct profiles *profiles_derive(struct profiles *p);

/* @size_bytes zeroed bytes that live as long as @p, 8-byte aligned. For producers only. NULL without memory. */
void *profiles_alloc(struct profiles *p, size_t size_bytes);

/* Has @fn called when the last reference has gone and the memory is free, on the thread that dropped it. For the producer,
 * before it shares @p, once. */
void profiles_on_free(struct profiles *p, void (*fn)(void *arg), void *arg);

/* Drops the elements of the dictionary that no sample leads to, and gives the others the order in which they pack best
 * (profiles_order.c). @p is not handed out yet, and no two of its lists share memory. 0, or -ENOMEM, and then @p is of no
 * use. */
int profiles_order(struct profiles *p);

/* Makes one of resources, and of samples, that are the same (profiles_merge.c); the rest as profiles_order(). */
int profiles_merge(struct profiles *p);

/* References. profiles_put accepts NULL and frees with the last one. Any thread. */
struct profiles *profiles_get(struct profiles *p);
void profiles_put(struct profiles *p);

/* Bytes held by the arena and the source (for bounds of queues). */
size_t profiles_memory_bytes(const struct profiles *p);

/* String @index of the dictionary. */
static inline struct str profiles_string(const struct profiles *p, int32_t index)
{
	return p->dict.strings[index];
}

/* The key of @kv and the text of a string value, resolved through the dictionary when reference-encoded. */
struct str profiles_key(const struct profiles *p, const struct key_value *kv);
bool profiles_value_string(const struct profiles *p, const struct any_value *v, struct str *ret);

/* Appends the text of a string, an integer, a boolean or a number, which reads back as the same. False, and nothing, where
 * @v is none of these. @p: may be NULL where no value is reference-encoded. */
bool profiles_value_append(const struct profiles *p, const struct any_value *v, struct buf *out);

/* The same text; empty when @v is NULL or no string. */
struct str profiles_value_text(const struct profiles *p, const struct any_value *v);

/* The first attribute with @key among @attributes (indices into the attribute table) or in @kvs; NULL when there is none. */
const struct any_value *profiles_find_attribute(const struct profiles *p, const struct indices *attributes, const char *key);
const struct any_value *profiles_find_key(const struct profiles *p, const struct key_values *kvs, const char *key);

/* True when @s equals the NUL-terminated @text. */
bool str_is(struct str s, const char *text);

#endif
