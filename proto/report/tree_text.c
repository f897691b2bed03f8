/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the call tree as indented text. Only a fork indents: the single heavy callee of a function stands below it at the
 * same depth, so that a straight chain of any length stays narrow. Heavy callees come first, which makes the visible
 * children of a node the head of its list. The walk follows the tree's links; its only state is one byte a fork on the path
 * (whether its guide line goes on).
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "proto/report/report.h"
#include "proto/text.h"

enum {
	NUMBER_COLUMNS = 17,
	INVERTED_COLUMNS = 9,
	GUIDE_COLUMNS = 3,
	MAX_GUIDES = 40, /* deeper forks are written "+N" instead of with ever more lines */
	NAME_MIN_COLUMNS = 16,
};

enum line_kind {
	LINE_CHAIN,	  /* the only heavy callee of the line above */
	LINE_BRANCH,	  /* one of several */
	LINE_LAST_BRANCH, /* and nothing follows it in its fork */
};

struct printer {
	struct buf *out;
	struct buf forks; /* a byte each: 1 when more of the fork follows below */
	const struct tree *tree;
	const struct call_node *root;
	double min_weight;
	const struct report_style *style;
	bool has_self; /* the tree is not inverted */
};

/* Looks no further up than the lowest level that is shown. */
static bool is_too_deep(const struct printer *p, const struct call_node *n)
{
	uint32_t depth = 0;

	for (n = call_parent(p->root, n); n && p->style->max_depth && depth <= p->style->max_depth;
	     n = call_parent(p->root, n))
		depth++;
	return depth > p->style->max_depth;
}

static bool is_visible(const struct printer *p, const struct call_node *n)
{
	return n && (double)tree_total(n) >= p->min_weight && !is_too_deep(p, n);
}

/* The visible callees of @n get lines of their own depth. */
static bool is_fork(const struct printer *p, const struct call_node *n)
{
	bool is_comm = n != p->root && !n->parent;

	return is_comm || is_visible(p, call_sibling(p->root, &p->root[n->child]));
}

static const struct call_node *first_hidden(const struct printer *p, const struct call_node *n)
{
	const struct call_node *c = call_child(p->root, n);

	while (is_visible(p, c))
		c = call_sibling(p->root, c);
	return c;
}

/* The guides of the first @forks forks and what leads to a line below them; returns the columns used. */
static unsigned guides(struct printer *p, size_t forks, enum line_kind kind)
{
	unsigned columns = 0;
	size_t shown = forks < MAX_GUIDES ? forks : MAX_GUIDES;

	for (size_t i = 0; i < shown; i++, columns += GUIDE_COLUMNS)
		buf_puts(p->out, p->forks.data[i] ? "│  " : "   ");
	if (forks > shown) {
		size_t before = p->out->len;

		buf_printf(p->out, "+%zu ", forks - shown);
		columns += (unsigned)(p->out->len - before);
	}
	if (kind == LINE_CHAIN)
		return columns;
	buf_puts(p->out, kind == LINE_BRANCH ? "├─ " : "└─ ");
	return columns + GUIDE_COLUMNS;
}

static void numbers(struct printer *p, uint64_t total, uint64_t self)
{
	double percent = text_percent(self, tree_total(p->root));
	bool colour = p->style->colour && text_heat(percent) != TONE_PLAIN;

	buf_printf(p->out, "%6.2f%% ", text_percent(total, tree_total(p->root)));
	if (!self || !p->has_self) {
		buf_puts(p->out, p->has_self ? "         " : " ");
		return;
	}
	text_tone(p->out, colour, text_heat(percent));
	buf_printf(p->out, "%6.2f%%", percent);
	text_tone(p->out, colour, TONE_PLAIN);
	buf_puts(p->out, "  ");
}

