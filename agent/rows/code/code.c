/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder for code that no table covers: hand-written assembly, libraries built without tables, generated code in a
 * file. A function is followed from its start, instruction by instruction (agent/rows/code/flow.h); the rows of the
 * functions followed last are kept, since a function is asked about block by block. The rows are guesses (struct row's
 * is_guess): the first walk over it in user space checks that the return address stands behind a call. One thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/flow.h"
#include "agent/rows/code/jumps.h"
#include "agent/rows/code/starts.h"
#include "agent/rows/code/state.h"
#include "agent/rows/row_builder.h"
#include "base/cleanup.h"
#include "base/search.h"

enum { MAX_KEPT = 8, MAX_IN_ONE = 64, MAX_WIDER = 8, MAX_ENTRIES = 64 };

struct kept {
	uint64_t start; /* of the function; 0 with used 0: free */
	struct row *rows;
	size_t count;
	uint64_t used; /* value of the clock at the last use */
};

struct code_rows {
	struct code_starts *starts;
	struct code_jumps *jumps; /* NULL until somebody asks */
	uint64_t entry;		  /* what the program starts with is no called function */
	struct kept kept[MAX_KEPT];
	uint64_t clock;
	bool is_asked; /* since code_rest() */
};

static int code_open(const struct row_image *image, void **ret)
{
	struct code_rows *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->entry = image->entry;
	r = code_starts_new(image, &c->starts);
	if (r)
		free(c);
	else
		*ret = c;
	return r;
}

static void code_close(void *state)
{
	struct code_rows *c = state;

	for (size_t i = 0; i < MAX_KEPT; i++)
		free(c->kept[i].rows);
	code_jumps_free(c->jumps);
	code_starts_free(c->starts);
	free(c);
}

static void code_rest(void *state)
{
	struct code_rows *c = state;

	if (!c->is_asked) {
		code_starts_forget(c->starts);
		code_jumps_free(c->jumps);
		c->jumps = NULL;
	}
	c->is_asked = false;
}

/* The kept rows of the function at @start, or a place for them (count 0, rows NULL). */
static struct kept *find_kept(struct code_rows *c, uint64_t start, bool *is_new)
{
	struct kept *k = &c->kept[0];

	*is_new = false;
	for (size_t i = 0; i < MAX_KEPT; i++) {
		if (c->kept[i].used && c->kept[i].start == start) {
			c->kept[i].used = ++c->clock;
			return &c->kept[i];
		}
		if (c->kept[i].used < k->used)
			k = &c->kept[i];
	}
	free(k->rows);
	*k = (struct kept){ .start = start, .used = ++c->clock };
	*is_new = true;
	return k;
}

/* A function that cannot be kept is forgotten, so that it is tried again. */
static int forget_failed(struct kept *k, int r)
{
	if (r) {
		free(k->rows);
		*k = (struct kept){ 0 };
	}
	return r;
}

static bool has_row_at(const struct row *rows, size_t count, uint64_t addr)
{
	for (size_t i = 0; i < count; i++)
		if (addr - rows[i].start < rows[i].end - rows[i].start)
			return true;
	return false;
}

/* A function whose start is a guess: where that cannot be it, it is a place before it from which a way leads
 * there. */
static int follow_guessed(struct code_rows *c, const struct code_function *function, struct kept *k)
{
	struct code_function wider = *function;
	bool is_misplaced;
	int r = code_flow_rows(function, &k->rows, &k->count, &is_misplaced);

	for (int i = 0; i < MAX_WIDER && !r && is_misplaced && code_starts_widen(c->starts, &wider); i++) {
		AUTO_FREE struct row *rows = NULL;
		size_t count = 0;

		r = code_flow_rows(&wider, &rows, &count, &is_misplaced);
		if (r || is_misplaced || !has_row_at(rows, count, function->start))
			continue;
		free(k->rows);
		k->rows = rows;
		k->count = count;
		rows = NULL;
		break;
	}
	return r;
}

/* The first place in @function that the @count @rows say nothing of, though it is neither padding nor a trap; its end: there
 * is none. */
static uint64_t first_hole(const struct code_function *function, const struct row *rows, size_t count)
{
	uint64_t at = function->start, left, bytes;

	for (size_t i = 0; at < function->end; at += bytes) {
		const uint8_t *code = function->code + (at - function->start);

		left = function->end - at;
		if (i < count && rows[i].start <= at) {
			bytes = rows[i].end > at ? rows[i].end - at : 0;
			i++;
			continue;
		}
		bytes = code_padding_bytes(code, left);
		if (!bytes)
			bytes = code_trap_bytes(code, left);
		if (!bytes)
			return at;
	}
	return function->end;
}

