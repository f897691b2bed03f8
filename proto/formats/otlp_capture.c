/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is split into messages that are complete in themselves. One is decoded in place; several are decoded one by one
 * and encoded into one stream, in which their indices go on counting, and that is decoded: the encoder renumbers, nothing
 * else has to. A stream of the file sink's can also be read a run of messages at a time (proto/otlp/stream.h): a run refers
 * to its own elements and to those numbered 0. While the caller looks at one, a thread decodes the next; only one of the two
 * uses struct parts_reader at a time.
 */
#include "proto/formats/otlp_capture.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pack/packing.h"
#include "proto/otlp/cut.h"
#include "proto/otlp/decode.h"
#include "proto/otlp/json/json_decode.h"
#include "proto/otlp/stream.h"
#include "proto/otlp/fields.h"
#include "proto/formats/formats.h"

enum { PREFIX_BYTES = 4 };

struct message {
	const uint8_t *at;
	size_t len;
};

struct reader {
	const uint8_t *start;
	size_t max_bytes;
	struct otlp_error *error;
	struct buf messages; /* struct message */
	bool may_be_cut;     /* the last of them */
	struct otlp_continuation cont;
	struct buf stream; /* all messages, encoded anew */
};

static void add_message(struct reader *r, const uint8_t *at, size_t len)
{
	const struct message m = { at, len };

	buf_append(&r->messages, &m, sizeof(m));
}

static uint32_t message_count(const struct reader *r)
{
	return (uint32_t)(r->messages.len / sizeof(struct message));
}

static struct message message_at(const struct reader *r, uint32_t i)
{
	return ((const struct message *)(const void *)r->messages.data)[i];
}

/* --- messages without lengths before them --- */

/* Does the dictionary begin a numbering of its own, with the empty string? The file sink's further ones do not. */
static bool begins_anew(const uint8_t *p, const uint8_t *end)
{
	uint32_t field;
	unsigned wire;
	size_t len;

	while (p && p < end) {
		const uint8_t *value = wire_tag(p, end, &field, &wire);

		if (value && field == PROFILES_TAG(ProfilesDictionary, string_table) && wire == WIRE_BYTES)
			return wire_length(value, end, &len) && !len;
		p = value ? wire_skip(value, end, wire) : NULL;
	}
	return false;
}

/* Splits @data where a further message begins that does not continue the one before. Some tools write the dictionary first,
 * others last. */
static void split_concatenated(struct reader *r, const uint8_t *data, size_t len)
{
	const uint8_t *end = data + len, *first = data, *last_dictionary = NULL;
	bool dictionary_first = len && data[0] >> 3 == PROFILES_TAG(ProfilesData, dictionary);
	uint32_t field;
	unsigned wire;

	for (const uint8_t *p = data, *at; p && p < end;) {
		const uint8_t *value = wire_tag(p, end, &field, &wire);
		size_t size = 0;

		at = p;
		p = value ? wire_skip(value, end, wire) : NULL;
		if (!p || field != PROFILES_TAG(ProfilesData, dictionary) || wire != WIRE_BYTES)
			continue;
		value = wire_length(value, end, &size);
		if (value && last_dictionary && begins_anew(value, value + size)) {
			const uint8_t *border = dictionary_first ? at : last_dictionary;

			add_message(r, first, (size_t)(border - first));
			first = border;
		}
		last_dictionary = p;
	}
	add_message(r, first, (size_t)(end - first));
}

/* --- messages with lengths before them --- */

static const uint8_t *big_endian_length(const uint8_t *p, const uint8_t *end, size_t *ret)
{
	if (end - p < PREFIX_BYTES)
		return NULL;
	*ret = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
	return *ret <= (size_t)(end - p - PREFIX_BYTES) ? p + PREFIX_BYTES : NULL;
}

/* Splits @data after each length; returns how many bytes that covered. */
static size_t split_prefixed(struct reader *r, const uint8_t *data, size_t len,
			     const uint8_t *(*read_length)(const uint8_t *p, const uint8_t *end, size_t *ret))
{
	const uint8_t *p = data, *at;
	size_t size;

	buf_reset(&r->messages);
	while (p < data + len) {
		at = read_length(p, data + len, &size);
		if (!at)
			break;
		add_message(r, at, size);
		p = at + size;
	}
	return (size_t)(p - data);
}

/* A message begins with field 1 or 2, a compressed one with its magic; no message begins with a byte below 10. */
static bool looks_prefixed(const uint8_t *data, size_t len)
{
	size_t size;
	const uint8_t *at = big_endian_length(data, data + len, &size);

	return at && size && data[0] < 0x0a && (*at == 0x0a || *at == 0x12 || *at == '{' || packing_of(at, size));
}

