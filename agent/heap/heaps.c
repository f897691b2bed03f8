/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket of a program's list is kept with its stack and with what was told of it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/helper/code_service.h"
#include "agent/heap/heaps.h"
#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_root.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/text/stat_start.h"
#include "base/vec.h"

enum {
	MAX_REQUESTS = 8, /* to the reader, for one heap */
	MAX_BUCKETS = 1 << 17,
	MAX_PCS = 1 << 22,
	SILENT_TOLD = 5, /* programs without samples are named, of more the metrics have the number */
};

struct heap_bucket {
	uint64_t addr, size;
	uint64_t allocs, told, in_use; /* sampled allocations: all, those that were told, those not freed yet */
	uint32_t first_pc, pc_cnt;
	uint32_t pass; /* when it was read last */
};

struct heap {
	struct heap *next;
	struct heaps *all;
	struct process *process; /* a reference */
	struct file *file;	 /* a reference: the program */
	uint64_t bias;
	uint32_t number; /* by which the reader knows the memory */
	int memory_fd;
	uint64_t rate;	 /* see struct go_heap_head */
	uint64_t newest; /* the bucket that was the first when all were read */
	uint32_t pass;
	bool is_over;	    /* the process has gone, or runs another program */
	bool is_refused;    /* it cannot be read: not tried again */
	bool is_wanted;	    /* was seen in the last look at all processes */
	bool is_old;	    /* the process was there before sampling, and was not read yet */
	bool is_told;	    /* that it takes no samples */
	struct map by_addr; /* address -> 1 + index of its bucket */
	struct heap_bucket *buckets;
	uint32_t bucket_cnt, bucket_cap;
	uint64_t *pcs;
	uint32_t pc_cnt, pc_cap;
};

struct heaps {
	struct intake *in;
	uint32_t first_kind;
	bool only_sampled, at_end;
	uint64_t since_ticks; /* when sampling began, as /proc/PID/stat tells times */
	struct heap *list;
	uint32_t silent_told;
	struct metric *read, *silent, *refused, *torn, *left_out;
};

/* --- life --- */

/* Ticks from boot to the start of @pid. 0: not known. */
static uint64_t start_ticks(uint32_t pid)
{
	uint64_t ticks = 0;
	char text[1024];

	if (proc_read_text(pid, pid, "stat", text, sizeof(text)) > 0)
		(void)stat_start_ticks(text, &ticks);
	return ticks;
}

static uint64_t now_ticks(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * (uint64_t)sysconf(_SC_CLK_TCK);
}

int heaps_new(struct intake *in, uint32_t first_kind, bool only_sampled, bool at_end, struct metrics *metrics,
	      struct heaps **ret)
{
	struct heaps *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	*h = (struct heaps){
		.in = in,
		.first_kind = first_kind,
		.only_sampled = only_sampled,
		.at_end = at_end,
		.since_ticks = now_ticks(),
		.read = metrics_counter(metrics, "hearth_heap_reads_total", NULL,
					"Times the heap samples of a program were read."),
		.silent = metrics_counter(metrics, "hearth_heap_silent_total", NULL,
					  "Go programs met that take no samples of their heap."),
		.refused = metrics_counter(metrics, "hearth_heap_refused_total", NULL,
					   "Times the heap samples of a program could not be read."),
		.torn = metrics_counter(metrics, "hearth_heap_torn_total", NULL,
					"Heap samples left out of one report, as they changed while they were read."),
		.left_out = metrics_counter(metrics, "hearth_heap_left_out_total", NULL,
					    "Times there was no time or room for all heap samples of a program."),
	};
	*ret = h;
	return 0;
}

static void heap_free(struct heap *heap)
{
	process_put(heap->process);
	file_put(heap->file);
	if (heap->memory_fd >= 0)
		close(heap->memory_fd);
	map_fini(&heap->by_addr);
	free(heap->buckets);
	free(heap->pcs);
	free(heap);
}

void heaps_free(struct heaps *h)
{
	if (!h)
		return;
	while (h->list) {
		struct heap *heap = h->list;

		h->list = heap->next;
		heap_free(heap);
	}
	free(h);
}

/* --- which processes --- */

static const struct mapping *find_program(const struct process *p)
{
	for (uint32_t i = 0; i < p->as->count; i++) {
		const struct file *file = p->as->maps[i].file;

		if (file && !file->is_unread && !file->code && file->info.runtime.go_heap.buckets)
			return &p->as->maps[i];
	}
	return NULL;
}

static struct heap *find_heap(const struct heaps *h, const struct process *p, const struct mapping *program)
{
	for (struct heap *heap = h->list; heap; heap = heap->next)
		if (heap->process == p && heap->file == program->file && heap->bias == program->bias && !heap->is_over)
			return heap;
	return NULL;
}

