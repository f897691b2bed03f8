/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks double up to a bound. Chunks of the largest size are reused through a small pool of the process: for a receiver
 * that decodes one message after the other, faulting in fresh pages would cost as much as decoding. A block too large for a
 * chunk gets one of its own. The pool is locked; an arena belongs to one thread at a time.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/arena.h"

enum {
	FIRST_CHUNK_BYTES = 4096,
	MAX_CHUNK_BYTES = 256 * 1024,
	LARGE_BLOCK_BYTES = 128 * 1024, /* at most half a chunk is left unused for the sake of a block */
	POOL_CHUNKS = 64,
};

struct chunk {
	struct chunk *next;
	size_t size_bytes; /* of data */
	uint64_t data[];
};

static struct {
	pthread_mutex_t lock;
	struct chunk *chunks;
	unsigned count;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Atomic size_t all_bytes; /* of all arenas */

struct arena {
	struct chunk *chunks;
	char *free;	   /* rest of the current chunk */
	size_t free_bytes; /* multiple of 8 */
	size_t chunk_bytes;
	size_t memory_bytes;
};

struct arena *arena_new(void)
{
	struct arena *a = calloc(1, sizeof(*a));

	if (a) {
		a->chunk_bytes = FIRST_CHUNK_BYTES;
		a->memory_bytes = sizeof(*a);
		all_bytes += sizeof(*a);
	}
	return a;
}

static struct chunk *pool_take(void)
{
	struct chunk *c;

	pthread_mutex_lock(&pool.lock);
	c = pool.chunks;
	if (c) {
		pool.chunks = c->next;
		pool.count--;
	}
	pthread_mutex_unlock(&pool.lock);
	if (c)
		memset(c->data, 0, c->size_bytes);
	return c;
}

static bool pool_put(struct chunk *c)
{
	bool kept;

	pthread_mutex_lock(&pool.lock);
	kept = pool.count < POOL_CHUNKS;
	if (kept) {
		c->next = pool.chunks;
		pool.chunks = c;
		pool.count++;
	}
	pthread_mutex_unlock(&pool.lock);
	return kept;
}

void arena_free(struct arena *a)
{
	if (!a)
		return;
	all_bytes -= a->memory_bytes;
	while (a->chunks) {
		struct chunk *c = a->chunks;

		a->chunks = c->next;
		if (c->size_bytes != MAX_CHUNK_BYTES || !pool_put(c))
			free(c);
	}
	free(a);
}

static char *add_chunk(struct arena *a, size_t size)
{
	struct chunk *c = size == MAX_CHUNK_BYTES ? pool_take() : NULL;

	if (!c)
		c = calloc(1, sizeof(*c) + size);
	if (!c)
		return NULL;
	c->size_bytes = size;
	c->next = a->chunks;
	a->chunks = c;
	a->memory_bytes += sizeof(*c) + size;
	all_bytes += sizeof(*c) + size;
	return (char *)c->data;
}

void *arena_alloc(struct arena *a, size_t size_bytes)
{
	size_t size = (size_bytes + 7) & ~(size_t)7;
	char *block;

	if (size_bytes > SIZE_MAX / 2)
		return NULL;
	if (size > a->free_bytes) {
		if (size > LARGE_BLOCK_BYTES)
			return add_chunk(a, size);
		while (a->chunk_bytes < 2 * size)
			a->chunk_bytes *= 2;
		block = add_chunk(a, a->chunk_bytes);
		if (!block)
			return NULL;
		a->free = block;
		a->free_bytes = a->chunk_bytes;
		if (a->chunk_bytes < MAX_CHUNK_BYTES)
			a->chunk_bytes *= 2;
	}
	block = a->free;
	a->free += size;
	a->free_bytes -= size;
	return block;
}

size_t arena_memory_bytes(const struct arena *a)
{
	return a->memory_bytes;
}

size_t arenas_memory_bytes(void)
{
	return all_bytes;
}

size_t arenas_spare_bytes(void)
{
	size_t bytes;

	pthread_mutex_lock(&pool.lock);
	bytes = pool.count * (sizeof(struct chunk) + MAX_CHUNK_BYTES);
	pthread_mutex_unlock(&pool.lock);
	return bytes;
}

void arenas_give_back(void)
{
	struct chunk *chunks;

	pthread_mutex_lock(&pool.lock);
	chunks = pool.chunks;
	pool.chunks = NULL;
	pool.count = 0;
	pthread_mutex_unlock(&pool.lock);
	while (chunks) {
		struct chunk *next = chunks->next;

		free(chunks);
		chunks = next;
	}
}
