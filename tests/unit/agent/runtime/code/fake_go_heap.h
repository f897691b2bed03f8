/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a Go program as far as its heap samples go: the two variables, and a list of buckets. For tests and as a
 * seed for the fuzzer. */
#ifndef HEARTH_TESTS_FAKE_GO_HEAP_H
#define HEARTH_TESTS_FAKE_GO_HEAP_H

#include <string.h>

#include "agent/runtime/code/code_memory.h"
#include "agent/runtime/code/go_heap.h"

#define FAKE_BASE 0xc000000000ull
enum { FAKE_BYTES = 1 << 14, FAKE_BUCKETS_AT = 0, FAKE_RATE_AT = 8, FAKE_FIRST = 64, FAKE_RATE = 512 << 10 };

struct fake {
	uint8_t bytes[FAKE_BYTES];
	uint32_t used;
	uint64_t newest;
};

#include "tests/unit/agent/runtime/code/fake_memory.h"

static inline void fake_word(struct fake *f, uint64_t at, uint64_t value)
{
	memcpy(f->bytes + at, &value, sizeof(value));
}

/* The four numbers of a cycle, of allocations of @size. */
static inline void fake_cycle(struct fake *f, uint64_t at, uint64_t allocs, uint64_t frees, uint64_t size)
{
	fake_word(f, at, allocs);
	fake_word(f, at + 8, frees);
	fake_word(f, at + 16, allocs * size);
	fake_word(f, at + 24, frees * size);
}

/* Puts a bucket before all others: @depth frames, from 0x401000 on; of the program's life so far @allocs and @frees, and
 * @recent allocations that it has not counted yet. Returns its address. */
static inline uint64_t fake_bucket(struct fake *f, uint64_t size, uint32_t depth, uint64_t allocs, uint64_t frees,
				   uint64_t recent)
{
	uint64_t at = f->used, addr = FAKE_BASE + at;

	f->used += 48 + 8 * depth + 128;
	fake_word(f, at + 8, f->newest);
	fake_word(f, at + 16, 1);
	fake_word(f, at + 32, size);
	fake_word(f, at + 40, depth);
	at += 48;
	for (uint32_t i = 0; i < depth; i++, at += 8)
		fake_word(f, at, 0x401000 + 16 * i);
	fake_cycle(f, at, allocs, frees, size);
	fake_cycle(f, at + 32, recent, 0, size);
	fake_cycle(f, at + 64, 0, frees ? 1 : 0, size);
	fake_word(f, FAKE_BUCKETS_AT, addr);
	return f->newest = addr;
}

static inline void fake_make(struct fake *f)
{
	memset(f, 0, sizeof(*f));
	f->used = FAKE_FIRST;
	fake_word(f, FAKE_RATE_AT, FAKE_RATE);
	fake_bucket(f, 64, 3, 10, 4, 2);
	fake_bucket(f, 1 << 20, 5, 7, 0, 0);
	fake_bucket(f, 4096, 1, 0, 0, 1);
}

static inline struct go_heap_request fake_request(void)
{
	return (struct go_heap_request){ .buckets = FAKE_BASE + FAKE_BUCKETS_AT, .rate = FAKE_BASE + FAKE_RATE_AT };
}

#endif
