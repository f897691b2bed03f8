/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All code that V8 makes has a frame with rbp between its prologue and its epilogue. Paths are followed from the first
 * instruction; whatever they do not reach is entered with a frame: handlers of exceptions, and code that goes on in a frame
 * that other code has made (on-stack replacement). Pieces are followed one by one, so that long code costs no more than
 * short code.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/flow.h"
#include "agent/rows/code/state.h"
#include "agent/runtime/code/v8/v8_code_rows.h"
#include "base/cleanup.h"
#include "base/vec.h"

enum {
	PIECE_BYTES = 16384, /* instructions have 4 bytes in the mean: well below what is followed at once */
	MAX_INSN_BYTES = 15,
	CALLER_BYTES = 16, /* of return address and saved rbp */
};

struct rows {
	struct row *row; /* owned */
	size_t count, cap;
};

static int append(struct rows *to, const struct row *from, size_t count)
{
	if (!count)
		return 0;
	if (vec_reserve(&to->row, &to->cap, to->count + count))
		return -ENOMEM;
	memcpy(to->row + to->count, from, count * sizeof(*from));
	to->count += count;
	return 0;
}

/* Calls that do not return are followed by other code with a frame, so they need not be known. */
static bool never_returns(void *arg, uint64_t target)
{
	(void)arg;
	(void)target;
	return false;
}

/* Adds the rows of [@from, *@to) of @code, which is entered at its first instruction without a frame if @is_start. An
 * instruction that is cut by the piece's end is left to the next piece: *@to is where that begins. */
static int add_piece(struct rows *rows, uint64_t start, const uint8_t *code, size_t from, size_t *to, bool is_start)
{
	const struct code_function f = {
		.start = start + from, .end = start + *to, .code = code + from, .is_all_its = true
	};
	const struct code_entry entry = { f.start, code_state_entry };
	const struct code_made made = { .never_returns = never_returns, .rest = code_state_in_frame };
	AUTO_FREE struct row *more = NULL;
	size_t count = 0;
	int error = code_flow_made_rows(&f, &entry, is_start, &made, &more, &count);

	if (!error)
		error = append(rows, more, count);
	if (!error && count && f.end - more[count - 1].end < MAX_INSN_BYTES)
		*to = more[count - 1].end - start;
	return error;
}

/* Where the frame of baseline code begins: behind its first call, which makes it. */
static size_t first_call_end(uint64_t start, const uint8_t *code, size_t len)
{
	enum { MOST = 64 };
	struct code_state state = code_state_entry;
	size_t at = 0;

	for (int i = 0; i < MOST && at < len; i++) {
		struct code_step step;

		if (code_state_step(code + at, len - at, start + at, &state, &step))
			break;
		at += step.length_bytes;
		if (step.is_call)
			return at;
	}
	return 0;
}

/* Frames that stand have @capture. */
static void mark(struct rows *rows, uint8_t capture)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct row *r = &rows->row[i];

		if (r->cfa == ROW_CFA_REG && r->cfa_reg == REG_FP && r->cfa_off == CALLER_BYTES &&
		    r->saved[SAVED_FP] == -CALLER_BYTES)
			r->capture = capture;
	}
}

int v8_code_rows(uint64_t start, const uint8_t *code, size_t len, uint8_t capture, struct row **ret, size_t *count_ret)
{
	size_t at = 0, next = capture ? first_call_end(start, code, len) : 0;
	struct rows rows = { 0 };
	int error = 0;

	while (at < len && !error) {
		if (next <= at)
			next = len - at > PIECE_BYTES ? at + PIECE_BYTES : len;
		error = add_piece(&rows, start, code, at, &next, at == 0);
		at = next;
	}
	if (error) {
		free(rows.row);
		return error;
	}
	mark(&rows, capture);
	*ret = rows.row;
	*count_ret = rows.count;
	return 0;
}
