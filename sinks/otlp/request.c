/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: made, packed, turned into what a collector takes, split. No thread of its own, no lock. */
#include "sinks/otlp/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pack/gzip.h"
#include "base/pack/zstd.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/signals.h"

enum {
	GZIP_LEVEL = 6,
	MAX_MESSAGE_BYTES = 1 << 30, /* --max-export-bytes goes no further */
};

void otlp_requests_init(struct otlp_requests *list)
{
	list->first = NULL;
	list->last = &list->first;
}

void otlp_requests_append(struct otlp_requests *list, struct otlp_request *r)
{
	*list->last = r;
	list->last = &r->next;
}

void otlp_requests_prepend(struct otlp_requests *list, struct otlp_requests *more)
{
	if (!more->first)
		return;
	*more->last = list->first;
	if (!list->first)
		list->last = more->last;
	list->first = more->first;
	otlp_requests_init(more);
}

struct otlp_request *otlp_requests_pop(struct otlp_requests *list)
{
	struct otlp_request *r = list->first;

	if (r) {
		list->first = r->next;
		r->next = NULL;
		if (!list->first)
			list->last = &list->first;
	}
	return r;
}

static void append_room(struct buf *out)
{
	static const uint8_t room[OTLP_REQUEST_ROOM_BYTES];

	buf_append(out, room, sizeof(room));
}

static int pack_or_copy(const uint8_t *data, size_t len, enum otlp_packing packing, struct buf *out)
{
	int error = 0;

	append_room(out);
	if (packing == OTLP_GZIP)
		error = gzip_pack(data, len, GZIP_LEVEL, out);
	else if (packing == OTLP_ZSTD)
		error = zstd_pack_lean(data, len, out);
	else
		buf_append(out, data, len);
	return out->failed ? -ENOMEM : error;
}

static void request_free(struct otlp_request *r)
{
	buf_fini(&r->frame);
	free(r);
}

int otlp_request_new(const uint8_t *message, size_t len, uint64_t samples, enum otlp_packing packing,
		     struct otlp_batch *batch, struct otlp_request **ret)
{
	struct otlp_request *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	if (pack_or_copy(message, len, packing, &r->frame)) {
		request_free(r);
		return -ENOMEM;
	}
	buf_fit(&r->frame); /* the queue's bound counts what is used */
	r->signal = OTLP_PROFILES;
	r->packing = packing;
	r->message_bytes = len;
	r->samples = samples;
	r->batch = batch;
	if (batch)
		atomic_fetch_add(&batch->open, 1);
	*ret = r;
	return 0;
}

int otlp_request_of(const uint8_t *kept, size_t len, uint64_t samples, enum otlp_packing packing, struct otlp_request **ret)
{
	int error = otlp_request_new(kept, len, samples, OTLP_UNPACKED, NULL, ret);

	if (!error)
		(*ret)->packing = packing;
	return error;
}

void otlp_request_settle(struct otlp_request *r, int error)
{
	struct otlp_batch *b = r->batch;

	if (b && error)
		atomic_store(&b->error, error);
	if (b && atomic_fetch_sub(&b->open, 1) == 1) {
		if (b->ack)
			b->ack->done(b->ack, atomic_load(&b->error));
		free(b);
	}
	request_free(r);
}

/* Appends the message itself. */
static int unpack(const struct otlp_request *r, struct buf *out)
{
	const uint8_t *kept = r->frame.data + OTLP_REQUEST_ROOM_BYTES;

	if (r->packing == OTLP_GZIP)
		return gzip_unpack(kept, otlp_request_len(r), MAX_MESSAGE_BYTES, out);
	if (r->packing == OTLP_ZSTD)
		return zstd_unpack(kept, otlp_request_len(r), MAX_MESSAGE_BYTES, out);
	buf_append(out, kept, otlp_request_len(r));
	return out->failed ? -ENOMEM : 0;
}

static int decode(const struct otlp_request *r, struct profiles **ret)
{
	AUTO(buf_fini) struct buf message = BUF_EMPTY;
	struct otlp_error why;
	int error = unpack(r, &message);

	return error ? error : otlp_decode(message.data, message.len, false, ret, &why);
}

static int write_other_json(const struct otlp_request *r, struct buf *out)
{
	AUTO(buf_fini) struct buf message = BUF_EMPTY;
	struct otlp_other other;
	struct otlp_error why;
	int error = unpack(r, &message);

	if (!error)
		error = otlp_other_decode(r->signal, false, message.data, message.len, &other, &why);
	if (error)
		return error;
	error = otlp_other_json_encode(&other, out);
	otlp_other_fini(&other);
	return error;
}

static int write_json(const struct otlp_request *r, struct buf *out)
{
	struct profiles *p = NULL;
	int error;

	if (r->signal != OTLP_PROFILES)
		return write_other_json(r, out);
	error = decode(r, &p);
	if (!error)
		error = otlp_json_encode(p, out);
	profiles_put(p);
	return error;
}

size_t otlp_request_json_bytes(const struct otlp_request *r)
{
	AUTO(buf_fini) struct buf json = BUF_EMPTY;

	return write_json(r, &json) ? 0 : json.len;
}

int otlp_request_body(struct otlp_request *r, enum otlp_protocol protocol, enum otlp_packing packing, struct buf *scratch,
		      uint8_t **body_ret, size_t *len_ret)
{
	AUTO(buf_fini) struct buf message = BUF_EMPTY;
	struct buf *frame = &r->frame;
	int error = 0;

	if (protocol == OTLP_HTTP_JSON || r->packing != packing) {
		error = protocol == OTLP_HTTP_JSON ? write_json(r, &message) : unpack(r, &message);
		buf_reset(scratch);
		if (!error)
			error = pack_or_copy(message.data, message.len, packing, scratch);
		frame = scratch;
	}
	if (error)
		return error;
	*body_ret = frame->data + OTLP_REQUEST_ROOM_BYTES;
	*len_ret = frame->len - OTLP_REQUEST_ROOM_BYTES;
	return 0;
}

struct splitting {
	const struct otlp_request *whole;
	struct otlp_requests parts;
	size_t count;
};

static int add_part(void *arg, const uint8_t *message, size_t len, uint64_t samples)
{
	struct splitting *s = arg;
	struct otlp_request *part;
	int error = otlp_request_new(message, len, samples, s->whole->packing, s->whole->batch, &part);

	if (error)
		return error;
	otlp_requests_append(&s->parts, part);
	s->count++;
	return 0;
}

int otlp_request_split(const struct otlp_request *r, size_t max_bytes, struct otlp_requests *list)
{
	struct splitting s = { .whole = r };
	struct profiles *p = NULL;
	struct otlp_request *part;
	int error = r->signal == OTLP_PROFILES ? decode(r, &p) : -E2BIG;

	otlp_requests_init(&s.parts);
	if (!error)
		error = otlp_encode_split(p, max_bytes, add_part, &s);
	profiles_put(p);
	if (!error && s.count < 2)
		error = -E2BIG;
	while (error && (part = otlp_requests_pop(&s.parts)))
		otlp_request_settle(part, 0); /* not the batch's last: @r holds it too */
	while ((part = otlp_requests_pop(&s.parts)))
		otlp_requests_append(list, part);
	return error;
}
