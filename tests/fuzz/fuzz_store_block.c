/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of the store's packed parts on arbitrary bytes: blocks of events, rows of frames, of nodes and of lists. The
 * checksum is put right, so that what is behind it is reached. The input: a byte that says what, then for blocks each part
 * with its length (2 bytes) before it. Seeds are made of real blocks at start.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/block.h"
#include "backend/store/sqlite/keep.h"
#include "base/cleanup.h"

enum { SEED_EVENTS = 64, MAX_ROWS = 512 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_seed(const char *folder, const char *name, const struct buf *seed)
{
	char path[4096];
	AUTO_FCLOSE FILE *f = NULL;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "wb");
	if (f)
		fwrite(seed->data, 1, seed->len, f);
}

static void make_block_seed(const char *folder, struct column_codec *c, bool has_weights)
{
	struct event events[SEED_EVENTS];
	struct buf parts[BLOCK_PARTS] = { 0 }, seed = BUF_EMPTY;

	for (uint32_t i = 0; i < SEED_EVENTS; i++)
		events[i] = (struct event){ .time_ns = 1700000000000000000ull + i * 50000123,
					    .weight = has_weights ? (int64_t)i - 7 : 1,
					    .series = i % 3,
					    .stack = i % 7,
					    .labels = i % 5,
					    .cpu = i % 4,
					    .link = has_weights ? i : 0,
					    .period = 50000000 };
	events_sort(events, SEED_EVENTS);
	if (block_pack(c, events, SEED_EVENTS, parts))
		abort();
	buf_putc(&seed, 0);
	for (size_t i = 0; i < BLOCK_PARTS; i++) {
		size_t len = parts[i].len >= 4 ? parts[i].len - 4 : 0; /* without its checksum */

		buf_putc(&seed, (char)(len & 255));
		buf_putc(&seed, (char)(len >> 8));
		buf_append(&seed, parts[i].data, len);
		buf_fini(&parts[i]);
	}
	write_seed(folder, has_weights ? "weights" : "ticks", &seed);
	buf_fini(&seed);
}

static void make_list_seed(const char *folder, struct column_codec *c)
{
	static const int64_t numbers[] = { 1, 2, 300, 7, -5, 1, 3, 301 };
	static const uint32_t lengths[] = { 3, 2, 0, 3 };
	struct buf packed = BUF_EMPTY, seed = BUF_EMPTY;

	lists_pack(c, numbers, lengths, ARRAY_LEN(lengths), &packed);
	buf_append(&seed, (const uint8_t[]){ 2, ARRAY_LEN(lengths), 0 }, 3);
	buf_append(&seed, packed.data, packed.len - 4); /* without its checksum */
	write_seed(folder, "lists", &seed);
	buf_fini(&packed);
	buf_fini(&seed);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = *argc > 1 && (*argv)[1][0] != '-' ? (*argv)[1] : NULL;
	struct column_codec *c = column_codec_new(1);

	if (folder) {
		make_block_seed(folder, c, false);
		make_block_seed(folder, c, true);
		make_list_seed(folder, c);
	}
	column_codec_free(c);
	return 0;
}

/* Touches every number that was read: what is out of bounds shows. */
static uint64_t look(const struct block *b)
{
	uint64_t sum = 0;
	uint32_t at = 0;

	for (uint32_t s = 0; s < b->series_count; s++) {
		for (uint32_t r = b->run_start[s]; r < b->run_start[s + 1]; r++) {
			for (uint32_t i = 0; i < b->run_events[r]; i++, at++)
				sum += b->time_ns[at] + b->cpu[at] + b->cell_set[b->label[at]] +
				       (b->link ? b->link[at] : 0) + (b->weight ? (uint64_t)b->weight[at] : 1) +
				       b->run_stack[r];
		}
	}
	return sum;
}

static void read_parts(struct column_codec *c, const uint8_t *data, size_t size)
{
	struct block b;
	volatile uint64_t sum;
	int err = 0;

	block_init(&b, c);
	for (int part = 0; part < BLOCK_PARTS && !err; part++) {
		size_t len = size >= 2 ? data[0] | (size_t)data[1] << 8 : 0;
		struct buf sealed = BUF_EMPTY;

		data += size >= 2 ? 2 : 0;
		size -= size >= 2 ? 2 : 0;
		len = len < size ? len : size;
		buf_append(&sealed, data, len);
		if (len)
			column_seal(&sealed, 0);
		err = part == BLOCK_HEAD ? block_read_head(&b, sealed.data, sealed.len)
					 : block_read(&b, (enum block_part)part, sealed.data, sealed.len);
		buf_fini(&sealed);
		data += len;
		size -= len;
	}
	if (!err) {
		sum = look(&b);
		(void)sum;
	}
	block_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct column_codec *c;
	static struct frame_row frames[MAX_ROWS];
	static struct store_node nodes[MAX_ROWS];
	struct buf sealed = BUF_EMPTY;
	struct lists lists = { 0 };

	c = c ? c : column_codec_new(1);
	if (size < 3)
		return 0;
	if (data[0] == 0) {
		read_parts(c, data + 1, size - 1);
		return 0;
	}
	buf_append(&sealed, data + 3, size - 3);
	column_seal(&sealed, 0);
	if (data[0] == 1)
		frames_unpack(c, sealed.data, sealed.len, frames, (data[1] | data[2] << 8) % MAX_ROWS);
	else if (data[0] == 2)
		lists_unpack(c, sealed.data, sealed.len, (data[1] | data[2] << 8) % MAX_ROWS, &lists);
	else
		nodes_unpack(c, sealed.data, sealed.len, nodes, (data[1] | data[2] << 8) % MAX_ROWS, 1);
	lists_fini(&lists);
	buf_fini(&sealed);
	return 0;
}
