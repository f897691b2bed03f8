/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions, for people and as CSV. Weights are seconds where they are time, else as they are. Columns are as
 * wide as what stands in them, and only the names give way when the terminal is narrow.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/report/report.h"
#include "proto/text.h"

enum { FUNCTION_MIN_COLUMNS = 12, NUMBER_MIN_COLUMNS = 7, SOURCE_COLUMNS = 6, SOURCE_LEAST_TERMINAL = 100 };

/* How the columns of one table stand; 0: the column is left out. */
struct layout {
	const struct weight_sum *sum;
	const struct report_style *style;
	unsigned number, source, group, module, function;
	bool has_group;
};

static unsigned at_least(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

static void number_cell(const struct layout *l, uint64_t weight, struct buf *out)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	report_weight(l->sum, weight, &text);
	buf_printf(out, "  %*s", (int)l->number, buf_text(&text));
	out->failed |= text.failed;
}

/* Prints the columns before the names. */
static void numbers(const struct layout *l, const struct top_counts *c, struct buf *out)
{
	double self = text_percent(c->self, l->sum->weight);
	bool colour = l->style->colour && text_heat(self) != TONE_PLAIN;

	text_tone(out, colour, text_heat(self));
	buf_printf(out, "%6.2f%%", self);
	text_tone(out, colour, TONE_PLAIN);
	buf_printf(out, " %6.2f%%", text_percent(c->total, l->sum->weight));
	number_cell(l, c->self, out);
	number_cell(l, c->total, out);
}

static enum text_tone tone_of(const struct top_row *row)
{
	return !strcmp(row->type, "kernel") ? TONE_KERNEL : TONE_PLAIN;
}

static void print_row(const struct layout *l, const struct top_row *row, struct buf *out)
{
	bool colour = l->style->colour;

	numbers(l, &row->all, out);
	buf_puts(out, "  ");
	text_tone(out, colour, TONE_FAINT);
	if (l->source) {
		text_padded(out, row->source[0] ? row->source : "-", l->source);
		buf_puts(out, "  ");
	}
	if (l->group) {
		text_padded(out, row->group, l->group);
		buf_puts(out, "  ");
	}
	text_padded(out, row->module, l->module);
	text_tone(out, colour, TONE_PLAIN);
	buf_puts(out, "  ");
	text_tone(out, colour && tone_of(row) != TONE_PLAIN, tone_of(row));
	if (row->file[0]) {
		AUTO(buf_fini) struct buf name = BUF_EMPTY;

		buf_puts(&name, row->name);
		report_place(row, &name);
		text_name(out, buf_text(&name), l->function);
		out->failed |= name.failed;
	} else {
		text_name(out, row->name, l->function);
	}
	text_tone(out, colour && tone_of(row) != TONE_PLAIN, TONE_PLAIN);
	buf_putc(out, '\n');
}

static void lay_out(struct layout *l, const struct top_row *rows, uint32_t shown)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	unsigned columns = l->style->columns, before;

	report_weight(l->sum, l->sum->weight, &text);
	l->number = at_least(NUMBER_MIN_COLUMNS, (unsigned)text.len);
	l->module = (unsigned)strlen("MODULE");
	l->group = l->style->by ? (unsigned)strlen(l->style->by) : 0;
	for (uint32_t i = 0; i < shown; i++) {
		l->module = at_least(l->module, text_columns(rows[i].module));
		if (l->group)
			l->group = at_least(l->group, text_columns(rows[i].group));
		if (rows[i].source[0] && (!columns || columns >= SOURCE_LEAST_TERMINAL))
			l->source = SOURCE_COLUMNS;
	}
	if (!columns)
		return;
	l->module = l->module < columns / 5 ? l->module : columns / 5;
	l->group = l->group < columns / 5 ? l->group : columns / 5;
	before = 15 + 2 * (l->number + 2) + 2 + l->module + 2;
	before += l->source ? l->source + 2 : 0;
	before += l->group ? l->group + 2 : 0;
	l->function = columns > before + FUNCTION_MIN_COLUMNS ? columns - before : FUNCTION_MIN_COLUMNS;
}

