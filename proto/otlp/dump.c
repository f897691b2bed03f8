/* SPDX-License-Identifier: Apache-2.0 */
/* The dump walks the decoder's tables, which know each field's name, kind and place. Any thread. */
#include "proto/otlp/dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/json.h"
#include "proto/otlp/schema.h"

struct dump {
	struct buf *out;
	const struct profiles *p;
	unsigned depth;
};

static void dump_message(struct dump *d, const struct otlp_message *m, const void *base);

static void put_name(struct dump *d, const char *name)
{
	for (unsigned i = 0; i < d->depth; i++)
		buf_puts(d->out, "  ");
	buf_puts(d->out, name);
}

static void put_string(struct dump *d, struct str s)
{
	json_append_string(d->out, s.data, s.len);
}

static void put_index(struct dump *d, const struct otlp_field *f, int32_t index)
{
	buf_printf(d->out, "%" PRId32, index);
	if (f->table != PROFILES_TAG(ProfilesDictionary, string_table))
		return;
	buf_putc(d->out, ' ');
	put_string(d, profiles_string(d->p, index));
}

static void put_fixed64(struct dump *d, const struct otlp_field *f, const void *at)
{
	double real;
	int64_t integer;

	memcpy(&real, at, sizeof(real));
	memcpy(&integer, at, sizeof(integer));
	if (f->json == JSON_DOUBLE)
		buf_printf(d->out, "%.17g", real);
	else if (f->json == JSON_SIGNED)
		buf_printf(d->out, "%" PRId64, integer);
	else
		buf_printf(d->out, "%" PRIu64, (uint64_t)integer);
}

static void put_number(struct dump *d, const struct otlp_field *f, uint32_t v)
{
	uint32_t count = 0;

	buf_printf(d->out, "%" PRIu32, v);
	if (f->kind != KIND_UINT32 || !f->names)
		return;
	while (f->names[count] && count < v)
		count++;
	if (f->names[count] && count == v)
		buf_printf(d->out, " %s", f->names[v]);
}

static void put_value(struct dump *d, const struct otlp_field *f, const void *at)
{
	const struct str *s = at;

	switch (f->kind) {
	case KIND_INDEX:
		put_index(d, f, *(const int32_t *)at);
		break;
	case KIND_UINT32:
	case KIND_FIXED32:
		put_number(d, f, *(const uint32_t *)at);
		break;
	case KIND_SINT32:
		buf_printf(d->out, "%" PRId32, *(const int32_t *)at);
		break;
	case KIND_BOOL:
		buf_puts(d->out, *(const bool *)at ? "true" : "false");
		break;
	case KIND_INT64:
		buf_printf(d->out, f->json == JSON_UNSIGNED ? "%" PRIu64 : "%" PRId64, *(const int64_t *)at);
		break;
	case KIND_FIXED64:
		put_fixed64(d, f, at);
		break;
	case KIND_STRING:
		put_string(d, *s);
		break;
	case KIND_BYTES:
		for (uint32_t i = 0; i < s->len; i++)
			buf_printf(d->out, "%02x", (uint8_t)s->data[i]);
		break;
	}
}

static void put_item(struct dump *d, const struct otlp_field *f, const char *items, uint32_t i)
{
	switch (f->kind) {
	case KIND_INDICES:
		put_index(d, f, ((const int32_t *)(const void *)items)[i]);
		break;
	case KIND_INT64S:
		buf_printf(d->out, f->json == JSON_UNSIGNED ? "%" PRIu64 : "%" PRId64,
			   ((const int64_t *)(const void *)items)[i]);
		break;
	case KIND_FIXED64S:
		put_fixed64(d, f, items + 8ul * i);
		break;
	}
}

/* Numbers on one line, strings and messages one below the other. */
static void dump_list(struct dump *d, const struct otlp_field *f, const void *base)
{
	const char *items = *(const char *const *)((const char *)base + f->offset);
	uint32_t count = *(const uint32_t *)((const char *)base + f->count);

	if (f->kind != KIND_STRINGS && f->kind != KIND_MESSAGES && count) {
		put_name(d, f->name);
		for (uint32_t i = 0; i < count; i++) {
			buf_puts(d->out, i ? ", " : ": [");
			put_item(d, f, items, i);
		}
		buf_puts(d->out, "]\n");
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		put_name(d, f->name);
		buf_printf(d->out, "[%" PRIu32 "]:", i);
		if (f->kind == KIND_STRINGS) {
			buf_putc(d->out, ' ');
			put_string(d, ((const struct str *)(const void *)items)[i]);
		}
		buf_putc(d->out, '\n');
		if (f->kind != KIND_MESSAGES)
			continue;
		d->depth++;
		dump_message(d, f->sub, items + (size_t)i * f->sub->size);
		d->depth--;
	}
}

static void dump_message(struct dump *d, const struct otlp_message *m, const void *base)
{
	for (unsigned i = 0; i < m->field_count; i++) {
		const struct otlp_field *f = &m->fields[i];
		const char *at = (const char *)base + f->offset;

		if (f->kind >= KIND_INDICES) {
			if (!f->variant || ((const struct any_value *)base)->kind == f->variant)
				dump_list(d, f, base);
			continue;
		}
		if (!f->kind || !otlp_field_is_present(f, base))
			continue;
		put_name(d, f->name);
		buf_puts(d->out, f->kind == KIND_MESSAGE ? ":" : ": ");
		if (f->kind != KIND_MESSAGE)
			put_value(d, f, at);
		buf_putc(d->out, '\n');
		if (f->kind != KIND_MESSAGE)
			continue;
		d->depth++;
		dump_message(d, f->sub, at);
		d->depth--;
	}
}

void otlp_dump(const struct profiles *p, struct buf *out)
{
	struct dump d = { .out = out, .p = p, .depth = 1 };

	buf_puts(out, "ProfilesData:\n");
	dump_message(&d, &otlp_profiles_data, p);
}

void otlp_dump_other(const struct otlp_other *o, struct buf *out)
{
	struct dump d = { .out = out, .p = o->memory, .depth = 1 };

	buf_printf(out, "%s:\n", o->message->name);
	dump_message(&d, o->message, o->root);
}
