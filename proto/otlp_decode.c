/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder: reads one contiguous message into the model by the tables of otlp_decode_schema.c. Every length is checked
 * against what holds it; runs of a repeated field are counted before they are stored, so that arrays fit; the largest index
 * into each table is noted on the way, so that a valid message needs no second look at its indices. Arrays carry their
 * capacity in the 8 bytes before them, because a repeated field may come back later (concatenated messages do that).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "proto/otlp_decode.h"
#include "proto/otlp_packed.h"
#include "proto/otlp_wire.h"

static const uint8_t wire_of[] = {
	[KIND_INDEX] = WIRE_VARINT,   [KIND_UINT32] = WIRE_VARINT,   [KIND_INT64] = WIRE_VARINT,
	[KIND_BOOL] = WIRE_VARINT,    [KIND_FIXED64] = WIRE_FIXED64, [KIND_STRING] = WIRE_BYTES,
	[KIND_BYTES] = WIRE_BYTES,    [KIND_MESSAGE] = WIRE_BYTES,   [KIND_INDICES] = WIRE_BYTES,
	[KIND_INT64S] = WIRE_BYTES,   [KIND_FIXED64S] = WIRE_BYTES,  [KIND_STRINGS] = WIRE_BYTES,
	[KIND_MESSAGES] = WIRE_BYTES, [KIND_FIXED32] = WIRE_FIXED32, [KIND_SINT32] = WIRE_VARINT,
};

static const char *const wire_names[] = {
	"varint", "fixed64", "length-delimited", "group", "end of group", "fixed32", "reserved (6)", "reserved (7)",
};

void *otlp_decode_fail(struct otlp_decoder *d, const uint8_t *at, const struct otlp_message *m, const struct otlp_field *f,
		       const char *fmt, ...)
{
	char *text = d->text->message;
	size_t size = sizeof(d->text->message), n = 0;
	va_list args;

	d->error = -EBADMSG;
	if (at)
		n += (size_t)snprintf(text, size, "byte %zu: ", (size_t)(at - d->start));
	n += (size_t)snprintf(text + n, size - n, f ? "%s.%s " : "%s ", m->name, f ? f->name : "");
	va_start(args, fmt);
	vsnprintf(text + n, size - n, fmt, args);
	va_end(args);
	return NULL;
}

void otlp_init_strings(const struct otlp_message *m, void *base)
{
	for (unsigned i = 0; i < m->field_count; i++) {
		const struct otlp_field *f = &m->fields[i];

		if (f->kind == KIND_STRING || f->kind == KIND_BYTES)
			((struct str *)((char *)base + f->offset))->data = "";
		else if (f->kind == KIND_MESSAGE && f->sub->has_strings)
			otlp_init_strings(f->sub, (char *)base + f->offset);
	}
}

void *otlp_decode_new_list(struct otlp_decoder *d, size_t cap, size_t size)
{
	uint64_t *block = profiles_alloc(d->profiles, sizeof(*block) + cap * size);

	if (!block) {
		d->error = -ENOMEM;
		return NULL;
	}
	*block = cap;
	return block + 1;
}

void *otlp_decode_extend(struct otlp_decoder *d, void *base, const struct otlp_field *f, size_t size, uint32_t n)
{
	void **items = (void **)((char *)base + f->offset);
	uint32_t *count = (uint32_t *)((char *)base + f->count);
	size_t need = (size_t)*count + n, cap = *items ? ((const uint64_t *)*items)[-1] : 0;
	void *place;

	if (need > cap) {
		void *block = otlp_decode_new_list(d, need > 2 * cap ? need : 2 * cap, size);

		if (!block)
			return NULL;
		if (*count)
			memcpy(block, *items, *count * size);
		*items = block;
	}
	place = (char *)*items + *count * size;
	*count += n;
	return place;
}

