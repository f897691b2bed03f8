/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes rows out of Go's function table. The table says how far the stack pointer stands below the frame's start at every
 * instruction, and covers the runtime's assembly too. Everything else that a function does with its frame depends on the
 * CPU: agent/rows/go_frame.h. The file is borrowed; a state is not shared between threads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/go_frame.h"
#include "agent/rows/row_builder.h"

static int rows_go_open(const struct row_image *image, void **ret)
{
	struct gopclntab table, *t;
	int r = gopclntab_open(image->data, image->len, &table);

	if (r)
		return r;
	t = malloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = table;
	*ret = t;
	return 0;
}

static void rows_go_close(void *state)
{
	free(state);
}

bool go_is_code(const struct gopclntab *t, uint64_t addr, const void *bytes, size_t len)
{
	const uint8_t *code = gopclntab_code(t, addr, len);

	return code && memcmp(code, bytes, len) == 0;
}

bool go_is_named(const struct gopclntab_function *fn, const char *name)
{
	size_t len = strlen(name);

	return fn->name_len >= len && memcmp(fn->name, name, len) == 0 &&
	       (fn->name_len == len || strcmp(fn->name + len, ".abi0") == 0);
}

int go_rows_add(struct go_rows *out, struct row row)
{
	if (row.start < out->start)
		row.start = out->start;
	if (row.end > out->end)
		row.end = out->end;
	if (row.start >= row.end)
		return 0;
	if (out->count == out->max)
		return -ENOSPC;
	out->rows[out->count++] = row;
	out->start = row.end;
	return 0;
}

void go_turns_add(struct go_turns *t, uint64_t at, struct go_turn turn)
{
	turn.at = at;
	if (t->count < GO_MAX_TURNS)
		t->turns[t->count++] = turn;
}

const struct go_turn *go_turns_find(const struct go_turns *t, uint64_t at, uint64_t *end)
{
	const struct go_turn *turn = NULL;

	for (unsigned i = 0; i < t->count; i++) {
		if (t->turns[i].at <= at)
			turn = &t->turns[i];
		else if (t->turns[i].at < *end)
			*end = t->turns[i].at;
	}
	return turn && turn->cfa != ROW_CFA_NONE ? turn : NULL;
}

/*
 * The first function of a stack: what the runtime marks so, and its instructions at the entry point. sigtramp is marked too,
 * but behind it the interrupted stack follows.
 */
static bool is_root(const struct gopclntab_function *fn)
{
	if (fn->flags & GOPCLNTAB_TOP_FRAME)
		return !go_is_named(fn, "runtime.sigtramp");
	return go_frame_is_entry(fn);
}

/* Does the runtime make interrupted code seem to have called @fn? The rule is that of the runtime's own walk
 * (runtime/traceback.go). */
static bool is_injected(const struct gopclntab_function *fn)
{
	return go_is_named(fn, "runtime.asyncPreempt") || go_is_named(fn, "runtime.sigpanic") ||
	       go_is_named(fn, "runtime.debugCallV2");
}

/* The rows of @fn up to @stop. */
static int add_function(const struct gopclntab *t, const struct gopclntab_function *fn, uint64_t stop, struct go_rows *out)
{
	uint64_t trampoline = go_frame_trampoline(t, fn);
	size_t before = out->count;
	int r;

	if (trampoline != UINT64_MAX)
		return go_rows_add(
			out,
			(struct row){ .start = trampoline, .end = stop, .cfa = ROW_CFA_SIGNAL, .is_signal_frame = true });
	if (is_root(fn))
		return go_rows_add(out, (struct row){ .start = fn->entry, .end = stop, .cfa = ROW_CFA_ROOT });
	r = go_frame_rows(t, fn, stop, out);
	for (size_t i = before; i < out->count && is_injected(fn); i++)
		out->rows[i].is_signal_frame = true;
	return r;
}

static int rows_go_build(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	const struct gopclntab *t = state;
	struct go_rows out = { .start = start, .end = end, .rows = rows, .max = max };
	struct gopclntab_function fn, next;
	uint32_t index = 0;
	int r = 0;

	/* Behind the last function nothing follows; before the first one, it may. */
	if (gopclntab_find(t, start, &index) && (gopclntab_function(t, 0, &fn) || start >= fn.entry))
		goto out;
	for (; r == 0 && index < t->function_count; index++) {
		uint64_t stop;

		if (gopclntab_function(t, index, &fn))
			continue;
		if (fn.entry > end || fn.end <= out.start)
			break;
		/* A trampoline's row takes the last byte of the padding before it. */
		stop = fn.end;
		if (gopclntab_function(t, index + 1, &next) == 0 && go_frame_trampoline(t, &next) < stop)
			stop = go_frame_trampoline(t, &next);
		r = add_function(t, &fn, stop, &out);
	}
out:
	*count_ret = out.count;
	return r;
}

const struct row_builder rows_go = {
	.name = "go",
	.open = rows_go_open,
	.build = rows_go_build,
	.close = rows_go_close,
};