/* Puts what the @count @rows have between those of @k there. */
static int fill_holes(struct kept *k, const struct row *rows, size_t count)
{
	struct row *all = calloc(2 * k->count + count + 1, sizeof(*all)); /* each kept one may cut another in two */
	size_t used = 0, i = 0;

	if (!all)
		return -ENOMEM;
	for (size_t n = 0; n < count; n++) {
		for (uint64_t at = rows[n].start; at < rows[n].end;) {
			while (i < k->count && k->rows[i].end <= at)
				all[used++] = k->rows[i++];
			if (i < k->count && k->rows[i].start <= at) {
				at = k->rows[i].end;
				continue;
			}
			all[used] = rows[n];
			all[used].start = at;
			if (i < k->count && k->rows[i].start < rows[n].end)
				all[used].end = k->rows[i].start;
			at = all[used++].end;
		}
	}
	while (i < k->count)
		all[used++] = k->rows[i++];
	free(k->rows);
	k->rows = all;
	k->count = used;
	return 0;
}

/* The states with which paths of the functions before @function, by their look, come into it from @low on. Their number, or
 * -ENOMEM. */
static int entries_from_before(struct code_rows *c, const struct code_function *function, uint64_t low,
			       struct code_entry *entries, size_t max)
{
	struct code_function before = *function;
	int r = 0, count = 0;

	for (int i = 0; i < MAX_WIDER && r >= 0; i++) {
		uint64_t end = before.start;

		if (!code_starts_widen(c->starts, &before))
			break;
		before.end = end;
		r = code_flow_exits(&before, low, function->end, entries + count, max - (size_t)count);
		count += r < 0 ? 0 : r;
	}
	return r < 0 ? r : count;
}

/* A part of a function may look like a function, and behind it may stand what only the real beginning leads to. */
static int follow_from_before(struct code_rows *c, const struct code_function *function, struct kept *k)
{
	uint64_t hole = first_hole(function, k->rows, k->count);
	AUTO_FREE struct code_entry *entries = NULL;
	AUTO_FREE struct row *rows = NULL;
	size_t count = 0;
	int r;

	if (hole == function->end)
		return 0;
	entries = calloc(MAX_ENTRIES, sizeof(*entries));
	r = entries ? entries_from_before(c, function, hole, entries, MAX_ENTRIES) : -ENOMEM;
	if (r > 0)
		r = code_flow_part_rows(function, entries, (size_t)r, &rows, &count);
	return r < 0 || !count ? r : fill_holes(k, rows, count);
}

/* A function whose start is a guess. */
static int follow_by_look(struct code_rows *c, const struct code_function *function, struct kept *k)
{
	int r = follow_guessed(c, function, k);

	return r || !function->is_by_look ? r : follow_from_before(c, function, k);
}

static int rows_of(struct code_rows *c, const struct code_function *function, const struct kept **ret)
{
	bool is_new;
	struct kept *k = find_kept(c, function->start, &is_new);

	*ret = k;
	if (!is_new)
		return 0;
	return forget_failed(k, function->is_by_look || !function->is_all_its
					? follow_by_look(c, function, k)
					: code_flow_rows(function, &k->rows, &k->count, NULL));
}

/* The states with which other functions jump into @part. Their number, or -ENOMEM. */
static int entries_of(struct code_rows *c, const struct code_function *part, struct code_entry *entries, size_t max)
{
	struct code_function function = { 0 };
	uint64_t from[CODE_JUMPS_MAX];
	int r = c->jumps ? 0 : code_jumps_new(c->starts, &c->jumps), jumps, count = 0;

	if (r)
		return r;
	jumps = code_jumps_into(c->jumps, part->start, part->end, from);
	for (int i = 0; i < jumps && r >= 0; i++) {
		if (from[i] >= function.start && from[i] < function.end)
			continue; /* that function's jumps are known all at once */
		if (code_starts_find(c->starts, from[i], from[i] + 1, &function))
			continue;
		r = code_flow_exits(&function, part->start, part->end, entries + count, max - (size_t)count);
		count += r < 0 ? 0 : r;
	}
	return r < 0 ? r : count;
}