/* --- JSON --- */

static bool is_json(const uint8_t *data, size_t len)
{
	while (len && strchr(" \t\r\n", *data) && *data) {
		data++;
		len--;
	}
	return len && *data == '{';
}

/* Unknown names are passed over, so that any object would do; one that is not empty must have one of ours. */
static int decode_json(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error)
{
	if (!otlp_read_is_json(data, len))
		return read_fail(error, "it is JSON, but has neither \"resourceProfiles\" nor a \"dictionary\"");
	return otlp_json_decode(data, len, ret, error);
}

bool otlp_read_is_json(const uint8_t *data, size_t len)
{
	static const char *const keys[] = { "resourceProfiles", "resource_profiles", "dictionary", NULL };

	return read_json_key(data, len, keys) >= 0;
}

/* Splits @data into its lines when the first one is a message and others follow. */
static void split_lines(struct reader *r, const uint8_t *data, size_t len)
{
	struct read_lines lines = { .at = (const char *)data, .end = (const char *)data + len };
	struct otlp_error unwanted;
	struct profiles *p;
	struct str line;

	while (read_line(&lines, &line)) {
		if (!is_json((const uint8_t *)line.data, line.len))
			continue;
		if (!r->messages.len) {
			if (lines.at == lines.end || otlp_json_decode((const uint8_t *)line.data, line.len, &p, &unwanted))
				return;
			profiles_put(p);
		}
		add_message(r, (const uint8_t *)line.data, line.len);
	}
	r->may_be_cut = data[len - 1] != '\n';
}

/* --- decoding --- */

static int decode(const struct reader *r, uint8_t *data, size_t len, bool own, struct profiles **ret)
{
	if (is_json(data, len))
		return decode_json(data, len, ret, r->error);
	return otlp_decode(data, len, own, ret, r->error);
}

/* Decodes one of several messages. An error names the message's place in the file. */
static int decode_message(struct reader *r, struct message m, struct profiles **ret)
{
	const struct packing *packing = packing_of(m.at, m.len);
	AUTO(buf_fini) struct buf unpacked = BUF_EMPTY;
	char why[sizeof(r->error->message)];
	int err = 0;

	if (packing)
		err = packing->unpack(m.at, m.len, r->max_bytes, &unpacked);
	if (err == -EBADMSG)
		snprintf(r->error->message, sizeof(r->error->message), "it is compressed, and damaged");
	if (!err && unpacked.data)
		err = decode(r, unpacked.data, unpacked.len, false, ret);
	else if (!err)
		err = decode(r, (uint8_t *)(uintptr_t)m.at, m.len, false, ret);
	if (err == -EBADMSG) {
		snprintf(why, sizeof(why), "%s", r->error->message);
		snprintf(r->error->message, sizeof(r->error->message), "the message at byte %zu: %.200s",
			 (size_t)(m.at - r->start), why);
	}
	return err;
}

/* Puts the messages into one. */
static int merge(struct reader *r, struct profiles **ret, size_t *read_bytes_ret)
{
	struct profiles *p;

	for (uint32_t i = 0; i < message_count(r); i++) {
		struct message m = message_at(r, i);
		int err = m.len ? decode_message(r, m, &p) : 0;

		if (err == -EBADMSG && r->may_be_cut && i && i + 1 == message_count(r)) {
			*read_bytes_ret = (size_t)(m.at - r->start);
			break;
		}
		if (!err && m.len) {
			err = otlp_encode(p, &r->cont, &r->stream);
			profiles_put(p);
		}
		if (err)
			return err;
		if (r->stream.len > r->max_bytes)
			return -E2BIG;
	}
	if (r->stream.failed || r->messages.failed)
		return -ENOMEM;
	if (otlp_decode(r->stream.data, r->stream.len, true, ret, r->error))
		return -ENOMEM; /* what we wrote is sound */
	r->stream = BUF_EMPTY;
	return 0;
}

/* One message, or a stream whose dictionaries continue one another; maybe cut. */
static int read_one(struct reader *r, struct buf *data, struct profiles **ret, size_t *read_bytes_ret)
{
	struct otlp_error why = { "" };
	size_t whole;
	int err = decode(r, data->data, data->len, true, ret);

	*read_bytes_ret = data->len;
	if (err == -EBADMSG) {
		whole = otlp_whole_bytes(data->data, data->len);
		if (whole && whole < data->len && !otlp_decode(data->data, whole, true, ret, &why)) {
			*read_bytes_ret = whole;
			err = 0;
		}
	}
	if (!err)
		*data = BUF_EMPTY;
	return err;
}

