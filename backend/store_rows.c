/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of frames and of stack nodes, packed: one column a field, each with a checksum behind all. */
#include <errno.h>
#include <stdlib.h>

#include "backend/store_sqlite_keep.h"
#include "base/cleanup.h"

enum { FRAME_COLUMNS = 7 };

static uint64_t *field_columns(const struct frame_row *rows, size_t count)
{
	uint64_t *columns = malloc(FRAME_COLUMNS * count * sizeof(*columns));
	struct frame_row before = { 0 };

	for (size_t i = 0; columns && i < count; i++) {
		const struct frame_row *f = &rows[i];
		const uint64_t fields[FRAME_COLUMNS] = {
			column_zigzag((int64_t)f->mapping - before.mapping),
			column_zigzag((int64_t)(f->address - before.address)),
			column_zigzag((int64_t)f->function - before.function),
			column_zigzag(f->line),
			column_zigzag(f->column),
			f->attributes,
			f->inlined,
		};

		for (size_t c = 0; c < FRAME_COLUMNS; c++)
			columns[c * count + i] = fields[c];
		before = *f;
	}
	return columns;
}

void frames_pack(struct column_codec *c, const struct frame_row *rows, size_t count, struct buf *out)
{
	AUTO_FREE uint64_t *columns = field_columns(rows, count);
	size_t start = out->len;

	out->failed |= !columns;
	for (size_t i = 0; columns && i < FRAME_COLUMNS; i++)
		column_put(c, out, columns + i * count, count);
	column_seal(out, start);
}

int frames_unpack(struct column_codec *c, const void *data, size_t len, struct frame_row *rows, size_t count)
{
	AUTO_FREE uint64_t *columns = NULL;
	struct frame_row before = { 0 };
	struct column_bytes in;

	if (count > COLUMN_MAX_VALUES || column_open(data, len, &in))
		return -EBADMSG;
	columns = malloc(FRAME_COLUMNS * count * sizeof(*columns) + 1);
	if (!columns)
		return -ENOMEM;
	for (size_t i = 0; i < FRAME_COLUMNS; i++)
		column_get(c, &in, columns + i * count, count);
	if (in.failed)
		return in.failed;
	for (size_t i = 0; i < count; i++) {
		struct frame_row *f = &rows[i];
		const uint64_t *at = columns + i;

		f->mapping = before.mapping + (uint32_t)column_unzigzag(at[0]);
		f->address = before.address + (uint64_t)column_unzigzag(at[count]);
		f->function = before.function + (uint32_t)column_unzigzag(at[2 * count]);
		f->line = column_unzigzag(at[3 * count]);
		f->column = column_unzigzag(at[4 * count]);
		f->attributes = (uint32_t)at[5 * count];
		f->inlined = at[6 * count] != 0;
		before = *f;
	}
	return 0;
}

/* A node's parent is often the one before it, so the distance is kept; its frame is often new, or one of the last. */
void nodes_pack(struct column_codec *c, const struct node_row *rows, size_t count, uint32_t first, struct buf *out)
{
	AUTO_FREE uint32_t *parents = malloc(2 * count * sizeof(*parents));
	size_t start = out->len;

	if (!parents) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		parents[i] = first + (uint32_t)i - 1 - rows[i].parent;
		parents[count + i] = rows[i].frame;
	}
	column_put_u32(c, out, parents, count);
	column_put_u32(c, out, parents + count, count);
	column_seal(out, start);
}

int nodes_unpack(struct column_codec *c, const void *data, size_t len, struct node_row *rows, size_t count, uint32_t first)
{
	AUTO_FREE uint32_t *parents = NULL;
	struct column_bytes in;

	if (count > COLUMN_MAX_VALUES || column_open(data, len, &in))
		return -EBADMSG;
	parents = malloc(2 * count * sizeof(*parents) + 1);
	if (!parents)
		return -ENOMEM;
	column_get_u32(c, &in, parents, count);
	column_get_u32(c, &in, parents + count, count);
	if (in.failed)
		return in.failed;
	for (size_t i = 0; i < count; i++) {
		uint32_t number = first + (uint32_t)i;

		if (parents[i] >= number)
			return -EBADMSG; /* a parent comes before its child */
		rows[i] = (struct node_row){ .parent = number - 1 - parents[i], .frame = parents[count + i] };
	}
	return 0;
}
