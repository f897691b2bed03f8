/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The insides of the terminal summary: what is counted (summary.c), what of it is shown (summary_rows.c), how that is drawn
 * (summary_draw.c), what keys do (summary_keys.c). One thread.
 */
#ifndef HEARTH_SINKS_SUMMARY_STATE_H
#define HEARTH_SINKS_SUMMARY_STATE_H

#include "base/buf.h"
#include "proto/top.h"
#include "sinks/sinks.h"

enum summary_show { SHOW_FUNCTIONS, SHOW_MODULES, SHOW_PROCESSES, SHOW_COUNT };
enum summary_sort { SORT_SELF, SORT_TOTAL, SORT_OVERALL, SORT_NAME };

enum { FILTER_BYTES = 64, EXPANDED_LINES = 15, EXPANDED_DEPTH = 6 };

/* The interval that is shown: the last one, or the one that was when the screen was frozen. */
struct summary_shown {
	struct weight_sum sum, recent_sum;
	uint64_t start_unix_ns, end_unix_ns;		       /* of everything; 0: nothing yet */
	uint64_t interval_start_unix_ns, interval_end_unix_ns; /* of the interval */
	struct profiles *profiles;			       /* of the interval; a reference */
};

/* Rows of a view while frozen; the names are copies. */
struct summary_copy {
	struct top_row *rows;
	uint32_t count;
	char *texts;
};

/* A line below an expanded row. */
struct summary_line {
	char *name, *module, *type; /* one allocation, at name */
	unsigned depth;		    /* of callers; 0: a function of the module or process */
	uint64_t self, total;
};

struct summary {
	struct sink sink;
	struct summary_options options;
	struct top *tops[SHOW_COUNT];
	struct view *by_process;
	struct buf screen;
	struct summary_shown now, frozen;
	bool on_screen;
	bool finished;
	/* what the keys say */
	enum summary_show show;
	enum summary_sort sort;
	bool is_reversed, is_frozen, shows_help, is_typing;
	char filter[FILTER_BYTES];
	struct summary_copy copies[SHOW_COUNT]; /* while frozen */
	uint32_t selected, first;		/* rows; the first on the screen */
	uint32_t page;				/* rows that the screen had at the last drawing */
	struct top_row *rows;			/* that pass the filter, in order; made by summary_make_rows() */
	uint32_t row_cnt, row_cap;
	/* the expanded row, by name */
	bool is_expanded;
	bool is_followed; /* it was selected when it was expanded, and stays so wherever it goes */
	char *expanded_name, *expanded_module;
	struct summary_line lines[EXPANDED_LINES];
	uint32_t line_cnt;
};

static inline const struct summary_shown *summary_shown(const struct summary *s)
{
	return s->is_frozen ? &s->frozen : &s->now;
}

/* s->rows for view, order and filter; the selection stays inside. 0 or -ENOMEM. */
int summary_make_rows(struct summary *s);

/* Keeps what is shown as it is, or lets it go. 0 or -ENOMEM. */
int summary_freeze(struct summary *s, bool on);

/* The lines below @row (or no row, when NULL), made anew from what is shown. 0 or -ENOMEM. */
int summary_expand(struct summary *s, const struct top_row *row);
int summary_refresh_expanded(struct summary *s);

/* Is @row the one that is expanded? */
bool summary_is_expanded(const struct summary *s, const struct top_row *row);

/* The whole screen into s->screen. 0 or -ENOMEM. */
int summary_draw(struct summary *s);
void summary_terminal_size(const struct summary *s, unsigned *rows, unsigned *columns);

/* The heaviest functions of the interval as plain lines into s->screen. */
void summary_print_lines(struct summary *s);

#endif
