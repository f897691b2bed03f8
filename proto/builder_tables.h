/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that profiles_builder.c gathers and builder_copy.c copies into the model: private to these. Each table is an
 * intern table; an entry's bytes are one of the keys below, so that equal values are equal bytes (padding is zero).
 */
#ifndef HEARTH_PROTO_BUILDER_TABLES_H
#define HEARTH_PROTO_BUILDER_TABLES_H

#include "base/buf.h"
#include "base/intern.h"
#include "proto/profiles_builder.h"

enum builder_table {
	TABLE_STRINGS,	  /* the bytes */
	TABLE_FUNCTIONS,  /* struct function_key */
	TABLE_MAPPINGS,	  /* struct mapping_key */
	TABLE_ATTRIBUTES, /* struct attribute_key */
	TABLE_LOCATIONS,  /* struct location_key */
	TABLE_STACKS,	  /* int32_t locations[] */
	TABLE_LINKS,	  /* trace id, span id: 24 bytes */
	TABLE_RESOURCES,  /* struct resource_attribute_key, one after another */
	TABLE_PROFILES,	  /* struct profile_key */
	TABLE_SAMPLES,	  /* struct sample_key */
	TABLE_COUNT
};

struct function_key {
	int32_t name, system_name, filename, zero;
	int64_t start_line;
};

struct mapping_key {
	uint64_t memory_start, memory_limit, file_offset;
	int32_t filename;
	uint32_t attribute_count;
	int32_t attributes[];
};

struct location_key {
	uint64_t address;
	int32_t mapping;
	uint32_t line_count;
	uint32_t attribute_count, zero;
	struct profile_line lines[]; /* then int32_t attributes[] */
};

struct attribute_key {
	int32_t key, kind, unit, zero;
	int64_t number; /* integer, the bits of a double, 0 and 1, or how many texts */
	char text[];	/* of an array: uint32_t length and bytes, one after another */
};

struct resource_attribute_key {
	uint32_t key_len, value_len, kind, zero;
	uint64_t number; /* the bits of a bool, int or double */
	char text[];	 /* key, value, zeros up to a multiple of 8 */
};

struct profile_key {
	uint32_t resource, spec;
};

struct sample_key {
	uint32_t profile;
	int32_t stack, link;
	int32_t attributes[]; /* sorted, no two equal */
};

struct builder_profile_slot { /* one for each entry of TABLE_PROFILES */
	uint32_t sample_count;
	bool has_values;
	bool has_sums; /* one value a sample and no times */
};

struct builder_spec { /* kept from one freeze to the next, so that the order of profiles stays */
	const struct builder_profile_spec *spec;
	uint32_t scope; /* number of the first spec of the same scope */
};

struct builder_event {
	uint64_t time_unix_ns;
	int64_t value;
	uint32_t sample;
};

struct builder {
	struct intern *tables[TABLE_COUNT];
	struct builder_profile_slot *slots;
	struct builder_spec *specs;
	struct builder_event *events;
	size_t slot_cap, spec_cap, event_cap, event_count;
	uint32_t spec_count;
	bool failed;
	struct buf scratch; /* the key being made */
	struct buf cleaned; /* a string that was not UTF-8 */
};

/* Copies everything into the empty @p. Sorts the events; may add strings. 0, -ENOMEM, or why there was no randomness. */
int builder_copy(struct builder *b, uint64_t start_unix_ns, uint64_t end_unix_ns, struct profiles *p);

#endif
