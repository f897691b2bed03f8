/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screen of the summary: built whole in memory, every line overwritten in place and erased behind itself, so that
 * nothing flickers. The last column is never written: erasing from there would take its character along.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "proto/report/report.h"
#include "proto/text.h"
#include "sinks/summary/state.h"

enum {
	MODULE_COLUMNS = 20, /* at most; a fifth of the screen */
	MODULE_MIN_COLUMNS = 6,
	OWNER_COLUMNS = 28,  /* of the process, at most; a sixth of the screen */
	NUMBER_COLUMNS = 28, /* the three percentages */
	OTHER_LINES = 5,     /* status, sums, state, heading; legend */
	DEFAULT_ROWS = 24,
	DEFAULT_COLUMNS = 80,
	PLAIN_ROWS = 10,
};

#define MESSAGE_NS (10 * NSEC_PER_SEC)

#define SCREEN_ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define SCREEN_HOME  "\033[H"
#define ERASE_LINE   "\033[K"
#define ERASE_BELOW  "\033[J"
#define SGR_RESET    "\033[0m"
#define SGR_BOLD     "\033[1m"
#define SGR_DIM	     "\033[2m"
#define SGR_REVERSE  "\033[7m"

static const struct {
	const char *type, *sgr;
} colours[] = {
	{ "kernel", "\033[33m" },
	{ "native", "\033[32m" },
	{ "go", "\033[36m" },
	{ "other", "\033[35m" },
};

static const char *colour_of(const char *frame_type)
{
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(colours) && strcmp(colours[i].type, frame_type) != 0)
		i++;
	return colours[i].sgr;
}

static void sgr(struct summary *s, const char *code)
{
	if (s->options.colour)
		buf_puts(&s->screen, code);
}

void summary_terminal_size(const struct summary *s, unsigned *rows, unsigned *columns)
{
	struct winsize size = { 0 };

	*rows = s->options.rows;
	*columns = s->options.columns;
	if (!*rows || !*columns)
		ioctl(fileno(s->options.out), TIOCGWINSZ, &size); /* an output that is no terminal leaves zeros */
	if (!*rows)
		*rows = size.ws_row ? size.ws_row : DEFAULT_ROWS;
	if (!*columns)
		*columns = size.ws_col ? size.ws_col : DEFAULT_COLUMNS;
}

static void end_line(struct summary *s)
{
	sgr(s, SGR_RESET);
	buf_puts(&s->screen, ERASE_LINE "\n");
}

static void draw_status(struct summary *s, unsigned columns)
{
	AUTO(buf_fini) struct buf line = BUF_EMPTY;

	if (s->options.status)
		s->options.status(s->options.status_arg, &line);
	sgr(s, SGR_BOLD);
	text_line(&s->screen, buf_text(&line), columns);
	end_line(s);
}

static void print_sums(const struct summary_shown *shown, struct buf *line)
{
	buf_puts(line, "last ");
	text_duration(line, shown->interval_end_unix_ns - shown->interval_start_unix_ns);
	buf_puts(line, ": ");
	text_count(line, shown->recent_sum.events);
	buf_puts(line, " samples · overall ");
	text_duration(line, shown->end_unix_ns - shown->start_unix_ns);
	buf_puts(line, ": ");
	report_sum(&shown->sum, line);
}

static void draw_sums(struct summary *s, unsigned columns)
{
	AUTO(buf_fini) struct buf line = BUF_EMPTY;

	print_sums(summary_shown(s), &line);
	text_line(&s->screen, buf_text(&line), columns);
	end_line(s);
}

/* The last warning or error, while it is new: what waits for the end of the screen (log_hold()) is seen here. */
static void print_message(struct buf *line)
{
	struct log_message last;

	if (log_recent(&last, 1) && last.level <= LOG_WARN && clock_unix_ns() < last.unix_ns + MESSAGE_NS)
		buf_printf(line, "%s: %s", log_level_name(last.level), last.text);
}

