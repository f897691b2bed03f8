/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context that a process publishes in its memory for those who look at it from outside (OpenTelemetry's OTEP 4719): the
 * attributes of its resource, and how the contexts of its threads (OTEP 4947) are to be read. It may be published at any
 * time, and anew. Nothing in it is trusted. Agent's thread.
 */
#ifndef HEARTH_AGENT_CONTEXT_PROCESS_CONTEXT_H
#define HEARTH_AGENT_CONTEXT_PROCESS_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/process/attributes.h"
#include "agent/process/processes.h"

enum { CONTEXT_KEYS = 256 }; /* of threads' attributes: their numbers are bytes */

struct process_context {
	struct attributes resource;
	char *keys[CONTEXT_KEYS]; /* of attributes of threads; owned; NULL: there is none with this number */
	uint32_t key_cnt;
};

/* Reads @bytes, the message ProcessContext. 0 and process_context_fini() later; -EBADMSG: it is none; -ENOMEM. */
int process_context_parse(const uint8_t *bytes, size_t len, struct process_context *ret);
void process_context_fini(struct process_context *c);

/* The part of the memory that says whether there is one, and which. */
struct context_header {
	uint64_t published_ns; /* CLOCK_BOOTTIME; another one with each publication */
	uint64_t payload;      /* its address */
	uint32_t payload_bytes;
};

enum { CONTEXT_HEADER_BYTES = 32, CONTEXT_PAYLOAD_BYTES = 65536 };

/* Reads the header. False: it is none, or one that is being written. */
bool context_header_parse(const uint8_t bytes[static CONTEXT_HEADER_BYTES], struct context_header *ret);

/* Looks at the context of @p: whether there is one, now and then, and whether it was published anew, each time. @at_once:
 * samples say that there must be one. */
void process_context_look(struct process *p, bool at_once);

/* The context of @p, as it was when somebody last looked. NULL: it has none. */
const struct process_context *process_context_of(const struct process *p);

#endif
