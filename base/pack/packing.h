/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which files are packed, known by their first bytes: gzip, zstd, xz. Any thread. */
#ifndef HEARTH_BASE_PACK_PACKING_H
#define HEARTH_BASE_PACK_PACKING_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

struct packing {
	const char *name; /* also the name of the program that packs so */
	bool (*is_packed)(const void *data, size_t len_bytes);
	/* Unpacks and appends to @out. 0; -EBADMSG: broken or cut; -E2BIG: more than @max_bytes; -ENOMEM. */
	int (*unpack)(const void *data, size_t len_bytes, size_t max_bytes, struct buf *out);
};

/* NULL: @data is not packed. */
const struct packing *packing_of(const void *data, size_t len_bytes);

#endif
