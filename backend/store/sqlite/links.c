/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace and span of events, which stand beside their labels, as two labels more. A matcher that asks for one by = gets the
 * numbers of its links by the table's index; all others look at each link they meet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/scan.h"
#include "base/cleanup.h"
#include "base/text/hex.h"
#include "base/vec.h"

bool scan_is_of_events(const char *label)
{
	return !strcmp(label, STORE_CPU_LABEL) || scan_is_of_links(label);
}

bool scan_is_of_links(const char *label)
{
	return !strcmp(label, STORE_TRACE_LABEL) || !strcmp(label, STORE_SPAN_LABEL);
}

static bool is_trace(const char *label)
{
	return !strcmp(label, STORE_TRACE_LABEL);
}

static int prepare(struct scan *scan, const char *sql, sqlite3_stmt **ret)
{
	return store_sqlite_errno(sqlite3_prepare_v2(scan->s->read_db, sql, -1, ret, NULL));
}

int scan_link_text(struct scan *scan, const char *label, uint32_t link, char text[static LINK_TEXT_BYTES])
{
	static const uint8_t none[16];
	const int column = is_trace(label) ? 0 : 1;
	const void *bytes;
	int code, len;

	text[0] = '\0';
	if (!link)
		return 0;
	if (!scan->link) {
		int err = prepare(scan, "SELECT trace, span FROM links WHERE id = ?1", &scan->link);

		if (err)
			return err;
	}
	sqlite3_reset(scan->link);
	sqlite3_bind_int64(scan->link, 1, link);
	code = sqlite3_step(scan->link);
	if (code != SQLITE_ROW)
		return code == SQLITE_DONE ? -EBADMSG : store_sqlite_errno(code);
	bytes = sqlite3_column_blob(scan->link, column);
	len = sqlite3_column_bytes(scan->link, column);
	if (bytes && len <= (int)sizeof(none) && memcmp(bytes, none, (size_t)len) != 0)
		hex_encode(text, bytes, (size_t)len);
	return 0;
}

/* Finds the numbers of the links that have @value. */
static int find_numbers(struct scan *scan, const struct store_matcher *m, struct link_numbers *ret)
{
	uint8_t id[16];
	sqlite3_stmt *st = NULL;
	size_t len;
	int err, code;

	ret->is_known = true;
	if (strlen(m->value) != (is_trace(m->label) ? 32 : 16) || !hex_decode(m->value, strlen(m->value), id, &len))
		return 0; /* there is no such */
	err = prepare(scan,
		      is_trace(m->label) ? "SELECT id FROM links WHERE trace = ?1 ORDER BY id"
					 : "SELECT id FROM links WHERE span = ?1 ORDER BY id",
		      &st);
	if (err)
		return err;
	sqlite3_bind_blob64(st, 1, id, len, SQLITE_STATIC);
	while ((code = sqlite3_step(st)) == SQLITE_ROW && !err) {
		if (vec_reach(&ret->items, &ret->cap, ret->count))
			err = -ENOMEM;
		else
			ret->items[ret->count++] = (uint32_t)sqlite3_column_int64(st, 0);
	}
	sqlite3_finalize(st);
	return err ? err : store_sqlite_errno(code == SQLITE_ROW ? SQLITE_DONE : code);
}

/* Does matcher @i ask for one trace, or one span? */
static bool is_by_number(const struct scan *scan, size_t i)
{
	const struct store_matcher *m = &scan->sel->matchers[i];

	return scan_is_of_links(m->label) && m->match == MATCH_EQUAL && *m->value;
}

/* Knows the numbers of matcher @i, which asks for one. 0 or -errno. */
static int know_numbers(struct scan *scan, size_t i)
{
	if (!scan->numbers)
		scan->numbers = calloc(STORE_MAX_MATCHERS, sizeof(*scan->numbers));
	if (!scan->numbers)
		return -ENOMEM;
	return scan->numbers[i].is_known ? 0 : find_numbers(scan, &scan->sel->matchers[i], &scan->numbers[i]);
}

/* The place of the first number that is @link or more. */
static size_t place_of(const struct link_numbers *n, int64_t link)
{
	size_t from = 0, to = n->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (n->items[middle] < link)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool has_number(const struct link_numbers *n, int64_t first, int64_t last)
{
	const size_t place = place_of(n, first);

	return place < n->count && n->items[place] <= last;
}

int scan_may_have_links(struct scan *scan, int64_t first, int64_t last)
{
	for (size_t i = 0; i < scan->sel->matcher_count; i++) {
		int err = is_by_number(scan, i) ? know_numbers(scan, i) : 0;

		if (err)
			return err;
		if (is_by_number(scan, i) && !has_number(&scan->numbers[i], first, last))
			return 0;
	}
	return 1;
}

/* Whether matcher @i is met by events with @link. */
static bool fits(struct scan *scan, size_t i, uint32_t link, int *err)
{
	const struct store_matcher *m = &scan->sel->matchers[i];
	char text[LINK_TEXT_BYTES];

	if (is_by_number(scan, i))
		return has_number(&scan->numbers[i], link, link);
	*err = scan_link_text(scan, m->label, link, text);
	return !*err && scan_is_match(scan, i, text, err);
}

int scan_mask_links(struct scan *scan, uint32_t index, size_t matcher)
{
	struct block *b = scan->block;
	uint32_t last = UINT32_MAX;
	bool is_in = false;
	int err = scan_part(scan, BLOCK_LINKS);

	if (!err && is_by_number(scan, matcher))
		err = know_numbers(scan, matcher);
	for (uint32_t e = b->event_start[index]; e < b->event_start[index + 1] && !err; e++) {
		uint32_t link = b->link ? b->link[e] : 0;

		if (link != last)
			is_in = fits(scan, matcher, link, &err);
		last = link;
		scan->mask[e] &= is_in;
	}
	return err;
}

void scan_links_fini(struct scan *scan)
{
	for (size_t i = 0; scan->numbers && i < STORE_MAX_MATCHERS; i++)
		free(scan->numbers[i].items);
	free(scan->numbers);
	sqlite3_finalize(scan->link);
}
