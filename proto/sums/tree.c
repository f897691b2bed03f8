/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree by names: a node's key is its name's number. Names are interned and resolved to text only when a reader asks
 * for them. One thread.
 */
#include "proto/sums/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"

struct tree {
	struct intern *names; /* NUL-terminated; the root's is 0 */
	struct call_tree calls;
	struct weight_sum sum;
	unsigned extras; /* enum frame_extra */
	const struct view *view;
	bool is_inverted;
	const char *from_name, *from_module; /* NULL: the root is no function */
	uint32_t from, max_depth;	     /* from: its name's number; 0: not met yet */
	struct buf key;
};

struct tree *tree_new(void)
{
	struct tree *t = calloc(1, sizeof(*t));
	uint32_t name;

	if (!t)
		return NULL;
	t->names = intern_new();
	if (t->names && intern_add(t->names, "", 1, &name) == 1 && !call_tree_init(&t->calls))
		return t;
	tree_free(t);
	return NULL;
}

size_t tree_memory_bytes(const struct tree *t)
{
	return intern_memory_bytes(t->names) + call_tree_memory_bytes(&t->calls);
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

void tree_callers(struct tree *t, const char *name, const char *module, uint32_t max_depth)
{
	t->is_inverted = true;
	t->from_name = name;
	t->from_module = module;
	t->max_depth = max_depth;
}

bool tree_is_inverted(const struct tree *t)
{
	return t->is_inverted;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	intern_free(t->names);
	call_tree_fini(&t->calls);
	buf_fini(&t->key);
	free(t);
}

const struct weight_sum *tree_sum(const struct tree *t)
{
	return &t->sum;
}

struct adding {
	struct tree *t;
	uint32_t *name_of; /* name's number by frame id; 0, the root's name: not looked up yet */
};

/* The number of the text in @key. */
static int add_name(struct tree *t, uint32_t *name_ret)
{
	buf_putc(&t->key, '\0');
	return t->key.failed || intern_add(t->names, t->key.data, t->key.len, name_ret) < 0 ? -ENOMEM : 0;
}

static bool is_from(const struct tree *t, const char *name)
{
	return !strcmp(name, t->from_name) && !strcmp(name + strlen(name) + 1, t->from_module);
}

static int name_of_frame(struct adding *a, const struct frame *f, uint32_t *name_ret)
{
	*name_ret = a->name_of[f->id];
	if (*name_ret)
		return 0;
	buf_reset(&a->t->key);
	if (a->t->from_name) { /* a name of its own for each module and type */
		stack_walk_put_key_name(&a->t->key, f, a->t->extras);
		stack_walk_put_key(&a->t->key, f->module);
		stack_walk_put_key(&a->t->key, f->type);
	} else {
		stack_frame_print(f, a->t->extras, &a->t->key);
	}
	if (add_name(a->t, name_ret))
		return -ENOMEM;
	a->name_of[f->id] = *name_ret;
	if (a->t->from_name && !a->t->from && is_from(a->t, (const char *)a->t->key.data))
		a->t->from = *name_ret;
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

/* Goes on from *@at to its child @name. 1 when that is new, 0, or -ENOMEM. */
static int go_down(struct tree *t, uint32_t name, uint32_t *at)
{
	return call_tree_child(&t->calls, *at, name, at);
}

static void add_self(struct tree *t, uint32_t at, unsigned side, int64_t weight)
{
	struct call_node *n = &t->calls.nodes[at];

	n->self[side] = weights_add(n->self[side], weight);
}

static int add_group(struct tree *t, struct str group, uint32_t *at)
{
	uint32_t name;

	buf_reset(&t->key);
	group = group.len ? group : STR("[unknown]");
	buf_append(&t->key, group.data, group.len);
	return add_name(t, &name) || go_down(t, name, at) < 0 ? -ENOMEM : 0;
}

/* Finds the innermost frame of the function that the root stands for: *@ret is its number, or that of frames. */
static int find_from(struct adding *a, const struct stack_sample *s, uint32_t *ret)
{
	uint32_t name;

	for (*ret = 0; *ret < s->frame_count; ++*ret) {
		if (name_of_frame(a, stack_frame(s, *ret), &name))
			return -ENOMEM;
		if (name == a->t->from)
			break;
	}
	return 0;
}

static int add_sample(void *arg, const struct stack_sample *s)
{
	struct adding *a = arg;
	struct tree *t = a->t;
	bool is_grouped = view_is_grouped(t->view);
	uint32_t at = 0, name, i = 0, end = s->frame_count;
	int err;

	if (!stack_weight_add(&t->sum, s))
		return 0;
	if (t->from_name) {
		err = find_from(a, s, &i);
		if (err || i == end)
			return err;
		end = end - ++i < t->max_depth ? end : i + t->max_depth;
	} else if ((!t->is_inverted || is_grouped) && add_group(t, is_grouped ? s->group : s->comm, &at))
		return -ENOMEM;
	for (; i < end; i++) {
		const struct frame *f = stack_frame(s, t->is_inverted ? i : end - 1 - i);
		int is_new = name_of_frame(a, f, &name) ? -ENOMEM : go_down(t, name, &at);

		if (is_new < 0)
			return is_new;
		if (is_new) {
			t->calls.nodes[at].kind = (uint8_t)kind_of(f->type);
			t->calls.nodes[at].is_inlined = f->inlined;
		}
	}
	add_self(t, at, 0, (int64_t)s->weight);
	return 0;
}

int tree_add_path(struct tree *t, const struct tree_step *steps, uint32_t count, const int64_t weights[2])
{
	uint32_t at = 0, name;

	for (uint32_t i = 0; i < count; i++) {
		buf_reset(&t->key);
		buf_puts(&t->key, steps[i].name);
		if (add_name(t, &name) || go_down(t, name, &at) < 0)
			return -ENOMEM;
		t->calls.nodes[at].kind = (uint8_t)kind_of(str_z(steps[i].type));
	}
	add_self(t, at, 0, weights[0]);
	add_self(t, at, 1, weights[1]);
	return 0;
}

int tree_add(struct tree *t, const struct profiles *p)
{
	AUTO_FREE uint32_t *name_of = calloc(stack_walk_frame_count(p) + 1, sizeof(*name_of));
	struct adding a = { t, name_of };

	return name_of ? view_each_stack(t->view, p, add_sample, &a) : -ENOMEM;
}

const char *tree_name(const struct tree *t, const struct call_node *n)
{
	return intern_get(t->names, (uint32_t)n->key, NULL);
}

static bool named_before(void *arg, const struct call_node *a, const struct call_node *b)
{
	return strcmp(tree_name(arg, a), tree_name(arg, b)) < 0;
}

/* Callers of one weight stay in the order they came in. */
static bool heavier(void *arg, const struct call_node *a, const struct call_node *b)
{
	const struct tree *t = arg;

	if (tree_total(a) != tree_total(b))
		return tree_total(a) > tree_total(b);
	return t->from_name ? a < b : named_before(arg, a, b);
}

const struct call_node *tree_root(struct tree *t)
{
	call_tree_sum(&t->calls, heavier, t);
	return t->calls.nodes;
}

const struct call_node *tree_root_by_name(struct tree *t)
{
	call_tree_sum(&t->calls, named_before, t);
	return t->calls.nodes;
}
