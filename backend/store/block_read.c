/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads blocks back. The data may be damaged or hostile: all sums and places are checked before they are used. Arrays lie in
 * chunks that are kept from block to block.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/block.h"
#include "backend/store/block_times.h"

enum { CHUNK_BYTES = 1 << 20 };

struct block_chunk {
	struct block_chunk *next;
	size_t size, used;
	_Alignas(16) uint8_t data[];
};

void block_init(struct block *b, struct column_codec *codec)
{
	*b = (struct block){ .codec = codec };
}

void block_fini(struct block *b)
{
	while (b->chunks) {
		struct block_chunk *next = b->chunks->next;

		free(b->chunks);
		b->chunks = next;
	}
	*b = (struct block){ 0 };
}

size_t block_memory_bytes(const struct block *b)
{
	size_t bytes = 0;

	for (const struct block_chunk *chunk = b->chunks; chunk; chunk = chunk->next)
		bytes += sizeof(*chunk) + chunk->size;
	return bytes;
}

/* Room for @n of @size bytes, not zeroed; NULL when out of memory, which sticks until the next head. */
static void *take(struct block *b, size_t n, size_t size)
{
	size_t bytes = (n * size + 31) & ~(size_t)15;
	struct block_chunk *chunk = b->chunks;

	while (chunk && chunk->size - chunk->used < bytes)
		chunk = chunk->next;
	if (!chunk) {
		size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk) {
			b->want_of_memory = true;
			return NULL;
		}
		*chunk = (struct block_chunk){ .next = b->chunks, .size = room };
		b->chunks = chunk;
	}
	chunk->used += bytes;
	return chunk->data + chunk->used - bytes;
}

static void forget_arrays(struct block *b)
{
	*b = (struct block){ .codec = b->codec, .chunks = b->chunks };
	for (struct block_chunk *chunk = b->chunks; chunk; chunk = chunk->next)
		chunk->used = 0;
}

static uint32_t *read_u32(struct block *b, struct column_bytes *in, size_t n)
{
	uint32_t *values = take(b, n, sizeof(*values));

	if (values)
		column_get_u32(b->codec, in, values, n);
	return values;
}

static uint64_t *read_u64(struct block *b, struct column_bytes *in, size_t n)
{
	uint64_t *values = take(b, n, sizeof(*values));

	if (values)
		column_get(b->codec, in, values, n);
	return values;
}

static int64_t *read_signed(struct block *b, struct column_bytes *in, size_t n)
{
	uint64_t *values = read_u64(b, in, n);

	for (size_t i = 0; values && i < n; i++)
		values[i] = (uint64_t)column_unzigzag(values[i]);
	return (int64_t *)values;
}

/* Turns the counts of each series into places: @n + 1 of them. NULL when they do not add up to @total, or one is below
 * @least. */
static uint32_t *read_starts(struct block *b, struct column_bytes *in, uint32_t total, uint32_t least)
{
	uint32_t n = b->series_count;
	uint32_t *starts = take(b, n + 1, sizeof(*starts));
	uint64_t at = 0;

	if (!starts)
		return NULL;
	column_get_u32(b->codec, in, starts, n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t count = starts[i];

		if (count < least && !in->failed)
			in->failed = -EBADMSG;
		starts[i] = (uint32_t)at;
		at += count;
		if (at > total)
			break;
	}
	if (at != total && !in->failed)
		in->failed = -EBADMSG;
	starts[n] = total;
	return starts;
}

static int outcome(const struct block *b, const struct column_bytes *in)
{
	return b->want_of_memory ? -ENOMEM : in->failed;
}

static uint32_t read_count(struct column_bytes *in, uint32_t least, uint32_t most)
{
	uint64_t n = column_get_varint(in);

	if (!in->failed && (n < least || n > most))
		in->failed = -EBADMSG;
	return in->failed ? 0 : (uint32_t)n;
}

/* The number of sets or minutes that there can be. */
static uint32_t most_of(const struct block *b)
{
	return b->event_count < COLUMN_MAX_VALUES ? b->event_count : COLUMN_MAX_VALUES;
}

int block_read_head(struct block *b, const void *data, size_t len)
{
	struct column_bytes in;

	forget_arrays(b);
	if (column_open(data, len, &in))
		return -EBADMSG;
	b->from_ns = column_get_varint(&in);
	b->series_count = read_count(&in, 1, COLUMN_MAX_VALUES);
	b->run_count = read_count(&in, b->series_count, COLUMN_MAX_VALUES);
	b->event_count = read_count(&in, b->run_count, UINT32_MAX); /* roll-ups have many, and no columns of them */
	b->cell_count = read_count(&in, b->series_count, most_of(b));
	b->minute_count = read_count(&in, b->series_count, most_of(b));
	b->has_weights = read_count(&in, 0, 1);
	if (in.failed)
		return in.failed;
	b->series = read_u32(b, &in, b->series_count);
	b->run_start = read_starts(b, &in, b->run_count, 1);
	b->event_start = read_starts(b, &in, b->event_count, 1);
	b->cell_start = read_starts(b, &in, b->cell_count, 1);
	b->minute_start = read_starts(b, &in, b->minute_count, 1);
	b->period = read_u32(b, &in, b->series_count);
	if (outcome(b, &in))
		return outcome(b, &in);
	for (uint32_t i = 1; i < b->series_count; i++)
		b->series[i] += b->series[i - 1];
	for (uint32_t i = 0; i < b->series_count; i++) {
		if (b->period[i] > BLOCK_MAX_PERIOD)
			return -EBADMSG;
	}
	b->parts_read = 1u << BLOCK_HEAD;
	return 0;
}

