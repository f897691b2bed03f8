/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what changed, as a table. A function has a line for itself when that changed, and one for it with what it calls
 * when that changed and the former does not explain it.
 */
#include "proto/report/diff_table.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "proto/text.h"

enum { FUNCTION_MIN_COLUMNS = 12, MODULE_LEAST_TERMINAL = 90, STACK_ROWS = 10 };

struct table {
	const struct diff_result *result;
	const struct report_style *style;
	unsigned number, module, function;
};

static bool is_time(const struct diff_result *r)
{
	return r->summary.measure == DIFF_TIMES;
}

/* Shares in percent, times in seconds. */
static void put_value(const struct diff_result *r, double value, bool with_sign, struct buf *out)
{
	bool few = r->summary.seconds[DIFF_A] < 10;

	if (is_time(r))
		buf_printf(out, with_sign ? "%+.*f" : "%.*f", few ? 3 : 2, value);
	else
		buf_printf(out, with_sign ? "%+.2f%%" : "%.2f%%", value * 100);
}

/* Appends a cell of @columns, aligned to the right. */
static void cell(const struct diff_result *r, double value, const char *sign, unsigned columns, struct buf *out)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	unsigned used;

	put_value(r, value, sign && *sign == '+', &text);
	used = (unsigned)text.len + (sign && *sign != '+');
	for (; used < columns; used++)
		buf_putc(out, ' ');
	if (sign && *sign != '+')
		buf_puts(out, sign);
	buf_puts(out, buf_text(&text));
}

/* The relative change: "+2.6%", "new", "gone". */
static void put_relative(const struct diff_change *c, struct buf *out)
{
	if (c->a <= 0 || c->b <= 0)
		buf_puts(out, c->a <= 0 ? "new" : "gone");
	else
		buf_printf(out, "%+.1f%%", (c->b / c->a - 1) * 100);
}

/* Whether the change of @f with what it calls is more than that of it itself. */
static bool total_tells_more(const struct diff_function *f)
{
	return f->total.changed && (!f->self.changed || fabs(f->total.delta - f->self.delta) > f->total.band);
}

/* Calls @fn for each line, the most changed function first, at most @max_rows (0: all); returns how many are left out. */
static uint32_t each_line(const struct diff_result *r, uint32_t max_rows,
			  void (*fn)(void *arg, const struct diff_line *line), void *arg)
{
	uint32_t lines = 0, left_out = 0;

	for (uint32_t i = 0; i < r->function_count; i++) {
		const struct diff_function *f = &r->functions[i];
		const struct diff_line both[] = { { &f->self, f, false }, { &f->total, f, true } };

		for (int k = 0; k < 2; k++) {
			if (k ? !total_tells_more(f) : !f->self.changed)
				continue;
			if (max_rows && lines == max_rows)
				left_out++;
			else if (fn)
				fn(arg, &both[k]);
			lines += !max_rows || lines < max_rows;
		}
	}
	return left_out;
}

/* --- the head --- */

static void put_side(const struct diff_result *r, enum diff_side side, struct buf *out)
{
	const struct diff_summary *s = &r->summary;

	buf_printf(out, "%c  %" PRIu32 " run%s, ", "AB"[side], s -> runs[side], s -> runs[side] == 1 ? "" : "s");
	text_count(out, s->events[side]);
	buf_puts(out, " samples");
	if (s->seconds[side] > 0)
		buf_printf(out, ", %.2f s of CPU time%s", s->seconds[side], s->runs[side] == 1 ? "" : " a run");
	if (side == DIFF_B && s->seconds[DIFF_A] > 0) {
		buf_printf(out, ", %+.1f%%", (s->seconds[DIFF_B] / s->seconds[DIFF_A] - 1) * 100);
		if (s->all.band > 0)
			buf_printf(out, " (noise to ±%.1f%%)", s->all.band / s->seconds[DIFF_A] * 100);
	}
	buf_putc(out, '\n');
}

static void put_counts(const struct diff_result *r, struct buf *out)
{
	const struct diff_summary *s = &r->summary;

	if (s->all.changed)
		buf_printf(out, "the program takes %s CPU time a run\n", s->all.delta > 0 ? "more" : "less");
	if (s->changed_functions || s->changed_stacks)
		buf_printf(out, "%" PRIu32 " of %" PRIu32 " functions and %" PRIu32 " of %" PRIu32 " stacks changed\n",
			   s->changed_functions, s->judged_functions, s->changed_stacks, s->judged_stacks);
	else
		buf_printf(out, "none of %" PRIu32 " functions and %" PRIu32 " stacks changed\n", s->judged_functions,
			   s->judged_stacks);
	buf_printf(out, "(one that takes half of the time counts as changed from %.*f%s on%s)\n", is_time(r) ? 3 : 2,
		   s->sharpness * (is_time(r) ? s->seconds[DIFF_A] : 100), is_time(r) ? " s" : " percent points",
		   s->runs[0] + s->runs[1] > 2 ? "" : "; with three runs a side, much earlier");
}

/* --- the table --- */

