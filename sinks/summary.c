/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal summary. Each consume() is one interval: the table of functions counts it, and on a terminal the screen is
 * drawn anew, as one write that overwrites in place and erases behind itself, so that nothing flickers. The drawing happens
 * on the alternate screen, which is left, with the cursor shown again, at flush() or free(), whichever is first; what stood
 * on the terminal before is then back. One thread at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "proto/report.h"
#include "proto/report_text.h"
#include "sinks/sinks.h"

enum {
	KEPT_FUNCTIONS = 10000, /* a run of weeks keeps the heaviest */
	FINAL_ROWS = 20,
	MODULE_COLUMNS = 20, /* at most; a fifth of the screen */
	MODULE_MIN_COLUMNS = 6,
	NUMBER_COLUMNS = 28, /* the three percentages */
	OTHER_LINES = 5,     /* status, sums, blank, heading; legend */
	DEFAULT_ROWS = 24,
	DEFAULT_COLUMNS = 80,
};

#define SCREEN_ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define SCREEN_LEAVE "\033[?7h\033[?25h\033[?1049l"
#define SCREEN_HOME  "\033[H"
#define ERASE_LINE   "\033[K"
#define ERASE_BELOW  "\033[J"
#define SGR_RESET    "\033[0m"
#define SGR_BOLD     "\033[1m"
#define SGR_DIM	     "\033[2m"
#define SGR_REVERSE  "\033[7m"

struct summary {
	struct sink sink;
	struct summary_options options;
	struct top *top;
	struct buf screen;
	uint64_t start_unix_ns, end_unix_ns;		       /* of everything; 0: nothing yet */
	uint64_t interval_start_unix_ns, interval_end_unix_ns; /* of the last interval */
	bool on_screen;
	bool finished;
};

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

static void terminal_size(const struct summary *s, unsigned *rows, unsigned *columns)
{
	struct winsize size = { 0 };

	*rows = s->options.rows;
	*columns = s->options.columns;
	if (!*rows || !*columns)
		ioctl(fileno(s->options.out), TIOCGWINSZ, &size); /* what is no terminal leaves zeros */
	if (!*rows)
		*rows = size.ws_row ? size.ws_row : DEFAULT_ROWS;
	if (!*columns)
		*columns = size.ws_col ? size.ws_col : DEFAULT_COLUMNS;
}