/* Turns the differences within each series into values. */
static void add_up(const struct block *b, uint32_t *values, const uint32_t *starts)
{
	for (uint32_t s = 0; s < b->series_count; s++) {
		for (uint32_t i = starts[s] + 1; i < starts[s + 1]; i++)
			values[i] += values[i - 1];
	}
}

/* Whether the @counts of each series' entries add up to its events. */
static bool counts_fit(const struct block *b, const uint32_t *counts, const uint32_t *starts)
{
	for (uint32_t s = 0; s < b->series_count; s++) {
		uint64_t sum = 0;

		for (uint32_t i = starts[s]; i < starts[s + 1]; i++) {
			if (!counts[i])
				return false;
			sum += counts[i];
		}
		if (sum != b->event_start[s + 1] - b->event_start[s])
			return false;
	}
	return true;
}

static int read_stacks(struct block *b, struct column_bytes *in)
{
	b->run_stack = read_u32(b, in, b->run_count);
	b->run_events = read_u32(b, in, b->run_count);
	if (b->has_weights)
		b->run_weight = read_signed(b, in, b->run_count);
	if (outcome(b, in))
		return outcome(b, in);
	add_up(b, b->run_stack, b->run_start);
	return counts_fit(b, b->run_events, b->run_start) ? 0 : -EBADMSG;
}

static int read_cells(struct block *b, struct column_bytes *in)
{
	b->cell_set = read_u32(b, in, b->cell_count);
	b->cell_events = read_u32(b, in, b->cell_count);
	b->minute = read_u32(b, in, b->minute_count);
	b->minute_events = read_u32(b, in, b->minute_count);
	if (b->has_weights) {
		b->cell_weight = read_signed(b, in, b->cell_count);
		b->minute_weight = read_signed(b, in, b->minute_count);
	}
	if (outcome(b, in))
		return outcome(b, in);
	add_up(b, b->minute, b->minute_start);
	return counts_fit(b, b->cell_events, b->cell_start) && counts_fit(b, b->minute_events, b->minute_start) ? 0
														: -EBADMSG;
}

static int read_labels(struct block *b, struct column_bytes *in)
{
	b->label = read_u32(b, in, b->event_count);
	if (outcome(b, in))
		return outcome(b, in);
	for (uint32_t s = 0; s < b->series_count; s++) {
		uint32_t cells = b->cell_start[s + 1] - b->cell_start[s];

		for (uint32_t i = b->event_start[s]; i < b->event_start[s + 1]; i++) {
			if (b->label[i] >= cells)
				return -EBADMSG;
			b->label[i] += b->cell_start[s];
		}
	}
	return 0;
}

int block_find_runs(struct block *b)
{
	const size_t bytes = (size_t)b->event_count + BLOCK_LOOK_AHEAD;
	uint32_t at = 0;

	if (b->run_begins)
		return 0;
	b->run_begins = take(b, bytes, 1);
	if (!b->run_begins)
		return -ENOMEM;
	memset(b->run_begins, 0, bytes);
	for (uint32_t r = 0; r < b->run_count; at += b->run_events[r++])
		b->run_begins[at] = 1;
	return 0;
}

static int read_times(struct block *b, struct column_bytes *in)
{
	struct usual_rest usual = { 0 };
	uint64_t *periods, *rest;

	if (!b->cpu || !b->run_events)
		return -EINVAL;
	periods = read_u64(b, in, b->event_count);
	rest = read_u64(b, in, b->event_count);
	if (outcome(b, in) || block_find_runs(b))
		return outcome(b, in);
	for (uint32_t s = 0; s < b->series_count; s++) {
		const uint64_t period = period_or_default(b->period[s]), from_ns = b->from_ns;
		const uint32_t *cpus = b->cpu, end = b->event_start[s + 1];
		const uint8_t *begins = b->run_begins;
		uint64_t before = 0;

		for (uint32_t at = b->event_start[s]; at < end; at++) {
			before = periods[at] + (before & ((uint64_t)begins[at] - 1));
			periods[at] = from_ns + before * period + usual_rest_apply(&usual, cpus[at], period, rest[at]);
		}
	}
	b->time_ns = periods;
	return 0;
}

int block_read(struct block *b, enum block_part part, const void *data, size_t len)
{
	struct column_bytes in;
	int err = 0;

	if (b->parts_read & 1u << part)
		return 0;
	if ((part == BLOCK_WEIGHTS && !b->has_weights) || (part == BLOCK_LINKS && !len)) {
		b->parts_read |= 1u << part;
		return 0;
	}
	if (part > BLOCK_CELLS && b->event_count > COLUMN_MAX_VALUES)
		return -EBADMSG;
	if (column_open(data, len, &in))
		return -EBADMSG;
	if (part == BLOCK_STACKS)
		err = read_stacks(b, &in);
	else if (part == BLOCK_CELLS)
		err = read_cells(b, &in);
	else if (part == BLOCK_CPUS)
		b->cpu = read_u32(b, &in, b->event_count);
	else if (part == BLOCK_LABELS)
		err = read_labels(b, &in);
	else if (part == BLOCK_WEIGHTS)
		b->weight = read_signed(b, &in, b->event_count);
	else if (part == BLOCK_TIMES)
		err = read_times(b, &in);
	else if (part == BLOCK_LINKS)
		b->link = read_u32(b, &in, b->event_count);
	else
		return -EINVAL;
	err = err ? err : outcome(b, &in);
	if (!err)
		b->parts_read |= 1u << part;
	return err;
}