static int part_rows(struct code_rows *c, const struct code_function *part, const struct kept **ret)
{
	AUTO_FREE struct code_entry *entries = NULL;
	bool is_new;
	struct kept *k = find_kept(c, part->start, &is_new);
	int r = 0;

	*ret = k;
	if (!is_new)
		return 0;
	entries = calloc(MAX_ENTRIES, sizeof(*entries));
	r = entries ? entries_of(c, part, entries, MAX_ENTRIES) : -ENOMEM;
	if (r > 0)
		r = code_flow_part_rows(part, entries, (size_t)r, &k->rows, &k->count);
	return forget_failed(k, r);
}

/* The first row of @k that reaches beyond @addr. */
static size_t first_behind(const struct kept *k, uint64_t addr)
{
	return search_first(at, k->count, k->rows[at].end > addr);
}

/* The rows of @k in [@start, @end). */
static int take_rows(const struct kept *k, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count)
{
	for (size_t i = first_behind(k, start); i < k->count && k->rows[i].start < end; i++) {
		struct row row = k->rows[i];

		if (*count == max)
			return -ENOSPC;
		row.start = row.start > start ? row.start : start;
		row.end = row.end < end ? row.end : end;
		row.is_guess = row.is_followed = true;
		rows[(*count)++] = row;
	}
	return 0;
}

/* How long the stub of a call is whose target stands in memory: jmp *disp(rip), maybe behind endbr64. 0: none starts at
 * @code. */
static uint64_t stub_bytes(const struct code_starts *s, uint64_t addr)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	enum { JUMP_BYTES = 6 };
	const uint8_t *code = code_starts_bytes(s, addr, JUMP_BYTES);
	uint64_t at = 0;

	if (code && memcmp(code, endbr64, sizeof(endbr64)) == 0) {
		code = code_starts_bytes(s, addr, sizeof(endbr64) + 1 + JUMP_BYTES);
		at = sizeof(endbr64);
		at += code && code[at] == 0xf2; /* bnd */
	}
	return code && code[at] == 0xff && code[at + 1] == 0x25 ? at + JUMP_BYTES : 0;
}

