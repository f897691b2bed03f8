/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OTLP protobuf codec. Field numbers are those of release 1.10/1.11 ("development version 1"), taken from the code that
 * nanopb generates of our own proto/opentelemetry schema; nothing else in the tree knows them.
 */
#ifndef HEARTH_PROTO_OTLP_OTLP_H
#define HEARTH_PROTO_OTLP_OTLP_H

#include "base/buf.h"
#include "proto/profiles.h"

/*
 * Number of elements of each dictionary table that stand before this message in a stream of concatenated messages (protobuf
 * merges them: indices go on counting, only the first message carries the elements 0). All zero for a message of its own.
 */
struct otlp_continuation {
	uint32_t mappings, locations, functions, links, strings, attributes, stacks;
};

/*
 * Appends @p as one ProfilesData (= ExportProfilesServiceRequest) message. @cont may be NULL; otherwise indices continue
 * from it and it is advanced by the tables written. 0, -ENOMEM, or -EOVERFLOW (the stream would have more elements in a
 * table than an index can count; nothing was written).
 */
int otlp_encode(const struct profiles *p, struct otlp_continuation *cont, struct buf *out);

/* Appends @p as one ExportProfilesServiceRequest in OTLP/JSON, compact: the same fields as otlp_encode(). 0 or -ENOMEM. */
int otlp_json_encode(const struct profiles *p, struct buf *out);

/* Why a message was refused; text for a person and for google.rpc.Status. */
struct otlp_error {
	char message[256];
};

/*
 * Decodes one message (or several concatenated ones, as protobuf merges them). Bounded: nesting of AnyValue at most 32,
 * memory at most a fixed multiple of @len. Every index is checked once, and every string is UTF-8. @data must stay unchanged
 * during the call; on success the model takes ownership of @data when @own_data (a malloc'd block, freed with it) and
 * otherwise copies the strings it needs. 0; -EBADMSG (not a valid message, @err says what and where); -ENOMEM. On failure
 * @data stays the caller's.
 */
int otlp_decode(uint8_t *data, size_t len, bool own_data, struct profiles **ret, struct otlp_error *err);

struct otlp_decode_options {
	/* The sender said "development version 1": this is the layout of 1.10. Otherwise the layout is decided once a
	 * message, from what it holds: that of 1.7, 1.8 or 1.9 on evidence, else 1.10's; older ones are refused by name. */
	bool no_guess;
};

/* otlp_decode() is this with no options set. */
int otlp_decode_with(uint8_t *data, size_t len, bool own_data, const struct otlp_decode_options *options,
		     struct profiles **ret, struct otlp_error *err);

/* Splits: makes messages of at most @max_bytes each of @p's profiles, with dictionaries of their own. @fn gets each message
 * and its share of @p's sample_events (the shares add up); returns what @fn returned when not 0. Samples of one profile may
 * land in several messages; a single sample larger than @max_bytes is still sent alone. */
int otlp_encode_split(const struct profiles *p, size_t max_bytes,
		      int (*fn)(void *arg, const uint8_t *msg, size_t len, uint64_t sample_events), void *arg);

/* google.rpc.Status {code, message} and ExportProfilesServiceResponse {partial_success {rejected, message}}. */
int otlp_encode_status(int32_t grpc_code, const char *message, struct buf *out);
/* The same with the details that say when to come again: RetryInfo {retry_delay}. */
int otlp_encode_retry_status(int32_t grpc_code, const char *message, uint64_t retry_delay_ns, struct buf *out);
int otlp_encode_partial_success(int64_t rejected_profiles, const char *message, struct buf *out);
/* Read them back. 0, or -EBADMSG and nothing stored. @message_ret is NUL-terminated and cut to fit. A full success is 0 and
 * "". */
int otlp_decode_status(const uint8_t *data, size_t len, int32_t *grpc_code_ret, char *message_ret, size_t message_size);
int otlp_decode_response(const uint8_t *data, size_t len, int64_t *rejected_ret, char *message_ret, size_t message_size);

/* Reads a JSON answer: a Status's "message", or a partial success's "errorMessage" and "rejectedProfiles". Lenient: reads as
 * far as the text is JSON; a missing member gives 0 or "". @message_ret is cut to fit. */
void otlp_json_decode_answer(const char *text, size_t len, int64_t *rejected_ret, char *message_ret, size_t message_size);

/* The delay of the google.rpc.RetryInfo among the details of a google.rpc.Status. True and *@ns_ret when there is one that
 * is not negative; false leaves it alone. */
bool otlp_decode_retry_delay(const uint8_t *status, size_t len, uint64_t *ns_ret);

#endif
