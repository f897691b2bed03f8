/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is reported here: a field that cannot be read is left as if it had not been looked at. */
#include "proto/otlp/usual.h"

#include <string.h>

#include "proto/otlp/fields.h"
#include "proto/otlp/packed.h"

enum {
	STACK = PROFILES_TAG(ProfilesDictionary, stack_table),
	ATTRIBUTE = PROFILES_TAG(ProfilesDictionary, attribute_table),
	LOCATION = PROFILES_TAG(ProfilesDictionary, location_table),
};

#define TAG_BYTE(message, field, wire) (PROFILES_TAG(message, field) << 3 | (wire))

static const uint8_t *take_indices(struct otlp_decoder *d, uint8_t tag, unsigned table, struct indices *ret,
				   const uint8_t *p, const uint8_t *end)
{
	const uint8_t *value = p < end && *p == tag ? p + 1 : NULL;
	int32_t *items;
	uint32_t count;
	size_t len;

	value = value ? wire_length(value, end, &len) : NULL;
	if (!value || !len || value[len - 1] >= 0x80)
		return p;
	count = otlp_packed_count(value, value + len);
	items = otlp_decode_new_list(d, count, sizeof(*items));
	if (!items || !otlp_packed_indices(d, table, value, value + len, items))
		return p;
	*ret = (struct indices){ items, count };
	return value + len;
}

static const uint8_t *take_index(struct otlp_decoder *d, uint8_t tag, unsigned table, int32_t *ret, const uint8_t *p,
				 const uint8_t *end)
{
	const uint8_t *value = p < end && *p == tag ? p + 1 : NULL;
	uint64_t v;

	value = value ? varint_read(value, end, &v) : NULL;
	if (!value || v > INT32_MAX || v - 1 < d->shift[table])
		return p;
	v -= v ? d->shift[table] : 0;
	if (v > d->max_index[table])
		d->max_index[table] = (uint32_t)v;
	*ret = (int32_t)v;
	return value;
}

static const uint8_t *take_times(struct otlp_decoder *d, struct sample *s, const uint8_t *p, const uint8_t *end)
{
	const uint8_t tag = TAG_BYTE(Sample, timestamps_unix_nano, WIRE_BYTES);
	const uint8_t *value = p < end && *p == tag ? p + 1 : NULL;
	uint64_t *items;
	size_t len;

	value = value ? wire_length(value, end, &len) : NULL;
	if (!value || !len || len % sizeof(*items))
		return p;
	items = otlp_decode_new_list(d, len / sizeof(*items), sizeof(*items));
	if (!items)
		return p;
	s->timestamps_unix_ns = memcpy(items, value, len);
	s->timestamp_count = (uint32_t)(len / sizeof(*items));
	return value + len;
}

const uint8_t *otlp_usual_stack(struct otlp_decoder *d, void *base, const uint8_t *p, const uint8_t *end)
{
	return take_indices(d, TAG_BYTE(Stack, location_indices, WIRE_BYTES), LOCATION, base, p, end);
}

const uint8_t *otlp_usual_sample(struct otlp_decoder *d, void *base, const uint8_t *p, const uint8_t *end)
{
	struct sample *s = base;

	p = take_index(d, TAG_BYTE(Sample, stack_index, WIRE_VARINT), STACK, &s->stack_index, p, end);
	p = take_indices(d, TAG_BYTE(Sample, attribute_indices, WIRE_BYTES), ATTRIBUTE, &s->attributes, p, end);
	return take_times(d, s, p, end);
}
