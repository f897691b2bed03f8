/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The insides of the terminal summary: what is counted (summary.c), what of it is shown (rows.c), how that is drawn
 * (draw.c), which process it runs in (owners.c), what keys do (keys.c). One thread.
 */
#ifndef HEARTH_SINKS_SUMMARY_STATE_H
#define HEARTH_SINKS_SUMMARY_STATE_H

#include "base/buf.h"
#include "base/clock.h"
#include "proto/sums/top.h"
#include "sinks/sinks.h"

enum summary_show { SHOW_FUNCTIONS, SHOW_MODULES, SHOW_PROCESSES, SHOW_COUNT };
enum summary_sort { SORT_SELF, SORT_TOTAL, SORT_OVERALL, SORT_NAME };

enum {
	FILTER_BYTES = 64,
	EXPANDED_LINES = 15,
	EXPANDED_DEPTH = 6,
	LINK_LINES = 4,
	LINK_INDENT = 8,
	WINDOW_PROFILES = 10,
	PROCESS_FROM_COLUMNS = 120, /* of the terminal: from there on functions tell their process */
};

/* How long rows remember: the time in which an interval's part of a row's numbers falls to 1/e, and of which callers are. */
#define WINDOW_NS (10 * NSEC_PER_SEC)

/* The data shown: up to the last interval, or up to the one in which the screen was frozen. */
struct summary_shown {
	struct weight_sum sum, recent_sum;		       /* of everything; of the interval */
	double recent_weight;				       /* that the rows' recent counts are parts of */
	uint64_t start_unix_ns, end_unix_ns;		       /* of everything; 0: nothing yet */
	uint64_t interval_start_unix_ns, interval_end_unix_ns; /* of the interval */
	struct profiles *profiles[WINDOW_PROFILES];	       /* references, oldest first: of WINDOW_NS, if they fit */
	uint64_t profile_end_unix_ns[WINDOW_PROFILES];
	uint32_t profile_cnt;
};

/* Rows of a view while frozen; the names are copies. */
struct summary_copy {
	struct top_row *rows;
	uint32_t count;
	char *texts;
};

/* A line below an expanded row. */
struct summary_line {
	const char *name, *module, *type; /* one allocation, at name */
	bool is_link;			  /* @name is a part of an address */
	unsigned depth;			  /* of callers; 0: a function of the module or process */
	double self, total;		  /* parts of 1 */
};

/* The offsets in owner_texts of a function and of the label of its processes. */
struct owner {
	size_t name, module, label;
};

struct summary {
	struct sink sink;
	struct summary_options options;
	struct top *tops[SHOW_COUNT];
	struct top *by_owner;	       /* functions of each process */
	struct view *all, *by_process; /* of the kind of samples that is shown */
	const char *kind;	       /* that; NULL: the first that comes */
	struct owner *owners;	       /* by name and module */
	uint32_t owner_cnt;
	struct buf owner_texts;
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
	struct summary_line lines[LINK_LINES + EXPANDED_LINES];
	uint32_t line_cnt;
};

static inline const struct summary_shown *summary_shown(const struct summary *s)
{
	return s->is_frozen ? &s->frozen : &s->now;
}

void summary_drop_profiles(struct summary_shown *shown);

/* s->rows for view, order and filter; the selection stays inside. 0 or -ENOMEM. */
int summary_make_rows(struct summary *s);

/* Keeps what is shown as it is, or lets it go. 0 or -ENOMEM. */
int summary_freeze(struct summary *s, bool on);

/* The lines below @row (or no row, when NULL), made anew from what is shown. 0 or -ENOMEM. */
int summary_expand(struct summary *s, const struct top_row *row);
int summary_refresh_expanded(struct summary *s);

/* Is @row the one that is expanded? */
bool summary_is_expanded(const struct summary *s, const struct top_row *row);

/* Finds the processes that run each function, from by_owner. 0 or -ENOMEM. */
int summary_name_owners(struct summary *s);

/* The process that the function of @row takes its time in, "nginx (812)", "cc1 ×36 +2"; "" when it is not known. */
const char *summary_owner(const struct summary *s, const struct top_row *row);

/* Shows @kind (static) from now on; what was counted is forgotten. 0 or -ENOMEM. */
int summary_choose_kind(struct summary *s, const char *kind);

/* The whole screen into s->screen. 0 or -ENOMEM. */
int summary_draw(struct summary *s);
void summary_terminal_size(const struct summary *s, unsigned *rows, unsigned *columns);

/* The heaviest functions of the interval as plain lines into s->screen. */
void summary_print_lines(struct summary *s);

#endif
