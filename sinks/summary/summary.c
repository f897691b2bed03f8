/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal summary. Each consume() is one interval: the tables of functions, modules and processes count it, and on a
 * terminal the screen is drawn anew, as one write. The drawing happens on the alternate screen, which is left, with the
 * cursor shown again, at flush() or free(), whichever is first; what stood on the terminal before is then back. One thread
 * at a time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "proto/report/report.h"
#include "proto/text.h"
#include "sinks/summary/state.h"

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

/* Adds the time span of @p to the window of the interval and to that of everything. */
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

static void drop_oldest(struct summary_shown *shown)
{
	profiles_put(shown->profiles[0]);
	shown->profile_cnt--;
	memmove(shown->profiles, shown->profiles + 1, shown->profile_cnt * sizeof(shown->profiles[0]));
	memmove(shown->profile_end_unix_ns, shown->profile_end_unix_ns + 1,
		shown->profile_cnt * sizeof(shown->profile_end_unix_ns[0]));
}

/* After note_window(). */
static void keep_profile(struct summary_shown *shown, struct profiles *p)
{
	uint64_t end = shown->interval_end_unix_ns;

	while (shown->profile_cnt &&
	       (shown->profile_cnt == WINDOW_PROFILES || shown->profile_end_unix_ns[0] + WINDOW_NS <= end))
		drop_oldest(shown);
	shown->profiles[shown->profile_cnt] = profiles_get(p);
	shown->profile_end_unix_ns[shown->profile_cnt++] = end;
}

void summary_drop_profiles(struct summary_shown *shown)
{
	while (shown->profile_cnt)
		drop_oldest(shown);
}

static void tell_memory(const struct summary *s)
{
	size_t bytes = s->screen.cap + s->row_cap * sizeof(*s->rows);

	for (int i = 0; i < SHOW_COUNT; i++)
		bytes += top_memory_bytes(s->tops[i]);
	bytes += top_memory_bytes(s->by_owner) + s->owner_cnt * sizeof(*s->owners) + s->owner_texts.cap;
	memory_tell(s->options.metrics, "table", bytes);
}

static int count_into(struct top *t, const struct profiles *p, double keep)
{
	int err;

	top_begin_interval(t, keep);
	err = top_trim(t, KEPT_FUNCTIONS);
	return err ? err : top_add(t, p);
}

/* After note_window(). */
static int count_interval(struct summary *s, struct profiles *p)
{
	uint64_t length_ns = s->now.interval_end_unix_ns - s->now.interval_start_unix_ns;
	double keep = exp(-(double)length_ns / (double)WINDOW_NS);
	int err = 0;

	for (int i = 0; i < SHOW_COUNT && !err; i++)
		err = count_into(s->tops[i], p, keep);
	if (!err && s->options.live)
		err = count_into(s->by_owner, p, keep);
	if (!err && s->options.live && !s->is_frozen)
		err = summary_name_owners(s);
	tell_memory(s);
	s->now.sum = *top_sum(s->tops[SHOW_FUNCTIONS]);
	s->now.recent_sum = *top_recent_sum(s->tops[SHOW_FUNCTIONS]);
	s->now.recent_weight = top_recent_weight(s->tops[SHOW_FUNCTIONS]);
	return err;
}

static int summary_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct summary *s = (struct summary *)sink;
	int err;

	(void)ack; /* shown, not kept */
	note_window(s, p);
	err = count_interval(s, p);
	if (err)
		return err;
	keep_profile(&s->now, p);
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
	summary_drop_profiles(&s->now);
	for (int i = 0; i < SHOW_COUNT; i++)
		top_free(s->tops[i]);
	top_free(s->by_owner);
	view_free(s->all);
	view_free(s->by_process);
	free(s->owners);
	buf_fini(&s->owner_texts);
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

	s->all = view_new();
	s->by_process = view_new();
	s->by_owner = top_new();
	if (!s->all || !s->by_process || !s->by_owner || view_group(s->by_process, "process", &error))
		return -ENOMEM;
	for (int i = 0; i < SHOW_COUNT; i++) {
		s->tops[i] = top_new();
		if (!s->tops[i])
			return -ENOMEM;
		top_view(s->tops[i], s->all);
	}
	top_count(s->tops[SHOW_MODULES], TOP_MODULES);
	top_count(s->tops[SHOW_PROCESSES], TOP_GROUPS);
	top_view(s->tops[SHOW_PROCESSES], s->by_process);
	top_view(s->by_owner, s->by_process);
	return summary_choose_kind(s, s->options.kind);
}

int summary_choose_kind(struct summary *s, const char *kind)
{
	s->kind = kind;
	return view_kind(s->all, kind) || view_kind(s->by_process, kind) ? -ENOMEM : 0;
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
