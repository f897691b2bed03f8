/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk over the samples collects events, threads and stacks; a stack is copied the first time its index comes, a thread
 * found by its pid, tid and name.
 */
#include "proto/sums/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"
#include "proto/sums/view.h"

struct collector {
	struct timeline *t;
	struct intern *threads; /* key: pid, tid, name */
	uint32_t *stack_of;	/* by index of the dictionary: index + 1 */
	struct buf key;
	size_t thread_cap, event_cap, stack_cap, frame_id_cap;
};

static struct str process_of(const struct stack_sample *s)
{
	return profiles_value_text(
		s->profiles, profiles_find_key(s->profiles, &s->resource->resource.attributes, "process.executable.name"));
}

static int thread_of(struct collector *c, const struct stack_sample *s, uint32_t *ret)
{
	struct timeline *t = c->t;
	struct timeline_thread thread = {
		.pid = s->pid, .tid = view_sample_number(s, "thread.id"), .comm = s->comm, .process = process_of(s)
	};
	int is_new;

	buf_reset(&c->key);
	buf_append(&c->key, &thread.pid, sizeof(thread.pid));
	buf_append(&c->key, &thread.tid, sizeof(thread.tid));
	buf_append(&c->key, thread.comm.data, thread.comm.len);
	is_new = c->key.failed ? -ENOMEM : intern_add(c->threads, c->key.data, c->key.len, ret);
	if (is_new > 0) {
		if (vec_reach(&t->threads, &c->thread_cap, t->thread_count))
			return -ENOMEM;
		t->threads[t->thread_count++] = thread;
	}
	return is_new < 0 ? is_new : 0;
}

static int stack_of(struct collector *c, const struct stack_sample *s, uint32_t *ret)
{
	struct timeline *t = c->t;
	uint32_t *known = &c->stack_of[s->sample->stack_index];

	if (*known) {
		*ret = *known - 1;
		return 0;
	}
	if (vec_reach(&t->stacks, &c->stack_cap, t->stack_count) ||
	    vec_reserve(&t->frame_ids, &c->frame_id_cap, t->frame_id_count + s->frame_count))
		return -ENOMEM;
	t->stacks[t->stack_count] = (struct timeline_stack){ (uint32_t)t->frame_id_count, s->frame_count };
	for (uint32_t i = 0; i < s->frame_count; i++) {
		t->frames[s->frame_ids[i]] = *stack_frame(s, i);
		t->frame_ids[t->frame_id_count++] = s->frame_ids[i];
	}
	*ret = (uint32_t)t->stack_count++;
	*known = *ret + 1;
	return 0;
}

static int on_sample(void *arg, const struct stack_sample *s)
{
	struct collector *c = arg;
	struct timeline *t = c->t;
	uint64_t cpu_ns = t->sum.cpu_ns, each, count = s->sample->timestamp_count ? s->sample->timestamp_count : 1;
	struct timeline_event event;
	int err;

	if (!stack_weight_add(&t->sum, s))
		return 0;
	cpu_ns = t->sum.cpu_ns - cpu_ns;
	each = (t->is_time ? cpu_ns : s->weight) / count;
	event = (struct timeline_event){ .weight = each,
					 .samples = s->events / count,
					 .cpu = (int32_t)view_sample_number(s, "cpu.logical_number") };
	err = thread_of(c, s, &event.thread);
	if (!err)
		err = stack_of(c, s, &event.stack);
	if (!err)
		err = vec_reserve(&t->events, &c->event_cap, t->event_count + count);
	for (uint64_t i = 0; !err && i < count; i++) {
		event.time_unix_ns = stack_time(s, i);
		t->events[t->event_count++] = event;
	}
	return err;
}

/* Has the first sample a time? */
static int find_unit(void *arg, const struct stack_sample *s)
{
	struct weight_sum sum = { .type = "" };

	stack_weight_add(&sum, s);
	*(bool *)arg = sum.cpu_ns != 0;
	return 1;
}

static int by_thread(const void *a, const void *b)
{
	const struct timeline_event *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->time_unix_ns > y->time_unix_ns) - (x->time_unix_ns < y->time_unix_ns);
}

static int by_time(const void *a, const void *b)
{
	const struct timeline_event *x = a, *y = b;

	if (x->time_unix_ns != y->time_unix_ns)
		return x->time_unix_ns < y->time_unix_ns ? -1 : 1;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

int timeline_new(const struct profiles *p, struct timeline **ret)
{
	struct collector c = { .t = calloc(1, sizeof(*c.t)) };
	int err = -ENOMEM;

	if (!c.t)
		return err;
	c.threads = intern_new();
	c.stack_of = calloc(p->dict.stack_count, sizeof(*c.stack_of));
	c.t->frame_count = stack_walk_frame_count(p);
	c.t->frames = calloc(c.t->frame_count, sizeof(*c.t->frames));
	for (size_t i = 0; c.t->frames && i < c.t->frame_count; i++) /* those that no sample has stay so */
		c.t->frames[i] = (struct frame){ .function = STR(""), .file = STR(""), .module = STR(""), .type = STR("") };
	if (c.threads && c.stack_of && c.t->frames)
		err = stack_walk_each(p, find_unit, &c.t->is_time);
	if (err >= 0)
		err = stack_walk_each(p, on_sample, &c);
	if (!err && c.t->event_count)
		qsort(c.t->events, c.t->event_count, sizeof(*c.t->events), by_thread);
	intern_free(c.threads);
	free(c.stack_of);
	buf_fini(&c.key);
	if (err)
		timeline_free(c.t);
	else
		*ret = c.t;
	return err;
}

void timeline_sort_by_time(struct timeline *t)
{
	if (t->event_count)
		qsort(t->events, t->event_count, sizeof(*t->events), by_time);
}

void timeline_free(struct timeline *t)
{
	if (!t)
		return;
	free(t->threads);
	free(t->events);
	free(t->stacks);
	free(t->frame_ids);
	free(t->frames);
	free(t);
}
