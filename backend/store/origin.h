/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rest of a profile besides its samples and the attributes of its resource and of itself. It is kept as an OTLP message,
 * so that an export gives back scope, schema URLs, entities, types, period. Times, profile_id and original payload are of
 * one report, not of the series, and are left out.
 */
#ifndef HEARTH_BACKEND_STORE_ORIGIN_H
#define HEARTH_BACKEND_STORE_ORIGIN_H

#include "base/buf.h"
#include "proto/profiles.h"

struct origin {
	const struct resource_profiles *resource;
	const struct scope_profiles *scope;
	const struct profile *profile;
	int shape; /* 1: samples have time stamps, 2: values, 3: both */
};

/* Appends the message. 0, -ENOMEM or -EOVERFLOW. */
int origin_encode(const struct profiles *p, const struct origin *origin, struct buf *out);

/* Appends a message with @value as attribute 1 of its dictionary; and reads one: @ret lives as long as *@owner_ret. */
int origin_encode_value(const struct profiles *p, const struct any_value *value, struct buf *out);

/* A copy in @to's memory with every reference into @from's dictionary resolved; strings are copied too. 0 or -ENOMEM. */
int origin_copy_value(struct profiles *to, const struct profiles *from, const struct any_value *value,
		      struct any_value *ret);
int origin_copy_key_values(struct profiles *to, const struct profiles *from, const struct key_values *kvs,
			   struct key_values *ret);
int origin_copy_string(struct profiles *to, struct str s, struct str *ret);

/* All seven tables with their element 0 and @strings, @attributes further zeroed ones. 0 or -ENOMEM. */
int origin_make_tables(struct profiles *p, uint32_t strings, uint32_t attributes);

#endif
