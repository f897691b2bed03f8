/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of attributes are short, so they are searched from end to end. */
#include "agent/process/attributes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/hex.h"
#include "base/text/utf8.h"
#include "base/vec.h"

/* Removes all attributes behind the first @count. */
static void cut_back(struct attributes *a, uint32_t count)
{
	while (a->count > count) {
		const struct key_value *last = &a->items[--a->count];

		free((char *)(uintptr_t)last->key.data);
		free((char *)(uintptr_t)last->value.string.data);
	}
}

void attributes_fini(struct attributes *a)
{
	cut_back(a, 0);
	free(a->items);
	*a = ATTRIBUTES_EMPTY;
}

const struct any_value *attributes_find(const struct attributes *a, struct str key)
{
	for (uint32_t i = 0; i < a->count; i++)
		if (a->items[i].key.len == key.len && !memcmp(a->items[i].key.data, key.data, key.len))
			return &a->items[i].value;
	return NULL;
}

/* A copy of at most @max bytes, clean. NULL data without memory. */
static struct str copy_text(struct str text, size_t max)
{
	struct buf clean = BUF_EMPTY;
	size_t len;

	utf8_append_clean(&clean, text.data, text.len > 4 * max ? 4 * max : text.len);
	len = utf8_cut(clean.data, clean.len, max);
	clean.len = len;
	buf_putc(&clean, '\0');
	return (struct str){ (char *)buf_take(&clean, NULL), (uint32_t)len };
}

int attributes_add(struct attributes *a, struct str key, struct str value)
{
	struct str own_key, own_value;

	if (!key.len || key.len > ATTRIBUTE_KEY_BYTES || !utf8_is_valid(key.data, key.len) || a->count == ATTRIBUTES_MAX ||
	    attributes_find(a, key))
		return 0;
	if (vec_reach(&a->items, &a->cap, a->count))
		return -ENOMEM;
	own_key = copy_text(key, ATTRIBUTE_KEY_BYTES);
	own_value = copy_text(value, ATTRIBUTE_VALUE_BYTES);
	if (!own_key.data || !own_value.data) {
		free((char *)(uintptr_t)own_key.data);
		free((char *)(uintptr_t)own_value.data);
		return -ENOMEM;
	}
	a->items[a->count++] = (struct key_value){ .key = own_key, .value = { .kind = VALUE_STRING, .string = own_value } };
	return 0;
}

/* --- KEY=VALUE,... --- */

static struct str trim(const char *start, const char *end)
{
	while (start < end && (*start == ' ' || *start == '\t'))
		start++;
	while (start < end && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (struct str){ start, (uint32_t)(end - start) };
}

/* Percent-decodes @text into @out. */
static int decode(struct str text, struct buf *out)
{
	for (uint32_t i = 0; i < text.len; i++) {
		int high, low;

		if (text.data[i] != '%') {
			buf_putc(out, text.data[i]);
			continue;
		}
		high = i + 2 < text.len ? hex_digit(text.data[i + 1]) : -1;
		low = i + 2 < text.len ? hex_digit(text.data[i + 2]) : -1;
		if (high < 0 || low < 0)
			return -EINVAL;
		buf_putc(out, (char)(high << 4 | low));
		i += 2;
	}
	return out->failed ? -ENOMEM : 0;
}

/* One KEY=VALUE at [@start, @end). */
static int parse_one(struct attributes *a, const char *start, const char *end)
{
	const char *equals = memchr(start, '=', (size_t)(end - start));
	AUTO(buf_fini) struct buf key = BUF_EMPTY, value = BUF_EMPTY;
	int error;

	if (!trim(start, end).len)
		return 0;
	if (!equals || !trim(start, equals).len)
		return -EINVAL;
	error = decode(trim(start, equals), &key);
	if (!error)
		error = decode(trim(equals + 1, end), &value);
	if (error)
		return error;
	if (!utf8_is_valid(key.data, key.len) || !utf8_is_valid(value.data, value.len))
		return -EINVAL;
	return attributes_add(a, (struct str){ buf_text(&key), (uint32_t)key.len },
			      (struct str){ buf_text(&value), (uint32_t)value.len });
}

int attributes_parse(struct attributes *a, struct str text)
{
	const char *start = text.data, *end = text.data + text.len, *comma;
	uint32_t before = a->count;
	int error = 0;

	/* Goes from the end: if a key is there twice the last value counts. */
	for (; !error && end > start; end = comma > start ? comma - 1 : start) {
		comma = memrchr(start, ',', (size_t)(end - start));
		comma = comma ? comma + 1 : start;
		error = parse_one(a, comma, end);
	}
	if (error)
		cut_back(a, before);
	return error;
}
