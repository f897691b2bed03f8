/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callers' tree. Names are interned, "name NUL module NUL type NUL", and a frame is looked up once; nodes lie in one
 * array and point at each other by index, 0 being the function itself.
 */
#include "proto/callers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"

struct node {
	uint32_t name;
	uint32_t child, sibling; /* 0: none */
	uint64_t weight;
};

struct callers {
	struct intern *names;
	struct caller *lines;
	uint32_t line_cnt, line_cap;
};

struct finding {
	struct callers *callers;
	const char *name, *module;
	uint32_t *name_of; /* by frame id: number + 1 */
	uint32_t target;   /* its number + 1; 0: not met yet */
	struct node *nodes;
	uint32_t node_cnt, node_cap;
	unsigned max_depth;
	double least_part;
	struct weight_sum sum;
	struct buf key;
};

static int name_of(struct finding *f, const struct frame *frame, uint32_t *ret)
{
	struct buf *key = &f->key;
	uint32_t number;

	*ret = f->name_of[frame->id];
	if (*ret)
		return 0;
	buf_reset(key);
	frame_print(frame, 0, key);
	for (char *nul = (char *)key->data; nul && (nul = memchr(nul, '\0', key->len - (size_t)(nul - (char *)key->data)));)
		*nul = '?';
	buf_putc(key, '\0');
	buf_append(key, frame->module.data, strnlen(frame->module.data, frame->module.len));
	buf_putc(key, '\0');
	buf_append(key, frame->type.data, strnlen(frame->type.data, frame->type.len));
	buf_putc(key, '\0');
	if (key->failed || intern_add(f->callers->names, key->data, key->len, &number) < 0)
		return -ENOMEM;
	*ret = f->name_of[frame->id] = number + 1;
	if (!f->target && !strcmp((char *)key->data, f->name) && !strcmp((char *)key->data + strlen(f->name) + 1, f->module))
		f->target = number + 1;
	return 0;
}

/* The child of @parent with @name, made when there is none; 0: for want of memory. */
static uint32_t child_of(struct finding *f, uint32_t parent, uint32_t name)
{
	uint32_t n = f->nodes[parent].child;

	while (n && f->nodes[n].name != name)
		n = f->nodes[n].sibling;
	if (n)
		return n;
	if (f->node_cnt == f->node_cap) {
		struct node *grown = reallocarray(f->nodes, 2 * (size_t)f->node_cap, sizeof(*grown));

		if (!grown)
			return 0;
		f->nodes = grown;
		f->node_cap *= 2;
	}
	n = f->node_cnt++;
	f->nodes[n] = (struct node){ .name = name, .sibling = f->nodes[parent].child };
	f->nodes[parent].child = n;
	return n;
}

static int add_sample(void *arg, const struct stack_sample *s)
{
	struct finding *f = arg;
	uint32_t at = 0, name, node = 0;
	int err;

	if (!weight_sum_add(&f->sum, s))
		return 0;
	for (; at < s->frame_count; at++) {
		err = name_of(f, stack_frame(s, at), &name);
		if (err)
			return err;
		if (name == f->target)
			break;
	}
	if (at == s->frame_count)
		return 0;
	f->nodes[0].weight += s->weight;
	for (unsigned depth = 0; depth < f->max_depth && ++at < s->frame_count; depth++) {
		err = name_of(f, stack_frame(s, at), &name);
		node = err ? 0 : child_of(f, node, name);
		if (!node)
			return -ENOMEM;
		f->nodes[node].weight += s->weight;
	}
	return 0;
}

/* The child of @parent that is next in weight after @last (0: the heaviest); ties by the order they came in. */
static uint32_t next_child(const struct finding *f, uint32_t parent, uint32_t last)
{
	uint32_t best = 0;

	for (uint32_t n = f->nodes[parent].child; n; n = f->nodes[n].sibling) {
		uint64_t weight = f->nodes[n].weight;

		if (last && (weight > f->nodes[last].weight || (weight == f->nodes[last].weight && n <= last)))
			continue;
		if (!best || weight > f->nodes[best].weight || (weight == f->nodes[best].weight && n < best))
			best = n;
	}
	return best;
}

/* As deep as max_depth, which is small. */
static void add_lines(struct finding *f, uint32_t parent, unsigned depth)
{
	struct callers *c = f->callers;

	for (uint32_t n = next_child(f, parent, 0); n && c->line_cnt < c->line_cap; n = next_child(f, parent, n)) {
		const char *name = intern_get(c->names, f->nodes[n].name - 1, NULL), *module = name + strlen(name) + 1;

		if ((double)f->nodes[n].weight < f->least_part * (double)f->nodes[0].weight)
			return;
		c->lines[c->line_cnt++] = (struct caller){ .name = name,
							   .module = module,
							   .type = module + strlen(module) + 1,
							   .depth = depth,
							   .weight = f->nodes[n].weight };
		add_lines(f, n, depth + 1);
	}
}

int callers_find(const struct profiles *p, const char *name, const char *module, uint32_t max_lines, unsigned max_depth,
		 double least_part, struct callers **ret)
{
	struct finding f = { .name = name, .module = module, .max_depth = max_depth, .least_part = least_part };
	int err;

	f.callers = calloc(1, sizeof(*f.callers));
	f.name_of = calloc(profiles_frame_count(p) + 1, sizeof(*f.name_of));
	f.node_cap = 64;
	f.nodes = calloc(f.node_cap, sizeof(*f.nodes));
	f.node_cnt = 1;
	if (f.callers) {
		f.callers->names = intern_new();
		f.callers->line_cap = max_lines;
		f.callers->lines = calloc(max_lines + 1, sizeof(*f.callers->lines));
	}
	err = f.callers && f.name_of && f.nodes && f.callers->names && f.callers->lines
		      ? profiles_each_stack(p, add_sample, &f)
		      : -ENOMEM;
	if (!err)
		add_lines(&f, 0, 1);
	free(f.name_of);
	free(f.nodes);
	buf_fini(&f.key);
	if (err)
		callers_free(f.callers);
	else
		*ret = f.callers;
	return err;
}

void callers_free(struct callers *c)
{
	if (!c)
		return;
	intern_free(c->names);
	free(c->lines);
	free(c);
}

const struct caller *callers_lines(const struct callers *c, uint32_t *count_ret)
{
	*count_ret = c->line_cnt;
	return c->lines;
}
