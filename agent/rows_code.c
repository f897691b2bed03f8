/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder for code that no table covers: hand-written assembly, libraries built without tables, generated code in a
 * file. A function is followed from its start, instruction by instruction (agent/code_flow.h); the rows of the functions
 * followed last are kept, since a function is asked about block by block. What it says is a guess (struct row's is_guess):
 * the first walk over it in user space checks that the return address stands behind a call. One thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/code_flow.h"
#include "agent/code_starts.h"
#include "agent/code_state.h"
#include "agent/row_builder.h"
#include "base/cleanup.h"

enum { MAX_KEPT = 8 };

struct kept {
	uint64_t start; /* of the function; 0 with used 0: free */
	struct row *rows;
	size_t count;
	uint64_t used; /* value of the clock at the last use */
};

struct code_rows {
	struct code_starts *starts;
	uint64_t entry; /* what the program starts with is no called function */
	struct kept kept[MAX_KEPT];
	uint64_t clock;
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
	code_starts_free(c->starts);
	free(c);
}

static int rows_of(struct code_rows *c, const struct code_function *function, const struct kept **ret)
{
	struct kept *k = &c->kept[0];
	int r = 0;

	for (size_t i = 0; i < MAX_KEPT; i++) {
		if (c->kept[i].used && c->kept[i].start == function->start) {
			k = &c->kept[i];
			break;
		}
		if (c->kept[i].used < k->used)
			k = &c->kept[i];
	}
	if (!k->used || k->start != function->start) {
		free(k->rows);
		*k = (struct kept){ .start = function->start };
		r = code_flow_rows(function, &k->rows, &k->count);
	}
	if (!r)
		k->used = ++c->clock;
	*ret = k;
	return r;
}

/* The first row of @k that reaches beyond @addr. */
static size_t first_behind(const struct kept *k, uint64_t addr)
{
	size_t low = 0, high = k->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->rows[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* What of @k lies in [@start, @end). */
static int take_rows(const struct kept *k, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count)
{
	for (size_t i = first_behind(k, start); i < k->count && k->rows[i].start < end; i++) {
		struct row row = k->rows[i];

		if (*count == max)
			return -ENOSPC;
		row.start = row.start > start ? row.start : start;
		row.end = row.end < end ? row.end : end;
		row.is_guess = true;
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
		rows[(*count)++].is_guess = true;
	}
	return 0;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The rows of @function in [@start, @end), which does not reach beyond it. */
static int build_function(struct code_rows *c, const struct code_function *function, uint64_t start, uint64_t end,
			  struct row *rows, size_t max, size_t *count)
{
	const struct kept *k;
	uint64_t known;
	int r = rows_of(c, function, &k);

	if (!r)
		r = take_rows(k, start, end, rows, max, count);
	if (r || function->is_all_its)
		return r;
	known = k->count ? k->rows[k->count - 1].end : function->start; /* where it ends is anybody's guess */
	return take_stubs(c->starts, known > start ? known : start, end, rows, max, count);
}

static int code_build(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	struct code_rows *c = state;
	int r = 0;

	*count_ret = 0;
	while (start < end && !r) {
		struct code_function function;

		r = code_starts_find(c->starts, start, end, &function);
		if (r == -ENOENT)
			return take_stubs(c->starts, start, end, rows, max, count_ret);
		if (!r && function.start > start)
			r = take_stubs(c->starts, start, function.start, rows, max, count_ret);
		if (!r && function.start != c->entry)
			r = build_function(c, &function, start, min_u64(end, function.end), rows, max, count_ret);
		start = function.end;
	}
	return r;
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
	.close = code_close,
};