/* Stubs in code where no function is known: linkers write no tables for those of a static program, nor symbols. */
static int take_stubs(const struct code_starts *s, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count)
{
	enum { STUB_ALIGN = 8 };
	uint64_t first = start & ~(uint64_t)(STUB_ALIGN - 1);

	/* The longest reaches beyond the place of the next. */
	for (uint64_t addr = first < STUB_ALIGN ? first : first - STUB_ALIGN; addr < end; addr += STUB_ALIGN) {
		uint64_t stop = addr + stub_bytes(s, addr);

		if (stop <= start || stop == addr)
			continue;
		if (*count == max)
			return -ENOSPC;
		code_state_row(&code_state_entry, false, &rows[*count]);
		rows[*count].start = addr > start ? addr : start;
		rows[*count].end = stop < end ? stop : end;
		rows[*count].is_guess = rows[*count].is_followed = true;
		(*count)++;
	}
	return 0;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Code that no function's own path leads to: parts of functions that are elsewhere, or stubs. */
static int build_part(struct code_rows *c, const struct code_function *part, uint64_t start, uint64_t end, struct row *rows,
		      size_t max, size_t *count)
{
	const struct kept *k;
	int r;

	/* To look for who jumps there takes long in a large file. */
	if (code_starts_is_padding(c->starts, start, end))
		return 0;
	r = part_rows(c, part, &k);
	if (r)
		return r;
	return k->count ? take_rows(k, start, end, rows, max, count) : take_stubs(c->starts, start, end, rows, max, count);
}

/*
 * The code left behind a function of unknown size: functions that only their look shows, unless a jump of another function
 * leads into one. Even their look does not show where the first of them begins.
 */
static int build_rest(struct code_rows *c, const struct code_function *rest, uint64_t start, uint64_t end, struct row *rows,
		      size_t max, size_t *count)
{
	int r = 0;

	if (code_starts_is_padding(c->starts, start, end))
		return 0;
	for (struct code_function one = *rest; start < end && !r; start = one.end, one = *rest) {
		uint64_t stop = end;
		const struct kept *k;
		size_t i;

		if (code_starts_narrow(c->starts, start, &one))
			stop = min_u64(end, one.end);
		r = part_rows(c, rest, &k);
		if (r)
			return r;
		i = first_behind(k, one.start);
		if (one.start > rest->start && (i == k->count || k->rows[i].start >= one.end))
			r = rows_of(c, &one, &k);
		if (!r)
			r = k->count ? take_rows(k, start, stop, rows, max, count)
				     : take_stubs(c->starts, start, stop, rows, max, count);
	}
	return r;
}

/* The part of @function that is left behind its rows @k. False: nothing. */
static bool rest_of(const struct code_function *function, const struct kept *k, struct code_function *rest)
{
	uint64_t bytes;

	*rest = *function;
	if (k->count) /* where it ends is anybody's guess */
		rest->start = k->rows[k->count - 1].end;
	rest->code += rest->start - function->start;
	for (; function->is_by_look && rest->start < rest->end; rest->start += bytes, rest->code += bytes) {
		bytes = code_padding_bytes(rest->code, rest->end - rest->start);
		if (!bytes)
			bytes = code_trap_bytes(rest->code, rest->end - rest->start);
		if (!bytes)
			break;
	}
	return rest->start < rest->end;
}

/* The rows of @function in [@start, @end), which does not reach beyond it. */
static int build_function(struct code_rows *c, const struct code_function *function, uint64_t start, uint64_t end,
			  struct row *rows, size_t max, size_t *count)
{
	struct code_function rest = *function, at;
	bool is_by_look = function->is_by_look;
	const struct kept *k;
	int r = 0;

	/* By their look alone several may be one, as no room is between them: where no path of the one leads another begins.
	 */
	for (int i = 0; i < MAX_IN_ONE && start < end && !r; i++) {
		at = rest;
		r = rows_of(c, &at, &k);
		if (!r)
			r = take_rows(k, start, end, rows, max, count);
		if (r || (at.is_all_its && !is_by_look) || !rest_of(&at, k, &rest))
			return r;
		if (start < rest.start)
			start = rest.start;
		if (!is_by_look || !k->count || rest.start % CODE_FUNCTION_ALIGN)
			break;
	}
	return r || is_by_look || start >= end ? r : build_rest(c, &rest, start, end, rows, max, count);
}

/* [@start, @end) where there is no function. */
static int build_between(struct code_rows *c, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count)
{
	int r = 0;

	if (code_starts_is_padding(c->starts, start, end))
		return 0;
	while (start < end && !r) {
		struct code_function part = { 0 };

		r = code_starts_find_part(c->starts, start, end, &part);
		if (r == -ENOENT)
			part.start = part.end = end;
		else if (r)
			return r;
		r = take_stubs(c->starts, start, part.start, rows, max, count);
		if (!r && part.start < end)
			r = build_part(c, &part, start, min_u64(end, part.end), rows, max, count);
		start = part.end;
	}
	return r;
}

static int code_build(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	struct code_rows *c = state;
	int r = 0;

	*count_ret = 0;
	c->is_asked = true;
	while (start < end && !r) {
		struct code_function function;

		r = code_starts_find(c->starts, start, end, &function);
		if (r == -ENOENT)
			return build_between(c, start, end, rows, max, count_ret);
		if (!r && function.start > start)
			r = build_between(c, start, function.start, rows, max, count_ret);
		if (!r && function.start != c->entry)
			r = build_function(c, &function, start, min_u64(end, function.end), rows, max, count_ret);
		start = function.end;
	}
	return r;
}

static int code_build_quickly(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	const struct code_rows *c = state;
	uint64_t addr, len;

	*count_ret = 0;
	for (uint32_t i = 0; code_starts_segment(c->starts, i, &addr, &len); i++) {
		uint64_t from = start > addr ? start : addr, to = min_u64(end, addr + len);

		if (from >= to || (*count_ret && from < rows[*count_ret - 1].end) ||
		    code_starts_is_padding(c->starts, from, to))
			continue;
		if (*count_ret == max)
			return -ENOSPC;
		rows[(*count_ret)++] = (struct row){ .start = from, .end = to, .cfa = ROW_CFA_UNASKED };
	}
	return 0;
}

bool rows_code_has_call_before(const struct row_image *image, uint64_t addr)
{
	enum { SHORTEST = 2, LONGEST = 8 };
	struct code_starts *starts;
	bool found = false;

	if (code_starts_new(image, &starts))
		return false;
	for (uint64_t n = SHORTEST; n <= LONGEST && !found; n++) {
		const uint8_t *code = code_starts_bytes(starts, addr - n, n);

		found = code && code_is_call(code, n);
	}
	code_starts_free(starts);
	return found;
}

const struct row_builder rows_code = {
	.name = "instructions",
	.open = code_open,
	.build = code_build,
	.build_quickly = code_build_quickly,
	.rest = code_rest,
	.close = code_close,
};
