/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget of bodies. A claim is closed when it will not ask for more: then it goes by itself, when its request is done,
 * whatever others do. A claim is open while it holds something and may ask for more: a body of unknown length, or one to be
 * decompressed. Only among open claims could each wait for what the others hold. Therefore:
 *
 *   1. Nothing is granted beyond limit.
 *   2. Open claims hold at most limit - 2 x largest, one of them apart: the privileged one.
 *   3. Room is granted to the privileged one, then to others that hold something, then to new ones, each group by age;
 *      nobody is granted anything while an older one of these waits for rule 1.
 *
 * A decoded request takes more than its body, and how much is known only then: its claim is set to that size, and the budget
 * may be overdrawn by one request; the next is decoded when it no longer is.
 *
 * So no deadlock: an open claim asks for no more than 2 x largest in all (a body, then what it is decompressed to). When
 * everything waits, closed claims go by themselves; then used = what the open ones hold <= limit - 2 x largest + what the
 * privileged one holds, and whatever it may still ask for fits, until it is closed. Then the next open claim that rule 2
 * holds back becomes the privileged one. When there is none, rule 2 holds nobody back.
 *
 * Nothing starves: within a group the first is served first, and each privileged claim ends (receivers bound the time of a
 * request). Grants after a wait are made by work posted to the loop, so that giving back memory calls nobody back.
 */
#include "backend/ingest/budget.h"

#include <stddef.h>

#include "base/metrics.h"

static void list_add(struct claim_list *list, struct claim *c)
{
	c->list = list;
	c->next = NULL;
	c->link = list->end;
	*list->end = c;
	list->end = &c->next;
}

static void list_remove(struct claim *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	else
		c->list->end = c->link;
	c->list = NULL;
}

static bool fits(const struct budget *b, size_t bytes)
{
	return b->used_bytes <= b->limit_bytes && bytes <= b->limit_bytes - b->used_bytes;
}

/* Whether rule 2 lets @c grow; makes @c the privileged one if that helps. */
static bool may_grow(struct budget *b, struct claim *c)
{
	size_t most = b->limit_bytes - 2 * b->largest_bytes;

	if (!c->is_open || c == b->privileged)
		return true;
	if (b->growing_bytes <= most && c->wanted <= most - b->growing_bytes)
		return true;
	if (b->privileged)
		return false;
	b->privileged = c;
	b->growing_bytes -= c->bytes;
	return true;
}

static void hold(struct claim *c, size_t bytes)
{
	struct budget *b = c->budget;

	b->used_bytes += bytes - c->bytes;
	if (c->is_open && c != b->privileged)
		b->growing_bytes += bytes - c->bytes;
	c->bytes = bytes;
	metric_set(b->used_metric, b->used_bytes);
}

static void stop_waiting(struct claim *c)
{
	if (c->list)
		list_remove(c);
	c->wanted = 0;
}

/* --- who waits is served --- */

enum served { SERVED, BLOCKED, PASSED };

static enum served serve(struct budget *b, struct claim *c)
{
	size_t bytes = c->wanted;

	if (!may_grow(b, c))
		return PASSED;
	if (!fits(b, bytes))
		return BLOCKED;
	stop_waiting(c);
	hold(c, c->bytes + bytes);
	c->granted(c);
	return SERVED;
}

/* Serves the first claim that can be served; false when there is none. */
static bool serve_one(struct budget *b)
{
	struct claim_list *lists[] = { &b->growing, &b->waiting };

	if (b->settling.first && !budget_is_overdrawn(b))
		return serve(b, b->settling.first) == SERVED;
	if (b->privileged && b->privileged->list) {
		enum served served = serve(b, b->privileged);
		if (served != PASSED)
			return served == SERVED;
	}
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (struct claim *c = lists[i]->first; c; c = c->next) {
			enum served served = serve(b, c);
			if (served != PASSED)
				return served == SERVED;
		}
	}
	return false;
}

static void on_work(struct loop_work *work)
{
	struct budget *b = (struct budget *)((char *)work - offsetof(struct budget, work));

	b->posted = false;
	while (serve_one(b))
		;
}

/* Has waiting claims served on the loop; called when memory was given back. */
static void post(struct budget *b)
{
	if (b->posted || (!b->settling.first && !b->growing.first && !b->waiting.first))
		return;
	b->posted = true;
	loop_post(b->loop, &b->work);
}

/* --- public --- */

void budget_init(struct budget *b, struct loop *loop, size_t limit_bytes, size_t largest_bytes)
{
	size_t least;

	if (__builtin_mul_overflow(largest_bytes, 2, &least))
		least = SIZE_MAX;
	*b = (struct budget){
		.loop = loop,
		.limit_bytes = limit_bytes > least ? limit_bytes : least,
		.largest_bytes = least / 2,
		.work.fn = on_work,
	};
	b->settling.end = &b->settling.first;
	b->growing.end = &b->growing.first;
	b->waiting.end = &b->waiting.first;
}

void claim_init(struct claim *c, struct budget *b, void (*granted)(struct claim *claim))
{
	*c = (struct claim){ .budget = b, .granted = granted };
}

/* The list in which @c would have to wait; NULL: none. */
static struct claim_list *queue_of(struct budget *b, struct claim *c)
{
	bool is_first = c->bytes ? !b->growing.first : !b->growing.first && !b->waiting.first;

	if (!c->wanted)
		return budget_is_overdrawn(b) ? &b->settling : NULL;
	if ((is_first || c == b->privileged) && may_grow(b, c) && fits(b, c->wanted))
		return NULL;
	return c->bytes ? &b->growing : &b->waiting;
}

bool claim_more(struct claim *c, size_t bytes)
{
	struct budget *b = c->budget;
	struct claim_list *queue;

	c->wanted = bytes;
	queue = queue_of(b, c);
	if (!queue) {
		c->wanted = 0;
		hold(c, c->bytes + bytes);
		return true;
	}
	list_add(queue, c);
	metric_add(b->waits_metric, 1);
	post(b);
	return false;
}

void claim_open(struct claim *c)
{
	if (c->is_open)
		return;
	c->is_open = true;
	c->budget->growing_bytes += c->bytes;
}

void claim_close(struct claim *c)
{
	struct budget *b = c->budget;

	if (!c->is_open)
		return;
	c->is_open = false;
	if (c == b->privileged)
		b->privileged = NULL;
	else
		b->growing_bytes -= c->bytes;
	post(b);
}

void claim_set(struct claim *c, size_t bytes)
{
	bool less = bytes < c->bytes;

	stop_waiting(c);
	hold(c, bytes);
	if (less)
		post(c->budget);
}

void claim_fini(struct claim *c)
{
	if (!c->budget)
		return;
	stop_waiting(c);
	claim_close(c);
	if (c->bytes)
		claim_set(c, 0);
}

void claim_move(struct claim *to, struct claim *from)
{
	to->budget = from->budget;
	to->bytes = from->bytes;
	to->is_open = from->is_open;
	if (from->budget->privileged == from)
		from->budget->privileged = to;
	from->bytes = 0;
	from->is_open = false;
}
