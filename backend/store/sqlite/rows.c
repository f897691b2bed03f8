/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of frames, of stack nodes and of lists, packed: one column a field, with a checksum behind all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/rows.h"
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
void nodes_pack(struct column_codec *c, const struct store_node *rows, size_t count, uint32_t first, struct buf *out)
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

int nodes_unpack(struct column_codec *c, const void *data, size_t len, struct store_node *rows, size_t count, uint32_t first)
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
		rows[i] = (struct store_node){ .parent = number - 1 - parents[i], .frame = parents[count + i] };
	}
	return 0;
}

/* --- lists --- */

/* Lists of one length are of one kind (a process, a thread of it), so each is kept as the difference from the last one of
 * its length; numbers behind so many places stay as they are. Packing and reading go through the same steps. */
enum { LIST_PLACES = 64 };

struct list_before {
	uint64_t numbers[LIST_PLACES + 1][LIST_PLACES]; /* by length, the last for all that are longer */
	uint64_t none;
};

static uint64_t *number_before(struct list_before *before, size_t length, size_t place)
{
	if (place >= LIST_PLACES) {
		before->none = 0;
		return &before->none;
	}
	return &before->numbers[length < LIST_PLACES ? length : LIST_PLACES][place];
}

void lists_pack(struct column_codec *c, const int64_t *numbers, const uint32_t *lengths, size_t count, struct buf *out)
{
	AUTO_FREE struct list_before *before = calloc(1, sizeof(*before));
	AUTO_FREE uint64_t *differences = NULL, *column = NULL;
	size_t start = out->len, total = 0, longest = 0;

	for (size_t i = 0; i < count; i++) {
		total += lengths[i];
		longest = lengths[i] > longest ? lengths[i] : longest;
	}
	differences = malloc(total * sizeof(*differences) + 1);
	column = malloc(count * sizeof(*column) + 1);
	if (!before || !differences || !column) {
		out->failed = true;
		return;
	}
	for (size_t i = 0, at = 0; i < count; i++) {
		for (size_t place = 0; place < lengths[i]; place++, at++) {
			uint64_t *last = number_before(before, lengths[i], place);

			differences[at] = column_zigzag((int64_t)((uint64_t)numbers[at] - *last));
			*last = (uint64_t)numbers[at];
		}
	}
	column_put_u32(c, out, lengths, count);
	for (size_t place = 0; place < longest; place++) {
		size_t n = 0;

		for (size_t i = 0, at = 0; i < count; at += lengths[i++]) {
			if (place < lengths[i])
				column[n++] = differences[at + place];
		}
		column_put(c, out, column, n);
	}
	column_seal(out, start);
}

void lists_fini(struct lists *l)
{
	free(l->starts);
	free(l->numbers);
	*l = (struct lists){ 0 };
}

/* Turns lengths into starts. Returns the longest, or -EBADMSG. */
static int64_t read_starts(struct lists *l, size_t count)
{
	uint64_t at = 0;
	uint32_t longest = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t length = l->starts[i];

		if (length > LIST_MOST_NUMBERS)
			return -EBADMSG;
		longest = length > longest ? length : longest;
		l->starts[i] = (uint32_t)at;
		at += length;
	}
	if (at > COLUMN_MAX_VALUES)
		return -EBADMSG;
	l->starts[count] = (uint32_t)at;
	return longest;
}

/* Reads the columns' differences in the lists' order. 0, -EBADMSG or -ENOMEM. */
static int read_differences(struct column_codec *c, struct column_bytes *in, struct lists *l, size_t count, size_t longest)
{
	AUTO_FREE uint64_t *column = malloc(count * sizeof(*column) + 1);

	for (size_t place = 0; column && place < longest && !in->failed; place++) {
		size_t n = 0;

		for (size_t i = 0; i < count; i++)
			n += l->starts[i] + place < l->starts[i + 1];
		column_get(c, in, column, n);
		n = 0;
		for (size_t i = 0; i < count; i++) {
			if (l->starts[i] + place < l->starts[i + 1])
				l->numbers[l->starts[i] + place] = column_unzigzag(column[n++]);
		}
	}
	return column ? in->failed : -ENOMEM;
}

int lists_unpack(struct column_codec *c, const void *data, size_t len, size_t count, struct lists *ret)
{
	AUTO_FREE struct list_before *before = calloc(1, sizeof(*before));
	AUTO(lists_fini) struct lists l = { 0 };
	struct column_bytes in;
	int64_t longest;
	int err;

	if (count > COLUMN_MAX_VALUES || column_open(data, len, &in))
		return -EBADMSG;
	l.starts = malloc((count + 1) * sizeof(*l.starts));
	if (!before || !l.starts)
		return -ENOMEM;
	column_get_u32(c, &in, l.starts, count);
	longest = in.failed ? in.failed : read_starts(&l, count);
	if (longest < 0)
		return (int)longest;
	l.numbers = malloc(l.starts[count] * sizeof(*l.numbers) + 1);
	err = l.numbers ? read_differences(c, &in, &l, count, (size_t)longest) : -ENOMEM;
	if (err)
		return err;
	for (size_t i = 0; i < count; i++) {
		const size_t length = l.starts[i + 1] - l.starts[i];

		for (size_t place = 0; place < length; place++) {
			uint64_t *last = number_before(before, length, place);
			int64_t *number = &l.numbers[l.starts[i] + place];

			*last += (uint64_t)*number;
			*number = (int64_t)*last;
		}
	}
	*ret = l;
	l = (struct lists){ 0 };
	return 0;
}