static void print_line(void *arg, const struct diff_line *line)
{
	struct table *t = ((void **)arg)[0];
	struct buf *out = ((void **)arg)[1];
	const struct diff_result *r = t->result;
	AUTO(buf_fini) struct buf relative = BUF_EMPTY;
	enum text_tone tone = line->change->delta > 0 ? TONE_MORE : TONE_LESS;

	text_tone(out, t->style->colour, tone);
	cell(r, line->change->delta, "+", t->number, out);
	text_tone(out, t->style->colour, TONE_PLAIN);
	buf_puts(out, " ");
	cell(r, line->change->band, "±", t->number, out);
	buf_puts(out, "  ");
	cell(r, line->change->a, NULL, t->number, out);
	buf_puts(out, "  ");
	cell(r, line->change->b, NULL, t->number, out);
	put_relative(line->change, &relative);
	buf_printf(out, "  %8s  %-5s  ", buf_text(&relative), line->is_total ? "total" : "self");
	if (t->module) {
		text_tone(out, t->style->colour, TONE_FAINT);
		text_padded(out, line->function->module, t->module);
		text_tone(out, t->style->colour, TONE_PLAIN);
		buf_puts(out, "  ");
	}
	text_name(out, line->function->name, t->function);
	buf_putc(out, '\n');
}

static void widen(void *arg, const struct diff_line *line)
{
	struct table *t = ((void **)arg)[0];
	unsigned wanted = text_columns(line->function->module);

	t->module = wanted > t->module ? wanted : t->module;
}

static void print_functions(struct table *t, struct buf *out)
{
	void *arg[2] = { t, out };
	unsigned columns = t->style->columns, before;
	uint32_t left_out;

	t->module = (unsigned)strlen("MODULE");
	each_line(t->result, t->style->max_rows, widen, arg);
	if (columns && columns < MODULE_LEAST_TERMINAL)
		t->module = 0;
	else if (columns && t->module > columns / 5)
		t->module = columns / 5;
	before = 4 * t->number + 5 + 10 + 9 + (t->module ? t->module + 2 : 0);
	if (columns)
		t->function = columns > before + FUNCTION_MIN_COLUMNS ? columns - before : FUNCTION_MIN_COLUMNS;
	buf_putc(out, '\n');
	text_tone(out, t->style->colour, TONE_HEAD);
	buf_printf(out, "%*s %*s  %*s  %*s  %8s  %-5s  ", (int)t->number, is_time(t->result) ? "DELTA s" : "DELTA",
		   (int)t->number, "NOISE", (int)t->number, "A", (int)t->number, "B", "CHANGE", "OF");
	if (t->module)
		buf_printf(out, "%-*s  ", (int)t->module, "MODULE");
	buf_puts(out, "FUNCTION");
	text_tone(out, t->style->colour, TONE_PLAIN);
	buf_putc(out, '\n');
	left_out = each_line(t->result, t->style->max_rows, print_line, arg);
	if (left_out)
		buf_printf(out, "%*s(%" PRIu32 " more)\n", (int)(4 * t->number + 24), "", left_out);
}

/* "leaf < caller < caller" */
static void put_stack(const struct diff_result *r, const struct diff_stack *s, struct buf *out)
{
	for (uint32_t i = s->count; i-- > 0;) {
		buf_puts(out, r->by_index[s->functions[i]]->name);
		buf_puts(out, i ? " < " : "");
	}
	if (!s->count)
		buf_puts(out, "(no frames)");
}

static void print_stacks(struct table *t, struct buf *out)
{
	unsigned before = 4 * t->number + 7, columns = t->style->columns;

	buf_putc(out, '\n');
	text_tone(out, t->style->colour, TONE_HEAD);
	buf_printf(out, "%*s %*s  %*s  %*s  STACK, FROM ITS LEAF", (int)t->number, is_time(t->result) ? "DELTA s" : "DELTA",
		   (int)t->number, "NOISE", (int)t->number, "A", (int)t->number, "B");
	text_tone(out, t->style->colour, TONE_PLAIN);
	buf_putc(out, '\n');
	for (uint32_t i = 0; i < t->result->stack_count && t->result->stacks[i].self.changed; i++) {
		const struct diff_stack *s = &t->result->stacks[i];
		AUTO(buf_fini) struct buf stack = BUF_EMPTY;

		if (i == STACK_ROWS) {
			buf_printf(out, "%*s(%" PRIu32 " more)\n", (int)before, "",
				   t->result->summary.changed_stacks - STACK_ROWS);
			break;
		}
		text_tone(out, t->style->colour, s->self.delta > 0 ? TONE_MORE : TONE_LESS);
		cell(t->result, s->self.delta, "+", t->number, out);
		text_tone(out, t->style->colour, TONE_PLAIN);
		buf_puts(out, " ");
		cell(t->result, s->self.band, "±", t->number, out);
		buf_puts(out, "  ");
		cell(t->result, s->self.a, NULL, t->number, out);
		buf_puts(out, "  ");
		cell(t->result, s->self.b, NULL, t->number, out);
		buf_puts(out, "  ");
		put_stack(t->result, s, &stack);
		if (columns)
			text_line(out, buf_text(&stack),
				  columns > before + FUNCTION_MIN_COLUMNS ? columns - before : FUNCTION_MIN_COLUMNS);
		else
			text_name(out, buf_text(&stack), 0);
		buf_putc(out, '\n');
		out->failed |= stack.failed;
	}
}

