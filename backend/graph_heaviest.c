/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing only what can be among the heaviest nodes, for a picture that shows so many. The weights of stacks are added up to
 * their callers first, in the order of the store's numbers from the last on, so that each stack knows what it weighs with
 * all it calls. Then the tree is opened from the root, the heaviest node first: its callees become nodes. It ends where all
 * that is closed weighs less than the @most heaviest that were opened: nothing below can weigh more than that.
 *
 * What this costs beyond the adding up is linear in the nodes that are shown and their callees, not in all there are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/graph_internal.h"
#include "backend/store.h"

enum { FIRST_WAITING = 1024, NEIGHBOURS = 4096 };

/* --- heaps: the heaviest first with @sign 1, the lightest with -1 --- */

static bool is_before(const struct graph_waiting *a, const struct graph_waiting *b, int sign)
{
	return sign > 0 ? a->weight > b->weight : a->weight < b->weight;
}

static void sift_up(struct graph_waiting *heap, size_t at, int sign)
{
	const struct graph_waiting item = heap[at];

	for (; at && is_before(&item, &heap[(at - 1) / 2], sign); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = item;
}

/* The item at the front has changed. */
static void sift_down(struct graph_waiting *heap, size_t count, int sign)
{
	const struct graph_waiting item = heap[0];
	size_t at = 0;

	for (size_t next; (next = 2 * at + 1) < count; at = next) {
		next += next + 1 < count && is_before(&heap[next + 1], &heap[next], sign);
		if (!is_before(&heap[next], &item, sign))
			break;
		heap[at] = heap[next];
	}
	heap[at] = item;
}

static int push_waiting(struct graph *g, uint32_t node)
{
	if (g->waiting_count == g->waiting_cap) {
		size_t cap = g->waiting_cap ? 2 * g->waiting_cap : FIRST_WAITING;
		struct graph_waiting *grown = reallocarray(g->waiting, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		g->waiting = grown;
		g->waiting_cap = cap;
	}
	g->waiting[g->waiting_count] = (struct graph_waiting){ g->nodes[node].total[0], node };
	sift_up(g->waiting, g->waiting_count++, 1);
	return 0;
}

static struct graph_waiting pop_waiting(struct graph *g)
{
	const struct graph_waiting first = g->waiting[0];

	g->waiting[0] = g->waiting[--g->waiting_count];
	if (g->waiting_count)
		sift_down(g->waiting, g->waiting_count, 1);
	return first;
}

/* Keeps the weights of the @most heaviest that were opened. */
static void note_opened(struct graph *g, int64_t weight)
{
	if (g->heaviest_count < g->most) {
		g->heaviest[g->heaviest_count].weight = weight;
		sift_up(g->heaviest, g->heaviest_count++, -1);
	} else if (weight > g->heaviest[0].weight) {
		g->heaviest[0].weight = weight;
		sift_down(g->heaviest, g->heaviest_count, -1);
	}
}

static bool is_shown(const struct graph *g, int64_t weight)
{
	return g->heaviest_count < g->most || weight >= g->heaviest[0].weight;
}

/* --- adding up --- */

void graph_mark(struct graph *g, uint32_t stack)
{
	const uint64_t bit = 1ull << (stack % 64);

	if (g->marks[stack / 64] & bit)
		return;
	g->marks[stack / 64] |= bit;
	if (!stack)
		return;
	g->stacks[stack].child = g->stacks[stack].below = 0;
	g->weights[0][stack] = 0;
}

static int ask_stack(struct graph *g, uint32_t number)
{
	struct graph_stack *stack = &g->stacks[number];
	uint32_t parent;
	int err = stack->caller ? 0 : g->store->ops->node(g->store, number, &parent, &stack->frame);

	if (stack->caller || err)
		return err;
	if (parent >= number)
		return -EBADMSG;
	stack->caller = parent + 1;
	return 0;
}

/* Groups come one after another and each has stacks all over, so for them stacks are asked about by the neighbourhood: the
 * store has them packed many together. */
static int ask_stacks(struct graph *g, uint32_t number)
{
	uint32_t at = number & ~(uint32_t)(NEIGHBOURS - 1);
	const uint32_t end = at + NEIGHBOURS < g->stack_count ? at + NEIGHBOURS : g->stack_count;
	int err = ask_stack(g, number);

	for (at = at ? at : 1; g->top && at < end && !err; at++) {
		if (ask_stack(g, at) == -ENOMEM) /* what else goes wrong with others is theirs */
			err = -ENOMEM;
	}
	return err;
}

static int add_up_stack(struct graph *g, uint32_t number)
{
	struct graph_stack *stack = &g->stacks[number], *caller;
	int err = stack->caller ? 0 : ask_stacks(g, number);

	if (err)
		return err;
	graph_mark(g, stack->caller - 1);
	caller = &g->stacks[stack->caller - 1];
	g->weights[0][stack->caller - 1] += g->weights[0][number];
	caller->below += stack->below + 1;
	stack->sibling = caller->child;
	caller->child = number;
	return 0;
}

/* Callers have lower numbers, so a word's highest mark has no caller to come. Stack 0 is left, with everything. */
static int add_up(struct graph *g)
{
	for (uint32_t word = g->stack_count / 64 + 1; word-- > 0;) {
		while (g->marks[word]) {
			uint32_t bit = 63 - (uint32_t)__builtin_clzll(g->marks[word]);
			int err = word || bit ? add_up_stack(g, word * 64 + bit) : 0;

			if (err)
				return err;
			g->marks[word] &= ~(1ull << bit);
		}
	}
	return 0;
}

/* --- opening --- */

/* Room for lists of stacks of all nodes. */
static int grow_lists(struct graph *g)
{
	uint32_t *grown;

	if (g->count <= g->first_stack_cap)
		return 0;
	grown = reallocarray(g->first_stack, g->cap, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + g->first_stack_cap, 0, (g->cap - g->first_stack_cap) * sizeof(*grown));
	g->first_stack = grown;
	g->first_stack_cap = g->cap;
	return 0;
}

/* What @node's stacks call gets a node, which has its weight. An inlined call may be @node itself, which then has one stack
 * more. */
static int place_callee(struct graph *g, uint32_t node, uint32_t callee)
{
	struct function_call call;
	uint32_t place = 0;
	int err = functions_of_frame(g->functions, g->stacks[callee].frame, &call);

	err = err ? err : graph_child(g, node, call, &place);
	err = err ? err : grow_lists(g);
	if (err)
		return err;
	if (place != node) {
		g->nodes[place].total[0] += g->weights[0][callee];
		g->nodes[node].self[0] -= g->weights[0][callee];
	}
	g->stacks[callee].sibling = g->first_stack[place];
	g->first_stack[place] = callee;
	return 0;
}

static int place_callees(struct graph *g, uint32_t node, uint32_t stack)
{
	int err = 0;

	for (uint32_t callee = g->stacks[stack].child, next; callee && !err; callee = next) {
		next = g->stacks[callee].sibling;
		err = place_callee(g, node, callee);
	}
	return err;
}

/* Places what the stacks of @node call, those of stack 0 with @is_top: that is in no list. The new nodes wait. */
static int open_node(struct graph *g, uint32_t node, bool is_top)
{
	const uint32_t first = g->count;
	int err = is_top ? place_callees(g, node, 0) : 0;

	while (g->first_stack[node] && !err) {
		uint32_t stack = g->first_stack[node];

		g->first_stack[node] = g->stacks[stack].sibling;
		err = place_callees(g, node, stack);
	}
	for (uint32_t i = first; i < g->count && !err; i++)
		err = push_waiting(g, i);
	return err;
}

static int open_heaviest(struct graph *g)
{
	int err = 0;

	while (g->waiting_count && !err) {
		const struct graph_waiting next = pop_waiting(g);

		g->nodes[next.node].self[0] = next.weight;
		if (is_shown(g, next.weight)) {
			note_opened(g, next.weight);
			err = open_node(g, next.node, false);
			continue;
		}
		for (uint32_t stack = g->first_stack[next.node]; stack; stack = g->stacks[stack].sibling)
			g->folded += g->stacks[stack].below;
	}
	return err;
}

int graph_place_heaviest(struct graph *g)
{
	int err = grow_lists(g);

	if (!g->heaviest)
		g->heaviest = calloc(g->most, sizeof(*g->heaviest));
	if (!g->heaviest)
		return -ENOMEM;
	err = err ? err : add_up(g);
	g->nodes[g->top].self[0] += g->weights[0][0];
	err = err ? err : open_node(g, g->top, true);
	err = err ? err : open_heaviest(g);
	g->weights[0][0] = 0;
	g->stacks[0] = (struct graph_stack){ 0 };
	return err;
}
