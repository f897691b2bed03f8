/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Want of memory at every place. A test binary called test_no_memory is linked so that the allocations of hearth's own code
 * come here (Makefile). memory_fails_everywhere() lets each of a scenario's allocations fail, one a run, now and then with
 * all that follow: the scenario says so or does the same as with memory, and frees what it had. Include it after cmocka.h,
 * in one file of a binary.
 */
#ifndef HEARTH_TESTS_FAILING_MEMORY_H
#define HEARTH_TESTS_FAILING_MEMORY_H

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tests/unit/descriptors.h"

enum { MEMORY_BLOCKS = 1 << 16, MEMORY_RUNS = 200, LEAK_RUNS = 20 };

static struct {
	pthread_mutex_t lock;
	unsigned count;	  /* of allocations since the start of the run */
	unsigned fail_at; /* the one that fails; 0: none */
	bool is_for_good; /* those behind it fail, too */
	unsigned live;
	void *blocks[MEMORY_BLOCKS]; /* what is allocated, by a hash of its address */
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER };

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_reallocarray(void *block, size_t count, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_reallocarray(void *block, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);
void __wrap_free(void *block);

static bool memory_is_out(void)
{
	bool is_out;

	pthread_mutex_lock(&memory.lock);
	is_out = ++memory.count == memory.fail_at || (memory.is_for_good && memory.fail_at && memory.count > memory.fail_at);
	pthread_mutex_unlock(&memory.lock);
	if (is_out)
		errno = ENOMEM;
	return is_out;
}

/* The place of @block in the table; that of the first free one behind it when it is not there. */
static size_t memory_place(const void *block)
{
	size_t at = ((uintptr_t)block >> 4) % MEMORY_BLOCKS;

	while (memory.blocks[at] && memory.blocks[at] != block)
		at = (at + 1) % MEMORY_BLOCKS;
	return at;
}

static void *memory_took(void *block)
{
	pthread_mutex_lock(&memory.lock);
	if (block && memory.live < MEMORY_BLOCKS / 2) {
		memory.blocks[memory_place(block)] = block;
		memory.live++;
	}
	pthread_mutex_unlock(&memory.lock);
	return block;
}

/* What others allocated (asprintf) is not known, and freed all the same. */
static void memory_gave(const void *block)
{
	size_t at;

	pthread_mutex_lock(&memory.lock);
	at = memory_place(block);
	if (block && memory.blocks[at]) {
		memory.blocks[at] = NULL;
		memory.live--;
		/* those behind it move up, or they would not be found any more */
		for (at = (at + 1) % MEMORY_BLOCKS; memory.blocks[at]; at = (at + 1) % MEMORY_BLOCKS) {
			void *moved = memory.blocks[at];

			memory.blocks[at] = NULL;
			memory.blocks[memory_place(moved)] = moved;
		}
	}
	pthread_mutex_unlock(&memory.lock);
}

void *__wrap_malloc(size_t size)
{
	return memory_is_out() ? NULL : memory_took(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return memory_is_out() ? NULL : memory_took(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size)
{
	if (memory_is_out())
		return NULL;
	memory_gave(block);
	return memory_took(__real_realloc(block, size));
}

void *__wrap_reallocarray(void *block, size_t count, size_t size)
{
	if (memory_is_out())
		return NULL;
	memory_gave(block);
	return memory_took(__real_reallocarray(block, count, size));
}

char *__wrap_strdup(const char *text)
{
	return memory_is_out() ? NULL : memory_took(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t len)
{
	return memory_is_out() ? NULL : memory_took(__real_strndup(text, len));
}

void __wrap_free(void *block)
{
	memory_gave(block);
	__real_free(block);
}

/* From here on the run has memory. */
static inline void memory_suffices(void)
{
	memory.fail_at = 0;
}

struct memory_scenario {
	const char *name;
	/* Does the whole of it, frees it all, and appends what came of it to @out. 0 or a negative error. */
	int (*run)(struct buf *out);
	bool has_libraries; /* that allocate for it few blocks, of few sizes: none of them may stay either */
};

static int memory_run(const struct memory_scenario *s, unsigned fail_at, struct buf *out)
{
	int error;

	memory.count = 0;
	memory.fail_at = fail_at;
	error = s->run(out);
	memory.fail_at = 0;
	return error ? error : out->failed ? -ENOMEM : 0;
}

/* One run with one allocation that fails; returns whether that was told. @live and @files are of before. */
static bool memory_fails_at(const struct memory_scenario *s, unsigned at, const struct buf *wanted, unsigned live, int files)
{
	struct buf got = BUF_EMPTY;
	int error = memory_run(s, at, &got);

	if (error != 0 && error != -ENOMEM)
		fail_msg("%s, allocation %u: error %d", s->name, at, error);
	if (!error && (got.len != wanted->len || (got.len && memcmp(got.data, wanted->data, got.len))))
		fail_msg("%s, allocation %u: no error, but %zu bytes came of it, which are not the %zu wanted", s->name, at,
			 got.len, wanted->len);
	buf_fini(&got);
	if (memory.live != live || open_descriptors() != files)
		fail_msg("%s, allocation %u: %d blocks and %d files stay", s->name, at, (int)(memory.live - live),
			 open_descriptors() - files);
	return error;
}

/* What libraries allocated for us is not counted above, but the heap grows with what stays of it: run after run, and not
 * only until the allocator has what it keeps at hand. */
static void memory_does_not_grow(const struct memory_scenario *s)
{
	size_t before, after = 0;
	int turn = 0;

	do {
		before = mallinfo2().uordblks;
		for (int i = 0; i < LEAK_RUNS; i++) {
			struct buf out = BUF_EMPTY;

			assert_int_equal(memory_run(s, 0, &out), 0);
			buf_fini(&out);
		}
		after = mallinfo2().uordblks;
	} while (after >= before + LEAK_RUNS * 16 && ++turn < 4);
	if (turn == 4)
		fail_msg("%s: the heap grew by %zu bytes", s->name, after - before);
}

/* At most MEMORY_RUNS of the allocations fail, spread evenly. */
static inline void memory_fails_everywhere(const struct memory_scenario *s)
{
	struct buf wanted = BUF_EMPTY;
	unsigned count, live, told = 0, step;
	int files;

	assert_int_equal(memory_run(s, 0, &wanted), 0); /* what is made once for good is there now */
	buf_fini(&wanted);
	live = memory.live;
	files = open_descriptors();
	assert_int_equal(memory_run(s, 0, &wanted), 0);
	count = memory.count;
	live += wanted.data != NULL;
	if (memory.live != live || open_descriptors() != files)
		fail_msg("%s leaks", s->name);
	assert_true(count > 0);
	step = 1 + count / MEMORY_RUNS;
	for (unsigned at = 1; at <= count; at += step) {
		told += memory_fails_at(s, at, &wanted, live, files);
		memory.is_for_good = at / step % 4 == 0;
		if (memory.is_for_good)
			memory_fails_at(s, at, &wanted, live, files);
		memory.is_for_good = false;
	}
	assert_true(told > 0);
	if (s->has_libraries)
		memory_does_not_grow(s);
	buf_fini(&wanted);
}

#endif
