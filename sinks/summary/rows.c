/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the rows that the summary shows, their order, and the lines below the expanded row. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "proto/sums/tree.h"
#include "sinks/summary/state.h"

/* A caller of less is not shown. */
static const double LEAST_OF_CALLERS = 0.02;

static const struct top_row *source_rows(struct summary *s, uint32_t *count)
{
	if (s->is_frozen) {
		*count = s->copies[s->show].count;
		return s->copies[s->show].rows;
	}
	return top_recent_rows(s->tops[s->show], count);
}

static bool passes(const struct summary *s, const struct top_row *row)
{
	if (!s->filter[0] || strcasestr(row->name, s->filter) || strcasestr(row->module, s->filter))
		return true;
	return s->show == SHOW_FUNCTIONS && strcasestr(summary_owner(s, row), s->filter);
}

struct order {
	enum summary_sort sort;
	bool is_reversed;
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int compare_parts(double a, double b)
{
	return a > b ? -1 : a < b;
}

static int compare_rows(const void *x, const void *y, void *arg)
{
	const struct top_row *a = x, *b = y;
	const struct order *order = arg;
	int way = order->is_reversed ? -1 : 1, result = 0;

	if (order->sort == SORT_SELF)
		result = compare_parts(a->recent.self, b->recent.self);
	if (order->sort == SORT_SELF || order->sort == SORT_TOTAL)
		result = result ? result : compare_parts(a->recent.total, b->recent.total);
	if (order->sort != SORT_NAME)
		result = result ? result : compare_u64(a->all.self, b->all.self);
	result = result ? result : strcmp(a->name, b->name);
	return way * (result ? result : strcmp(a->module, b->module));
}

int summary_make_rows(struct summary *s)
{
	struct order order = { s->sort, s->is_reversed };
	uint32_t count;
	const struct top_row *rows = source_rows(s, &count);

	if ((!rows && !s->is_frozen) || vec_reserve(&s->rows, &s->row_cap, count))
		return -ENOMEM;
	s->row_cnt = 0;
	for (uint32_t i = 0; i < count; i++)
		if (passes(s, &rows[i]))
			s->rows[s->row_cnt++] = rows[i];
	if (s->row_cnt)
		qsort_r(s->rows, s->row_cnt, sizeof(*s->rows), compare_rows, &order);
	for (uint32_t i = 0; s->is_followed && s->is_expanded && i < s->row_cnt; i++)
		if (summary_is_expanded(s, &s->rows[i]))
			s->selected = i;
	if (s->selected >= s->row_cnt)
		s->selected = s->row_cnt ? s->row_cnt - 1 : 0;
	return 0;
}

/* --- frozen --- */

static void drop_copies(struct summary *s)
{
	for (int i = 0; i < SHOW_COUNT; i++) {
		free(s->copies[i].rows);
		free(s->copies[i].texts);
		s->copies[i] = (struct summary_copy){ 0 };
	}
	summary_drop_profiles(&s->frozen);
	s->frozen = (struct summary_shown){ 0 };
}

static char *copy_text(char **at, const char *text)
{
	char *copy = *at;
	size_t size = strlen(text) + 1;

	memcpy(copy, text, size);
	*at += size;
	return copy;
}

static int copy_rows(struct top *t, struct summary_copy *copy)
{
	uint32_t count;
	const struct top_row *rows = top_recent_rows(t, &count);
	size_t bytes = 1;
	char *at;

	for (uint32_t i = 0; i < count; i++)
		bytes += strlen(rows[i].name) + strlen(rows[i].module) + strlen(rows[i].type) + 3;
	copy->rows = calloc(count + 1, sizeof(*copy->rows));
	copy->texts = malloc(bytes);
	if (!copy->rows || !copy->texts)
		return -ENOMEM;
	at = copy->texts;
	copy->count = count;
	for (uint32_t i = 0; i < count; i++) {
		copy->rows[i] = rows[i];
		copy->rows[i].name = copy_text(&at, rows[i].name);
		copy->rows[i].module = copy_text(&at, rows[i].module);
		copy->rows[i].type = copy_text(&at, rows[i].type);
		copy->rows[i].group = copy->rows[i].file = copy->rows[i].source = "";
	}
	return 0;
}

int summary_freeze(struct summary *s, bool on)
{
	int err = 0;

	if (on && !s->is_frozen) {
		for (int i = 0; i < SHOW_COUNT && !err; i++)
			err = copy_rows(s->tops[i], &s->copies[i]);
		s->frozen = s->now;
		for (uint32_t i = 0; i < s->frozen.profile_cnt; i++)
			profiles_get(s->frozen.profiles[i]);
	}
	s->is_frozen = on && !err;
	if (!s->is_frozen)
		drop_copies(s);
	return err;
}

/* --- the expanded row --- */

static void free_top(struct top **top)
{
	top_free(*top);
}

/* Whether the function of @row belongs to the module or process that is expanded. */
static bool is_of_expanded(const struct summary *s, const struct top_row *row)
{
	return !strcmp(s->show == SHOW_PROCESSES ? row->group : row->module, s->expanded_name);
}

static void drop_lines(struct summary *s)
{
	for (uint32_t i = 0; i < s->line_cnt; i++)
		free((char *)(uintptr_t)s->lines[i].name);
	s->line_cnt = 0;
}

static int add_line(struct summary *s, const struct summary_line *what)
{
	char *text = malloc(strlen(what->name) + strlen(what->module) + strlen(what->type) + 3), *at = text;
	struct summary_line *line = &s->lines[s->line_cnt];

	if (!text)
		return -ENOMEM;
	*line = *what;
	line->name = copy_text(&at, what->name);
	line->module = copy_text(&at, what->module);
	line->type = copy_text(&at, what->type);
	s->line_cnt++;
	return 0;
}

/* The page's address for the callers, in pieces as wide as the screen: without the module where it is shorter so, and not at
 * all where a part of it would have to be left out. */
static int add_link(struct summary *s)
{
	AUTO(buf_fini) struct buf url = BUF_EMPTY;
	unsigned rows, columns, width;
	int err = 0;

	if (!s->options.link)
		return 0;
	summary_terminal_size(s, &rows, &columns);
	width = columns > 2 * LINK_INDENT ? columns - LINK_INDENT - 1 : LINK_INDENT;
	s->options.link(s->options.link_arg, s->expanded_name, s->expanded_module, &url);
	if (url.len > width) {
		buf_reset(&url);
		s->options.link(s->options.link_arg, s->expanded_name, "", &url);
	}
	if (url.len > (size_t)width * LINK_LINES)
		return 0;
	for (size_t at = 0; at < url.len && !err; at += width) {
		AUTO_FREE char *piece = strndup(buf_text(&url) + at, width);

		err = piece ? add_line(s, &(struct summary_line){ .name = piece, .module = "", .type = "", .is_link = true })
			    : -ENOMEM;
	}
	return err;
}

static void free_tree(struct tree **tree)
{
	tree_free(*tree);
}

/* Adds rows below a function that takes @share of the time: its callers are parts of that. */
static int add_callers(struct summary *s, const struct summary_shown *shown, double share)
{
	AUTO(free_tree) struct tree *tree = tree_new();
	const struct call_node *root;
	int err = tree ? add_link(s) : -ENOMEM;
	uint32_t depth = 0, end;

	if (err)
		return err;
	end = s->line_cnt + EXPANDED_LINES;
	tree_view(tree, s->all);
	tree_callers(tree, s->expanded_name, s->expanded_module, EXPANDED_DEPTH);
	for (uint32_t i = 0; i < shown->profile_cnt && !err; i++)
		err = tree_add(tree, shown->profiles[i]);
	if (err)
		return err;
	root = tree_root(tree);
	share /= (double)tree_total(root);
	for (const struct call_node *n = call_next(root, root, &depth); n && s->line_cnt < end && !err;
	     n = call_next(root, n, &depth)) {
		const char *name = tree_name(tree, n), *module = name + strlen(name) + 1;
		const double weight = (double)tree_total(n);

		if (weight >= LEAST_OF_CALLERS * (double)tree_total(root))
			err = add_line(s, &(struct summary_line){ .name = name,
								  .module = module,
								  .type = module + strlen(module) + 1,
								  .depth = depth,
								  .total = share * weight });
	}
	return err;
}

/* Adds rows below a module or process that takes @self_share of the time itself: its functions, heaviest first. */
static int add_functions(struct summary *s, const struct summary_shown *shown, double self_share)
{
	AUTO(free_top) struct top *top = top_new();
	const struct top_row *rows;
	uint64_t self = 0;
	uint32_t count = 0;
	int err = top ? 0 : -ENOMEM;

	if (!err)
		top_view(top, s->show == SHOW_PROCESSES ? s->by_process : s->all);
	for (uint32_t i = 0; i < shown->profile_cnt && !err; i++)
		err = top_add(top, shown->profiles[i]);
	rows = err ? NULL : top_rows(top, &count);
	for (uint32_t i = 0; i < count; i++)
		self += is_of_expanded(s, &rows[i]) ? rows[i].all.self : 0;
	for (uint32_t i = 0; i < count && s->line_cnt < EXPANDED_LINES && !err; i++) {
		double scale = self ? self_share / (double)self : 1 / (double)top_sum(top)->weight;

		if (is_of_expanded(s, &rows[i]))
			err = add_line(s, &(struct summary_line){ .name = rows[i].name,
								  .module = rows[i].module,
								  .type = rows[i].type,
								  .self = scale * (double)rows[i].all.self,
								  .total = scale * (double)rows[i].all.total });
	}
	return err;
}

int summary_refresh_expanded(struct summary *s)
{
	const struct summary_shown *shown = summary_shown(s);
	const struct top_row *rows;
	uint32_t count = 0, i = 0;

	drop_lines(s);
	rows = s->is_expanded ? source_rows(s, &count) : NULL;
	while (i < count && !summary_is_expanded(s, &rows[i]))
		i++;
	if (i == count || !(shown->recent_weight > 0))
		return 0;
	return s->show == SHOW_FUNCTIONS ? add_callers(s, shown, rows[i].recent.total / shown->recent_weight)
					 : add_functions(s, shown, rows[i].recent.self / shown->recent_weight);
}

int summary_expand(struct summary *s, const struct top_row *row)
{
	free(s->expanded_name);
	free(s->expanded_module);
	s->expanded_name = row ? strdup(row->name) : NULL;
	s->expanded_module = row ? strdup(row->module) : NULL;
	s->is_expanded = s->expanded_name && s->expanded_module;
	return row && !s->is_expanded ? -ENOMEM : summary_refresh_expanded(s);
}

bool summary_is_expanded(const struct summary *s, const struct top_row *row)
{
	return s->is_expanded && !strcmp(row->name, s->expanded_name) && !strcmp(row->module, s->expanded_module);
}
