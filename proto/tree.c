/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree. Nodes lie in blocks that never move, so links between them stay. An only child is found through its parent;
 * others by (their parent's number, their name's number) in one hash map, which most nodes are thus not in. Names are
 * interned and resolved to text only when a reader asks for the tree, which is also when siblings are put in order. One
 * thread.
 */
#include "proto/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"

enum { BLOCK_NODES = 1024 };

struct node {
	struct tree_node pub; /* first: links lead to it */
	uint32_t name;
	uint32_t number;
};

struct tree {
	struct intern *names; /* NUL-terminated */
	struct map index;     /* parent's number << 32 | name -> struct node */
	struct node **blocks;
	size_t block_cap;
	uint32_t node_count;
	struct node *root;
	struct weight_sum sum;
	unsigned extras; /* enum frame_extra */
	const struct view *view;
	bool is_inverted;
	struct buf key;
};

static struct node *new_node(struct tree *t, uint32_t name)
{
	size_t block = t->node_count / BLOCK_NODES;
	struct node *n;

	if (t->node_count == UINT32_MAX)
		return NULL;
	if (block == t->block_cap) {
		size_t cap = t->block_cap ? t->block_cap * 2 : 16;
		struct node **grown = reallocarray(t->blocks, cap, sizeof(struct node *));

		if (!grown)
			return NULL;
		memset(&grown[t->block_cap], 0, (cap - t->block_cap) * sizeof(struct node *));
		t->blocks = grown;
		t->block_cap = cap;
	}
	if (!t->blocks[block]) {
		t->blocks[block] = calloc(BLOCK_NODES, sizeof(struct node));
		if (!t->blocks[block])
			return NULL;
	}
	n = &t->blocks[block][t->node_count % BLOCK_NODES];
	n->name = name;
	n->number = t->node_count++;
	return n;
}

struct tree *tree_new(void)
{
	struct tree *t = calloc(1, sizeof(*t));
	uint32_t name;

	if (!t)
		return NULL;
	t->names = intern_new();
	if (t->names && intern_add(t->names, "", 1, &name) == 1)
		t->root = new_node(t, name);
	if (!t->root) {
		tree_free(t);
		return NULL;
	}
	return t;
}

void tree_show(struct tree *t, unsigned extras)
{
	t->extras = extras;
}

void tree_view(struct tree *t, const struct view *view)
{
	t->view = view;
}

void tree_invert(struct tree *t)
{
	t->is_inverted = true;
}

bool tree_is_inverted(const struct tree *t)
{
	return t->is_inverted;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->block_cap; i++)
		free(t->blocks[i]);
	free(t->blocks);
	intern_free(t->names);
	map_fini(&t->index);
	buf_fini(&t->key);
	free(t);
}

const struct weight_sum *tree_sum(const struct tree *t)
{
	return &t->sum;
}

static uint64_t key_of(const struct node *parent, uint32_t name)
{
	return (uint64_t)parent->number << 32 | name;
}

/* The child of @parent with that name, made when it does not stand; NULL for want of memory. */
static struct node *child_of(struct tree *t, struct node *parent, uint32_t name)
{
	struct node *last = (struct node *)parent->pub.child, *n;

	if (last && last->name == name)
		return last;
	n = last && last->pub.sibling ? map_get(&t->index, key_of(parent, name)) : NULL;
	if (n)
		return n;
	n = new_node(t, name);
	if (!n)
		return NULL;
	if (last && !last->pub.sibling && map_put(&t->index, key_of(parent, last->name), last) < 0)
		return NULL;
	if (last && map_put(&t->index, key_of(parent, name), n) < 0)
		return NULL;
	n->pub.parent = &parent->pub;
	n->pub.sibling = parent->pub.child;
	parent->pub.child = &n->pub;
	return n;
}

struct adding {
	struct tree *t;
	uint32_t *name_of; /* name's number by frame id; 0, the root's name: not looked up yet */
};

/* Interns the text in @key. */
static int add_name(struct tree *t, uint32_t *name_ret)
{
	buf_putc(&t->key, '\0');
	return t->key.failed || intern_add(t->names, t->key.data, t->key.len, name_ret) < 0 ? -ENOMEM : 0;
}

static int name_of_frame(struct adding *a, const struct frame *f, uint32_t *name_ret)
{
	if (!a->name_of[f->id]) {
		buf_reset(&a->t->key);
		frame_print(f, a->t->extras, &a->t->key);
		if (add_name(a->t, &a->name_of[f->id]) < 0)
			return -ENOMEM;
	}
	*name_ret = a->name_of[f->id];
	return 0;
}

static enum tree_kind kind_of(struct str type)
{
	static const struct {
		const char *type;
		enum tree_kind kind;
	} kinds[] = { { "kernel", TREE_KERNEL }, { "native", TREE_NATIVE }, { "unknown", TREE_NATIVE },
		      { "go", TREE_GO },	 { "rust", TREE_NATIVE },   { "abort-marker", TREE_MARKER } };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_is(type, kinds[i].type))
			return kinds[i].kind;
	return TREE_SCRIPT;
}

