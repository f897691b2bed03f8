/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An array of items, sorted by time when some are let out (it is nearly sorted already and short). Chunks come before their
 * sample on the same CPU and level; they are chained there until it comes, and forgotten when their sample was lost. Agent's
 * thread.
 */
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "agent/samples/reorder.h"
#include "base/cleanup.h"
#include "base/vec.h"

struct item {
	uint64_t time_ns;
	uint64_t order;			 /* of arrival: qsort is not stable */
	struct pending_sample *sample;	 /* or ... */
	struct side_band_record *record; /* ... or ... */
	struct object_record *object;	 /* ... the others are NULL */
	size_t bytes;			 /* of the sample or object */
	uint32_t pid;			 /* whose these are */
};

struct chunk {
	uint32_t seq;
	uint32_t len;
	uint32_t pid;
	uint64_t addr;
	uint8_t data[];
};

struct chunk_list { /* of one CPU and level */
	struct chunk **chunks;
	uint32_t count, cap;
};

struct pending {
	struct item *items;
	uint32_t count, cap;
	uint64_t added;
	uint32_t samples;
	uint64_t unknown_sections;
	size_t bytes;		  /* of samples and chunks */
	struct process_bytes of;  /* of these, each process's */
	struct chunk_list *lists; /* MAX_LEVELS of each CPU */
	uint32_t cpu_cnt, list_cnt;
};

int pending_new(uint32_t cpus, struct pending **ret)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->cpu_cnt = cpus;
	p->list_cnt = cpus * MAX_LEVELS;
	p->lists = calloc(p->list_cnt, sizeof(*p->lists));
	if (!p->lists) {
		free(p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

static size_t chunk_bytes(uint32_t len)
{
	return sizeof(struct chunk) + len;
}

static void add_bytes(struct pending *p, uint32_t pid, size_t bytes)
{
	p->bytes += bytes;
	*process_bytes(&p->of, pid) += bytes;
}

static void drop_chunks(struct pending *p, struct chunk_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		add_bytes(p, list->chunks[i]->pid, -chunk_bytes(list->chunks[i]->len));
		free(list->chunks[i]);
	}
	list->count = 0;
}

static void item_free(struct pending *p, struct item *item)
{
	add_bytes(p, item->pid, -item->bytes);
	free(item->sample);
	free(item->record);
	free(item->object);
}

void pending_free(struct pending *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->count; i++)
		item_free(p, &p->items[i]);
	for (uint32_t i = 0; i < p->list_cnt; i++) {
		drop_chunks(p, &p->lists[i]);
		free(p->lists[i].chunks);
	}
	free(p->lists);
	free(p->items);
	free(p);
}

static int push(struct pending *p, struct item item)
{
	add_bytes(p, item.pid, item.bytes);
	if (vec_reach(&p->items, &p->cap, p->count)) {
		item_free(p, &item);
		return -ENOMEM;
	}
	item.order = p->added++;
	p->items[p->count++] = item;
	p->samples += item.sample != NULL;
	return 0;
}

int pending_add_side_band(struct pending *p, struct side_band_record *record)
{
	return push(p, (struct item){ .time_ns = record->time_ns, .record = record });
}

static int add_chunk(struct pending *p, struct chunk_list *list, const struct stack_chunk *c)
{
	struct chunk *copy;

	if (c->len > STACK_CHUNK_BYTES || c->hdr.size < CHUNK_HEAD_BYTES + c->len)
		return -EBADMSG;
	if (vec_reach(&list->chunks, &list->cap, list->count))
		return -ENOMEM;
	copy = malloc(chunk_bytes(c->len));
	if (!copy)
		return -ENOMEM;
	copy->seq = c->hdr.seq;
	copy->len = c->len;
	copy->pid = c->pid;
	copy->addr = c->addr;
	memcpy(copy->data, c->data, c->len);
	list->chunks[list->count++] = copy;
	add_bytes(p, c->pid, chunk_bytes(c->len));
	return 0;
}

const struct stack_area *stack_area_find(const struct stack_area *areas, uint32_t area_cnt, uint64_t addr, uint32_t bytes)
{
	for (uint32_t i = 0; i < area_cnt; i++)
		if (areas[i].bytes >= bytes && addr - areas[i].addr <= areas[i].bytes - bytes)
			return &areas[i];
	return NULL;
}

const struct stack_area *stack_area_from(const struct stack_area *areas, uint32_t area_cnt, uint64_t addr)
{
	for (uint32_t i = 0; i < area_cnt; i++)
		if (areas[i].addr >= addr || stack_area_find(&areas[i], 1, addr, 8))
			return &areas[i];
	return NULL;
}

static bool is_chunk_of(const struct chunk *chunk, const struct sample_record *r)
{
	return r->hdr.seq - chunk->seq <= r->chunk_cnt && r->hdr.seq != chunk->seq && chunk->len;
}

/* Adds up the room for the chunks of a sample: at most an area each, and their bytes. Returns how many there are. */
static uint32_t measure_stack(const struct chunk_list *list, const struct sample_record *r, size_t *bytes)
{
	uint32_t count = 0;

	*bytes = 0;
	for (uint32_t i = 0; i < list->count; i++) {
		if (!is_chunk_of(list->chunks[i], r))
			continue;
		count++;
		*bytes += list->chunks[i]->len;
	}
	return count;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct chunk *const *x = a, *const *y = b;

	return ((*x)->addr > (*y)->addr) - ((*x)->addr < (*y)->addr);
}