static void node_line(struct printer *p, const struct call_node *n, size_t forks, enum line_kind kind)
{
	enum text_tone tone = n->kind == TREE_KERNEL ? TONE_KERNEL : n->kind == TREE_PROCESS ? TONE_HEAD : TONE_PLAIN;
	bool colour = p->style->colour && tone != TONE_PLAIN;
	unsigned used, room = 0;

	numbers(p, tree_total(n), tree_self(n));
	used = (p->has_self ? NUMBER_COLUMNS : INVERTED_COLUMNS) + guides(p, forks, kind);
	if (p->style->columns)
		room = p->style->columns > used + NAME_MIN_COLUMNS ? p->style->columns - used : NAME_MIN_COLUMNS;
	text_tone(p->out, colour, tone);
	text_name(p->out, tree_name(p->tree, n), room);
	text_tone(p->out, colour, TONE_PLAIN);
	buf_putc(p->out, '\n');
}

/* The line that stands for the light callees of @n; nothing when it has none. */
static void hidden_line(struct printer *p, const struct call_node *n, enum line_kind kind)
{
	uint64_t total = 0, count = 0;

	for (const struct call_node *c = first_hidden(p, n); c; c = call_sibling(p->root, c), count++)
		total += tree_total(c);
	if (!count || is_too_deep(p, call_child(p->root, n)))
		return;
	numbers(p, total, 0);
	guides(p, p->forks.len, kind);
	buf_putc(p->out, '(');
	text_count(p->out, count);
	buf_puts(p->out, " more)\n");
}

/* A callee in a fork, which is the last on p->forks. */
static void branch_line(struct printer *p, const struct call_node *n)
{
	bool last = !n->sibling; /* light callees get a line behind the last visible one */

	p->forks.data[p->forks.len - 1] = !last;
	node_line(p, n, p->forks.len - 1, last ? LINE_LAST_BRANCH : LINE_BRANCH);
}

/* Prints the first visible callee of @n and returns it; NULL when there is none. */
static const struct call_node *go_down(struct printer *p, const struct call_node *n)
{
	const struct call_node *c = call_child(p->root, n);

	if (!is_visible(p, c)) {
		hidden_line(p, n, LINE_LAST_BRANCH);
		return NULL;
	}
	if (is_fork(p, n)) {
		buf_putc(&p->forks, 1);
		if (!p->forks.failed)
			branch_line(p, c);
	} else {
		hidden_line(p, n, LINE_BRANCH);
		node_line(p, c, p->forks.len, LINE_CHAIN);
	}
	return c;
}

/* The next callee in one of the forks that @n is in, printed; NULL when the whole comm of @n is done. */
static const struct call_node *go_up(struct printer *p, const struct call_node *n)
{
	for (; n->parent; n = &p->root[n->parent]) {
		const struct call_node *next = call_sibling(p->root, n);

		if (!is_fork(p, &p->root[n->parent]))
			continue;
		if (is_visible(p, next)) {
			branch_line(p, next);
			return next;
		}
		p->forks.len--;
		hidden_line(p, &p->root[n->parent], LINE_LAST_BRANCH);
	}
	return NULL;
}

int report_tree(struct tree *t, const struct report_style *style, struct buf *out)
{
	const struct call_node *root = tree_root(t);
	struct printer p = {
		.out = out,
		.tree = t,
		.root = root,
		.min_weight = style->min_percent / 100 * (double)tree_total(root),
		.style = style,
		.has_self = !tree_is_inverted(t),
	};

	report_sum(tree_sum(t), out);
	buf_puts(out, root->child ? "\n\n" : "\n");
	text_tone(out, style->colour && root->child, TONE_HEAD);
	if (root->child)
		buf_puts(out, p.has_self ? " TOTAL%   SELF%" : " TOTAL%  FUNCTION, AND WHO CALLED IT");
	text_tone(out, style->colour && root->child, TONE_PLAIN);
	if (root->child)
		buf_putc(out, '\n');
	for (const struct call_node *comm = call_child(root, root); is_visible(&p, comm); comm = call_sibling(root, comm)) {
		node_line(&p, comm, 0, LINE_CHAIN);
		for (const struct call_node *n = comm, *down; n && !p.forks.failed; n = down ? down : go_up(&p, n))
			down = go_down(&p, n);
	}
	hidden_line(&p, root, LINE_CHAIN);
	if (p.forks.failed)
		out->failed = true;
	buf_fini(&p.forks);
	return out->failed ? -ENOMEM : 0;
}
