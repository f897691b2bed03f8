/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of code that was registered for debuggers. Blocks are functions of registered files, with the rows that the
 * files' call frame tables say. Such code lies anywhere in memory, beside other generated code that nobody registered: that
 * has blocks, too, which are walked by frame pointers until something is registered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/rows.h"
#include "agent/runtime/code/gdb_jit/gdb_jit.h"
#include "agent/runtime/file/gdb_jit_facts.h"
#include "base/cleanup.h"

enum { PAGE_BYTES = 4096, RANGE_SHIFT = 30 };

static int gdb_jit_open(void *state, struct code_memory *m, const struct code_facts *facts, uint64_t bias)
{
	struct gdb_jit *s = state;
	uint64_t first;
	int error;

	if (!facts->fact[GDB_JIT_FACT_DESCRIPTOR]) {
		if (facts->fact[GDB_JIT_FACT_DATA_BYTES] > GDB_JIT_MAX_DATA_BYTES)
			return -ENOTSUP;
		return gdb_jit_look(m, facts->fact[GDB_JIT_FACT_DATA] + bias, facts->fact[GDB_JIT_FACT_DATA_BYTES],
				    &s->descriptor);
	}
	s->descriptor = facts->fact[GDB_JIT_FACT_DESCRIPTOR] + bias;
	error = gdb_jit_first(m, s->descriptor, &first);
	return error ? error : first ? 0 : -EAGAIN;
}

/* --- ranges --- */

struct windows {
	struct code_range *ranges;
	int count;
};

/* Memory around the code: what comes later is mostly near to it. */
static bool add_window(void *arg, const struct gdb_jit_code *code)
{
	uint64_t start = code->start >> RANGE_SHIFT << RANGE_SHIFT, end = start + (1ull << RANGE_SHIFT);
	struct windows *w = arg;

	for (int i = 0; i < w->count; i++)
		if (w->ranges[i].start == start)
			return true;
	w->ranges[w->count++] = (struct code_range){ start, end < code->end ? code->end : end };
	return w->count < CODE_RANGES;
}

static int gdb_jit_ranges(void *state, struct code_memory *m, uint32_t given, struct code_range ranges[static CODE_RANGES])
{
	struct windows w = { .ranges = ranges };
	int error = gdb_jit_each(state, m, add_window, &w);

	(void)given;
	return w.count ? w.count : error;
}

/* --- blocks --- */

/* Sets @b's start and end to [start, end) around @pc, cut at multiples of @bytes if it is longer. */
static void cut(struct code_block *b, uint64_t pc, uint64_t start, uint64_t end, uint64_t bytes)
{
	uint64_t from = pc / bytes * bytes, to = from + bytes;

	b->start = from > start && end - start > bytes ? from : start;
	b->end = to < end && end - start > bytes ? to : end;
}

/* A word that leads to @code's entry as long as that is in the list. The entry behind it is older, and mostly stays. */
static struct code_token link_of(const struct gdb_jit *s, const struct gdb_jit_code *code, const struct gdb_jit_entry *e)
{
	uint64_t from = e->next	  ? e->next + offsetof(struct gdb_jit_entry, prev)
			: e->prev ? e->prev + offsetof(struct gdb_jit_entry, next)
				  : s->descriptor + 16;

	return (struct code_token){ .addr = from, .value = code->entry, .mask = UINT64_MAX };
}

/* The last bytes of the name at @addr, by which names mostly differ. */
static struct code_token end_of_name(struct code_memory *m, uint64_t addr)
{
	char name[2048];
	size_t len;

	if (!addr || code_read_text(m, addr, name, sizeof(name)))
		return (struct code_token){ 0 };
	len = strlen(name) + 1;
	return code_token_at(m, addr + (len > sizeof(uint64_t) ? len - sizeof(uint64_t) : 0));
}

