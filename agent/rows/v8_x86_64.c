/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder for V8's interpreter. It is entered through one function, the trampoline, which makes the frame of the
 * script's function and calls the code of its bytecodes, the handlers; these jump from one to the next. A handler that has
 * no frame of its own runs in that frame: there the rows say so, and that the frame's function is told by words in it
 * (CAPTURE). Found by symbols, or by V8's own tables in files that are stripped. The state is what these are. One thread.
 */
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/flow.h"
#include "agent/rows/code/starts.h"
#include "agent/rows/code/state.h"
#include "agent/rows/row_builder.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"
#include "symbols/elf_image.h"
#include "symbols/sources/v8_builtins.h"

enum {
	CAPTURE = 1,	   /* of agent/runtime/code/v8/v8_reader.c: a frame of bytecode ... */
	BASELINE = 2,	   /* ... and one of baseline code */
	RBP = 5,	   /* the processor's number */
	CALLER_BYTES = 16, /* of return address and saved rbp */
	FRAME_WORDS = 5,   /* behind these: context, function, arguments, bytecode, offset in it */
};

static const char trampoline_name[] = "InterpreterEntryTrampoline", first_handler[] = "WideHandler",
		  prologue_name[] = "BaselineOutOfLinePrologue", builtin[] = V8_BUILTIN_PREFIX;

struct v8_rows {
	struct code_starts *starts;	 /* for the code's bytes */
	struct code_function *functions; /* trampoline and handlers, sorted, disjoint; owned */
	size_t count, cap;
	uint64_t trampoline, prologue, handlers;
	/* of the function asked about last */
	uint64_t kept;
	struct row *rows;
	size_t row_cnt;
};

static void v8_close(void *state)
{
	struct v8_rows *v = state;

	code_starts_free(v->starts);
	free(v->functions);
	free(v->rows);
	free(v);
}

/* --- symbols --- */

/* The symbols of the file, and their names; false: it has none, or they name no builtin. */
static bool open_symbols(Elf *elf, Elf_Data **symbols, Elf_Data **names)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_SYMTAB || shdr.sh_entsize != sizeof(Elf64_Sym))
			continue;
		*symbols = elf_rawdata(scn, NULL);
		*names = elf_rawdata(elf_getscn(elf, shdr.sh_link), NULL);
		return *symbols && *names && (*names)->d_buf && (*symbols)->d_buf &&
		       memmem((*names)->d_buf, (*names)->d_size, builtin, sizeof(builtin) - 1);
	}
	return false;
}

static int add_function(struct v8_rows *v, uint64_t addr, uint64_t bytes)
{
	const uint8_t *code = code_starts_bytes(v->starts, addr, bytes);

	if (!code || !bytes)
		return 0;
	if (vec_reach(&v->functions, &v->cap, v->count))
		return -ENOMEM;
	v->functions[v->count++] = (struct code_function){
		.start = addr, .end = addr + bytes, .code = code, .is_all_its = true
	};
	return 0;
}

/* Takes the builtin @name; notes where handlers begin. They are the last ones. */
static int take_builtin(struct v8_rows *v, const char *name, uint64_t addr, uint64_t bytes)
{
	if (!strcmp(name, first_handler))
		v->handlers = addr;
	else if (!strcmp(name, trampoline_name))
		v->trampoline = addr;
	else if (!strcmp(name, prologue_name))
		v->prologue = addr;
	return add_function(v, addr, bytes);
}

static int take_symbols(struct v8_rows *v, const Elf_Data *symbols, const Elf_Data *names)
{
	const size_t prefix = sizeof(builtin) - 1;
	int r = 0;

	for (size_t i = 0; i < symbols->d_size / sizeof(Elf64_Sym) && !r; i++) {
		const char *name;
		size_t left;
		Elf64_Sym sym;

		memcpy(&sym, (const uint8_t *)symbols->d_buf + i * sizeof(sym), sizeof(sym));
		if (ELF64_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_name >= names->d_size)
			continue;
		name = (const char *)names->d_buf + sym.st_name;
		left = names->d_size - sym.st_name;
		if (left > prefix && !memcmp(name, builtin, prefix) && memchr(name, 0, left))
			r = take_builtin(v, name + prefix, sym.st_value, sym.st_size);
	}
	return r;
}