/* Draws the settings that differ from the first ones; else a message. */
static void draw_state(struct summary *s, unsigned columns)
{
	static const char *const shows[] = { "", "modules", "processes" };
	static const char *const sorts[] = { "", "sorted by total", "sorted by overall", "sorted by name" };
	AUTO(buf_fini) struct buf line = BUF_EMPTY;
	const char *const parts[] = { s->is_frozen ? "FROZEN (z)" : "", shows[s->show], sorts[s->sort],
				      s->is_reversed ? "reversed" : "" };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (parts[i][0])
			buf_printf(&line, "%s%s", line.len ? " · " : "", parts[i]);
	if (s->filter[0])
		buf_printf(&line, "%swith '%s'", line.len ? " · " : "", s->filter);
	if (!line.len)
		print_message(&line);
	sgr(s, SGR_BOLD);
	text_line(&s->screen, buf_text(&line), columns);
	end_line(s);
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void draw_percent(struct summary *s, double part, double whole)
{
	double number = percent(part, whole);

	if (number < 0.005)
		sgr(s, SGR_DIM);
	else if (number >= 5)
		sgr(s, SGR_BOLD);
	buf_printf(&s->screen, "%7.2f%%", number);
	sgr(s, SGR_RESET);
}

/* 0: rows have no module. */
static unsigned module_width(const struct summary *s, unsigned columns)
{
	unsigned share = columns / 5;

	if (s->show != SHOW_FUNCTIONS)
		return 0;
	return share > MODULE_COLUMNS ? MODULE_COLUMNS : share < MODULE_MIN_COLUMNS ? MODULE_MIN_COLUMNS : share;
}

/* 0: rows have no process. */
static unsigned owner_width(const struct summary *s, unsigned columns)
{
	unsigned share = columns / 6;

	if (s->show != SHOW_FUNCTIONS || columns + 1 < PROCESS_FROM_COLUMNS) /* the terminal has one more */
		return 0;
	return share > OWNER_COLUMNS ? OWNER_COLUMNS : share;
}

/* Draws the columns behind the numbers. */
static void draw_names(struct summary *s, const char *owner, const char *module, const char *name, const char *type,
		       unsigned indent, unsigned columns)
{
	unsigned module_columns = module_width(s, columns), owner_columns = owner_width(s, columns);
	unsigned used = NUMBER_COLUMNS + (module_columns ? module_columns + 2 : 0) +
			(owner_columns ? owner_columns + 2 : 0) + indent;

	buf_puts(&s->screen, "   ");
	if (owner_columns) {
		text_padded(&s->screen, owner, owner_columns);
		sgr(s, SGR_RESET);
		buf_puts(&s->screen, "  ");
	}
	if (module_columns) {
		sgr(s, SGR_DIM);
		text_padded(&s->screen, module, module_columns);
		sgr(s, SGR_RESET);
		buf_puts(&s->screen, "  ");
	}
	if (indent)
		buf_printf(&s->screen, "%*s", (int)indent, "");
	sgr(s, colour_of(type));
	text_name(&s->screen, name, columns > used ? columns - used : 1);
	end_line(s);
}

static void draw_row(struct summary *s, const struct top_row *row, bool is_selected, unsigned columns)
{
	const struct summary_shown *shown = summary_shown(s);
	size_t start = s->screen.len;

	draw_percent(s, row->recent.self, shown->recent_weight);
	if (is_selected) { /* the first column of a percentage is blank */
		char *first = memchr(s->screen.data + start, ' ', s->screen.len - start);

		if (first)
			*first = '>';
	}
	draw_percent(s, row->recent.total, shown->recent_weight);
	buf_putc(&s->screen, ' ');
	draw_percent(s, (double)row->all.self, (double)shown->sum.weight);
	if (is_selected)
		sgr(s, SGR_BOLD);
	draw_names(s, summary_owner(s, row), row->module, row->name, row->type, 0, columns);
}

static void draw_line(struct summary *s, const struct summary_line *line, unsigned columns)
{
	AUTO(buf_fini) struct buf name = BUF_EMPTY;

	if (line->is_link) {
		buf_printf(&s->screen, "%*s", LINK_INDENT, "");
		text_line(&s->screen, line->name, columns > LINK_INDENT ? columns - LINK_INDENT : 1);
		end_line(s);
		return;
	}
	if (line->depth)
		buf_puts(&s->screen, "        ");
	else
		draw_percent(s, line->self, 1);
	draw_percent(s, line->total, 1);
	buf_puts(&s->screen, "         ");
	buf_printf(&name, "%s%s", line->depth ? "< " : "", line->name);
	draw_names(s, "", line->module, buf_text(&name), line->type, line->depth ? line->depth * 2 : 2, columns);
}

static void draw_heading(struct summary *s, unsigned columns)
{
	static const char *const names[] = { "FUNCTION", "MODULE", "PROCESS" };
	unsigned module_columns = module_width(s, columns), owner_columns = owner_width(s, columns);
	AUTO(buf_fini) struct buf line = BUF_EMPTY;

	buf_puts(&line, "   SELF%  TOTAL% OVERALL%   ");
	if (owner_columns)
		buf_printf(&line, "%-*s  ", (int)owner_columns, "PROCESS");
	if (module_columns)
		buf_printf(&line, "%-*s  ", (int)module_columns, "MODULE");
	buf_puts(&line, names[s->show]);
	sgr(s, SGR_REVERSE);
	text_padded(&s->screen, buf_text(&line), columns);
	end_line(s);
}

static void draw_legend(struct summary *s, unsigned columns)
{
	static const char hint[] = "Ctrl-C ends with a summary",
			  keys[] = "q quit  ? help  / filter  z freeze  Enter callers";
	AUTO(buf_fini) struct buf line = BUF_EMPTY;
	unsigned used;

	if (s->is_typing)
		buf_printf(&line, "/%s_   (Enter: done, Esc: no filter)", s->filter);
	else
		buf_puts(&line, s->options.keys ? keys : hint);
	used = (unsigned)line.len;
	sgr(s, s->is_typing ? SGR_BOLD : SGR_DIM);
	text_line(&s->screen, buf_text(&line), columns);
	sgr(s, SGR_RESET);
	for (size_t i = 0; s->options.colour && i < ARRAY_LEN(colours); i++) {
		used += (unsigned)strlen(colours[i].type) + 2;
		if (used > columns)
			break;
		buf_puts(&s->screen, "  ");
		sgr(s, colours[i].sgr);
		buf_puts(&s->screen, colours[i].type);
		sgr(s, SGR_RESET);
	}
}

static const char *const help[] = {
	"SELF and TOTAL are of about the last 10 s, OVERALL is self since the start.",
	"",
	"  f m p  Tab      functions, modules, processes",
	"  s t o n  r      sort by self, total, overall, name; reversed",
	"  Up Down j k     select a row; PgUp PgDn Home End as well",
	"  Enter           its callers and their page; of a module or process functions",
	"  /               only rows with this text; Esc: all of them again",
	"  w               with --off-cpu, --memory, --heap: the next kind of samples",
	"  z  Space        freeze what is shown, and let it go on",
	"  c               begin to count anew",
	"  q  Ctrl-C       quit, with a last table; Ctrl-Z: suspend",
	"  ?               this help",
};

/* Rows from s->first on that fit into @lines, with those below the expanded one; where the selected one ends. */
static uint32_t lines_to_selected(const struct summary *s)
{
	uint32_t lines = 0;

	for (uint32_t i = s->first; i <= s->selected && i < s->row_cnt; i++)
		lines += 1 + (summary_is_expanded(s, &s->rows[i]) ? s->line_cnt : 0);
	return lines;
}

static void draw_rows(struct summary *s, unsigned lines, unsigned columns)
{
	if (s->selected < s->first)
		s->first = s->selected;
	while (s->first < s->selected && lines_to_selected(s) > lines)
		s->first++;
	s->page = lines;
	for (uint32_t i = s->first; i < s->row_cnt && lines; i++) {
		draw_row(s, &s->rows[i], s->options.keys && i == s->selected, columns);
		lines--;
		for (uint32_t k = 0; summary_is_expanded(s, &s->rows[i]) && k < s->line_cnt && lines; k++, lines--)
			draw_line(s, &s->lines[k], columns);
	}
}

int summary_draw(struct summary *s)
{
	unsigned rows, columns;
	int err = summary_make_rows(s);

	if (err)
		return err;
	summary_terminal_size(s, &rows, &columns);
	rows = rows > OTHER_LINES ? rows - OTHER_LINES : 1;
	columns = columns > 2 ? columns - 1 : 2;
	buf_puts(&s->screen, s->on_screen ? SCREEN_HOME : SCREEN_ENTER SCREEN_HOME);
	s->on_screen = true;
	draw_status(s, columns);
	draw_sums(s, columns);
	draw_state(s, columns);
	draw_heading(s, columns);
	if (!s->shows_help)
		draw_rows(s, rows, columns);
	for (size_t i = 0; s->shows_help && i < ARRAY_LEN(help) && i < rows; i++) {
		text_line(&s->screen, help[i], columns);
		end_line(s);
	}
	buf_puts(&s->screen, ERASE_BELOW);
	draw_legend(s, columns);
	buf_puts(&s->screen, ERASE_LINE);
	return s->screen.failed ? -ENOMEM : 0;
}

void summary_print_lines(struct summary *s)
{
	if (summary_make_rows(s))
		return;
	print_sums(&s->now, &s->screen);
	buf_puts(&s->screen, "\n  SELF%  TOTAL% OVERALL%  MODULE                FUNCTION\n");
	for (uint32_t i = 0; i < s->row_cnt && i < PLAIN_ROWS; i++) {
		const struct top_row *row = &s->rows[i];

		buf_printf(&s->screen, "%6.2f%% %6.2f%%  %6.2f%%  ", percent(row->recent.self, s->now.recent_weight),
			   percent(row->recent.total, s->now.recent_weight), text_percent(row->all.self, s->now.sum.weight));
		text_padded(&s->screen, row->module, MODULE_COLUMNS);
		buf_puts(&s->screen, "  ");
		text_name(&s->screen, row->name, 0);
		buf_putc(&s->screen, '\n');
	}
	buf_putc(&s->screen, '\n');
}
