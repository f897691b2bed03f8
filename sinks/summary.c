/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal summary. Each consume() is one interval: the tables of functions, modules and processes count it, and on a
 * terminal the screen is drawn anew, as one write. The drawing happens on the alternate screen, which is left, with the
 * cursor shown again, at flush() or free(), whichever is first; what stood on the terminal before is then back. One thread
 * at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "proto/report.h"
#include "proto/report_text.h"
#include "sinks/summary_state.h"

enum {
	KEPT_FUNCTIONS = 3000, /* a run of weeks keeps the heaviest, at some 500 bytes; twice as many before it is cut */
	FINAL_ROWS = 20,
};

#define SCREEN_LEAVE "\033[?7h\033[?25h\033[?1049l"

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

int sink_summary_redraw(struct sink *sink)
{
	struct summary *s = (struct summary *)sink;
	int err;

	if (!s->options.live || s->finished)
		return 0;
	err = summary_draw(s);
	return err ? err : write_out(s);
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
		from = to = s->now.end_unix_ns;
	s->now.interval_start_unix_ns = from;
	s->now.interval_end_unix_ns = to;
	s->now.start_unix_ns = s->now.start_unix_ns && s->now.start_unix_ns < from ? s->now.start_unix_ns : from;
	s->now.end_unix_ns = s->now.end_unix_ns > to ? s->now.end_unix_ns : to;
}

static void tell_memory(const struct summary *s)
{
	size_t bytes = s->screen.cap + s->row_cap * sizeof(*s->rows);

	for (int i = 0; i < SHOW_COUNT; i++)
		bytes += top_memory_bytes(s->tops[i]);
	memory_tell(s->options.metrics, "table", bytes);
}

static int count_interval(struct summary *s, struct profiles *p)
{
	for (int i = 0; i < SHOW_COUNT; i++) {
		int err;

		top_begin_interval(s->tops[i]);
		err = top_trim(s->tops[i], KEPT_FUNCTIONS);
		if (!err)
			err = top_add(s->tops[i], p);
		if (err)
			return err;
	}
	tell_memory(s);
	s->now.sum = *top_sum(s->tops[SHOW_FUNCTIONS]);
	s->now.recent_sum = *top_recent_sum(s->tops[SHOW_FUNCTIONS]);
	return 0;
}

static int summary_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct summary *s = (struct summary *)sink;
	int err = count_interval(s, p);

	(void)ack; /* shown, not kept */
	if (err)
		return err;
	note_window(s, p);
	profiles_put(s->now.profiles);
	s->now.profiles = profiles_get(p);
	if (s->finished)
		return 0;
	if (s->options.live) {
		err = s->is_frozen ? 0 : summary_refresh_expanded(s);
		return err ? err : sink_summary_redraw(sink);
	}
	if (!s->options.lines)
		return 0;
	summary_print_lines(s);
	return write_out(s);
}

static void leave_screen(struct summary *s)
{
	if (s->on_screen)
		buf_puts(&s->screen, SCREEN_LEAVE);
	s->on_screen = false;
}

int sink_summary_leave(struct sink *sink)
{
	leave_screen((struct summary *)sink);
	return write_out((struct summary *)sink);
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
		summary_terminal_size(s, &rows, &columns);
	report_top(s->tops[SHOW_FUNCTIONS], &(struct report_style){ .columns = columns, .max_rows = FINAL_ROWS },
		   &s->screen);
	buf_putc(&s->screen, '\n');
	text_count(&s->screen, top_sum(s->tops[SHOW_FUNCTIONS])->events);
	buf_puts(&s->screen, " samples in ");
	text_duration(&s->screen, s->now.end_unix_ns - s->now.start_unix_ns);
	buf_putc(&s->screen, '\n');
	return write_out(s);
}

static void summary_free(struct sink *sink)
{
	struct summary *s = (struct summary *)sink;

	leave_screen(s);
	if (s->screen.len)
		write_out(s);
	(void)summary_freeze(s, false);
	(void)summary_expand(s, NULL);
	profiles_put(s->now.profiles);
	for (int i = 0; i < SHOW_COUNT; i++)
		top_free(s->tops[i]);
	view_free(s->by_process);
	free(s->rows);
	buf_fini(&s->screen);
	free(s);
}

static const struct sink_ops summary_ops = {
	.name = "summary",
	.consume = summary_consume,
	.flush = summary_flush,
	.free = summary_free,
};

static int make_tables(struct summary *s)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;

	s->by_process = view_new();
	if (!s->by_process || view_group(s->by_process, "process", &error))
		return -ENOMEM;
	for (int i = 0; i < SHOW_COUNT; i++) {
		s->tops[i] = top_new();
		if (!s->tops[i])
			return -ENOMEM;
	}
	top_count(s->tops[SHOW_MODULES], TOP_MODULES);
	top_count(s->tops[SHOW_PROCESSES], TOP_GROUPS);
	top_view(s->tops[SHOW_PROCESSES], s->by_process);
	return 0;
}

int sink_summary_new(const struct summary_options *options, struct sink **ret)
{
	struct summary *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->sink.ops = &summary_ops;
	s->options = *options;
	if (make_tables(s)) {
		summary_free(&s->sink);
		return -ENOMEM;
	}
	*ret = &s->sink;
	return 0;
}