/* The same by V8's own tables. */
static int take_tables(struct v8_rows *v, const struct row_image *image)
{
	AUTO(v8_builtins_close) struct v8_builtins all = { 0 };
	struct v8_builtin one;
	struct elf_image im;
	int r = elf_image_open(image->data, image->len, &im) ? -ENODATA : v8_builtins_open(&im, &all);

	for (uint32_t i = 0; !r && v8_builtins_get(&im, &all, i, &one); i++)
		r = take_builtin(v, one.name, one.addr, one.size_bytes);
	return r;
}

/* row_builder.functions */
static int v8_functions(const struct row_image *image, int (*fn)(void *arg, uint64_t addr, uint64_t size_bytes), void *arg)
{
	AUTO(v8_builtins_close) struct v8_builtins all = { 0 };
	struct v8_builtin one;
	struct elf_image im;
	int r = elf_image_open(image->data, image->len, &im) ? -ENODATA : v8_builtins_open(&im, &all);

	if (r)
		return r == -ENOMEM ? r : 0;
	for (uint32_t i = 0; !r && v8_builtins_get(&im, &all, i, &one); i++)
		r = fn(arg, one.addr, one.size_bytes);
	return r;
}

static int by_start(const void *a, const void *b)
{
	const struct code_function *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Keeps trampoline, prologue and what begins where handlers do or behind. */
static void choose(struct v8_rows *v)
{
	uint64_t end = 0;
	size_t n = 0;

	qsort(v->functions, v->count, sizeof(*v->functions), by_start);
	for (size_t i = 0; i < v->count; i++) {
		const struct code_function *f = &v->functions[i];

		if ((f->start != v->trampoline && f->start != v->prologue && f->start < v->handlers) || f->start < end)
			continue;
		end = f->end;
		v->functions[n++] = *f;
	}
	v->count = n;
}

static int v8_open(const struct row_image *image, void **ret)
{
	Elf_Data *symbols, *names;
	struct v8_rows *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return -ENOMEM;
	r = code_starts_new(image, &v->starts);
	if (!r)
		r = open_symbols(image->elf, &symbols, &names) ? take_symbols(v, symbols, names) : take_tables(v, image);
	if (!r && !v->handlers)
		r = -ENODATA;
	if (r) {
		v8_close(v);
		return r;
	}
	choose(v);
	*ret = v;
	return 0;
}

/* --- rows --- */

/* From which address on the trampoline's frame has all words that tell its function. */
static uint64_t frame_is_complete(const struct code_function *f)
{
	struct code_state state = code_state_entry;

	for (uint64_t at = f->start; at < f->end;) {
		struct code_step step;

		if (code_state_has_frame(&state) && code_is_offset(state.reg[CODE_SP]) &&
		    state.reg[CODE_SP] <= -CALLER_BYTES - 8 * FRAME_WORDS)
			return at;
		if (code_state_step(f->code + (at - f->start), f->end - at, at, &state, &step))
			break;
		at += step.length_bytes;
		code_state_go_on(&state, &step);
	}
	return f->end;
}

static bool is_framed(const struct row *r)
{
	return r->cfa == ROW_CFA_REG && r->cfa_reg == REG_FP && r->cfa_off == CALLER_BYTES &&
	       r->saved[SAVED_FP] == -CALLER_BYTES;
}

/* The rows of the trampoline: from @complete on its frames have the capture. */
static size_t capture_trampoline(struct row *rows, size_t count, uint64_t complete)
{
	for (size_t i = 0; i < count; i++) {
		if (!is_framed(&rows[i]) || rows[i].end <= complete)
			continue;
		if (rows[i].start < complete) { /* there is room for one more */
			memmove(&rows[i + 1], &rows[i], (count++ - i) * sizeof(*rows));
			rows[i].end = rows[i + 1].start = complete;
			continue;
		}
		rows[i].capture = CAPTURE;
	}
	return count;
}

/* Code in [@start, @end) that has left rbp alone runs in the frame that it was called for, or has made for its caller. */
static void capture_frame(struct row *rows, size_t count, uint64_t start, uint64_t end, uint8_t capture)
{
	for (size_t i = 0; i < count; i++) {
		struct row *r = &rows[i];

		if (r->cfa != ROW_CFA_REG || r->saved[SAVED_FP] != ROW_SAME || r->start < start || r->end > end)
			continue;
		*r = (struct row){ .start = r->start,
				   .end = r->end,
				   .cfa = ROW_CFA_REG,
				   .cfa_reg = REG_FP,
				   .cfa_off = CALLER_BYTES,
				   .capture = capture };
		for (int k = 0; k < SAVED_MAX; k++)
			r->saved[k] = ROW_SAME;
		r->saved[SAVED_RA] = -8;
		r->saved[SAVED_FP] = -CALLER_BYTES;
	}
}

/*
 * The piece of the prologue at @guard calls C when the stack may be full, or something waits for the thread. Meanwhile the
 * frame of baseline code stands, but lies behind one that the piece has made, from where the row of the call in baseline
 * code leads nowhere: the way goes to the caller of the baseline function.
 */
static void pass_guard(const struct code_function *f, struct row *rows, size_t count, uint64_t guard)
{
	struct code_state state = code_state_entry;
	uint64_t at = guard;

	while (at >= f->start && at < f->end) {
		struct code_step step;

		if (code_state_step(f->code + (at - f->start), f->end - at, at, &state, &step))
			break;
		at += step.length_bytes;
		if (!step.goes_on)
			break;
		code_state_go_on(&state, &step);
	}
	for (size_t i = 0; i < count; i++) {
		struct row *r = &rows[i];

		if (r->cfa != ROW_CFA_REG || r->saved[SAVED_FP] != -CALLER_BYTES || r->start < guard || r->end > at)
			continue;
		r->cfa = ROW_CFA_DEREF;
		r->cfa_off -= CALLER_BYTES;
		r->cfa_off2 = CALLER_BYTES;
	}
	capture_frame(rows, count, guard, at, BASELINE);
}

/*
 * Baseline code calls the prologue to make its frame. Once that stands, and the return address lies on it again, the rule of
 * the code at the call, which has no frame there, leads nowhere: the prologue stands for the function then.
 */
static void capture_prologue(const struct code_function *f, struct row *rows, size_t count)
{
	struct code_state state = code_state_entry;
	uint64_t at = f->start, made = 0, guard = 0;
	bool has_frame = false;

	while (at < f->end) {
		struct code_step step;

		has_frame |= code_is_place(state.reg[RBP]);
		if (!made && has_frame && state.reg[RBP] == CODE_ENTRY)
			made = at;
		if (code_state_step(f->code + (at - f->start), f->end - at, at, &state, &step))
			break;
		at += step.length_bytes;
		if (has_frame && step.has_target)
			guard = step.target;
		if (!step.goes_on)
			break;
		code_state_go_on(&state, &step);
	}
	if (made)
		capture_frame(rows, count, made, at, BASELINE);
	if (made && guard)
		pass_guard(f, rows, count, guard);
}

static int make_rows(struct v8_rows *v, const struct code_function *f)
{
	struct row *rows = NULL;
	size_t count = 0;
	int r = code_flow_rows(f, &rows, &count, NULL);

	if (r)
		return r;
	free(v->rows);
	v->rows = reallocarray(rows, count + 1, sizeof(*rows));
	v->row_cnt = v->rows ? count : 0;
	v->kept = v->rows ? f->start : 0;
	if (!v->rows) {
		free(rows);
		return -ENOMEM;
	}
	if (f->start == v->trampoline)
		v->row_cnt = capture_trampoline(v->rows, count, frame_is_complete(f));
	else if (f->start == v->prologue)
		capture_prologue(f, v->rows, count);
	else
		capture_frame(v->rows, count, f->start, f->end, CAPTURE);
	return 0;
}

static int v8_build(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	struct v8_rows *v = state;

	*count_ret = 0;
	for (size_t i = search_first(at, v->count, v->functions[at].end > start); i < v->count; i++) {
		const struct code_function *f = &v->functions[i];
		int r = f->start >= end || v->kept == f->start ? 0 : make_rows(v, f);

		if (r || f->start >= end)
			return r;
		for (size_t k = 0; k < v->row_cnt; k++) {
			struct row row = v->rows[k];

			row.start = row.start > start ? row.start : start;
			row.end = row.end < end ? row.end : end;
			if (row.start >= row.end)
				continue;
			if (*count_ret == max)
				return -ENOSPC;
			rows[(*count_ret)++] = row;
		}
	}
	return 0;
}

const struct row_builder rows_v8 = {
	.name = "V8's interpreter",
	.open = v8_open,
	.build = v8_build,
	.close = v8_close,
	.functions = v8_functions,
};