static struct heap *heap_new(struct heaps *h, struct process *p, const struct mapping *program)
{
	struct heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return NULL;
	heap->all = h;
	heap->process = process_get(p);
	heap->file = file_get(program->file);
	heap->bias = program->bias;
	heap->number = code_spaces_take_number(h->in->code);
	heap->memory_fd = proc_open(p->pid, p->pid, "mem");
	heap->is_old = start_ticks(p->pid) < h->since_ticks;
	heap->is_over = heap->memory_fd < 0;
	heap->next = h->list;
	h->list = heap;
	return heap;
}

/* May @p be told of? Filters but that for processes ask what only a sample knows. */
static bool is_chosen(const struct heaps *h, const struct process *p)
{
	if (p->has_exited || p->is_outside)
		return false;
	return !h->only_sampled || p->is_met || sampler_filter_has(h->in->sampler, p->pid);
}

static void meet(void *arg, struct process *p)
{
	struct heaps *h = arg;
	const struct mapping *program = is_chosen(h, p) ? find_program(p) : NULL;
	struct heap *heap = program ? find_heap(h, p, program) : NULL;

	if (program && !heap)
		heap = heap_new(h, p, program);
	if (heap)
		heap->is_wanted = true;
}

/* --- reading --- */

/* The bucket of @told, made if it is new. NULL: without its stack, or without room. */
static struct heap_bucket *find_bucket(struct heap *heap, const struct go_heap_bucket *told, const uint64_t *stack)
{
	uintptr_t known = (uintptr_t)map_get(&heap->by_addr, told->addr);
	struct heap_bucket *b;

	if (known)
		return &heap->buckets[known - 1];
	if (!told->stack_cnt || heap->bucket_cnt >= MAX_BUCKETS || heap->pc_cnt + told->stack_cnt > MAX_PCS ||
	    vec_reach(&heap->buckets, &heap->bucket_cap, heap->bucket_cnt) ||
	    vec_reserve(&heap->pcs, &heap->pc_cap, heap->pc_cnt + told->stack_cnt) ||
	    map_put(&heap->by_addr, told->addr, (void *)(uintptr_t)(heap->bucket_cnt + 1)))
		return NULL;
	b = &heap->buckets[heap->bucket_cnt++];
	*b = (struct heap_bucket){
		.addr = told->addr, .size = told->size, .first_pc = heap->pc_cnt, .pc_cnt = told->stack_cnt
	};
	memcpy(heap->pcs + heap->pc_cnt, stack, told->stack_cnt * sizeof(*stack));
	heap->pc_cnt += told->stack_cnt;
	return b;
}

/* Takes the buckets of @reply, which is sound. -EBADMSG: one comes again, so that it is no list. */
static int take_buckets(struct heap *heap, const struct buf *reply, uint64_t *first)
{
	const struct go_heap_head *head = (const void *)reply->data;
	const uint8_t *at = (const uint8_t *)(head + 1);

	for (uint32_t i = 0; i < head->count; i++) {
		const struct go_heap_bucket *told = (const void *)at;
		struct heap_bucket *b = find_bucket(heap, told, (const uint64_t *)(told + 1));

		at += sizeof(*told) + told->stack_cnt * sizeof(uint64_t);
		if (!*first)
			*first = told->addr;
		if (!b) {
			metric_add(heap->all->left_out, 1);
			continue;
		}
		if (b->pass == heap->pass)
			return -EBADMSG;
		b->pass = heap->pass;
		/* While a cycle is added to those before it may be seen twice: the sum then goes back the next time. */
		b->allocs = told->allocs;
		b->in_use = told->old_allocs - told->frees;
	}
	metric_add(heap->all->torn, head->torn_cnt);
	return 0;
}

/* Reads the whole list, new stacks with it. 0 or -errno. */
static int read_heap(struct heap *heap)
{
	const struct code_request request = { .op = CODE_OP_HEAP };
	struct go_heap_request what = { .buckets = heap->file->info.runtime.go_heap.buckets + heap->bias,
					.rate = heap->file->info.runtime.go_heap.rate + heap->bias,
					.known = heap->newest };
	uint64_t first = 0;

	heap->pass++;
	for (int i = 0; i < MAX_REQUESTS; i++) {
		const struct go_heap_head *head;
		const struct buf *reply;
		int error = code_spaces_read(heap->all->in->code, heap->number, heap->memory_fd, &request, &what,
					     sizeof(what), &reply);

		if (error)
			return error;
		head = (const void *)reply->data;
		heap->rate = head->rate;
		error = take_buckets(heap, reply, &first);
		if (error)
			return error;
		if (!head->next) {
			heap->newest = first;
			return 0;
		}
		what.from = head->next;
		what.is_known = head->is_known;
	}
	metric_add(heap->all->left_out, 1);
	return 0;
}

/* --- telling --- */

/* How many allocations of @size a sampled one stands for: Go samples each byte with the same chance (runtime/pprof,
 * scaleHeapSample). */
static double scale_of(uint64_t size, uint64_t rate)
{
	return rate > 1 && size ? -1 / expm1(-(double)size / (double)rate) : 1;
}

