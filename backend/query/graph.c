/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree by function. Only what can be among the heaviest nodes is placed, for a picture that shows so many.
 * Each stack knows what it weighs with all it calls. The tree is opened from the root, the heaviest node first: its
 * callees become nodes. Opening ends when no closed node weighs more than the @most heaviest that were opened, so
 * nothing below does. The cost is linear in the nodes that are shown and their callees, not in all there are.
 *
 * A node has a list of the stacks that it is made of; opening it hands their callees on to new nodes. Upside down it has a
 * list of climbers, and opening it takes each of those one caller up.
 */
#include "backend/query/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* A node whose callees are not placed, and how heavy it is. */
struct graph_waiting {
	int64_t weight;
	uint32_t node;
};

/* A stack on its way to its callers. */
struct graph_climber {
	uint32_t stack;
	uint32_t next; /* of the same node, and 1; 0: none */
	int64_t weight[2];
};

struct graph {
	struct functions *functions;
	unsigned flags;
	struct call_tree tree; /* keys: function, line, and 1 of an inlined call */
	/* While placing: */
	uint32_t most;
	uint64_t folded, placed;
	uint32_t *first; /* of each node, the first of its list: of stacks, or of climbers, and 1 */
	size_t first_cap;
	struct graph_climber *climbers;
	struct graph_waiting *waiting, *heaviest; /* heaps */
	size_t waiting_count, waiting_cap, heaviest_count;
};

struct graph *graph_new(struct functions *functions, unsigned flags, uint32_t most)
{
	struct graph *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->functions = functions;
	g->flags = flags;
	g->most = most;
	if (!call_tree_init(&g->tree))
		return g;
	graph_free(g);
	return NULL;
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	call_tree_fini(&g->tree);
	free(g->first);
	free(g->climbers);
	free(g->waiting);
	free(g->heaviest);
	free(g);
}

uint64_t graph_folded(const struct graph *g)
{
	return g->folded;
}

struct functions *graph_functions(const struct graph *g)
{
	return g->functions;
}

uint64_t graph_memory_bytes(const struct graph *g)
{
	return call_tree_memory_bytes(&g->tree) + g->first_cap * sizeof(*g->first) + g->waiting_cap * sizeof(*g->waiting);
}

const struct call_node *graph_nodes(const struct graph *g, uint32_t *count_ret)
{
	if (count_ret)
		*count_ret = g->tree.count;
	return g->tree.nodes;
}

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

/* Restores the heap after the item at its front has changed. */
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
	if (vec_reach(&g->waiting, &g->waiting_cap, g->waiting_count))
		return -ENOMEM;
	g->waiting[g->waiting_count] = (struct graph_waiting){ call_weight(&g->tree.nodes[node]), node };
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

/* Among nodes of one weight the ones with lower numbers are shown: they were opened before. */
static bool is_shown(const struct graph *g, int64_t weight)
{
	return g->heaviest_count < g->most || weight > g->heaviest[0].weight;
}

/* --- opening --- */

/* The child of @parent for @call, made when there is none; *@ret may be @parent. 0 or -ENOMEM. */
static int find_child(struct graph *g, uint32_t parent, struct function_call call, uint32_t *ret)
{
	const uint32_t line = g->flags & GRAPH_LINES ? call.line : 0;
	int is_new;

	if (call.inlined && g->flags & GRAPH_NO_INLINE) {
		*ret = parent;
		return 0;
	}
	is_new = call_tree_child(&g->tree, parent, (uint64_t)call.function << 32 | line << 1 | call.inlined, ret);
	return is_new < 0 ? is_new : 0;
}

/* Makes room for lists of all nodes. */
static int grow_lists(struct graph *g)
{
	return g->tree.count <= g->first_cap ? 0 : vec_reserve_zero(&g->first, &g->first_cap, g->tree.cap);
}

/* Finds the node that @node leads to by @frame of the store; this may be @node itself when the call is inlined. */
static int find_next(struct graph *g, uint32_t node, uint32_t frame, uint32_t *ret)
{
	struct function_call call;
	int err = functions_of_frame(g->functions, frame, &call);

	err = err ? err : find_child(g, node, call, ret);
	return err ? err : grow_lists(g);
}

static void move_weight(struct graph *g, uint32_t from, uint32_t to, unsigned side, int64_t weight)
{
	if (from == to)
		return;
	g->tree.nodes[to].total[side] = weights_add(g->tree.nodes[to].total[side], weight);
	g->tree.nodes[from].self[side] = weights_less(g->tree.nodes[from].self[side], weight);
}

/* Gives @callee, which a stack of @node calls, a node with its weight. An inlined call may stay at @node itself, which then
 * has one stack more. */
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

/* Moves @climber to its next caller. If that is an inlined call it may be part of the same node, and @climber is in @node's
 * list again; a climber without a caller is in no list. */
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

/* Puts the nodes from @first on among those that wait to be opened. */
static int wait_all(struct graph *g, uint32_t first)
{
	int err = 0;

	for (uint32_t i = first; i < g->tree.count && !err; i++)
		err = push_waiting(g, i);
	return err;
}

/* Opens nodes from the heaviest on; those of @callers by climbing. */
static int open_heaviest(struct graph *g, struct stacks *s, const struct stacks *callers)
{
	int err = 0;

	while (g->waiting_count && !err) {
		const struct graph_waiting next = pop_waiting(g);
		struct call_node *node = &g->tree.nodes[next.node];
		const uint32_t first = g->tree.count;

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

	err = err || !group ? err : find_child(g, 0, call, &top);
	err = err ? err : begin(g);
	if (err)
		return err;
	first = g->tree.count;
	g->placed = 0;
	for (unsigned side = 0; side < 2 && s->weights[side]; side++)
		g->tree.nodes[top].self[side] = weights_add(g->tree.nodes[top].self[side], s->weights[side][0]);
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
			g->tree.nodes[0].self[side] = weights_add(g->tree.nodes[0].self[side], s->weights[side][tops[i]]);
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
			g->tree.nodes[0].self[side] = weights_add(g->tree.nodes[0].self[side], c->weight[side]);
		}
	}
	g->first[0] = (uint32_t)count;
	err = climb_all(g, s, 0);
	err = err ? err : wait_all(g, 1);
	return err ? err : open_heaviest(g, NULL, s);
}

/* --- summing up --- */

/* Sorts equal weights by name, so that the same samples make the same tree however the store holds them. */
static bool heavier(void *arg, const struct call_node *a, const struct call_node *b)
{
	const struct functions *functions = arg;
	int order;

	if (call_weight(a) != call_weight(b))
		return call_weight(a) > call_weight(b);
	order = strcmp(functions_get(functions, graph_call(a).function).name,
		       functions_get(functions, graph_call(b).function).name);
	return order ? order < 0 : a < b;
}

void graph_sum(struct graph *g)
{
	call_tree_sum(&g->tree, heavier, g->functions);
}
