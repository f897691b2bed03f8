/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows the summary shows, in which order, and what stands below the one that is expanded. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/callers.h"
#include "sinks/summary_state.h"

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
	return !s->filter[0] || strcasestr(row->name, s->filter) || strcasestr(row->module, s->filter);
}

struct order {
	enum summary_sort sort;
	bool is_reversed;
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int compare_rows(const void *x, const void *y, void *arg)
{
	const struct top_row *a = x, *b = y;
	const struct order *order = arg;
	int way = order->is_reversed ? -1 : 1, result = 0;

	if (order->sort == SORT_SELF)
		result = compare_u64(a->recent.self, b->recent.self);
	if (order->sort == SORT_SELF || order->sort == SORT_TOTAL)
		result = result ? result : compare_u64(a->recent.total, b->recent.total);
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

	if (count > s->row_cap) {
		struct top_row *grown = reallocarray(s->rows, count, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->rows = grown;
		s->row_cap = count;
	}
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
	profiles_put(s->frozen.profiles);
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
		if (s->frozen.profiles)
			profiles_get(s->frozen.profiles);
	}
	s->is_frozen = on && !err;
	if (!s->is_frozen)
		drop_copies(s);
	return err;
}

/* --- the expanded row --- */

static void drop_lines(struct summary *s)
{
	for (uint32_t i = 0; i < s->line_cnt; i++)
		free(s->lines[i].name);
	s->line_cnt = 0;
}

static int add_line(struct summary *s, const char *name, const char *module, const char *type, unsigned depth, uint64_t self,
		    uint64_t total)
{
	char *text = malloc(strlen(name) + strlen(module) + strlen(type) + 3), *at = text;
	struct summary_line *line = &s->lines[s->line_cnt];

	if (!text)
		return -ENOMEM;
	line->name = copy_text(&at, name);
	line->module = copy_text(&at, module);
	line->type = copy_text(&at, type);
	line->depth = depth;
	line->self = self;
	line->total = total;
	s->line_cnt++;
	return 0;
}

static int add_callers(struct summary *s, const struct profiles *p)
{
	const struct caller *lines;
	struct callers *callers;
	uint32_t count;
	int err = callers_find(p, s->expanded_name, s->expanded_module, EXPANDED_LINES, EXPANDED_DEPTH, 0.02, &callers);

	if (err)
		return err;
	lines = callers_lines(callers, &count);
	for (uint32_t i = 0; i < count && !err; i++)
		err = add_line(s, lines[i].name, lines[i].module, lines[i].type, lines[i].depth, 0, lines[i].weight);
	callers_free(callers);
	return err;
}

/* Functions of the module, or of the process, heaviest first. */
static int add_functions(struct summary *s, const struct profiles *p)
{
	bool is_process = s->show == SHOW_PROCESSES;
	struct top *top = top_new();
	const struct top_row *rows;
	uint32_t count = 0;
	int err = top ? 0 : -ENOMEM;

	if (!err && is_process)
		top_view(top, s->by_process);
	if (!err)
		err = top_add(top, p);
	rows = err ? NULL : top_rows(top, &count);
	for (uint32_t i = 0; i < count && s->line_cnt < EXPANDED_LINES && !err; i++)
		if (!strcmp(is_process ? rows[i].group : rows[i].module, s->expanded_name))
			err = add_line(s, rows[i].name, rows[i].module, rows[i].type, 0, rows[i].all.self,
				       rows[i].all.total);
	top_free(top);
	return err;
}

int summary_refresh_expanded(struct summary *s)
{
	const struct profiles *p = summary_shown(s)->profiles;

	drop_lines(s);
	if (!s->is_expanded || !p)
		return 0;
	return s->show == SHOW_FUNCTIONS ? add_callers(s, p) : add_functions(s, p);
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
