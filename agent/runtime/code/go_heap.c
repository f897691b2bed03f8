/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/code/code_memory.h"
#include "agent/runtime/code/go_heap.h"

enum {
	MEMORY_PROFILE = 1, /* bucket.typ */
	FUTURES = 3,
	TRIES = 4,	       /* at a record that changes */
	REPLY_BYTES = 8 << 20, /* about; half of what a reply may have (ELF_WIRE_MAX_BYTES) */
	LEFT_READS = 64,
};

/* runtime/mprof.go; gdb -batch -ex 'ptype /o struct runtime.bucket' -ex 'ptype /o struct runtime.memRecord' PROGRAM. */
struct bucket {
	uint64_t next, allnext, typ, hash, size, stack_cnt; /* then the stack, and the record */
};

struct cycle {
	uint64_t allocs, frees, alloc_bytes, free_bytes;
};

struct heap_record {
	struct cycle active, future[FUTURES];
};

static bool is_whole(const struct cycle *c, uint64_t size)
{
	return c->alloc_bytes == c->allocs * size && c->free_bytes == c->frees * size;
}

static bool is_whole_record(const struct heap_record *r, uint64_t size)
{
	bool is = is_whole(&r->active, size) && r->active.frees <= r->active.allocs;

	for (int i = 0; i < FUTURES; i++)
		is &= is_whole(&r->future[i], size);
	return is;
}

/* Reads a record, again if it changed meanwhile. 0; -EAGAIN: it changes all the time; or another -errno. */
static int read_record(struct code_memory *m, uint64_t addr, uint64_t size, struct heap_record *ret)
{
	for (int i = 0; i < TRIES; i++) {
		int error = code_read(m, addr, ret, sizeof(*ret));

		if (error || is_whole_record(ret, size))
			return error;
		code_memory_forget(m);
	}
	return -EAGAIN;
}

static int read_bucket(struct code_memory *m, uint64_t addr, struct bucket *ret)
{
	int error = addr % sizeof(uint64_t) ? -EBADMSG : code_read(m, addr, ret, sizeof(*ret));

	if (!error && (ret->typ != MEMORY_PROFILE || ret->stack_cnt > GO_HEAP_STACK || ret->size > INT64_MAX))
		error = -EBADMSG;
	return error;
}

/* Appends the bucket @b, which stands at @addr. Of one that changes all the time nothing is told: -EAGAIN. */
static int add_bucket(struct code_memory *m, uint64_t addr, const struct bucket *b, bool is_known, struct buf *reply)
{
	uint64_t stack[GO_HEAP_STACK], stack_bytes = b->stack_cnt * sizeof(*stack);
	struct go_heap_bucket told = { .addr = addr, .size = b->size, .stack_cnt = is_known ? 0 : (uint32_t)b->stack_cnt };
	struct heap_record record;
	int error = read_record(m, addr + sizeof(*b) + stack_bytes, b->size, &record);

	if (!error && !is_known)
		error = code_read(m, addr + sizeof(*b), stack, stack_bytes);
	if (error)
		return error;
	told.old_allocs = told.allocs = record.active.allocs;
	told.frees = record.active.frees;
	for (int i = 0; i < FUTURES; i++)
		told.allocs += record.future[i].allocs;
	buf_append(reply, &told, sizeof(told));
	buf_append(reply, stack, is_known ? 0 : stack_bytes);
	return reply->failed ? -ENOMEM : 0;
}

static bool has_budget(const struct code_memory *m, const struct buf *reply)
{
	return !m->is_spent && m->reads_left > LEFT_READS && m->bytes_left > LEFT_READS * 4096 && reply->len < REPLY_BYTES;
}

/* Appends buckets from @addr on as far as the budget goes. */
static int add_buckets(struct code_memory *m, const struct go_heap_request *r, uint64_t addr, struct go_heap_head *head,
		       struct buf *reply)
{
	struct bucket b;
	int error;

	head->is_known = r->is_known;
	for (; addr && has_budget(m, reply); addr = b.allnext) {
		head->is_known |= addr == r->known;
		error = read_bucket(m, addr, &b);
		if (!error)
			error = add_bucket(m, addr, &b, head->is_known, reply);
		if (error == -EAGAIN)
			head->torn_cnt++;
		else if (error)
			return error;
		else
			head->count++;
	}
	head->next = addr;
	return 0;
}

int go_heap_read(struct code_memory *m, const struct go_heap_request *request, struct buf *reply)
{
	struct go_heap_head head = { 0 };
	uint64_t first = request->from;
	int error = code_read(m, request->rate, &head.rate, sizeof(head.rate));

	if (!error && !first)
		error = code_read(m, request->buckets, &first, sizeof(first));
	if (error)
		return error;
	buf_append(reply, &head, sizeof(head));
	if (head.rate)
		error = add_buckets(m, request, first, &head, reply);
	if (error || reply->failed)
		return error ? error : -ENOMEM;
	memcpy(reply->data, &head, sizeof(head));
	return 0;
}

bool go_heap_is_sound(const void *reply, size_t len)
{
	const struct go_heap_head *head = reply;
	const uint8_t *at = (const uint8_t *)reply + sizeof(*head), *end = (const uint8_t *)reply + len;

	if (len < sizeof(*head))
		return false;
	for (uint32_t i = 0; i < head->count; i++) {
		const struct go_heap_bucket *b = (const void *)at;

		if ((size_t)(end - at) < sizeof(*b) || b->stack_cnt > GO_HEAP_STACK ||
		    (size_t)(end - at) - sizeof(*b) < b->stack_cnt * sizeof(uint64_t) || b->frees > b->old_allocs)
			return false;
		at += sizeof(*b) + b->stack_cnt * sizeof(uint64_t);
	}
	return at == end;
}
