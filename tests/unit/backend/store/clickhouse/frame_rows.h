/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as ClickHouse answers with them, to be put into a fake one's answers. */
#ifndef HEARTH_TESTS_FRAME_ROWS_H
#define HEARTH_TESTS_FRAME_ROWS_H

#include <stdint.h>
#include <string.h>

#include "backend/store/clickhouse/click.h"
#include "base/buf.h"

static inline void put_z(struct buf *b, const char *text)
{
	put_text(b, text, strlen(text));
}

/* One attribute: key, value, kind, unit. */
static inline void put_attribute(struct buf *b, const char *key, const char *value)
{
	put_number(b, 1, 1);
	put_z(b, key);
	put_number(b, 1, 1);
	put_z(b, value);
	put_number(b, 1, 1);
	put_number(b, 3, 1);
	put_number(b, 1, 1);
	put_z(b, "");
}

/* A row of hearth_frames; its numbers follow from @id. */
static inline void put_frame_of(struct buf *b, uint64_t id, const char *function, const char *path, const char *build_id)
{
	put_number(b, id, 8);
	put_z(b, function);
	put_z(b, "_Zx");
	put_z(b, "x.c");
	put_number(b, id + 1, 8); /* start_line */
	put_number(b, id + 2, 8); /* line */
	put_number(b, id + 3, 8); /* column */
	put_number(b, id + 4, 8); /* address */
	put_number(b, id & 1, 1); /* inlined */
	put_z(b, "native");
	put_z(b, path);
	put_z(b, build_id);
	put_z(b, "gnu");
	put_number(b, id + 5, 8);
	put_number(b, id + 6, 8);
	put_number(b, id + 7, 8);
	put_attribute(b, "one", "1");
	put_attribute(b, "two", "2");
}

static inline void put_frame(struct buf *b, uint64_t id, const char *function, const char *path)
{
	put_frame_of(b, id, function, path, "cafe");
}

#endif
