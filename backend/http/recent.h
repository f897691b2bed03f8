/* SPDX-License-Identifier: Apache-2.0 */
/* The last requests that brought something or failed, for people who wonder why nothing arrives. Any thread. */
#ifndef HEARTH_BACKEND_HTTP_RECENT_H
#define HEARTH_BACKEND_HTTP_RECENT_H

#include <stddef.h>
#include <stdint.h>

struct recent_request {
	uint64_t unix_ns; /* answered */
	uint64_t bytes;	  /* of its body, as sent */
	unsigned status;  /* HTTP's; of gRPC, the HTTP status that says the same */
	char path[108];	  /* cut to what fits */
};

void recent_add(const char *path, unsigned status, uint64_t bytes);

/* Copies the last ones, at most @max, oldest first. Returns how many. */
size_t recent_list(struct recent_request *requests, size_t max);

#endif
