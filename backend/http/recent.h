/* SPDX-License-Identifier: Apache-2.0 */
/* The last requests that brought something or failed, for people who wonder why nothing arrives. Any thread. */
#ifndef HEARTH_BACKEND_HTTP_RECENT_H
#define HEARTH_BACKEND_HTTP_RECENT_H

#include <stddef.h>
#include <stdint.h>

/* A request's headers (gRPC calls them metadata) for people to read: "name: value" and a newline each, as many as fit.
 * Begins all zeros; one thread's. */
struct recent_headers {
	uint16_t len;
	char text[894];
};

/* Adds a header. A value that may be a secret is left out, a long one is cut, control characters become "?"; a name that
 * begins with ":" is none of the sender's and adds nothing. */
void recent_header(struct recent_headers *headers, const char *name, size_t name_len, const char *value, size_t value_len);

struct recent_request {
	uint64_t unix_ns; /* answered */
	uint64_t bytes;	  /* of its body, as sent */
	unsigned status;  /* HTTP's; of gRPC, the HTTP status that says the same */
	char path[108];	  /* cut to what fits */
	struct recent_headers headers;
};

void recent_add(const char *path, unsigned status, uint64_t bytes, const struct recent_headers *headers);

/* Copies the last ones, at most @max, oldest first. Returns how many. */
size_t recent_list(struct recent_request *requests, size_t max);

#endif