static bool set_string(struct otlp_decoder *d, const struct otlp_message *m, const struct otlp_field *f, struct str *s,
		       const uint8_t *p, size_t len)
{
	char *copy;

	if (f->kind != KIND_BYTES && !utf8_is_valid(p, len))
		return otlp_decode_fail(d, p, m, f, "is not UTF-8");
	if (f->id_bytes && len && len != f->id_bytes)
		return otlp_decode_fail(d, p, m, f, "has %zu bytes, not %u or none", len, f->id_bytes);
	s->len = (uint32_t)len;
	if (len == 0 || d->own_data) {
		s->data = len ? (const char *)p : "";
		return true;
	}
	copy = profiles_alloc(d->profiles, len);
	if (!copy) {
		d->error = -ENOMEM;
		return false;
	}
	s->data = memcpy(copy, p, len);
	return true;
}

/* Complete length-delimited values from @p on that have the tag byte @tag between them; 0 when not even the first is whole.
 */
static uint32_t count_run(const uint8_t *p, const uint8_t *end, uint8_t tag)
{
	uint32_t n = 0;
	size_t len;

	do {
		p = wire_length(p, end, &len);
		if (!p)
			break;
		p += len;
		n++;
	} while (p < end && *p++ == tag);
	return n;
}

static const uint8_t *decode_strings(struct otlp_decoder *d, const struct otlp_message *m, const struct otlp_field *f,
				     void *base, const uint8_t *p, const uint8_t *end, uint32_t n)
{
	struct str *s = otlp_decode_extend(d, base, f, sizeof(*s), n);
	size_t len = 0;

	for (uint32_t i = 0; s && i < n; i++, p += len) {
		p = wire_length(p + (i > 0), end, &len);
		if (!set_string(d, m, f, &s[i], p, len))
			return NULL;
	}
	return s ? p : NULL;
}

static const uint8_t *decode_messages(struct otlp_decoder *d, const struct otlp_field *f, void *base, const uint8_t *p,
				      const uint8_t *end, uint32_t n)
{
	char *item = otlp_decode_extend(d, base, f, f->sub->size, n);
	size_t len = 0;

	for (uint32_t i = 0; item && i < n; i++, p += len, item += f->sub->size) {
		p = wire_length(p + (i > 0), end, &len);
		if (f->sub->has_strings)
			otlp_init_strings(f->sub, item);
		if (!otlp_decode_message(d, f->sub, item, p, p + len))
			return NULL;
	}
	return item ? p : NULL;
}

static bool decode_packed(struct otlp_decoder *d, const struct otlp_field *f, void *base, const uint8_t *p,
			  const uint8_t *end)
{
	uint32_t n = otlp_packed_count(p, end);
	int64_t *values;
	int32_t *indices;
	uint64_t v;

	if (f->kind == KIND_INDICES) {
		indices = otlp_decode_extend(d, base, f, sizeof(*indices), n);
		return indices && otlp_packed_indices(d, f->table, p, end, indices);
	}
	values = otlp_decode_extend(d, base, f, sizeof(*values), n);
	for (; values && p && p < end; *values++ = (int64_t)v)
		p = packed_varint(p, end, &v);
	return values && p;
}

/* A list of numbers: packed, or one of its elements alone. */
static const uint8_t *decode_numbers(struct otlp_decoder *d, const struct otlp_message *m, const struct otlp_field *f,
				     unsigned wire, void *base, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *at = p;
	size_t len = 8;
	void *place;

	if (wire == WIRE_BYTES) {
		p = wire_length(p, end, &len);
		if (!p)
			return otlp_decode_fail(d, at, m, f, "is cut off");
		if (len == 0)
			return p;
	} else {
		p = wire_skip(p, end, wire);
		if (!p)
			return otlp_decode_fail(d, at, m, f, "is cut off");
		len = (size_t)(p - at);
		p = at;
		d->odd = true;
	}
	if (f->kind == KIND_FIXED64S) {
		if (len % 8)
			return otlp_decode_fail(d, at, m, f, "has %zu bytes, not a multiple of 8", len);
		place = otlp_decode_extend(d, base, f, 8, (uint32_t)(len / 8));
		if (place)
			memcpy(place, p, len);
		return place ? p + len : NULL;
	}
	if (p[len - 1] >= 0x80)
		return otlp_decode_fail(d, at, m, f, "ends within a number");
	if (decode_packed(d, f, base, p, p + len))
		return p + len;
	if (!d->error)
		otlp_decode_fail(d, at, m, f, "holds a number out of range");
	return NULL;
}