/* Puts the chunks of @s one behind the other at @dst; those that follow each other in memory as well are one area. A long
 * stack came with its ends first. */
static void copy_stack(struct pending_sample *s, struct stack_area *areas, uint8_t *dst, struct chunk_list *list)
{
	struct stack_area *last = NULL;

	if (list->count)
		qsort(list->chunks, list->count, sizeof(struct chunk *), compare_addresses);
	for (uint32_t i = 0; i < list->count; i++) {
		const struct chunk *c = list->chunks[i];

		if (!is_chunk_of(c, s->record))
			continue;
		memcpy(dst, c->data, c->len);
		if (last && last->addr + last->bytes == c->addr) {
			last->bytes += c->len;
		} else {
			last = &areas[s->area_cnt++];
			*last = (struct stack_area){ c->addr, c->len, dst };
		}
		dst += c->len;
	}
	s->areas = areas;
}

static int add_sample(struct pending *p, struct chunk_list *list, const struct record *record)
{
	struct pending_sample parsed, *s;
	struct sample_record *copy;
	size_t stack_bytes, bytes;
	uint32_t area_cnt;

	if (record_parse(record, &parsed))
		return -EBADMSG;
	area_cnt = measure_stack(list, parsed.record, &stack_bytes);
	bytes = sizeof(*s) + area_cnt * sizeof(struct stack_area) + record->size + stack_bytes;
	s = malloc(bytes);
	if (!s)
		return -ENOMEM;
	copy = (void *)((uint8_t *)(s + 1) + area_cnt * sizeof(struct stack_area));
	memcpy(copy, record, record->size);
	(void)record_parse(&copy->hdr, s); /* as the original was */
	if (s->wakes)			   /* before the samples of those that were woken, wherever these ran */
		copy->hdr.time_ns = s->wakes[0].woken_ns;
	if (area_cnt < copy->chunk_cnt) /* nobody had room for the others */
		copy->flags |= SAMPLE_LIMITED;
	copy_stack(s, (struct stack_area *)(s + 1), (uint8_t *)copy + record->size, list);
	p->unknown_sections += s->unknown_cnt;
	return push(p, (struct item){ .time_ns = copy->hdr.time_ns, .sample = s, .bytes = bytes, .pid = copy->pid });
}

static int add_object(struct pending *p, const struct record *record)
{
	struct object_record *copy;

	if (record->size < sizeof(*copy) || record->size > MAX_RECORD_BYTES)
		return -EBADMSG;
	copy = malloc(record->size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, record, record->size);
	return push(p, (struct item){ .time_ns = record->time_ns, .object = copy, .bytes = record->size, .pid = copy->pid });
}

int pending_add(struct pending *p, const struct record *record)
{
	struct chunk_list *list;
	int error;

	if (record->version != RECORD_VERSION || record->cpu >= p->cpu_cnt || record->level >= MAX_LEVELS)
		return -EBADMSG;
	list = &p->lists[record->cpu * MAX_LEVELS + record->level];
	if (record->kind == RECORD_STACK_CHUNK && record->size >= CHUNK_HEAD_BYTES)
		return add_chunk(p, list, (const void *)record);
	if (record->kind == RECORD_OBJECT)
		return add_object(p, record);
	if (record->kind != RECORD_SAMPLE)
		return -EBADMSG;
	error = add_sample(p, list, record);
	drop_chunks(p, list);
	return error;
}

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (!x->sample != !y->sample)
		return x->sample ? 1 : -1;
	return (x->order > y->order) - (x->order < y->order);
}

void pending_release(struct pending *p, uint64_t before_ns, const struct pending_ops *ops, void *arg)
{
	uint32_t i;

	if (!p->count)
		return;
	qsort(p->items, p->count, sizeof(*p->items), compare);
	for (i = 0; i < p->count && p->items[i].time_ns < before_ns; i++) {
		struct item *item = &p->items[i];

		if (item->sample) {
			if (ops->sample(arg, item->sample))
				break;
			p->samples--;
		} else if (item->object) {
			ops->object(arg, item->object);
		} else {
			ops->side_band(arg, item->record);
		}
		item_free(p, item);
	}
	memmove(p->items, p->items + i, (p->count - i) * sizeof(*p->items));
	p->count -= i;
}

uint32_t pending_samples(const struct pending *p)
{
	return p->samples;
}

uint64_t pending_unknown_sections(const struct pending *p)
{
	return p->unknown_sections;
}

size_t pending_bytes(const struct pending *p)
{
	return p->bytes;
}

size_t pending_bytes_of(const struct pending *p, uint32_t pid)
{
	return *process_bytes((struct process_bytes *)(uintptr_t)&p->of, pid);
}

bool pending_is_empty(const struct pending *p)
{
	return !p->count;
}

size_t pending_memory_bytes(const struct pending *p)
{
	size_t bytes = sizeof(*p) + p->list_cnt * sizeof(*p->lists) + p->cap * sizeof(*p->items);

	for (uint32_t i = 0; i < p->count; i++)
		bytes += malloc_usable_size(p->items[i].sample) + malloc_usable_size(p->items[i].record) +
			 malloc_usable_size(p->items[i].object);
	for (uint32_t i = 0; i < p->list_cnt; i++) {
		bytes += p->lists[i].cap * sizeof(*p->lists[i].chunks);
		for (uint32_t k = 0; k < p->lists[i].count; k++)
			bytes += sizeof(struct chunk) + p->lists[i].chunks[k]->len;
	}
	return bytes;
}