static void upper(struct buf *out, const char *text, unsigned columns)
{
	size_t begin = out->len;

	text_padded(out, text, columns);
	for (size_t i = begin; i < out->len && !out->failed; i++)
		if (out->data[i] >= 'a' && out->data[i] <= 'z')
			out->data[i] = (uint8_t)(out->data[i] - 'a' + 'A');
}

static void print_heading(const struct layout *l, struct buf *out)
{
	const char *unit = stack_sum_ns(l->sum) ? " s" : "";

	buf_putc(out, '\n');
	text_tone(out, l->style->colour, TONE_HEAD);
	buf_printf(out, "  SELF%%  TOTAL%%  %*s%s  %*s%s  ", (int)(l->number - strlen(unit)), "SELF", unit,
		   (int)(l->number - strlen(unit)), "TOTAL", unit);
	if (l->source)
		buf_printf(out, "%-*s  ", (int)l->source, "NAMES");
	if (l->group) {
		upper(out, l->style->by, l->group);
		buf_puts(out, "  ");
	}
	buf_printf(out, "%-*s  FUNCTION", (int)l->module, "MODULE");
	text_tone(out, l->style->colour, TONE_PLAIN);
	buf_putc(out, '\n');
}

int report_top(struct top *t, const struct report_style *style, struct buf *out)
{
	struct layout l = { .sum = top_sum(t), .style = style };
	uint32_t count, shown;
	const struct top_row *rows = top_rows(t, &count);
	uint64_t rest = 0;

	if (!rows)
		return -ENOMEM;
	report_sum(l.sum, out);
	buf_putc(out, '\n');
	shown = style->max_rows && style->max_rows < count ? style->max_rows : count;
	lay_out(&l, rows, shown);
	if (count)
		print_heading(&l, out);
	for (uint32_t i = 0; i < shown; i++)
		print_row(&l, &rows[i], out);
	for (uint32_t i = shown; i < count; i++)
		rest += rows[i].all.self;
	if (shown < count) {
		buf_printf(out, "%6.2f%%        ", text_percent(rest, l.sum->weight));
		number_cell(&l, rest, out);
		buf_printf(out, "  (%" PRIu32 " more)\n", count - shown);
	}
	return out->failed ? -ENOMEM : 0;
}

/* --- CSV --- */

void report_csv_text(struct buf *out, const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		buf_puts(out, text);
		return;
	}
	buf_putc(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf_putc(out, '"');
		buf_putc(out, *text);
	}
	buf_putc(out, '"');
}

int report_csv(struct top *t, struct buf *out)
{
	const struct weight_sum *sum = top_sum(t);
	uint32_t count;
	const struct top_row *rows = top_rows(t, &count);

	if (!rows)
		return -ENOMEM;
	buf_puts(out, "self_percent,total_percent,self,total,self_cpu_seconds,total_cpu_seconds,names_from,type,group,"
		      "module,function,file,line\n");
	for (uint32_t i = 0; i < count; i++) {
		const struct top_row *row = &rows[i];
		const char *const texts[] = { row->source, row->type, row->group, row->module, row->name, row->file };
		double second = sum->weight ? (double)sum->cpu_ns / 1e9 / (double)sum->weight : 0;

		buf_printf(out, "%.4f,%.4f,%" PRIu64 ",%" PRIu64, text_percent(row->all.self, sum->weight),
			   text_percent(row->all.total, sum->weight), row->all.self, row->all.total);
		if (sum->cpu_ns)
			buf_printf(out, ",%.6f,%.6f", (double)row->all.self * second, (double)row->all.total * second);
		else
			buf_puts(out, ",,");
		for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
			buf_putc(out, ',');
			report_csv_text(out, texts[k]);
		}
		if (row->line)
			buf_printf(out, ",%" PRId64 "\n", row->line);
		else
			buf_puts(out, ",\n");
	}
	return out->failed ? -ENOMEM : 0;
}
