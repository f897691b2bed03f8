/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/context/process_context.h"
#include "agent/report/context_labels.h"
#include "base/cleanup.h"
#include "base/text/hex.h"
#include "base/text/utf8.h"
#include "base/vec.h"

#define LABEL_PREFIX "process.context.label."

/* What one kind of work came to. */
struct built {
	uint32_t first, count; /* in the list of attributes */
	int32_t link;
};

struct context_labels {
	struct built *built; /* by number of the context */
	uint32_t built_cap;
	int32_t *attributes;
	uint32_t attribute_cnt, attribute_cap;
};

/* The labels of one, each key once. */
struct list {
	struct {
		struct str key, value;
		bool is_label; /* the key gets LABEL_PREFIX */
	} items[CONTEXT_LABELS];
	uint32_t count;
	struct span_info span;
};

void context_labels_free(struct context_labels *c)
{
	if (!c)
		return;
	free(c->built);
	free(c->attributes);
	free(c);
}

size_t context_labels_memory_bytes(const struct context_labels *c)
{
	if (!c)
		return 0;
	return sizeof(*c) + c->built_cap * sizeof(*c->built) + c->attribute_cap * sizeof(*c->attributes);
}

/* --- spans in labels --- */

/* Reads 2 * @bytes hexadecimal digits. */
static bool read_hex(struct str text, uint8_t *ret, size_t bytes)
{
	uint8_t id[16];
	size_t len;

	if (text.len != 2 * bytes || bytes > sizeof(id) || !hex_decode(text.data, text.len, id, &len))
		return false;
	memcpy(ret, id, bytes);
	return true;
}

/* Reads a decimal number into 8 bytes, the highest first. */
static bool read_decimal(struct str text, uint8_t ret[static 8])
{
	uint64_t number = 0;

	if (!text.len)
		return false;
	for (uint32_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9' || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(text.data[i] - '0'), &number))
			return false;
	}
	for (int i = 8; i--; number >>= 8)
		ret[i] = (uint8_t)number;
	return true;
}

bool context_label_link(struct str key, struct str value, struct span_info *ret)
{
	if (str_is(key, "span_id"))
		return read_hex(value, ret->span, sizeof(ret->span));
	if (str_is(key, "trace_id"))
		return read_hex(value, ret->trace, sizeof(ret->trace));
	if (str_is(key, "span id"))
		return read_decimal(value, ret->span);
	if (str_is(key, "trace id")) /* of 64 bits in decimal digits, or of 128 in others */
		return read_hex(value, ret->trace, sizeof(ret->trace)) || read_decimal(value, ret->trace + 8);
	return false;
}

/* --- lists --- */

/* A key that hearth tells itself, which a thread cannot. */
static bool is_own_key(struct str key)
{
	static const char *const keys[] = { "thread.name", "thread.id", "thread.state", "cpu.logical_number",
					    "syscall.name" },
				 *const starts[] = { "hearth.", "probe." };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (str_is(key, keys[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (key.len >= strlen(starts[i]) && !memcmp(key.data, starts[i], strlen(starts[i])))
			return true;
	return false;
}

/* Adds a label; of two with one key the last counts. */
static void add(struct list *l, struct str key, struct str value, bool is_label)
{
	uint32_t i = 0;

	if (!key.len || !value.len || !utf8_is_valid(key.data, key.len) || (!is_label && is_own_key(key)))
		return;
	while (i < l->count && (l->items[i].is_label != is_label || l->items[i].key.len != key.len ||
				memcmp(l->items[i].key.data, key.data, key.len) != 0))
		i++;
	if (i == CONTEXT_LABELS)
		return;
	l->items[i].key = key;
	l->items[i].value = value;
	l->items[i].is_label = is_label;
	l->count += i == l->count;
}

static void add_labels(struct list *l, const struct trace_context *work)
{
	struct sample_label label;
	uint32_t at = 0;

	while (sample_next_label(work->labels, work->label_words, &at, &label)) {
		struct str key = { label.key, label.key_bytes }, value = { label.value, label.value_bytes };

		/* it may have been cut within a character */
		while (key.len > LABEL_KEY_BYTES - 4 && !utf8_is_valid(key.data, key.len))
			key.len--;
		if (!context_label_link(key, value, &l->span))
			add(l, key, value, true);
	}
}

/* OTEP 4947: attributes are a number of a key, a length, and the value. One that breaks off ends the list. */
static void add_attributes(struct list *l, const struct trace_context *work)
{
	const struct process_context *published = work->byte_cnt ? process_context_of(work->process) : NULL;

	if (!published)
		return;
	for (uint32_t at = 0; at + 2 <= work->byte_cnt;) {
		uint8_t key = work->bytes[at], len = work->bytes[at + 1];

		at += 2;
		if (len > work->byte_cnt - at)
			break;
		if (key < published->key_cnt && published->keys[key])
			add(l, str_z(published->keys[key]), (struct str){ (const char *)work->bytes + at, len }, false);
		at += len;
	}
}

/* --- attributes --- */

static int32_t build_attribute(struct builder *b, struct str key, struct str value, bool is_label)
{
	const struct any_value v = { .kind = VALUE_STRING, .string = value };
	char text[sizeof(LABEL_PREFIX) + LABEL_KEY_BYTES];
	size_t prefix = sizeof(LABEL_PREFIX) - 1;

	if (!is_label)
		return builder_attribute(b, key, &v, 0);
	if (key.len > LABEL_KEY_BYTES)
		key.len = LABEL_KEY_BYTES;
	memcpy(text, LABEL_PREFIX, prefix);
	memcpy(text + prefix, key.data, key.len);
	return builder_attribute(b, (struct str){ text, (uint32_t)(prefix + key.len) }, &v, 0);
}

static bool is_told(const uint8_t *id, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (id[i])
			return true;
	return false;
}

static void build_one(struct context_labels *c, struct builder *b, const struct trace_context *work, struct built *ret)
{
	struct list l;

	l.count = 0;
	l.span = work->span;
	add_labels(&l, work);
	add_attributes(&l, work);
	*ret = (struct built){ .first = c->attribute_cnt };
	if (is_told(l.span.trace, sizeof(l.span.trace)) || is_told(l.span.span, sizeof(l.span.span)))
		ret->link = builder_link(b, l.span.trace, l.span.span);
	for (uint32_t i = 0; i < l.count; i++)
		c->attributes[c->attribute_cnt++] = build_attribute(b, l.items[i].key, l.items[i].value,
								    l.items[i].is_label);
	ret->count = l.count;
}

int context_labels_build(struct context_labels **ret, struct builder *b, const struct traces *t)
{
	uint32_t count = traces_context_count(t);
	struct context_labels *c = *ret;

	if (!count)
		return 0;
	if (!c)
		c = *ret = calloc(1, sizeof(*c));
	if (!c || vec_reserve(&c->built, &c->built_cap, count))
		return -ENOMEM;
	c->attribute_cnt = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct trace_context work;

		if (vec_reserve(&c->attributes, &c->attribute_cap, c->attribute_cnt + CONTEXT_LABELS))
			return -ENOMEM;
		traces_context(t, i, &work);
		build_one(c, b, &work, &c->built[i]);
	}
	return 0;
}

uint32_t context_labels_of(const struct context_labels *c, const struct trace_event *e, int32_t *attributes, int32_t *link)
{
	const struct built *built;

	*link = 0;
	if (!e->context)
		return 0;
	built = &c->built[e->context - 1];
	*link = built->link;
	if (built->count)
		memcpy(attributes, c->attributes + built->first, built->count * sizeof(*attributes));
	return built->count;
}
