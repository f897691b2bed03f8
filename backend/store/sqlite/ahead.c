/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of a question over many blocks. Blocks are taken from the database some at a time, a batch, with the parts that
 * most blocks before needed; and while one batch is added up, a second thread reads the columns of the next. The asker's
 * thread reads what is left, so that each does as much as it can. Batches are so small that what was read is still in the
 * cache.
 *
 * The first batch is one block, and each has twice as many as the one before: a short question holds little and needs no
 * thread. A part that was not read ahead, or could not be, is read when it is asked for.
 *
 * The second thread has a codec of its own, and touches nothing but the blocks in the queue: neither the database nor names.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/scan.h"
#include "base/cleanup.h"
#include "base/thread.h"

enum {
	BATCH_BLOCKS = 8,
	BATCH_EVENTS = 1 << 17, /* that end a batch */
	HELPED_BLOCKS = 8,	/* a batch that is worth a thread */
	KEEP_BYTES = 3 << 19,	/* of a block, for the next one in its place */
	LEVEL = 1,		/* of a codec that packs nothing */
};

struct ahead_block {
	struct scan_block at; /* its block is the following */
	struct block block;
	unsigned parts;		  /* to be read ahead, a bit each; as they stand in the row ... */
	struct buf bytes;	  /* ... behind each other */
	size_t ends[BLOCK_PARTS]; /* there */
	bool is_read;		  /* as far as it can be */
};

struct batch {
	struct ahead_block blocks[BATCH_BLOCKS];
	size_t count;
};

struct ahead {
	struct scan *scan;
	struct batch batches[2];
	unsigned parts;	   /* that most blocks needed */
	size_t next_count; /* most blocks of the next batch */
	bool is_at_end;	   /* there is no next block */
	/* the second thread */
	bool was_tried, has_thread;
	pthread_t thread;
	struct column_codec *codec; /* that thread's */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_over; /* under the lock, as are the following, and is_read of blocks */
	struct ahead_block *waiting[2 * BATCH_BLOCKS];
	size_t first, end;
};

/* --- reading columns, on both threads --- */

static void read_ahead(struct ahead_block *b, struct column_codec *codec)
{
	size_t start = 0;
	int err = 0;

	b->block.codec = codec;
	for (int part = 0; part < BLOCK_PARTS && !err; start = b->ends[part++]) {
		if (b->parts & 1u << part) /* who needs it finds the error again */
			err = block_read(&b->block, (enum block_part)part, b->bytes.data + start, b->ends[part] - start);
	}
}

/* Reads the block that waits longest. False: none waits. Under the lock, which is given up meanwhile. */
static bool read_first(struct ahead *a, struct column_codec *codec)
{
	struct ahead_block *b;

	if (a->first == a->end)
		return false;
	b = a->waiting[a->first++ % ARRAY_LEN(a->waiting)];
	pthread_mutex_unlock(&a->lock);
	read_ahead(b, codec);
	pthread_mutex_lock(&a->lock);
	b->is_read = true;
	pthread_cond_broadcast(&a->changed);
	return true;
}

static void *ahead_main(void *arg)
{
	struct ahead *a = arg;

	pthread_mutex_lock(&a->lock);
	while (!a->is_over) {
		if (!read_first(a, a->codec))
			thread_cond_wait(&a->changed, &a->lock, UINT64_MAX);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* Starts the second thread, once, where there is a CPU for it. Without it the question takes longer. */
static void start_thread(struct ahead *a)
{
	cpu_set_t cpus;

	a->was_tried = true;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) < 2)
		return;
	a->codec = column_codec_new(LEVEL);
	a->has_thread = a->codec && !thread_start(&a->thread, "query ahead", ahead_main, a);
}

/* Reads blocks until all of @batch are read. */
static void finish(struct ahead *a, struct batch *batch)
{
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < batch->count; i++) {
		while (!batch->blocks[i].is_read) {
			if (!read_first(a, a->scan->s->codec))
				thread_cond_wait(&a->changed, &a->lock, UINT64_MAX);
		}
		batch->blocks[i].block.codec = a->scan->s->codec;
	}
	pthread_mutex_unlock(&a->lock);
}

/* --- the asker's thread --- */