static void describe(struct tree_node *n, const struct frame *f)
{
	if (n->total)
		return; /* known */
	n->kind = kind_of(f->type);
	n->is_inlined = f->inlined;
}

static int add_sample(void *arg, const struct stack_sample *s)
{
	struct adding *a = arg;
	struct tree *t = a->t;
	struct node *n = t->root;
	uint32_t name;

	if (!weight_sum_add(&t->sum, s))
		return 0;
	n->pub.total += s->weight;
	if (!t->is_inverted || view_is_grouped(t->view)) {
		struct str group = view_is_grouped(t->view) ? s->group : s->comm;

		group = group.len ? group : STR("[unknown]");
		buf_reset(&t->key);
		buf_append(&t->key, group.data, group.len);
		n = add_name(t, &name) < 0 ? NULL : child_of(t, n, name);
		if (!n)
			return -ENOMEM;
		n->pub.total += s->weight;
	}
	for (uint32_t i = 0; i < s->frame_count; i++) {
		const struct frame *f = stack_frame(s, t->is_inverted ? i : s->frame_count - 1 - i);

		n = name_of_frame(a, f, &name) < 0 ? NULL : child_of(t, n, name);
		if (!n)
			return -ENOMEM;
		describe(&n->pub, f);
		n->pub.total += s->weight;
	}
	n->pub.self += s->weight;
	return 0;
}

int tree_add_path(struct tree *t, const struct tree_step *steps, uint32_t count, uint64_t total, uint64_t second)
{
	struct node *n = t->root;
	uint32_t name;

	n->pub.total += total;
	n->pub.second += second;
	for (uint32_t i = 0; i < count; i++) {
		buf_reset(&t->key);
		buf_puts(&t->key, steps[i].name);
		n = add_name(t, &name) < 0 ? NULL : child_of(t, n, name);
		if (!n)
			return -ENOMEM;
		n->pub.kind = kind_of(str_z(steps[i].type));
		n->pub.total += total;
		n->pub.second += second;
	}
	n->pub.self += total;
	return 0;
}

int tree_add(struct tree *t, const struct profiles *p)
{
	AUTO_FREE uint32_t *name_of = calloc(profiles_frame_count(p) + 1, sizeof(*name_of));
	struct adding a = { t, name_of };

	return name_of ? view_each_stack(t->view, p, add_sample, &a) : -ENOMEM;
}

static bool heavier(const struct tree_node *a, const struct tree_node *b)
{
	return a->total != b->total ? a->total > b->total : strcmp(a->name, b->name) < 0;
}

static bool named_before(const struct tree_node *a, const struct tree_node *b)
{
	return strcmp(a->name, b->name) < 0;
}

static struct tree_node *merge(struct tree_node *a, struct tree_node *b,
			       bool (*before)(const struct tree_node *, const struct tree_node *))
{
	struct tree_node *head = NULL, **tail = &head;

	while (a && b) {
		struct tree_node **from = before(b, a) ? &b : &a;

		*tail = *from;
		*from = (*from)->sibling;
		tail = &(*tail)->sibling;
	}
	*tail = a ? a : b;
	return head;
}

/* Merge sort: run i of @runs is empty or holds 2^i siblings in order. */
static struct tree_node *sort_siblings(struct tree_node *list,
				       bool (*before)(const struct tree_node *, const struct tree_node *))
{
	struct tree_node *runs[32] = { 0 }, *sorted = NULL;

	while (list) {
		struct tree_node *run = list;
		size_t i = 0;

		list = list->sibling;
		run->sibling = NULL;
		for (; runs[i]; i++) {
			run = merge(runs[i], run, before);
			runs[i] = NULL;
		}
		runs[i] = run;
	}
	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		sorted = merge(runs[i], sorted, before);
	return sorted;
}

static const struct tree_node *sorted_root(struct tree *t,
					   bool (*before)(const struct tree_node *, const struct tree_node *))
{
	for (uint32_t i = 0; i < t->node_count; i++) {
		struct node *n = &t->blocks[i / BLOCK_NODES][i % BLOCK_NODES];

		n->pub.name = intern_get(t->names, n->name, NULL);
	}
	for (uint32_t i = 0; i < t->node_count; i++) {
		struct node *n = &t->blocks[i / BLOCK_NODES][i % BLOCK_NODES];

		n->pub.child = sort_siblings(n->pub.child, before);
	}
	return &t->root->pub;
}

const struct tree_node *tree_root(struct tree *t)
{
	return sorted_root(t, heavier);
}

const struct tree_node *tree_root_by_name(struct tree *t)
{
	return sorted_root(t, named_before);
}

const struct tree_node *tree_next(const struct tree_node *n, uint32_t *depth)
{
	if (n->child) {
		++*depth;
		return n->child;
	}
	while (n && !n->sibling) {
		n = n->parent;
		--*depth;
	}
	return n ? n->sibling : NULL;
}
