/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both receivers (HTTP, gRPC) share once they have a request's body: decompression, decoding, the sinks, and what is to
 * be said to the sender. Acknowledged means kept: a request's done() comes after every durable sink has what it brought.
 *
 * The memory of all bodies is one budget (backend/body.h): who receives holds a reservation for the body it collects and
 * hands it over with it; decompression reserves more.
 *
 * Everything here is called on the loop's thread, and done() comes on it too.
 */
#ifndef HEARTH_BACKEND_INGEST_H
#define HEARTH_BACKEND_INGEST_H

#include <stddef.h>
#include <stdint.h>

#include "backend/body.h"
#include "proto/sink.h"

struct ingest;
struct loop;
struct metrics;

enum ingest_signal { INGEST_PROFILES, INGEST_LOGS, INGEST_METRICS, INGEST_TRACES };

enum ingest_encoding { ENCODING_IDENTITY, ENCODING_GZIP, ENCODING_ZSTD };

enum ingest_format { FORMAT_PROTOBUF, FORMAT_JSON };

/* What became of a request. HTTP status and gRPC code follow from it, one table each. */
enum ingest_outcome {
	INGEST_OK,
	INGEST_PARTIAL,	  /* taken but for @rejected of its items, for the reason in @message */
	INGEST_MALFORMED, /* not what it says it is; @message has the path to the field */
	INGEST_TOO_LARGE, /* beyond the limit once decompressed */
	INGEST_BUSY,	  /* queues are full: come again */
	INGEST_NO_MEMORY, /* come again */
	INGEST_FAILED,	  /* a durable sink failed */
};

struct ingest_answer {
	enum ingest_outcome outcome;
	int64_t rejected;
	char message[512];
};

/* One request. Lies in the receiver's own request, which must live until done(). */
struct ingest_request {
	enum ingest_signal signal;
	enum ingest_encoding encoding;
	enum ingest_format format;
	bool version_said; /* its development-version header says 1: no layout is guessed */
	struct body body;  /* as it came; ingest_take() empties it */
	void (*done)(struct ingest_request *request, const struct ingest_answer *answer);
	/* ingest's own */
	struct ingest *ingest;
	struct ack ack;
};

struct ingest_config {
	size_t max_receive_bytes; /* of a body, before and after decompression */
};

/* @out is borrowed, as are loop and metrics. 0 or -errno. */
int ingest_new(const struct ingest_config *config, struct loop *loop, struct metrics *metrics, struct sink *out,
	       struct ingest **ret);

/* Accepts NULL. No request may be under way: see ingest_pending(). */
void ingest_free(struct ingest *in);

/* Takes the body of @request and has done() called exactly once: from within this call, or later from the loop. */
void ingest_take(struct ingest *in, struct ingest_request *request);

/* Requests whose done() is still to come. */
size_t ingest_pending(const struct ingest *in);

#endif
