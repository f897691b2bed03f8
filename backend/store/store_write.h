/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into a store: samples, through a durable sink, and names of code that came as bare addresses. */
#ifndef HEARTH_BACKEND_STORE_STORE_WRITE_H
#define HEARTH_BACKEND_STORE_STORE_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "backend/store/store.h"
#include "proto/sink.h"

/* The name of an address of a file: the function whose code is there, not the calls inlined there. Strings may be "". */
struct store_name {
	uint64_t address;
	const char *function, *system_name, *file;
	int64_t line, start_line;
};

struct store_write_ops {
	/* A sink that writes here: durable, an ack comes after the commit, within 200 ms. The store outlives it. The sink of
	 * a store that is read only refuses all with -EROFS. */
	int (*writer)(struct store *s, struct sink **ret);

	/* Names frames of the file with @build_id (as struct store_frame has it) that came as bare addresses, those stored
	 * and those still to come; earlier ones of the same addresses are replaced. frame() tells them from then on. */
	int (*name_frames)(struct store *s, const char *build_id, const struct store_name *names, size_t count);
};

#endif
