/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the processes that the functions of the summary run in. A function of a shared library runs in many: the heaviest
 * process is named, those of the same name are one, "cc1 x36", and "+2" says that processes of two other names have it too.
 * The names are copies: the table they are from goes on while the screen is frozen.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sinks/summary/state.h"

/* A function in the processes of one name. */
struct share {
	const struct top_row *heaviest;
	double weight;
	uint32_t processes;
};

/* Length of the name in @group, "nginx (812)", without the pid. */
static size_t name_len(const char *group)
{
	const char *paren = strrchr(group, '(');

	return paren && paren > group ? (size_t)(paren - group) - 1 : strlen(group);
}

static int compare_functions(const struct top_row *a, const struct top_row *b)
{
	int order = strcmp(a->name, b->name);

	return order ? order : strcmp(a->module, b->module);
}

/* Functions together, in each the processes of one name together, in those the heaviest first. */
static int by_function(const void *x, const void *y)
{
	const struct top_row *a = *(const struct top_row *const *)x, *b = *(const struct top_row *const *)y;
	size_t a_len = name_len(a->group), b_len = name_len(b->group);
	int order = compare_functions(a, b);

	order = order ? order : strncmp(a->group, b->group, a_len < b_len ? a_len : b_len);
	order = order ? order : (a_len > b_len) - (a_len < b_len);
	order = order ? order : (a->recent.total < b->recent.total) - (a->recent.total > b->recent.total);
	return order ? order : strcmp(a->group, b->group);
}

static bool same_process_name(const struct top_row *a, const struct top_row *b)
{
	size_t len = name_len(a->group);

	return len == name_len(b->group) && !memcmp(a->group, b->group, len);
}

static void print_label(const struct share *best, uint32_t names, struct buf *out)
{
	const char *group = best->heaviest->group;

	if (best->processes > 1)
		buf_printf(out, "%.*s ×%u", (int)name_len(group), group, best->processes);
	else
		buf_puts(out, group);
	if (names > 1)
		buf_printf(out, " +%u", names - 1);
}

/* Labels the function of the rows from *@rows on, up to @end; returns where the next function begins. */
static const struct top_row **label_function(struct summary *s, const struct top_row **rows, const struct top_row **end)
{
	struct owner *owner = &s->owners[s->owner_cnt++];
	const struct top_row *first = *rows;
	struct share best = { .heaviest = first }, share = { .heaviest = first };
	uint32_t names = 1;

	for (; rows < end && !compare_functions(first, *rows); rows++) {
		if (!same_process_name(share.heaviest, *rows)) {
			share = (struct share){ .heaviest = *rows };
			names++;
		}
		share.weight += (*rows)->recent.total;
		share.processes++;
		if (share.weight > best.weight || share.heaviest == best.heaviest)
			best = share;
	}
	owner->name = s->owner_texts.len;
	buf_append(&s->owner_texts, first->name, strlen(first->name) + 1);
	owner->module = s->owner_texts.len;
	buf_append(&s->owner_texts, first->module, strlen(first->module) + 1);
	owner->label = s->owner_texts.len;
	print_label(&best, names, &s->owner_texts);
	buf_putc(&s->owner_texts, '\0');
	return rows;
}

int summary_name_owners(struct summary *s)
{
	uint32_t count;
	const struct top_row *rows = top_recent_rows(s->by_owner, &count);
	const struct top_row **order = malloc((count + 1) * sizeof(*order));
	struct owner *owners = realloc(s->owners, (count + 1) * sizeof(*owners));

	s->owners = owners ? owners : s->owners;
	s->owner_cnt = 0;
	buf_reset(&s->owner_texts);
	if (!order || !owners) {
		free(order);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		order[i] = &rows[i];
	qsort(order, count, sizeof(*order), by_function);
	for (const struct top_row **at = order; at < order + count;)
		at = label_function(s, at, order + count);
	free(order);
	if (s->owner_texts.failed)
		s->owner_cnt = 0;
	return s->owner_texts.failed ? -ENOMEM : 0;
}

const char *summary_owner(const struct summary *s, const struct top_row *row)
{
	const char *texts = (const char *)s->owner_texts.data;
	uint32_t low = 0, high = s->owner_cnt;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct owner *owner = &s->owners[middle];
		int order = strcmp(row->name, texts + owner->name);

		order = order ? order : strcmp(row->module, texts + owner->module);
		if (!order)
			return texts + owner->label;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return "";
}
