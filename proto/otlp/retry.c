/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads google.rpc.RetryInfo out of a google.rpc.Status: Status.details (Any) -> RetryInfo.retry_delay -> Duration. Fields
 * that are not on this way are stepped over, as protobuf asks; where the bytes stop making sense, what was found before
 * counts.
 */
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/fields.h"

#define RETRY_INFO "google.rpc.RetryInfo"

enum { MAX_DELAY_S = 315576000 }; /* protobuf's bound on a Duration is 1,000 times that */

struct field {
	uint32_t number;
	unsigned wire;
	uint64_t number_value; /* of a varint */
	const uint8_t *data;   /* of a length-delimited one */
	size_t len;
};

/* The next field of [*p, end); false at the end or where the bytes are none. */
static bool next_field(const uint8_t **p, const uint8_t *end, struct field *f)
{
	const uint8_t *at;

	*f = (struct field){ 0 };
	if (*p == end)
		return false;
	at = wire_tag(*p, end, &f->number, &f->wire);
	if (!at)
		return false;
	if (f->wire == WIRE_VARINT) {
		at = varint_read(at, end, &f->number_value);
	} else if (f->wire == WIRE_BYTES) {
		at = wire_length(at, end, &f->len);
		f->data = at;
		at = at ? at + f->len : NULL;
	} else {
		at = wire_skip(at, end, f->wire);
	}
	if (at)
		*p = at;
	return at;
}

static bool read_duration(const uint8_t *p, const uint8_t *end, uint64_t *ns_ret)
{
	int64_t seconds = 0, nanos = 0;
	struct field f;

	while (next_field(&p, end, &f)) {
		if (f.wire == WIRE_VARINT && f.number == STATUS_TAG(Duration, seconds))
			seconds = (int64_t)f.number_value;
		if (f.wire == WIRE_VARINT && f.number == STATUS_TAG(Duration, nanos))
			nanos = (int32_t)f.number_value;
	}
	if (seconds < 0 || nanos < 0 || nanos >= (int64_t)NSEC_PER_SEC)
		return false;
	*ns_ret = (uint64_t)(seconds < MAX_DELAY_S ? seconds : MAX_DELAY_S) * NSEC_PER_SEC + (uint64_t)nanos;
	return true;
}

static bool read_retry_info(const uint8_t *p, const uint8_t *end, uint64_t *ns_ret)
{
	bool found = false;
	struct field f;

	while (next_field(&p, end, &f))
		if (f.wire == WIRE_BYTES && f.number == STATUS_TAG(RetryInfo, retry_delay))
			found = read_duration(f.data, f.data + f.len, ns_ret);
	return found;
}

static bool read_any(const uint8_t *p, const uint8_t *end, uint64_t *ns_ret)
{
	static const size_t name_len = sizeof(RETRY_INFO) - 1;
	const uint8_t *value = NULL;
	size_t value_len = 0;
	bool is_retry_info = false;
	struct field f;

	while (next_field(&p, end, &f)) {
		if (f.wire == WIRE_BYTES && f.number == STATUS_TAG(Any, type_url)) /* ".../" and the name */
			is_retry_info = f.len > name_len && f.data[f.len - name_len - 1] == '/' &&
					memcmp(f.data + f.len - name_len, RETRY_INFO, name_len) == 0;
		if (f.wire == WIRE_BYTES && f.number == STATUS_TAG(Any, value)) {
			value = f.data;
			value_len = f.len;
		}
	}
	return is_retry_info && value && read_retry_info(value, value + value_len, ns_ret);
}

bool otlp_decode_retry_delay(const uint8_t *status, size_t len, uint64_t *ns_ret)
{
	const uint8_t *p = status, *end = len ? status + len : status; /* nothing may be NULL */
	bool found = false;
	struct field f;

	while (len && !found && next_field(&p, end, &f))
		if (f.wire == WIRE_BYTES && f.number == STATUS_TAG(Status, details))
			found = read_any(f.data, f.data + f.len, ns_ret);
	return found;
}
