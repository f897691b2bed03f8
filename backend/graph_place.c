/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing only what can be among the heaviest nodes, for a picture that shows so many. Each stack knows what it weighs with
 * all it calls. The tree is opened from the root, the heaviest node first: its callees become nodes. It ends where
 * nothing that is closed weighs more than the @most heaviest that were opened, so nothing below does. What this costs is
 * linear in the nodes that are shown and their callees, not in all there are.
 *
 * A node has a list of the stacks that it is made of; opening it hands their callees on to new nodes. Upside down it has a
 * list of climbers, and opening it takes each of those one caller up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/graph_internal.h"

enum { FIRST_WAITING = 1024 };

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
	g->waiting[g->waiting_count] = (struct graph_waiting){ graph_weight(&g->nodes[node]), node };
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

/* Of those that weigh the same, the ones with lower numbers are shown: they were opened before. */
static bool is_shown(const struct graph *g, int64_t weight)
{
	return g->heaviest_count < g->most || weight > g->heaviest[0].weight;
}

/* --- opening --- */

/* Room for lists of all nodes. */
static int grow_lists(struct graph *g)
{
	uint32_t *grown;

	if (g->count <= g->first_cap)
		return 0;
	grown = reallocarray(g->first, g->cap, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + g->first_cap, 0, (g->cap - g->first_cap) * sizeof(*grown));
	g->first = grown;
	g->first_cap = g->cap;
	return 0;
}

/* What goes from @node on to @call of @frame of the store: where it does, which may be @node itself when it is inlined. */
static int find_next(struct graph *g, uint32_t node, uint32_t frame, uint32_t *ret)
{
	struct function_call call;
	int err = functions_of_frame(g->functions, frame, &call);

	err = err ? err : graph_child(g, node, call, ret);
	return err ? err : grow_lists(g);
}

static void move_weight(struct graph *g, uint32_t from, uint32_t to, unsigned side, int64_t weight)
{
	if (from == to)
		return;
	g->nodes[to].total[side] += weight;
	g->nodes[from].self[side] -= weight;
}

/* What @node's stacks call gets a node, which has its weight. An inlined call may be @node itself, which then has one stack
 * more. */
static int place_callee(struct graph *g, struct stacks *s, uint32_t node, uint32_t callee)
{
	uint32_t place = 0;
	int err = find_next(g, node, s->items[callee].frame, &place);

	if (err)
		return err;
	for (unsigned side = 0; side < 2 && s->weights[side]; side++)
		move_weight(g, node, place, side, s->weights[side][callee]);
	s->items[callee].sibling = g->first[place];
	g->first[place] = callee;
	g->placed++;
	return 0;
}

static int place_callees(struct graph *g, struct stacks *s, uint32_t node, uint32_t stack)
{
	int err = 0;

	for (uint32_t callee = s->items[stack].child, next; callee && !err; callee = next) {
		next = s->items[callee].sibling;
		err = place_callee(g, s, node, callee);
	}
	return err;
}

static int open_node(struct graph *g, struct stacks *s, uint32_t node)
{
	int err = 0;

	while (g->first[node] && !err) {
		uint32_t stack = g->first[node];

		g->first[node] = s->items[stack].sibling;
		err = place_callees(g, s, node, stack);
	}
	return err;
}

/* To the next caller of @climber. An inlined call may be part of where it is, and it in @node's list again; one that has no
 * caller is in none. */
static int climb(struct graph *g, const struct stacks *s, uint32_t node, uint32_t climber)
{
	struct graph_climber *c = &g->climbers[climber];
	uint32_t place;
	int err;

	c->stack = s->items[c->stack].caller - 1;
	if (!c->stack)
		return 0;
	err = find_next(g, node, s->items[c->stack].frame, &place);
	if (err)
		return err;
	for (unsigned side = 0; side < 2; side++)
		move_weight(g, node, place, side, c->weight[side]);
	c->next = g->first[place];
	g->first[place] = climber + 1;
	return 0;
}

static int climb_all(struct graph *g, const struct stacks *s, uint32_t node)
{
	int err = 0;

	while (g->first[node] && !err) {
		uint32_t climber = g->first[node] - 1;

		g->first[node] = g->climbers[climber].next;
		err = climb(g, s, node, climber);
	}
	return err;
}

/* The nodes from @first on wait. */
static int wait_all(struct graph *g, uint32_t first)
{
	int err = 0;

	for (uint32_t i = first; i < g->count && !err; i++)
		err = push_waiting(g, i);
	return err;
}

/* Opens nodes from the heaviest on; those of @callers by climbing. */
static int open_heaviest(struct graph *g, struct stacks *s, const struct stacks *callers)
{
	int err = 0;

	while (g->waiting_count && !err) {
		const struct graph_waiting next = pop_waiting(g);
		struct graph_node *node = &g->nodes[next.node];
		const uint32_t first = g->count;

		memcpy(node->self, node->total, sizeof(node->self));
		if (!is_shown(g, next.weight))
			continue;
		note_opened(g, next.weight);
		err = callers ? climb_all(g, callers, next.node) : open_node(g, s, next.node);
		err = err ? err : wait_all(g, first);
	}
	return err;
}

static int begin(struct graph *g)
{
	if (!g->heaviest)
		g->heaviest = calloc(g->most, sizeof(*g->heaviest));
	return g->heaviest ? grow_lists(g) : -ENOMEM;
}

int graph_place(struct graph *g, struct stacks *s, const char *group)
{
	struct function_call call = { 0 };
	uint32_t top = 0, first;
	int err = group ? functions_of_label(g->functions, group, &call.function) : 0;

	err = err || !group ? err : graph_child(g, 0, call, &top);
	err = err ? err : begin(g);
	if (err)
		return err;
	first = g->count;
	g->placed = 0;
	for (unsigned side = 0; side < 2 && s->weights[side]; side++)
		g->nodes[top].self[side] += s->weights[side][0];
	err = place_callees(g, s, top, 0);
	err = err ? err : open_node(g, s, top); /* inlined calls */
	err = err ? err : wait_all(g, first);
	err = err ? err : open_heaviest(g, s, NULL);
	g->folded += s->below - g->placed;
	return err;
}

int graph_place_tops(struct graph *g, struct stacks *s, const uint32_t *tops, size_t count)
{
	int err = begin(g);

	for (size_t i = 0; i < count && !err; i++) {
		for (unsigned side = 0; side < 2 && s->weights[side]; side++)
			g->nodes[0].self[side] += s->weights[side][tops[i]];
		err = place_callees(g, s, 0, tops[i]);
	}
	err = err ? err : open_node(g, s, 0);
	err = err ? err : wait_all(g, 1);
	return err ? err : open_heaviest(g, s, NULL);
}

int graph_place_callers(struct graph *g, const struct stacks *s, const uint32_t *tops, size_t count)
{
	int err = begin(g);

	g->climbers = err ? NULL : calloc(count + 1, sizeof(*g->climbers));
	if (!g->climbers)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct graph_climber *c = &g->climbers[i];

		*c = (struct graph_climber){ .stack = tops[i], .next = i };
		for (unsigned side = 0; side < 2 && s->weights[side]; side++) {
			c->weight[side] = s->weights[side][tops[i]];
			g->nodes[0].self[side] += c->weight[side];
		}
	}
	g->first[0] = (uint32_t)count;
	err = climb_all(g, s, 0);
	err = err ? err : wait_all(g, 1);
	return err ? err : open_heaviest(g, NULL, s);
}
