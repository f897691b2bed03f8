/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes attributes of resources of frozen profiles: what changes is a derived object's, the rest is shared. Begins with
 * @from alone; for each resource in turn its changes, then resource_edit_next(). Want of memory sticks in @failed. One
 * thread.
 */
#ifndef HEARTH_PROTO_RESOURCE_EDIT_H
#define HEARTH_PROTO_RESOURCE_EDIT_H

#include "proto/profiles.h"

struct resource_edit {
	struct profiles *from;	 /* borrowed */
	struct profiles *to;	 /* NULL: nothing has changed yet; else a reference */
	uint32_t resource;	 /* whose attributes are meant */
	struct key_value *items; /* what they are now; NULL: as they were */
	uint32_t count, cap;
	bool failed;
};

/* The attributes as they are now. */
struct key_values resource_edit_list(const struct resource_edit *e);

/* The value of @key now; NULL: there is none. */
const struct any_value *resource_edit_find(const struct resource_edit *e, const char *key);

/* Gives @key @value, which may be one of this resource's; else the texts of both are copied. */
void resource_edit_set(struct resource_edit *e, struct str key, const struct any_value *value);

/* Gives @key the list of these texts. */
void resource_edit_set_list(struct resource_edit *e, struct str key, const struct str *texts, uint32_t count);

/* Takes away what stands at @index of the list. */
void resource_edit_remove(struct resource_edit *e, uint32_t index);

/* Puts the changes of this resource into the new object, and goes on to the next one; false: that was the last. */
bool resource_edit_next(struct resource_edit *e);

/* Ends it: a reference of the new object, or of the old one where nothing has changed, or there was no memory (@failed). */
struct profiles *resource_edit_end(struct resource_edit *e);

/* The samples of @r, as struct profiles counts them. */
uint64_t resource_events(const struct resource_profiles *r);

#endif
