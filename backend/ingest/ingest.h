/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work that both receivers (HTTP, gRPC) share once they have a request's body: decompression, decoding, the sinks, and
 * the answer to the sender. Acknowledged means kept: a request's done() comes after every durable sink has what it brought.
 *
 * The memory of all requests is one budget (backend/ingest/budget.h): a receiver claims the length of the body before it
 * reads it, and hands the claim over with the body; what decompression and decoding take is claimed in here.
 *
 * Everything here is called on the loop's thread, and done() comes on it too.
 */
#ifndef HEARTH_BACKEND_INGEST_INGEST_H
#define HEARTH_BACKEND_INGEST_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/ingest/body.h"
#include "backend/ingest/unpack.h"

struct ingest;
struct ingest_job;
struct loop;
struct metrics;
struct sink;
struct signals;

enum ingest_signal { INGEST_PROFILES, INGEST_LOGS, INGEST_METRICS, INGEST_TRACES };

enum ingest_format { FORMAT_PROTOBUF, FORMAT_JSON };

/* The outcome of a request. HTTP status and gRPC code follow from it, one table each. */
enum ingest_outcome {
	INGEST_OK,
	INGEST_PARTIAL,	    /* taken but for @rejected of its items, for the reason in @message */
	INGEST_MALFORMED,   /* not what it says it is; @message has the path to the field */
	INGEST_UNSUPPORTED, /* what it says it is is not understood here */
	INGEST_TOO_LARGE,   /* beyond the limit once decompressed */
	INGEST_BUSY,	    /* queues are full: come again */
	INGEST_NO_MEMORY,   /* come again */
	INGEST_NO_ROOM,	    /* a durable sink's disk is full, which somebody may mend: come again */
	INGEST_FAILED,	    /* a durable sink failed */
	INGEST_OUTCOMES,
};

struct ingest_answer {
	enum ingest_outcome outcome;
	int64_t rejected;
	char message[512]; /* "" for INGEST_OK */
};

/* One request. It is part of the receiver's own, which must stay until done() or ingest_cancel(). */
struct ingest_request {
	enum ingest_signal signal;
	enum ingest_encoding encoding;
	enum ingest_format format;
	bool version_said; /* its development-version header says 1: no layout is guessed */
	struct body body;  /* as it came; ingest_take() empties it. The claim is open when it is to be decompressed. */
	void (*done)(struct ingest_request *request, const struct ingest_answer *answer);
	struct ingest_job *job; /* ingest's own; NULL before ingest_take() and after done() */
};

struct ingest_config {
	size_t max_receive_bytes; /* of a body, before and after decompression; 32 MiB when 0 */
	size_t receive_memory;	  /* of all requests; 96 MiB when 0; a quarter of it is for decoding, and the rest never
				   * less than twice max_receive_bytes */
	struct signals *signals;  /* where records of the other signals are kept, too; borrowed; NULL: nowhere */
};

/* @out is borrowed, as are loop and metrics; out and loop live longer. 0 or -errno. */
int ingest_new(const struct ingest_config *config, struct loop *loop, struct metrics *metrics, struct sink *out,
	       struct ingest **ret);

/* Accepts NULL. Requests under way get done() with INGEST_BUSY. Sinks may hold profiles and acks beyond it. May run the
 * loop a step. */
void ingest_free(struct ingest *in);

/* For body_init(). */
struct budget *ingest_budget(struct ingest *in);
size_t ingest_max_bytes(const struct ingest *in);

/* Takes the body of @request and has done() called exactly once: from within this call, or later from the loop. */
void ingest_take(struct ingest *in, struct ingest_request *request);

/* Nobody waits for the answer any more: done() will not be called. Sinks keep what they have. */
void ingest_cancel(struct ingest_request *request);

/* Requests whose done() is still to come. */
size_t ingest_pending(const struct ingest *in);

#endif
