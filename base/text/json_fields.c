/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/json_fields.h"

#include <string.h>

enum { MAX_KEY_BYTES = 512 }; /* Kubernetes has 317 at most: a DNS name, a slash and 63 */

static const struct json_field *field_of(const struct json_field *fields, size_t count, struct json_text name)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(fields[i].name) == name.len && !memcmp(fields[i].name, name.data, name.len))
			return &fields[i];
	return NULL;
}

bool json_read_fields(struct json_reader *r, const struct json_field *fields, size_t count, void *arg)
{
	struct json_text key;
	bool first = true;

	if (json_read_null(r))
		return true;
	if (!json_open(r, '{'))
		return false;
	while (json_next(r, '}', &first)) {
		const struct json_field *field;

		if (!json_read_key(r, &key))
			return false;
		field = field_of(fields, count, key);
		if (!(field ? field->read(r, arg) : json_skip(r)))
			return false;
	}
	return !r->error;
}

bool json_read_items(struct json_reader *r, bool (*item)(struct json_reader *r, void *arg), void *arg)
{
	bool first = true;

	if (json_read_null(r))
		return true;
	if (!json_open(r, '['))
		return false;
	while (json_next(r, ']', &first))
		if (!item(r, arg))
			return false;
	return !r->error;
}

bool json_read_texts(struct json_reader *r, void (*fn)(void *arg, struct json_text key, struct json_text value), void *arg)
{
	char name[MAX_KEY_BYTES];
	struct json_text key, value;
	bool first = true;

	if (json_read_null(r))
		return true;
	if (!json_open(r, '{'))
		return false;
	while (json_next(r, '}', &first)) {
		bool fits;

		if (!json_read_key(r, &key))
			return false;
		fits = key.len && key.len < sizeof(name);
		if (fits) /* the value's escapes take the place of the key's */
			memcpy(name, key.data, key.len);
		if (!fits || json_peek(r) != '"') {
			if (!json_skip(r))
				return false;
			continue;
		}
		key.data = name;
		if (!json_read_string(r, &value))
			return false;
		fn(arg, key, value);
	}
	return !r->error;
}

bool json_read_text(struct json_reader *r, struct json_text *ret)
{
	*ret = (struct json_text){ "", 0 };
	return json_read_null(r) || json_read_string(r, ret);
}