/* Value of a varint field into @at. */
static bool set_number(struct otlp_decoder *d, const struct otlp_field *f, void *at, uint64_t v)
{
	switch (f->kind) {
	case KIND_INDEX:
		if (v > INT32_MAX || v - 1 < d->shift[f->table])
			return false;
		v -= v ? d->shift[f->table] : 0;
		*(int32_t *)at = (int32_t)v;
		if (v > d->max_index[f->table])
			d->max_index[f->table] = (uint32_t)v;
		return true;
	case KIND_UINT32:
		if (v > UINT32_MAX)
			return false;
		*(uint32_t *)at = (uint32_t)v;
		return true;
	case KIND_BOOL:
		*(bool *)at = v;
		return true;
	case KIND_SINT32:
		if (v > UINT32_MAX)
			return false;
		*(int32_t *)at = (int32_t)((uint32_t)v >> 1 ^ -((uint32_t)v & 1));
		return true;
	default:
		*(int64_t *)at = (int64_t)v;
		return true;
	}
}

static const uint8_t *decode_bytes(struct otlp_decoder *d, const struct otlp_message *m, const struct otlp_field *f,
				   void *base, const uint8_t *p, const uint8_t *end)
{
	uint8_t tag = (uint8_t)((unsigned)(f - m->fields) << 3 | WIRE_BYTES);
	void *at = (char *)base + f->offset;
	const uint8_t *value;
	uint32_t n;
	size_t len;

	if (f->kind == KIND_MESSAGES || f->kind == KIND_STRINGS) {
		n = count_run(p, end, tag);
		if (n == 0)
			return otlp_decode_fail(d, p, m, f, "is cut off");
		return f->kind == KIND_MESSAGES ? decode_messages(d, f, base, p, end, n)
						: decode_strings(d, m, f, base, p, end, n);
	}
	value = wire_length(p, end, &len);
	if (!value)
		return otlp_decode_fail(d, p, m, f, "is cut off");
	if (f->kind == KIND_STRING || f->kind == KIND_BYTES)
		return set_string(d, m, f, at, value, len) ? value + len : NULL;
	return otlp_decode_message(d, f->sub, at, value, value + len) ? value + len : NULL;
}

/* Of a member of a oneof, or a value that counts also when it is 0. */
static void note_presence(const struct otlp_field *f, void *base)
{
	if (f->variant && ((struct any_value *)base)->kind != f->variant)
		*(struct any_value *)base = (struct any_value){ .kind = f->variant };
	if (f->has)
		*(bool *)((char *)base + f->count) = true;
}

static const uint8_t *decode_field(struct otlp_decoder *d, const struct otlp_message *m, const struct otlp_field *f,
				   unsigned wire, void *base, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *at = p;
	uint64_t v;

	if (wire != wire_of[f->kind]) {
		if (f->kind == KIND_FIXED64S ? wire == WIRE_FIXED64
					     : wire == WIRE_VARINT && (f->kind == KIND_INDICES || f->kind == KIND_INT64S))
			return decode_numbers(d, m, f, wire, base, p, end);
		return otlp_decode_fail(d, p, m, f, "has wire type %s, not %s", wire_names[wire],
					wire_names[wire_of[f->kind]]);
	}
	if (f->variant | f->has)
		note_presence(f, base);
	switch (wire) {
	case WIRE_VARINT:
		p = wire_varint(p, end, &v);
		if (!p)
			return otlp_decode_fail(d, at, m, f, "is cut off or longer than 64 bits");
		if (!set_number(d, f, (char *)base + f->offset, v))
			return otlp_decode_fail(d, at, m, f, "is %lld, out of range", (long long)v);
		return p;
	case WIRE_FIXED64:
		if (end - p < 8)
			return otlp_decode_fail(d, at, m, f, "is cut off");
		memcpy((char *)base + f->offset, p, 8);
		return p + 8;
	case WIRE_FIXED32:
		if (end - p < 4)
			return otlp_decode_fail(d, at, m, f, "is cut off");
		memcpy((char *)base + f->offset, p, 4);
		return p + 4;
	default:
		if (f->kind >= KIND_INDICES && f->kind <= KIND_FIXED64S)
			return decode_numbers(d, m, f, wire, base, p, end);
		return decode_bytes(d, m, f, base, p, end);
	}
}