int report_diff(const struct diff_result *r, const struct report_style *style, struct buf *out)
{
	struct table t = { .result = r, .style = style, .number = 8 };

	put_side(r, DIFF_A, out);
	put_side(r, DIFF_B, out);
	buf_putc(out, '\n');
	put_counts(r, out);
	if (r->summary.changed_functions)
		print_functions(&t, out);
	if (r->summary.changed_stacks)
		print_stacks(&t, out);
	return out->failed ? -ENOMEM : 0;
}

/* --- for pull requests --- */

/* Whether an address in plain text would become a link by the character @c of @text. */
static bool makes_link(const char *text, const char *c)
{
	return !strncmp(c, "://", 3) || (*c == '.' && c - text >= 3 && !strncasecmp(c - 3, "www", 3));
}

/* Appends a name as code, with nothing in it that Markdown or HTML would take for its own. */
static void put_code(struct buf *out, const char *text)
{
	AUTO(buf_fini) struct buf name = BUF_EMPTY;

	text_name(&name, text, 0);
	buf_puts(out, "<code>");
	for (const char *c = buf_text(&name); *c; c++) {
		if (*c ==
		    '@') /* mail addresses are looked for where references have been read already: the tag parts them */
			buf_puts(out, "@<wbr>");
		else if (strchr("<>&|`*_~$\\[]", *c) || makes_link(buf_text(&name), c))
			buf_printf(out, "&#%d;", *c);
		else
			buf_putc(out, *c);
	}
	buf_puts(out, "</code>");
	out->failed |= name.failed;
}

static void markdown_line(void *arg, const struct diff_line *line)
{
	const struct diff_result *r = ((void **)arg)[0];
	struct buf *out = ((void **)arg)[1];

	buf_puts(out, "| **");
	put_value(r, line->change->delta, true, out);
	buf_puts(out, "** | ±");
	put_value(r, line->change->band, false, out);
	buf_puts(out, " | ");
	put_value(r, line->change->a, false, out);
	buf_puts(out, " | ");
	put_value(r, line->change->b, false, out);
	buf_puts(out, " | ");
	put_relative(line->change, out);
	buf_printf(out, " | %s | ", line->is_total ? "with calls" : "itself");
	put_code(out, line->function->name);
	if (line->function->module[0]) {
		buf_puts(out, " (");
		put_code(out, line->function->module);
		buf_putc(out, ')');
	}
	buf_puts(out, " |\n");
}

int report_diff_markdown(const struct diff_result *r, const struct report_style *style, struct buf *out)
{
	void *arg[2] = { (void *)r, out };
	uint32_t left_out;

	buf_puts(out, "### CPU profile: ");
	if (r->summary.changed_functions)
		buf_printf(out, "%" PRIu32 " of %" PRIu32 " functions changed\n\n", r->summary.changed_functions,
			   r->summary.judged_functions);
	else
		buf_printf(out, "none of %" PRIu32 " functions changed\n\n", r->summary.judged_functions);
	if (r->summary.changed_functions) {
		buf_puts(out, "| change | noise | A | B | relative | of | function |\n|---:|---:|---:|---:|---:|---|---|\n");
		left_out = each_line(r, style->max_rows, markdown_line, arg);
		if (left_out)
			buf_printf(out, "\n%" PRIu32 " more are not shown.\n", left_out);
		buf_putc(out, '\n');
	}
	buf_puts(out, "<sub>");
	put_side(r, DIFF_A, out);
	out->len--;
	buf_puts(out, "<br>");
	put_side(r, DIFF_B, out);
	out->len--;
	buf_puts(out, "</sub>\n");
	return out->failed ? -ENOMEM : 0;
}

/* --- line by line --- */

void report_diff_each(const struct diff_result *r, void (*fn)(void *arg, const struct diff_line *line), void *arg)
{
	if (r->summary.all.changed)
		fn(arg, &(struct diff_line){ .change = &r->summary.all });
	each_line(r, 0, fn, arg);
}

void report_diff_line(const struct diff_result *r, const struct diff_line *line, struct buf *out)
{
	buf_puts(out, "  ");
	cell(r, line->change->delta, "+", 8, out);
	buf_puts(out, " (noise ±");
	put_value(r, line->change->band, false, out);
	if (!line->function) {
		buf_puts(out, ")  the whole program\n");
		return;
	}
	buf_puts(out, "): ");
	put_value(r, line->change->a, false, out);
	buf_puts(out, " -> ");
	put_value(r, line->change->b, false, out);
	buf_puts(out, line->is_total ? "  with what it calls: " : "  ");
	text_name(out, line->function->name, 0);
	if (line->function->module[0]) {
		buf_puts(out, " (");
		text_name(out, line->function->module, 0);
		buf_putc(out, ')');
	}
	buf_putc(out, '\n');
}