static int write_out(struct summary *s)
{
	int err = s->screen.failed ? -ENOMEM : 0;

	errno = 0;
	if (!err &&
	    (fwrite(s->screen.data, 1, s->screen.len, s->options.out) != s->screen.len || fflush(s->options.out) != 0))
		err = errno ? -errno : -EIO;
	buf_reset(&s->screen);
	return err;
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

static void draw_sums(struct summary *s, unsigned columns)
{
	AUTO(buf_fini) struct buf line = BUF_EMPTY;

	buf_puts(&line, "last ");
	text_duration(&line, s->interval_end_unix_ns - s->interval_start_unix_ns);
	buf_puts(&line, ": ");
	text_count(&line, top_recent_sum(s->top)->events);
	buf_puts(&line, " samples · overall ");
	text_duration(&line, s->end_unix_ns - s->start_unix_ns);
	buf_puts(&line, ": ");
	report_sum(top_sum(s->top), &line);
	text_line(&s->screen, buf_text(&line), columns);
	end_line(s);
	end_line(s);
}

static void draw_percent(struct summary *s, uint64_t part, uint64_t whole)
{
	double percent = text_percent(part, whole);

	if (percent < 0.005)
		sgr(s, SGR_DIM);
	else if (percent >= 5)
		sgr(s, SGR_BOLD);
	buf_printf(&s->screen, "%7.2f%%", percent);
	sgr(s, SGR_RESET);
}

static unsigned module_width(unsigned columns)
{
	unsigned share = columns / 5;

	return share > MODULE_COLUMNS ? MODULE_COLUMNS : share < MODULE_MIN_COLUMNS ? MODULE_MIN_COLUMNS : share;
}

static void draw_row(struct summary *s, const struct top_row *row, unsigned columns)
{
	uint64_t recent = top_recent_sum(s->top)->weight;
	unsigned module_columns = module_width(columns);
	unsigned used = NUMBER_COLUMNS + module_columns + 2;

	draw_percent(s, row->recent.self, recent);
	draw_percent(s, row->recent.total, recent);
	buf_putc(&s->screen, ' ');
	draw_percent(s, row->all.self, top_sum(s->top)->weight);
	buf_puts(&s->screen, "   ");
	sgr(s, SGR_DIM);
	text_padded(&s->screen, row->module, module_columns);
	sgr(s, SGR_RESET);
	buf_puts(&s->screen, "  ");
	sgr(s, colour_of(row->type));
	text_name(&s->screen, row->name, columns > used ? columns - used : 1);
	end_line(s);
}

static void draw_heading(struct summary *s, unsigned columns)
{
	unsigned module_columns = module_width(columns);
	AUTO(buf_fini) struct buf line = BUF_EMPTY;

	buf_printf(&line, "   SELF%%  TOTAL%% OVERALL%%   %-*s  FUNCTION", (int)module_columns, "MODULE");
	sgr(s, SGR_REVERSE);
	text_padded(&s->screen, buf_text(&line), columns);
	end_line(s);
}

static void draw_legend(struct summary *s, unsigned columns)
{
	static const char hint[] = "Ctrl-C ends with a summary";
	unsigned used = sizeof(hint) - 1;

	sgr(s, SGR_DIM);
	text_line(&s->screen, hint, columns);
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

static int draw(struct summary *s)
{
	unsigned rows, columns;
	uint32_t count;
	const struct top_row *functions = top_recent_rows(s->top, &count);

	terminal_size(s, &rows, &columns);
	rows = rows > OTHER_LINES ? rows - OTHER_LINES : 1;
	columns = columns > 2 ? columns - 1 : 2; /* erasing from the last column on would take its character along */
	buf_puts(&s->screen, s->on_screen ? SCREEN_HOME : SCREEN_ENTER SCREEN_HOME);
	s->on_screen = true;
	draw_status(s, columns);
	draw_sums(s, columns);
	draw_heading(s, columns);
	for (uint32_t i = 0; i < count && i < rows; i++)
		draw_row(s, &functions[i], columns);
	buf_puts(&s->screen, ERASE_BELOW);
	draw_legend(s, columns);
	buf_puts(&s->screen, ERASE_LINE);
	return write_out(s);
}

/* Where in time @p lies, into the window of the interval and the one of everything. */
static void note_window(struct summary *s, const struct profiles *p)
{
	uint64_t from = UINT64_MAX, to = 0;

	for (uint32_t r = 0; r < p->resource_count; r++) {
		for (uint32_t c = 0; c < p->resources[r].scope_count; c++) {
			const struct scope_profiles *scope = &p->resources[r].scopes[c];

			for (uint32_t i = 0; i < scope->profile_count; i++) {
				uint64_t start = scope->profiles[i].time_unix_ns,
					 end = start + scope->profiles[i].duration_ns;

				from = start < from ? start : from;
				to = end > to ? end : to;
			}
		}
	}
	if (from > to)
		from = to = s->end_unix_ns;
	s->interval_start_unix_ns = from;
	s->interval_end_unix_ns = to;
	s->start_unix_ns = s->start_unix_ns && s->start_unix_ns < from ? s->start_unix_ns : from;
	s->end_unix_ns = s->end_unix_ns > to ? s->end_unix_ns : to;
}

static int summary_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct summary *s = (struct summary *)sink;
	int err;

	(void)ack; /* shown, not kept */
	top_begin_interval(s->top);
	err = top_trim(s->top, KEPT_FUNCTIONS);
	if (!err)
		err = top_add(s->top, p);
	if (err)
		return err;
	note_window(s, p);
	return s->options.live && !s->finished ? draw(s) : 0;
}

static void leave_screen(struct summary *s)
{
	if (s->on_screen)
		buf_puts(&s->screen, SCREEN_LEAVE);
	s->on_screen = false;
}

static int summary_flush(struct sink *sink, uint64_t deadline_ns)
{
	struct summary *s = (struct summary *)sink;
	unsigned rows = 0, columns = 0;

	(void)deadline_ns; /* a table is written at once */
	if (s->finished)
		return 0;
	s->finished = true;
	leave_screen(s);
	if (s->options.live)
		terminal_size(s, &rows, &columns);
	report_top(s->top, &(struct report_style){ .columns = columns, .max_rows = FINAL_ROWS }, &s->screen);
	buf_putc(&s->screen, '\n');
	text_count(&s->screen, top_sum(s->top)->events);
	buf_puts(&s->screen, " samples in ");
	text_duration(&s->screen, s->end_unix_ns - s->start_unix_ns);
	buf_putc(&s->screen, '\n');
	return write_out(s);
}

static void summary_free(struct sink *sink)
{
	struct summary *s = (struct summary *)sink;

	leave_screen(s);
	if (s->screen.len)
		write_out(s);
	top_free(s->top);
	buf_fini(&s->screen);
	free(s);
}

static const struct sink_ops summary_ops = {
	.name = "summary",
	.consume = summary_consume,
	.flush = summary_flush,
	.free = summary_free,
};

int sink_summary_new(const struct summary_options *options, struct sink **ret)
{
	struct summary *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->sink.ops = &summary_ops;
	s->options = *options;
	s->top = top_new();
	if (!s->top) {
		free(s);
		return -ENOMEM;
	}
	*ret = &s->sink;
	return 0;
}