bool otlp_decode_message(struct otlp_decoder *d, const struct otlp_message *m, void *base, const uint8_t *p,
			 const uint8_t *end)
{
	if (m->nests && ++d->nesting > OTLP_MAX_NESTING)
		return otlp_decode_fail(d, p, m, NULL, "is nested more than %d deep", OTLP_MAX_NESTING);
	if (m->usual)
		p = m->usual(d, base, p, end);
	while (p < end) {
		const uint8_t *at = p;
		uint32_t number;
		unsigned wire;

		p = wire_tag(p, end, &number, &wire);
		if (!p)
			return otlp_decode_fail(d, at, m, NULL, "goes on with bytes that are no field");
		if (number < m->field_count && m->fields[number].kind) {
			p = decode_field(d, m, &m->fields[number], wire, base, p, end);
			if (!p)
				return false;
			continue;
		}
		d->odd = true;
		p = wire_skip(p, end, wire);
		if (!p)
			return otlp_decode_fail(d, at, m, NULL, "has field %u (%s) that is cut off or not proto3", number,
						wire_names[wire]);
	}
	d->nesting -= m->nests;
	return !m->done || m->done(d, base);
}

/* Gives each table that has no element its element 0; false for want of memory. */
static bool fill_tables(struct otlp_decoder *d)
{
	struct dictionary *dict = &d->profiles->dict;

	for (unsigned t = 1; t < otlp_dictionary.field_count; t++) {
		const struct otlp_field *f = &otlp_dictionary.fields[t];
		void *item;

		if (*(const uint32_t *)((const char *)dict + f->count))
			continue;
		d->lacks_table = true;
		item = otlp_decode_extend(d, dict, f, f->sub ? f->sub->size : sizeof(struct str), 1);
		if (!item)
			return false;
		if (f->sub)
			otlp_init_strings(f->sub, item);
		else
			*(struct str *)item = STR("");
	}
	return true;
}

static bool indices_fit(const struct otlp_decoder *d)
{
	for (unsigned t = 1; t < otlp_dictionary.field_count; t++) {
		if (d->max_index[t] >=
		    *(const uint32_t *)((const char *)&d->profiles->dict + otlp_dictionary.fields[t].count))
			return false;
	}
	return true;
}

int otlp_decode_finish(struct otlp_decoder *d)
{
	if (!fill_tables(d))
		return d->error = -ENOMEM;
	if (d->forgets_references)
		return 0;
	/* An index that a later field replaced does not count, so the walk has the last word. */
	if (!indices_fit(d) && !otlp_check_indices(d->profiles, d->is_json, d->text))
		d->error = -EBADMSG;
	return d->error;
}

void *otlp_decode_root(struct otlp_decoder *d, const struct otlp_layout *layout)
{
	void *root;

	d->profiles = profiles_new();
	root = d->profiles && layout->size_bytes ? profiles_alloc(d->profiles, layout->size_bytes) : d->profiles;
	if (!root) {
		d->error = -ENOMEM;
		return NULL;
	}
	if (d->continues && !fill_tables(d))
		return NULL;
	if (d->len && !otlp_decode_message(d, layout->root, root, d->start, d->start + d->len))
		return NULL;
	if (layout->convert && !layout->convert(d, root))
		return NULL;
	d->whole = true;
	return otlp_decode_finish(d) ? NULL : root;
}

/* Whether the message makes no sense as what it was decoded as. */
static bool is_doubtful(const struct otlp_decoder *d)
{
	if (!d->whole || d->has_current)
		return false;
	return (d->shapeless_samples && !d->shaped_samples) || d->twins ||
	       d->max_index[PROFILES_TAG(ProfilesDictionary, attribute_table)] >= d->profiles->dict.attribute_count;
}

/* Decodes the message again when it shows the layout of an older release, whether it made sense as 1.10 or not. False: it is
 * what it was. */