static int read_messages(struct reader *r, struct buf *data, struct profiles **ret, size_t *read_bytes_ret)
{
	int err;

	*read_bytes_ret = data->len;
	if (looks_prefixed(data->data, data->len)) {
		*read_bytes_ret = split_prefixed(r, data->data, data->len, big_endian_length);
		return merge(r, ret, read_bytes_ret);
	}
	if (is_json(data->data, data->len)) {
		split_lines(r, data->data, data->len);
		return message_count(r) ? merge(r, ret, read_bytes_ret) : decode_json(data->data, data->len, ret, r->error);
	}
	split_concatenated(r, data->data, data->len);
	if (message_count(r) > 1)
		return merge(r, ret, read_bytes_ret);
	err = read_one(r, data, ret, read_bytes_ret);
	if (err == -EBADMSG && data->data[0] && split_prefixed(r, data->data, data->len, wire_length) == data->len) {
		struct otlp_error why = *r->error; /* of the more usual form, should this one fail too */

		err = merge(r, ret, read_bytes_ret);
		*r->error = why;
	}
	return err;
}

int otlp_read(struct buf *data, size_t max_bytes, struct profiles **ret, size_t *read_bytes_ret, struct otlp_error *error)
{
	struct reader r = { .start = data->data, .max_bytes = max_bytes, .error = error };
	int err = read_messages(&r, data, ret, read_bytes_ret);

	buf_fini(&r.messages);
	buf_fini(&r.stream);
	return err;
}

/* --- a part at a time --- */

/* The end of the message that begins at @p: that of its dictionary. NULL: it is cut, or (*@is_whole_ret) has none. */
static const uint8_t *message_end(const uint8_t *p, const uint8_t *end, bool *is_new_ret, bool *is_whole_ret)
{
	uint32_t field;
	unsigned wire;
	size_t size;

	while (p && p < end) {
		const uint8_t *value = wire_tag(p, end, &field, &wire);

		p = value ? wire_skip(value, end, wire) : NULL;
		if (p && field == PROFILES_TAG(ProfilesData, dictionary) && wire == WIRE_BYTES) {
			value = wire_length(value, end, &size);
			*is_new_ret = begins_anew(value, p);
			return p;
		}
	}
	*is_whole_ret = p;
	return NULL;
}

struct parts_reader {
	const uint8_t *data;
	size_t len;
	size_t at; /* where the run begins that is next */
	uint32_t before[OTLP_TABLES];
	struct profiles *p; /* the run that was read last; NULL: there is none */
	int err;
};

/* The end of the run that begins at @start; else as message_end(). */
static const uint8_t *run_end(const uint8_t *start, const uint8_t *end, bool *is_new_ret, bool *is_whole_ret)
{
	const uint8_t *at = message_end(start, end, is_new_ret, is_whole_ret), *next;
	bool is_new = false, unwanted;

	while (at && (next = message_end(at, end, &is_new, &unwanted)) && !is_new && next - start <= OTLP_RUN_BYTES)
		at = next;
	return at;
}

/* Reads the next run. */
static void *read_part(void *arg)
{
	struct parts_reader *r = arg;
	const uint8_t *start = r->data + r->at, *end;
	bool is_new = false, is_whole = true;

	r->p = NULL;
	end = run_end(start, r->data + r->len, &is_new, &is_whole);
	if (!end) {
		r->err = is_whole && r->at < r->len ? -EBADMSG : 0;
		return NULL;
	}
	if (is_new)
		memset(r->before, 0, sizeof(r->before));
	r->err = r->at || is_new ? otlp_decode_part(start, (size_t)(end - start), r->before, &r->p) : -EBADMSG;
	r->at = (size_t)(end - r->data);
	return NULL;
}

int otlp_read_parts(const uint8_t *data, size_t len, int (*fn)(void *arg, struct profiles *p), void *arg,
		    struct otlp_parts *parts)
{
	struct parts_reader r = { .data = data, .len = len };
	int err = 0;

	*parts = (struct otlp_parts){ 0 };
	if (!len || data[0] >> 3 != PROFILES_TAG(ProfilesData, resource_profiles))
		return -EBADMSG;
	read_part(&r);
	if (!r.p)
		return r.err ? r.err : -EBADMSG;
	while (r.p && !err) {
		struct profiles *p = r.p;
		pthread_t ahead;
		bool is_ahead;

		parts->bytes = r.at;
		parts->resources += p->resource_count;
		parts->events += p->sample_events;
		is_ahead = !pthread_create(&ahead, NULL, read_part, &r);
		err = fn(arg, p);
		profiles_put(p);
		if (is_ahead)
			pthread_join(ahead, NULL);
		else
			read_part(&r);
	}
	profiles_put(r.p);
	return err ? err : r.err;
}
