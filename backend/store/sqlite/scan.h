/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk over the blocks that a selection touches. For each block it is known which of its series are selected, wholly or by
 * event; the question then reads the parts it needs. Everything sees one snapshot of the store.
 */
#ifndef HEARTH_BACKEND_STORE_SQLITE_SCAN_H
#define HEARTH_BACKEND_STORE_SQLITE_SCAN_H

#include "backend/store/sqlite/names.h"
#include "base/map.h"

#define STORE_CPU_LABEL "cpu.logical_number"

/* The selection as it applies to a series. */
struct scan_series {
	const struct name_series *series;
	bool is_out;	    /* of another kind, or its labels do not fit */
	uint64_t undecided; /* matchers that look at each event's labels, a bit each */
};

/* The links that a matcher asks for by =, ascending. */
struct link_numbers {
	uint32_t *items; /* owned */
	size_t count, cap;
	bool is_known;
};

enum { LINK_TEXT_BYTES = 33 };

/* A block, or a row of a roll-up, which has no parts after the cells. */
struct scan_block {
	struct block *block;
	struct scan_series **of; /* of each series in it; NULL: out */
	size_t of_cap;
	bool is_whole; /* all its events are in the time range */
	int64_t id;    /* of its row */
};

struct scan {
	struct store_sqlite *s;
	const struct store_selection *sel;
	char kind[128];
	struct map series;  /* number + 1 -> struct scan_series */
	sqlite3_stmt *list; /* of the blocks in the time range */
	sqlite3_stmt *row;  /* a block, or a row of a roll-up */
	int64_t row_id;	    /* that the statement stands on */
	/* hours that were read as roll-ups, ascending: their blocks are left out */
	int64_t *hours;
	size_t hour_count, hour_cap, next_hour;
	struct scan_block own; /* the store's block, which scan_next() uses by itself */
	/* what is looked at, and its block and series */
	struct scan_block *at;
	struct block *block;
	struct scan_series **of;
	uint8_t *mask; /* of each event; grown as needed */
	size_t mask_cap;
	sqlite3_stmt *link;	      /* a link by its number; NULL: not needed yet */
	struct link_numbers *numbers; /* of each matcher; NULL: not needed yet */
};

/* Takes the store's read_lock and begins a snapshot; scan_end() after 0 or an error. With @any_kind the selection's kind
 * does not matter. */
int scan_begin(struct scan *scan, struct store *s, const struct store_selection *sel, bool any_kind);
void scan_end(struct scan *scan);

/* Looks at the next block with a selected series, in scan->at: 1, 0 at the end, -errno. Damaged ones are counted and left
 * out. */
int scan_next(struct scan *scan);

/* What scan_next() is to use, or what was found before. */
void scan_look_at(struct scan *scan, struct scan_block *at);

/* Calls @fn for every selected series of every block, by its place there, until it returns an error. The rest of a block
 * found damaged is counted and left out. Blocks come by time. */
int scan_each(struct scan *scan, int (*fn)(void *arg, struct scan *scan, uint32_t index), void *arg);

/* The same for the block that is looked at. */
int scan_each_series(struct scan *scan, int (*fn)(void *arg, struct scan *scan, uint32_t index), void *arg);

/*
 * The same, but hours that lie in the time range as a whole are read as roll-ups where there are some, and where @can says 1
 * of every selected series in them: @fn then needs no part after the cells, and gets no mask. @can: 0 when it does, or
 * -errno.
 */
int scan_sums(struct scan *scan, int (*can)(void *arg, struct scan *scan, uint32_t index),
	      int (*fn)(void *arg, struct scan *scan, uint32_t index), void *arg);

/* Reads a part, and what it depends on. */
int scan_part(struct scan *scan, enum block_part part);

/*
 * Finds the selected events of the block's series @index: *@mask_ret gets NULL when all are, or a byte for each of the
 * block's events (only those of this series count). 0 or -errno.
 */
int scan_mask(struct scan *scan, uint32_t index, const uint8_t **mask_ret);

/* The same, and of them those with the selection's stacks. */
int scan_mask_stacks(struct scan *scan, uint32_t index, const uint8_t **mask_ret);

static inline bool scan_has_stack(const struct store_selection *sel, uint32_t node)
{
	return !sel->stacks || (node < sel->stack_count && sel->stacks[node / 64] >> node % 64 & 1);
}

/* Whether matcher @i is met by @value. *@err, when it is 0 before, gets what ended a regular expression or the question. */
bool scan_is_match(const struct scan *scan, size_t i, const char *value, int *err);

/* Fills in what the selection says of @m's series. 0 or -errno. */
int scan_match_series(struct scan *scan, struct scan_series *m);

/* Whether the matchers @undecided of the block's series @index, but those of cpus, are met by events with the labels
 * @set_id. 0 or -errno. */
int scan_match_set(struct scan *scan, uint32_t index, uint64_t undecided, uint32_t set_id, bool *fits);

/* Does @label differ from event to event, outside of their sets of labels? Is it one of the two that links are? */
bool scan_is_of_events(const char *label);
bool scan_is_of_links(const char *label);

/* Writes what @label, one of these two, is for events with @link; "" where there is none. 0 or -errno. */
int scan_link_text(struct scan *scan, const char *label, uint32_t link, char text[static LINK_TEXT_BYTES]);

/* Takes out of the mask the events of the block's series @index whose links the matcher refuses. 0 or -errno. */
int scan_mask_links(struct scan *scan, uint32_t index, size_t matcher);

/* Whether a block whose links are @first to @last (0 in @last: it has none) may have an event that the selection's matchers
 * of links accept: 1, 0, -errno. */
int scan_may_have_links(struct scan *scan, int64_t first, int64_t last);
void scan_links_fini(struct scan *scan);

/* The value of @key among the labels of a series: resource's, profile's, scope's; NULL when it has none. */
const char *scan_series_value(struct scan *scan, const struct name_series *series, const char *key, int *err);

#endif