static void add_pair(struct pending_sample *s, uint64_t pairs[2 * HEAP_KINDS], uint32_t kind, double value)
{
	uint64_t rounded = (uint64_t)llround(value);

	if (!rounded)
		return;
	pairs[2 * s->more_cnt] = kind;
	pairs[2 * s->more_cnt++ + 1] = rounded;
}

static void tell_bucket(struct heap *heap, struct heap_bucket *b, bool in_use, struct sample_record *record)
{
	double scale = scale_of(b->size, heap->rate),
	       allocs = b->allocs > b->told ? (double)(b->allocs - b->told) * scale : 0,
	       used = in_use ? (double)b->in_use * scale : 0;
	struct sample_sum *made = heap->all->in->counts.made;
	uint32_t kind = heap->all->first_kind;
	uint64_t pairs[2 * HEAP_KINDS];
	struct pending_sample s = {
		.record = record, .user = heap->pcs + b->first_pc, .user_cnt = b->pc_cnt, .is_logical = true
	};

	if (b->allocs > b->told)
		b->told = b->allocs;
	add_pair(&s, pairs, kind + HEAP_ALLOC_OBJECTS, allocs);
	add_pair(&s, pairs, kind + HEAP_ALLOC_SPACE, allocs * (double)b->size);
	add_pair(&s, pairs, kind + HEAP_INUSE_OBJECTS, used);
	add_pair(&s, pairs, kind + HEAP_INUSE_SPACE, used * (double)b->size);
	if (!s.more_cnt)
		return;
	record->kind = (uint16_t)pairs[0];
	s.value = pairs[1];
	s.more = pairs + 2;
	s.more_cnt--;
	for (uint32_t i = 0; i <= s.more_cnt; i++) {
		made[pairs[2 * i]].samples++;
		made[pairs[2 * i]].value += pairs[2 * i + 1];
	}
	(void)intake_add(heap->all->in, heap->process, &s, s.user, s.user_cnt, END_ROOT);
}

static void tell_heap(struct heap *heap, bool in_use)
{
	const struct process *p = heap->process;
	struct sample_record record = { .hdr = { .kind = RECORD_SAMPLE, .time_ns = clock_mono_ns() },
					.pid = p->pid,
					.tid = p->pid,
					.asid = p->as->asid,
					.end = END_ROOT };

	memcpy(record.comm, p->comm, sizeof(record.comm));
	for (uint32_t i = 0; i < heap->bucket_cnt; i++)
		tell_bucket(heap, &heap->buckets[i], in_use, &record);
}

/* All that was allocated so far counts as told. */
static void skip_allocated(struct heap *heap)
{
	for (uint32_t i = 0; i < heap->bucket_cnt; i++)
		heap->buckets[i].told = heap->buckets[i].allocs;
}

static void tell_silent(struct heap *heap)
{
	if (heap->is_told)
		return;
	heap->is_told = true;
	metric_add(heap->all->silent, 1);
	if (heap->all->silent_told++ < SILENT_TOLD)
		log_info("process %u (%s) takes no samples of its heap: its runtime.MemProfileRate is 0, as it is where "
			 "nothing "
			 "in a program can ask for a heap profile",
			 heap->process->pid, heap->file->path);
}

static void refuse(struct heap *heap, int error)
{
	static struct log_limit limit;

	metric_add(heap->all->refused, 1);
	heap->is_over = error == -EFAULT || error == -ESRCH;
	heap->is_refused = !heap->is_over;
	if (heap->is_over)
		return;
	log_limited(&limit, 60 * NSEC_PER_SEC, LOG_WARN, "process %u (%s): the samples of its heap cannot be read: %s",
		    heap->process->pid, heap->file->path,
		    error == -EBADMSG ? "they do not look as those of Go 1.18 to 1.26" : strerror(-error));
}

/* Forgets the heaps of processes that are gone, or that cannot be read. */
static void drop_unwanted(struct heaps *h)
{
	for (struct heap **link = &h->list; *link;) {
		struct heap *heap = *link;

		if (heap->is_wanted && !heap->is_over) {
			link = &heap->next;
			continue;
		}
		if (h->at_end) /* what was in use when it was read last */
			tell_heap(heap, true);
		*link = heap->next;
		heap_free(heap);
	}
}

void heaps_read(struct heaps *h, enum heaps_moment moment)
{
	for (struct heap *heap = h->list; heap; heap = heap->next)
		heap->is_wanted = false;
	processes_each(h->in->processes, meet, h);
	drop_unwanted(h);
	for (struct heap *heap = h->list; heap; heap = heap->next) {
		int error;

		if (heap->is_refused)
			continue;
		error = read_heap(heap);
		metric_add(h->read, 1);
		if (error)
			refuse(heap, error);
		else if (!heap->rate)
			tell_silent(heap);
		else if (moment == HEAPS_BEGIN || heap->is_old)
			skip_allocated(heap);
		if (moment != HEAPS_BEGIN && (!error || (h->at_end && moment == HEAPS_END)))
			tell_heap(heap, !h->at_end || moment == HEAPS_END);
		heap->is_old = false;
		intake_read_ahead(h->in);
	}
}
