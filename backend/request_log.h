/* SPDX-License-Identifier: Apache-2.0 */
/* The last requests that brought something or were refused, for the page's developer view. Any thread. */
#ifndef HEARTH_BACKEND_REQUEST_LOG_H
#define HEARTH_BACKEND_REQUEST_LOG_H

#include <stdint.h>

struct request_log;

struct request_entry {
	uint64_t time_ns; /* Unix */
	uint64_t bytes;	  /* received */
	unsigned status;
	char path[64]; /* cut to fit */
};

/* NULL for want of memory. */
struct request_log *request_log_new(void);
void request_log_free(struct request_log *log);

void request_log_add(struct request_log *log, const char *path, unsigned status, uint64_t bytes);

/* Calls @fn for each of the last 100, oldest first. */
void request_log_each(struct request_log *log, void (*fn)(void *arg, const struct request_entry *e), void *arg);

#endif