static void put(struct ahead *a, struct ahead_block *b)
{
	pthread_mutex_lock(&a->lock);
	b->is_read = false;
	a->waiting[a->end++ % ARRAY_LEN(a->waiting)] = b;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

/* Copies the parts that are to be read ahead out of the row that the scan stands on. 0 or -ENOMEM. */
static int copy_parts(const struct ahead *a, struct ahead_block *b)
{
	b->parts = a->parts;
	b->bytes.len = 0;
	for (int part = 0; part < BLOCK_PARTS; part++) {
		if (b->parts & 1u << part)
			buf_append(&b->bytes, sqlite3_column_blob(a->scan->row, part),
				   (size_t)sqlite3_column_bytes(a->scan->row, part));
		b->ends[part] = b->bytes.len;
	}
	return b->bytes.failed ? -ENOMEM : 0;
}

/* A place for a block; one that held many events gives their memory back first. */
static void make_place(struct ahead *a, struct ahead_block *b)
{
	if (block_memory_bytes(&b->block) > KEEP_BYTES)
		block_fini(&b->block);
	if (!b->block.chunks)
		block_init(&b->block, a->scan->s->codec);
	b->at.block = &b->block;
	scan_look_at(a->scan, &b->at);
}

/* Takes the next blocks into @batch; none at the end. 0 or -errno. */
static int gather(struct ahead *a, struct batch *batch)
{
	size_t events = 0;

	batch->count = 0;
	if (a->next_count >= HELPED_BLOCKS && !a->was_tried)
		start_thread(a);
	while (!a->is_at_end && batch->count < a->next_count && events < BATCH_EVENTS) {
		struct ahead_block *b = &batch->blocks[batch->count];
		int more, err;

		make_place(a, b);
		more = scan_next(a->scan);
		a->is_at_end = !more;
		if (more <= 0)
			return more;
		err = copy_parts(a, b);
		if (err)
			return err;
		events += b->block.event_count;
		batch->count++;
		put(a, b);
	}
	a->next_count = a->next_count < BATCH_BLOCKS ? a->next_count * 2 : BATCH_BLOCKS;
	return 0;
}

/* What at least half of the blocks needed. */
static void learn_parts(struct ahead *a, const struct batch *batch)
{
	size_t needed[BLOCK_PARTS] = { 0 };

	a->parts = 0;
	for (size_t i = 0; i < batch->count; i++)
		for (int part = BLOCK_HEAD + 1; part < BLOCK_PARTS; part++)
			needed[part] += batch->blocks[i].block.parts_read >> part & 1;
	for (int part = BLOCK_HEAD + 1; part < BLOCK_PARTS; part++)
		a->parts |= needed[part] * 2 >= batch->count ? 1u << part : 0;
}

static int add_up(struct ahead *a, struct batch *batch, int (*fn)(void *arg, struct scan *scan, uint32_t index), void *arg)
{
	int err = 0;

	finish(a, batch);
	for (size_t i = 0; i < batch->count && !err; i++) {
		scan_look_at(a->scan, &batch->blocks[i].at);
		err = store_selection_check(a->scan->sel);
		err = err ? err : scan_each_series(a->scan, fn, arg);
	}
	return err;
}

static void ahead_free(struct ahead *a)
{
	pthread_mutex_lock(&a->lock);
	a->is_over = true;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
	if (a->has_thread)
		pthread_join(a->thread, NULL);
	column_codec_free(a->codec);
	for (size_t i = 0; i < ARRAY_LEN(a->batches); i++) {
		for (size_t k = 0; k < BATCH_BLOCKS; k++) {
			struct ahead_block *b = &a->batches[i].blocks[k];

			block_fini(&b->block);
			buf_fini(&b->bytes);
			free(b->at.of);
		}
	}
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

int scan_each(struct scan *scan, int (*fn)(void *arg, struct scan *scan, uint32_t index), void *arg)
{
	struct ahead *a = calloc(1, sizeof(*a));
	int err = a ? thread_cond_init(&a->changed) : -ENOMEM;

	if (err) {
		free(a);
		return err;
	}
	pthread_mutex_init(&a->lock, NULL);
	a->scan = scan;
	a->next_count = 1;
	err = gather(a, &a->batches[0]);
	for (unsigned i = 0; !err && a->batches[i % 2].count; i++) {
		struct batch *now = &a->batches[i % 2], *next = &a->batches[(i + 1) % 2];

		if (i) /* what the first block needs is not known before */
			err = gather(a, next);
		err = err ? err : add_up(a, now, fn, arg);
		learn_parts(a, now);
		if (!i && !err)
			err = gather(a, next);
	}
	scan_look_at(scan, &scan->own);
	ahead_free(a);
	return err;
}
