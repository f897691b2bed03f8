/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the encoder and the splitter: which part of the profiles is written, and its new indices. */
#ifndef HEARTH_PROTO_OTLP_ENCODE_H
#define HEARTH_PROTO_OTLP_ENCODE_H

#include "proto/otlp/otlp.h"

enum otlp_table {
	TABLE_MAPPING,
	TABLE_LOCATION,
	TABLE_FUNCTION,
	TABLE_LINK,
	TABLE_STRING,
	TABLE_ATTRIBUTE,
	TABLE_STACK,
	TABLES
};

/*
 * Samples are counted through all resources, scopes and profiles; what holds nothing below it (a profile without samples, a
 * scope without profiles, a resource without scopes) counts as one, so that it is written exactly once too.
 */
struct otlp_part {
	uint64_t first, end;
	/* New index of each element, 0 for those left out; element 0 is always written first and stays 0. NULL: all stay. */
	const int32_t *map[TABLES];
	/* Without a map, @shift is added to indices other than 0; @without_zero leaves out the element 0. */
	int32_t shift[TABLES];
	bool without_zero[TABLES];
};

/* Elements of a table of @p's dictionary. */
uint32_t otlp_table_count(const struct profiles *p, enum otlp_table t);

/* Whether any of the @units units from @unit on is in the part. */
static inline bool otlp_part_has(const struct otlp_part *part, uint64_t unit, uint64_t units)
{
	return unit < part->end && unit + units > part->first;
}

/* The units that one profile, scope or resource counts for. */
uint64_t otlp_profile_units(const struct profile *p);
uint64_t otlp_scope_units(const struct scope_profiles *sp);
uint64_t otlp_resource_units(const struct resource_profiles *rp);

/* Appends the part as one message. 0 or -ENOMEM. */
int otlp_encode_part(const struct profiles *p, const struct otlp_part *part, struct buf *out);

/* The two that it is made of: element @i of the table @t as a field of ProfilesDictionary, by the maps of the tables that it
 * refers to; and the message around the @dictionary, ProfilesDictionary's fields (NULL: those of the part). 0 or -ENOMEM. */
int otlp_encode_element(const struct profiles *p, const struct otlp_part *part, enum otlp_table t, uint32_t i,
			struct buf *out);
int otlp_encode_around(const struct profiles *p, const struct otlp_part *part, const struct buf *dictionary,
		       struct buf *out);

#endif
