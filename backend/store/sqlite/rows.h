/* SPDX-License-Identifier: Apache-2.0 */
/* Frames, stack nodes and lists of numbers as they are kept, many to a row. No database is known here. */
#ifndef HEARTH_BACKEND_STORE_SQLITE_ROWS_H
#define HEARTH_BACKEND_STORE_SQLITE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "backend/store/store_read.h"
#include "backend/store/column.h"
#include "base/buf.h"

/* A frame as it is kept. Numbers are of the store. */
struct frame_row {
	uint64_t address;
	int64_t line, column;
	uint32_t mapping, function, attributes;
	uint32_t inlined;
};

/* A list of numbers, at most so many: an attribute is key, unit, kind, value; a set its attributes; a series its resource
 * and origin. */
enum { LIST_MOST_NUMBERS = 4096 };

/* Lists read back: list i is numbers[starts[i]] to numbers[starts[i + 1]]. */
struct lists {
	uint32_t *starts;
	int64_t *numbers;
};

void lists_fini(struct lists *l);
void lists_pack(struct column_codec *c, const int64_t *numbers, const uint32_t *lengths, size_t count, struct buf *out);
int lists_unpack(struct column_codec *c, const void *data, size_t len, size_t count, struct lists *ret);

/* Rows of frames and nodes, packed and read. Reading: 0, -EBADMSG, -ENOMEM. */
void frames_pack(struct column_codec *c, const struct frame_row *rows, size_t count, struct buf *out);
int frames_unpack(struct column_codec *c, const void *data, size_t len, struct frame_row *rows, size_t count);
void nodes_pack(struct column_codec *c, const struct store_node *rows, size_t count, uint32_t first, struct buf *out);
int nodes_unpack(struct column_codec *c, const void *data, size_t len, struct store_node *rows, size_t count,
		 uint32_t first);

#endif
