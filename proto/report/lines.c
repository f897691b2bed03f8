/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints functions as listings: each source line with its weight, and the line itself where the caller has its file (the
 * capture may be from elsewhere, and the file newer than the program: the numbers count, the text is a help). Lines between
 * those that have samples are shown as long as they are few.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/pattern.h"
#include "proto/report/report.h"
#include "proto/text.h"

enum { MAX_GAP_LINES = 4, TEXT_COLUMN = 25 };

struct source {
	report_source_fn *read; /* NULL: no file can be read */
	const char *path;	/* of the rows; NULL: none read yet */
	struct buf text;
	size_t at;    /* where line @line begins */
	int64_t line; /* from 1 on */
	bool is_there;
};

static int by_place(const void *x, const void *y)
{
	const struct top_row *a = x, *b = y;
	int order = strcmp(a->name, b->name);

	order = order ? order : strcmp(a->module, b->module);
	order = order ? order : strcmp(a->group, b->group);
	order = order ? order : strcmp(a->file, b->file);
	return order ? order : (a->line > b->line) - (a->line < b->line);
}

static bool same_function(const struct top_row *a, const struct top_row *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->module, b->module) && !strcmp(a->group, b->group);
}

static void open_source(struct source *s, const char *path)
{
	if (!s->path || strcmp(s->path, path)) {
		buf_reset(&s->text);
		s->is_there = s->read && path[0] == '/' && s->read(path, &s->text);
	}
	s->path = path;
	s->at = 0;
	s->line = 1;
}

/* Appends @line, which is not before the last one asked for; tabs become spaces. False: there is none. */
static bool print_source(struct source *s, int64_t line, unsigned columns, struct buf *out)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const char *data = (const char *)s->text.data;

	if (!s->is_there || line < s->line)
		return false;
	for (; s->line < line; s->line++) {
		const char *end = s->at < s->text.len ? memchr(data + s->at, '\n', s->text.len - s->at) : NULL;

		if (!end)
			return false;
		s->at = (size_t)(end - data) + 1;
	}
	for (size_t i = s->at; i < s->text.len && data[i] != '\n' && data[i] != '\r'; i++)
		if (data[i] == '\t')
			buf_puts(&text, "    ");
		else
			buf_putc(&text, data[i]);
	if (columns)
		text_line(out, buf_text(&text), columns > TEXT_COLUMN + 8 ? columns - TEXT_COLUMN : 8);
	else
		text_name(out, buf_text(&text), 0);
	return true;
}

static void print_line(struct source *s, const struct top_row *row, int64_t line, const struct top *t,
		       const struct report_style *style, struct buf *out)
{
	uint64_t weight = top_sum(t)->weight;

	if (row) {
		double self = text_percent(row->all.self, weight);
		bool colour = style->colour && text_heat(self) != TONE_PLAIN;

		text_tone(out, colour, text_heat(self));
		buf_printf(out, "%6.2f%%", self);
		text_tone(out, colour, TONE_PLAIN);
		buf_printf(out, " %6.2f%% ", text_percent(row->all.total, weight));
	} else {
		buf_puts(out, "                ");
	}
	if (line)
		buf_printf(out, "%6" PRId64, line);
	else
		buf_puts(out, "     ?");
	if (s->is_there && line) {
		buf_puts(out, "  ");
		print_source(s, line, style->columns, out);
	}
	while (out->len && out->data[out->len - 1] == ' ')
		out->len--;
	buf_putc(out, '\n');
}

/* The @count lines of one function, by file and line. */
static void print_lines(const struct top *t, const struct top_row *lines, uint32_t count, const struct report_style *style,
			struct source *s, struct buf *out)
{
	for (uint32_t i = 0; i < count; i++) {
		bool is_first = !i || strcmp(lines[i].file, lines[i - 1].file) != 0;

		if (is_first) {
			open_source(s, lines[i].file);
			buf_puts(out, "  SELF%  TOTAL%   LINE  ");
			text_name(out, lines[i].file[0] ? lines[i].file : "(no source file known)", 0);
			buf_putc(out, '\n');
		} else if (s->is_there && lines[i - 1].line && lines[i].line - lines[i - 1].line > MAX_GAP_LINES) {
			buf_puts(out, "                   ...\n");
		} else if (s->is_there && lines[i - 1].line) {
			for (int64_t line = lines[i - 1].line + 1; line < lines[i].line; line++)
				print_line(s, NULL, line, t, style, out);
		}
		print_line(s, &lines[i], lines[i].line, t, style, out);
	}
}

static void print_function(const struct top *t, const struct top_row *f, const struct report_style *style, struct buf *out)
{
	buf_putc(out, '\n');
	text_tone(out, style->colour, TONE_HEAD);
	text_name(out, f->name, style->columns);
	text_tone(out, style->colour, TONE_PLAIN);
	buf_puts(out, "\n  ");
	if (f->group[0]) {
		text_name(out, f->group, 0);
		buf_puts(out, ", ");
	}
	if (f->module[0]) {
		text_name(out, f->module, 0);
		buf_puts(out, ", ");
	}
	buf_printf(out, "%.2f%% in itself, %.2f%% with what it calls\n", text_percent(f->all.self, top_sum(t)->weight),
		   text_percent(f->all.total, top_sum(t)->weight));
}

int report_lines(struct top *functions, struct top *lines, struct pattern *pattern, report_source_fn *read,
		 const struct report_style *style, struct buf *out)
{
	uint32_t function_count, line_count, shown = 0;
	const struct top_row *f = top_rows(functions, &function_count), *rows = top_rows(lines, &line_count);
	AUTO_FREE struct top_row *sorted = reallocarray(NULL, (size_t)line_count + 1, sizeof(*sorted));
	struct source s = { .read = read };

	if (!sorted || !f || !rows)
		return -ENOMEM;
	if (line_count) {
		memcpy(sorted, rows, line_count * sizeof(*sorted));
		qsort(sorted, line_count, sizeof(*sorted), by_place);
	}
	report_sum(top_sum(functions), out);
	buf_putc(out, '\n');
	for (uint32_t i = 0; i < function_count && (!style->max_rows || shown < style->max_rows); i++) {
		uint32_t first = 0, end;

		if (pattern && !pattern_matches(pattern, f[i].name, strlen(f[i].name)))
			continue;
		for (uint32_t step = line_count; step; step /= 2) /* the first that is not before it */
			while (first + step <= line_count && by_place(&sorted[first + step - 1], &f[i]) < 0)
				first += step;
		for (end = first; end < line_count && same_function(&sorted[end], &f[i]);)
			end++;
		print_function(functions, &f[i], style, out);
		print_lines(functions, &sorted[first], end - first, style, &s, out);
		shown++;
	}
	if (!shown)
		buf_puts(out, pattern ? "no function matches\n" : "no functions\n");
	buf_fini(&s.text);
	return out->failed ? -ENOMEM : 0;
}