static int gdb_jit_block(void *state, struct code_memory *m, uint64_t pc, struct code_block *b)
{
	struct gdb_jit *s = state;
	struct gdb_jit_code code;
	struct gdb_jit_piece piece;
	struct gdb_jit_entry e;
	int error = gdb_jit_find(s, m, pc, &code);

	if (error == -ENOENT) {
		cut(b, pc, code.start, code.end, PAGE_BYTES);
		b->kind = GDB_JIT_NONE;
		b->tokens[0] = code_token_at(m, s->descriptor + 16);
		return 0;
	}
	if (!error)
		error = gdb_jit_read_entry(m, code.entry, &e);
	if (!error)
		error = gdb_jit_piece_find(m, &code, pc, &piece);
	if (error)
		return error;
	cut(b, pc, piece.start, piece.end, GDB_JIT_BLOCK_BYTES);
	b->kind = GDB_JIT_CODE;
	b->tokens[0] = link_of(s, &code, &e);
	b->tokens[1] = code_token_at(m, code.entry + offsetof(struct gdb_jit_entry, image));
	/* A longer one is no function, but memory that fills with code: QEMU's. */
	if (piece.end - piece.start <= GDB_JIT_BLOCK_BYTES)
		b->tokens[2] = code_token_at(m, b->start + (b->end - b->start) / 2 / sizeof(uint64_t) * sizeof(uint64_t));
	b->tokens[3] = end_of_name(m, piece.name);
	b->own[GDB_JIT_OWN_IMAGE] = code.image;
	b->own[GDB_JIT_OWN_BYTES] = code.bytes;
	return m->is_spent ? -EDQUOT : 0;
}

/* --- rows --- */

/* One row: code that keeps frame pointers, past its prologue. */
static int row_of_frame_pointer(const struct code_block *b, struct row **ret, size_t *count_ret)
{
	struct row *row = calloc(1, sizeof(*row));

	if (!row)
		return -ENOMEM;
	*row = (struct row){ .start = b->start, .end = b->end, .cfa = ROW_CFA_REG, .cfa_reg = REG_FP, .cfa_off = 16 };
	for (int i = 0; i < SAVED_MAX; i++)
		row->saved[i] = ROW_SAME;
	row->saved[SAVED_FP] = -16;
	row->saved[SAVED_RA] = -8;
	*ret = row;
	*count_ret = 1;
	return 0;
}

/* Can the walk use @row, which comes from a table, without its file? */
static bool is_usable(const struct row *row)
{
	for (int i = 0; i < SAVED_MAX; i++)
		if (row->saved[i] == ROW_OTHER)
			return false;
	return !row->is_guess && !row->is_signal_frame &&
	       (row->cfa == ROW_CFA_REG || row->cfa == ROW_CFA_DEREF || row->cfa == ROW_CFA_ROOT);
}

/* Leaves the usable ones. Returns their number. */
static size_t keep_usable(struct row *rows, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if (!is_usable(&rows[i]))
			continue;
		rows[n] = rows[i];
		rows[n].is_followed = rows[n].is_behind_syscall = rows[n].is_end = false;
		n++;
	}
	return n;
}

static int gdb_jit_rows(void *state, struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret)
{
	AUTO_FREE uint8_t *image = NULL;
	struct row_source *source;
	size_t max = b->end - b->start < CODE_BLOCK_MAX_ROWS ? b->end - b->start : CODE_BLOCK_MAX_ROWS;
	int error;

	(void)state;
	if (b->kind == GDB_JIT_NONE)
		return row_of_frame_pointer(b, ret, count_ret);
	image = gdb_jit_image_read(m, b->own[GDB_JIT_OWN_IMAGE], b->own[GDB_JIT_OWN_BYTES]);
	if (!image)
		return m->is_spent ? -EDQUOT : -EFAULT;
	*ret = malloc(max * sizeof(**ret));
	*count_ret = 0;
	if (!*ret)
		return -ENOMEM;
	if (row_source_new_memory(image, b->own[GDB_JIT_OWN_BYTES], &source))
		return 0; /* it has no table */
	error = rows_build(source, b->start, b->end, *ret, max, count_ret);
	*count_ret = error && error != -ENOSPC ? 0 : keep_usable(*ret, *count_ret);
	row_source_free(source);
	return 0;
}

const struct code_reader code_gdb_jit = {
	.name = "gdb-jit",
	.frame_type = "native",
	.state_bytes = sizeof(struct gdb_jit),
	.open = gdb_jit_open,
	.ranges = gdb_jit_ranges,
	.block = gdb_jit_block,
	.rows = gdb_jit_rows,
	.names = gdb_jit_names,
};

_Static_assert(sizeof(struct gdb_jit) <= CODE_STATE_BYTES, "there is room for the state");
