/* SPDX-License-Identifier: Apache-2.0 */
/* Reads objects by tables of the members that are wanted; the others are passed over. Stateless; base/text/json_read.h tells
 * how errors show. null stands for a member that is not there. */
#ifndef HEARTH_BASE_TEXT_JSON_FIELDS_H
#define HEARTH_BASE_TEXT_JSON_FIELDS_H

#include "base/text/json_read.h"

struct json_field {
	const char *name;
	bool (*read)(struct json_reader *r, void *arg);
};

/* Reads an object, or null; @arg goes to the fields' functions. */
bool json_read_fields(struct json_reader *r, const struct json_field *fields, size_t count, void *arg);

/* Reads an array, or null: @item reads each. */
bool json_read_items(struct json_reader *r, bool (*item)(struct json_reader *r, void *arg), void *arg);

/* Reads an object of texts, or null: @fn gets each with its name, both valid for the call. A value of another kind is passed
 * over. */
bool json_read_texts(struct json_reader *r, void (*fn)(void *arg, struct json_text key, struct json_text value), void *arg);

/* Reads a text, or null as "". */
bool json_read_text(struct json_reader *r, struct json_text *ret);

#endif