static bool try_older(struct otlp_decoder *d, const uint8_t *data, size_t len)
{
	const struct otlp_layout *layout = NULL;
	struct otlp_decoder older = { .start = d->start, .len = len, .own_data = d->own_data, .text = d->text };
	bool doubtful = is_doubtful(d);
	struct otlp_error why;

	if (d->error || doubtful || d->odd)
		layout = otlp_layout(otlp_older_release(data, len, doubtful));
	if (!layout || !layout->release)
		return false;
	profiles_put(d->profiles);
	if (layout->root)
		otlp_decode_root(&older, layout);
	*d = older;
	if (!layout->root) {
		snprintf(d->text->message, sizeof(d->text->message), OTLP_TOO_OLD, layout->release);
		d->error = -EBADMSG;
	} else if (d->error == -EBADMSG) {
		why = *d->text;
		snprintf(d->text->message, sizeof(d->text->message), OTLP_FAULT_IN_OLDER, layout->release, why.message);
	}
	return true;
}

int otlp_decode_with(uint8_t *data, size_t len, bool own_data, const struct otlp_decode_options *options,
		     struct profiles **ret, struct otlp_error *err)
{
	struct otlp_decoder d = { .start = data, .len = len, .own_data = own_data, .text = err };
	bool is_older = false;

	err->message[0] = '\0';
	if (len > UINT32_MAX) {
		otlp_decode_fail(&d, NULL, &otlp_profiles_data, NULL, "has %zu bytes, more than a message can have", len);
		return d.error;
	}
	otlp_decode_root(&d, otlp_layout(RELEASE_CURRENT));
	if (d.error != -ENOMEM && !options->no_guess)
		is_older = try_older(&d, data, len);
	if (d.error) {
		profiles_put(d.profiles);
		return d.error;
	}
	if (own_data)
		d.profiles->source = data;
	if (own_data && !is_older && !d.odd && !d.lacks_table)
		d.profiles->message = (struct str){ (const char *)data, (uint32_t)len };
	*ret = d.profiles;
	return 0;
}

int otlp_decode(uint8_t *data, size_t len, bool own_data, struct profiles **ret, struct otlp_error *err)
{
	return otlp_decode_with(data, len, own_data, &(struct otlp_decode_options){ 0 }, ret, err);
}

int otlp_decode_part(const uint8_t *data, size_t len, uint32_t before[OTLP_TABLES], struct profiles **ret)
{
	struct otlp_error unwanted;
	struct otlp_decoder d = { .start = data, .len = len, .own_data = true, .text = &unwanted };

	if (len > UINT32_MAX)
		return -EBADMSG;
	d.continues = before[1];
	for (unsigned t = 1; d.continues && t < OTLP_TABLES; t++)
		d.shift[t] = before[t] - 1;
	otlp_decode_root(&d, otlp_layout(RELEASE_CURRENT));
	if (!d.error && (d.odd || is_doubtful(&d) || (d.lacks_table && !d.continues)))
		d.error = -EBADMSG;
	if (d.error) {
		profiles_put(d.profiles);
		return d.error;
	}
	for (unsigned t = 1; t < OTLP_TABLES; t++)
		before[t] += *(const uint32_t *)((const char *)&d.profiles->dict + otlp_dictionary.fields[t].count) -
			     d.continues;
	*ret = d.profiles;
	return 0;
}

static int decode_answer(const struct otlp_message *m, const uint8_t *data, size_t len, int64_t *number_ret,
			 char *message_ret, size_t message_size)
{
	struct otlp_error err;
	struct otlp_decoder d = { .start = data, .own_data = true, .text = &err };
	struct otlp_answer answer = { .message = STR("") };

	if (len && !otlp_decode_message(&d, m, &answer, data, data + len))
		return d.error;
	*number_ret = answer.number;
	snprintf(message_ret, message_size, "%.*s", (int)utf8_cut(answer.message.data, answer.message.len, message_size - 1),
		 answer.message.data);
	return 0;
}

int otlp_decode_response(const uint8_t *data, size_t len, int64_t *rejected_ret, char *message_ret, size_t message_size)
{
	return decode_answer(&otlp_response, data, len, rejected_ret, message_ret, message_size);
}

int otlp_decode_status(const uint8_t *data, size_t len, int32_t *grpc_code_ret, char *message_ret, size_t message_size)
{
	int64_t code = 0;
	int err = decode_answer(&otlp_status, data, len, &code, message_ret, message_size);

	if (!err)
		*grpc_code_ret = (int32_t)code; /* as protobuf reads an int32 */
	return err;
}
