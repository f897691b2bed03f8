/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An element is known by its bytes, which are unambiguous once the elements that it refers to have their indices: so tables
 * are written in the order in which they refer to one another, each with what the ones before became. Only a hash of 128
 * bits of the bytes is kept, a third of the memory: among 2^20 elements two share one with a chance of 2^-89.
 */
#include "proto/otlp/stream.h"

#include <errno.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "proto/otlp/encode.h"

/* The state of one table. */
struct known {
	struct intern *elements; /* of this run, by the hashes of their bytes */
	uint32_t first;		 /* index of the first of them in the stream */
	uint32_t before;	 /* how many there were before the message that is written */
	int32_t *map;		 /* of that message */
	struct buf fresh;	 /* what it writes of the table */
};

struct otlp_stream {
	struct known known[TABLES];
	struct buf element, dictionary;
	size_t run_bytes; /* 0: nothing is written yet */
};

struct otlp_stream *otlp_stream_new(void)
{
	struct otlp_stream *s = calloc(1, sizeof(*s));

	for (unsigned t = 0; s && t < TABLES; t++) {
		s->known[t].first = 1;
		s->known[t].elements = intern_new();
		if (!s->known[t].elements) {
			otlp_stream_free(s);
			return NULL;
		}
	}
	return s;
}

void otlp_stream_free(struct otlp_stream *s)
{
	if (!s)
		return;
	for (unsigned t = 0; t < TABLES; t++) {
		intern_free(s->known[t].elements);
		free(s->known[t].map);
		buf_fini(&s->known[t].fresh);
	}
	buf_fini(&s->element);
	buf_fini(&s->dictionary);
	free(s);
}

static int put_element(struct otlp_stream *s, struct known *k, const struct profiles *p, const struct otlp_part *part,
		       enum otlp_table t, uint32_t i)
{
	XXH128_hash_t hash;
	uint32_t index;
	int is_new;

	buf_reset(&s->element);
	if (otlp_encode_element(p, part, t, i, &s->element))
		return -ENOMEM;
	if (!i) {
		buf_append(&k->fresh, s->element.data, s->element.len);
		return 0;
	}
	hash = XXH3_128bits(s->element.data, s->element.len);
	is_new = intern_add(k->elements, &hash, sizeof(hash), &index);
	if (is_new < 0)
		return -ENOMEM;
	if (is_new)
		buf_append(&k->fresh, s->element.data, s->element.len);
	k->map[i] = (int32_t)(k->first + index);
	return 0;
}

static int put_table(struct otlp_stream *s, const struct profiles *p, struct otlp_part *part, enum otlp_table t)
{
	struct known *k = &s->known[t];
	uint32_t count = otlp_table_count(p, t);
	int err = 0;

	buf_reset(&k->fresh);
	free(k->map);
	k->map = calloc(count, sizeof(*k->map));
	if (!k->map)
		return -ENOMEM;
	if ((uint64_t)k->first + intern_count(k->elements) + count > INT32_MAX)
		return -EOVERFLOW;
	for (uint32_t i = s->run_bytes ? 1 : 0; i < count && !err; i++)
		err = put_element(s, k, p, part, t, i);
	part->map[t] = k->map;
	return err || k->fresh.failed ? -ENOMEM : 0;
}

static int put_message(struct otlp_stream *s, const struct profiles *p, struct buf *out)
{
	static const enum otlp_table order[TABLES] = { TABLE_STRING,   TABLE_ATTRIBUTE, TABLE_LINK, TABLE_MAPPING,
						       TABLE_FUNCTION, TABLE_LOCATION,	TABLE_STACK };
	struct otlp_part part = { .end = UINT64_MAX };

	for (unsigned i = 0; i < TABLES; i++) {
		int err = put_table(s, p, &part, order[i]);

		if (err)
			return err;
	}
	buf_reset(&s->dictionary);
	for (unsigned t = 0; t < TABLES; t++)
		buf_append(&s->dictionary, s->known[t].fresh.data, s->known[t].fresh.len);
	return s->dictionary.failed ? -ENOMEM : otlp_encode_around(p, &part, &s->dictionary, out);
}

/* Elements written before still count but are not referred to any more; those not written do not count. */
static void forget(struct otlp_stream *s)
{
	for (unsigned t = 0; t < TABLES; t++) {
		struct known *k = &s->known[t];

		k->first += k->before;
		intern_reset(k->elements);
		k->before = 0;
	}
}

int otlp_stream_encode(struct otlp_stream *s, const struct profiles *p, struct buf *out)
{
	size_t start = out->len, run_bytes = s->run_bytes;
	int err;

	for (unsigned t = 0; t < TABLES; t++)
		s->known[t].before = intern_count(s->known[t].elements);
	err = put_message(s, p, out);
	if (!err && run_bytes && run_bytes + out->len - start > OTLP_RUN_BYTES) {
		out->len = start;
		forget(s);
		run_bytes = 0;
		err = put_message(s, p, out);
	}
	if (err) {
		out->len = start;
		forget(s);
		return err;
	}
	s->run_bytes = run_bytes + out->len - start;
	return 0;
}
