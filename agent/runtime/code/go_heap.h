/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of their heap that Go programs take themselves, read from their memory: of each size and stack, how much was
 * allocated and freed. They stand in a list of buckets (runtime/mprof.go: mbuckets), which only grows, at its front; buckets
 * are never freed. Layouts are the same from Go 1.18 to 1.26. Whether they hold for the program at hand the numbers
 * themselves tell: in each record bytes are the bucket's size times the number, which also shows a record that changed while
 * it was read.
 *
 * Works in the helper process (code_reader.h says on what terms). No state.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_GO_HEAP_H
#define HEARTH_AGENT_RUNTIME_CODE_GO_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct code_memory;

enum { GO_HEAP_STACK = 1024 /* frames of one stack at most: maxProfStackDepth */ };

struct go_heap_request {
	uint64_t buckets, rate; /* addresses of the two variables */
	uint64_t from;		/* the bucket to begin with; 0: the first */
	uint64_t known;		/* from this bucket on stacks are known, and not told */
	uint64_t is_known;	/* not 0: @from is behind it */
};

/* The answer: this, then @count times a struct go_heap_bucket with the stack behind it. */
struct go_heap_head {
	uint64_t rate;	   /* bytes allocated from one sample to the next, in the mean; 0: none are taken */
	uint64_t next;	   /* the bucket to go on with; 0: there is none */
	uint64_t is_known; /* for the request that goes on */
	uint32_t count;
	uint32_t torn_cnt; /* buckets left out, as they changed again and again */
};

struct go_heap_bucket {
	uint64_t addr;
	uint64_t size;	     /* bytes of each allocation */
	uint64_t allocs;     /* sampled, up to now */
	uint64_t old_allocs; /* of these up to the last collection but one, as the program's own profiles have it ... */
	uint64_t frees;	     /* ... and freed of those up to the last */
	uint32_t stack_cnt;  /* return addresses behind this, innermost first; 0: known */
	uint32_t pad;
};

/* 0; -EBADMSG: that is no list of such buckets; -EFAULT, -EDQUOT, -ENOMEM. What the budget did not reach is told as next. */
int go_heap_read(struct code_memory *m, const struct go_heap_request *request, struct buf *reply);

/* Is the @len bytes @reply what an honest reader may have said? */
bool go_heap_is_sound(const void *reply, size_t len);

#endif
