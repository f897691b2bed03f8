/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of HotSpot's blobs, from their instructions (agent/rows/code/flow.h). Neither compiler keeps a frame pointer: a frame
 * has the caller's one and the return address at its upper end, and its size, which the blob tells, is the check: at each
 * call where the compiler described the frame sp must be that far below the CFA. A method may be entered at several places;
 * calls that never return end a path, as the code behind them has another depth. hotspot_code_x86_64.c and
 * hotspot_code_arm64.c know instructions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/flow.h"
#include "agent/runtime/code/hotspot/hotspot_cpu.h"
#include "agent/runtime/code/hotspot/hotspot_state.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"

enum { MAX_TABLE_BYTES = 1 << 20 };

struct maker {
	struct hotspot *s;
	struct code_memory *m;
	const struct hotspot_blob *b;
	uint64_t start, end;
	uint8_t *code; /* of [start, end); owned */
	struct code_entry *entries;
	uint32_t count, cap;
	bool has_failed, is_entry;
	struct code_state full; /* while the method's frame stands */
};

static void enter(struct maker *k, uint64_t addr, const struct code_state *state)
{
	if (addr < k->start || addr >= k->end || k->has_failed)
		return;
	k->has_failed = vec_reach(&k->entries, &k->cap, k->count);
	if (!k->has_failed)
		k->entries[k->count++] = (struct code_entry){ addr, *state };
}

/* While the frame stands sp is that far below the CFA, and the caller's frame pointer is next to the return address, which
 * no register has. */
static struct code_state full_state(uint32_t frame_bytes)
{
	struct code_state s = code_state_entry;

	for (int i = 0; i < CODE_REGS; i++)
		s.reg[i] = CODE_UNKNOWN;
	s.reg[CODE_SP] = -(int32_t)frame_bytes;
	s.slot[SAVED_FP] = -16;
	for (int i = SAVED_RA; i < CODE_SAVED; i++) /* where calls push it, no slot is needed */
		s.slot[i] = -8;
	return s;
}

static bool never_returns(void *arg, uint64_t target)
{
	struct maker *k = arg;
	uint64_t further = 0;

	if (target >= k->start && target < k->end)
		further = hotspot_trampoline_target(k->code + (target - k->start), k->end - target);
	return hotspot_never_returns(k->s, k->m, further ? further : target);
}

/* --- where a method is entered --- */

/* A method that is not to be entered any more has a jump in place of its first instruction. */
static void enter_patched(struct maker *k)
{
	uint64_t verified = k->b->verified;
	bool is_bare = true;
	uint32_t bytes;

	if (verified < k->start || verified >= k->end)
		return;
	bytes = hotspot_patched_bytes(k->code + (verified - k->start), k->end - verified, &is_bare);
	if (bytes)
		enter(k, verified + bytes, is_bare ? &code_state_entry : &k->full);
}

/* The table of exception handlers: {count, offset of the call, 0}, then count times {bci, offset of the handler, depth}
 * (src/hotspot/share/code/exceptionHandlerTable.hpp). */
static void enter_handlers(struct maker *k)
{
	uint64_t bytes = k->b->handlers_end - k->b->handlers;
	AUTO_FREE int32_t *table = NULL;
	uint64_t words = bytes / sizeof(*table);

	if (!k->b->handlers || bytes > MAX_TABLE_BYTES || words < 6)
		return;
	table = malloc(bytes);
	if (!table || code_read(k->m, k->b->handlers, table, bytes))
		return;
	for (uint64_t i = 0; i + 3 <= words; i += 3) {
		int32_t count = table[i];

		for (i += 3; count > 0 && i + 3 <= words; count--, i += 3)
			enter(k, k->b->begin + (uint32_t)table[i + 1], &k->full);
		i -= 3;
	}
}

/* Null checks by the hardware: count, then {offset of the access, offset where it goes on}. */
static void enter_nul_checks(struct maker *k)
{
	uint64_t bytes = k->b->nul_checks_end - k->b->nul_checks;
	AUTO_FREE uint32_t *table = NULL;

	if (!k->b->nul_checks || bytes > MAX_TABLE_BYTES || bytes < 3 * sizeof(*table))
		return;
	table = malloc(bytes);
	if (!table || code_read(k->m, k->b->nul_checks, table, bytes))
		return;
	for (uint64_t i = 0; i < table[0] && 2 * i + 3 <= bytes / sizeof(*table); i++) {
		if (table[2 * i + 1] != table[2 * i + 2])
			enter(k, k->b->begin + table[2 * i + 2], &k->full);
	}
}

static void enter_method(struct maker *k)
{
	const struct hotspot_blob *b = k->b;

	if (b->osr) { /* its other entries lead into the virtual machine and never come back */
		enter(k, b->osr, &code_state_entry);
	} else {
		enter(k, b->verified, &code_state_entry);
		enter(k, b->entry, &code_state_entry);
		enter_patched(k);
	}
	if (!b->frame_bytes)
		return;
	enter(k, b->exception, &k->full);
	enter(k, b->deopt, &k->full);
	enter_handlers(k);
	enter_nul_checks(k);
}

/* --- the check --- */

static const struct row *row_at(const struct row *rows, size_t count, uint64_t addr)
{
	size_t behind = search_first(at, count, rows[at].start > addr);

	return behind && addr < rows[behind - 1].end ? &rows[behind - 1] : NULL;
}

static struct row law_row(uint64_t start, uint64_t end, uint32_t frame_bytes)
{
	struct row r = {
		.start = start, .end = end, .cfa = ROW_CFA_REG, .cfa_reg = REG_SP, .cfa_off = (int32_t)frame_bytes
	};

	for (int i = 0; i < SAVED_MAX; i++)
		r.saved[i] = i == SAVED_RA ? -8 : i == SAVED_FP ? -16 : ROW_SAME;
	return r;
}

/* The calls that the method's descriptions (PcDesc) tell of. */
struct calls {
	struct described {
		uint64_t start, end;
		uint64_t target; /* 0: not known */
	} * at;			 /* rising; owned */
	uint32_t count, cap;
};

/* Finds the call that ends at @end. False: none does. */
static bool find_call(const struct maker *k, uint64_t end, struct described *ret)
{
	uint32_t bytes = 0;

	*ret = (struct described){ .end = end };
	if (end > k->start && end <= k->end)
		bytes = hotspot_call_bytes(k->code, end - k->start, k->start, &ret->target);
	ret->start = end - bytes;
	return bytes;
}

static int read_calls(struct maker *k, struct calls *calls)
{
	uint32_t bytes = k->s->type_bytes[T_PC_DESC];
	uint64_t total = k->b->pcs_end - k->b->pcs;
	AUTO_FREE uint8_t *pcs = NULL;
	uint64_t last = 0;

	if (!k->b->pcs || !k->b->frame_bytes || !bytes || total > MAX_TABLE_BYTES || total < bytes)
		return 0;
	pcs = malloc(total);
	if (!pcs)
		return -ENOMEM;
	if (code_read(k->m, k->b->pcs, pcs, total))
		return -EFAULT;
	for (uint64_t at = 0; at + bytes <= total; at += bytes) {
		struct described call;
		int32_t offset;
		uint64_t addr;

		memcpy(&offset, pcs + at, sizeof(offset)); /* _pc_offset is its first field in all versions */
		addr = k->b->begin + (uint64_t)(int64_t)offset;
		if (offset <= 0 || addr <= last || !find_call(k, addr, &call))
			continue;
		last = addr;
		if (vec_reach(&calls->at, &calls->cap, calls->count))
			return -ENOMEM;
		calls->at[calls->count++] = call;
	}
	return 0;
}

/* Behind each of these calls the frame stands, if they come back. */
static void enter_behind_calls(struct maker *k, const struct calls *calls)
{
	for (uint32_t i = 0; i < calls->count; i++)
		if (!never_returns(k, calls->at[i].target))
			enter(k, calls->at[i].end, &k->full);
}

/* Does @r say that the frame is @bytes large, or is it told by a frame pointer (-XX:+PreserveFramePointer), which says
 * nothing of that? */
static bool is_of_frame(const struct row *r, uint32_t bytes)
{
	if (r->cfa != ROW_CFA_REG)
		return false;
	return (r->cfa_reg == REG_SP && (uint32_t)r->cfa_off == bytes) || (r->cfa_reg == REG_FP && r->cfa_off == 16);
}

/* Do the rows say of these calls what the blob tells, as far as they say anything? */
static bool agrees(const struct maker *k, const struct calls *calls, const struct row *rows, size_t count)
{
	for (uint32_t i = 0; i < calls->count; i++) {
		const struct row *r = row_at(rows, count, calls->at[i].end - 1);

		if (r && !is_of_frame(r, k->b->frame_bytes))
			return false;
	}
	return true;
}

/* Adds the rows of calls that the @rows say nothing of. */
static int add_calls(const struct maker *k, const struct calls *calls, struct row **rows, size_t *count)
{
	struct row *all = calloc(*count + calls->count + 1, sizeof(*all));
	size_t n = 0, i = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t c = 0; c < calls->count; c++) {
		uint64_t end = calls->at[c].end, start = calls->at[c].start;

		while (i < *count && (*rows)[i].start < end)
			all[n++] = (*rows)[i++];
		if (n && all[n - 1].end > start)
			continue;
		all[n++] = law_row(start, end, k->b->frame_bytes);
	}
	while (i < *count)
		all[n++] = (*rows)[i++];
	free(*rows);
	*rows = all;
	*count = n;
	return 0;
}

/* --- rows --- */

static int flat_rows(uint64_t start, uint64_t end, struct row **ret, size_t *count_ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(void)code_state_row(&code_state_entry, false, *ret);
	(*ret)->start = start;
	(*ret)->end = end;
	*count_ret = 1;
	return 0;
}

/*
 * The stub through which the virtual machine calls Java: the frame with a frame pointer that its function begins with stands
 * there. It saves all registers that C wants back.
 */
static void enter_call_stub(struct maker *k)
{
	enum { REACH = 1024 };
	uint64_t ra = k->s->call_stub_return;

	if (ra <= k->start || ra >= k->end)
		return;
	for (uint64_t at = ra; at >= k->start && ra - at < REACH && at; at--) {
		if (!hotspot_makes_frame(k->code + (at - k->start), k->end - at))
			continue;
		enter(k, at, &code_state_entry);
		return;
	}
}

static int decode(struct maker *k, size_t first_cnt, const struct code_state *rest, struct row **ret, size_t *count_ret)
{
	const struct code_function f = { .start = k->start, .end = k->end, .code = k->code, .is_all_its = true };
	const struct code_made made = { .never_returns = never_returns, .arg = k, .first_cnt = first_cnt, .rest = rest };

	return k->has_failed ? -ENOMEM : code_flow_made_rows(&f, k->entries, k->count, &made, ret, count_ret);
}

/* By the instructions, with a guess where no path leads; without the guess if that disagrees with the method's descriptions;
 * by these alone if the paths do, or there are too many. */
static int method_rows(struct maker *k, struct row **ret, size_t *count_ret)
{
	struct calls calls = { 0 };
	size_t first_cnt;
	int error;

	k->full = full_state(k->b->frame_bytes);
	enter_method(k);
	first_cnt = k->count;
	error = read_calls(k, &calls);
	if (!error)
		enter_behind_calls(k, &calls);
	for (int guess = k->b->frame_bytes != 0; !error && guess >= 0; guess--) {
		error = decode(k, first_cnt, guess ? &k->full : NULL, ret, count_ret);
		if (error || agrees(k, &calls, *ret, *count_ret))
			break;
		free(*ret);
		*ret = NULL;
		*count_ret = 0;
	}
	if (!error)
		error = add_calls(k, &calls, ret, count_ret);
	free(calls.at);
	return error;
}

/* Puts @row in place of what @rows say of its range. */
static int put_row(const struct row *row, struct row **rows, size_t *count)
{
	struct row *all = calloc(*count + 2, sizeof(*all));
	size_t n = 0, i = 0;

	if (!all)
		return -ENOMEM;
	for (; i < *count && (*rows)[i].start < row->start; i++) {
		all[n] = (*rows)[i];
		all[n].end = all[n].end < row->start ? all[n].end : row->start;
		n++;
	}
	if (i && (*rows)[i - 1].end > row->end)
		i--; /* it goes on behind, too */
	all[n++] = *row;
	for (; i < *count; i++) {
		if ((*rows)[i].end <= row->end)
			continue;
		all[n] = (*rows)[i];
		all[n].start = all[n].start > row->end ? all[n].start : row->end;
		n++;
	}
	free(*rows);
	*rows = all;
	*count = n;
	return 0;
}

/* --- virtual threads --- */

/*
 * The distance from a ContinuationEntry to the CFA of the frame that has it at its lower end: of the intrinsic method
 * Continuation.enterSpecial, which saves the frame pointer above it. 0: this version has no virtual threads.
 */
static uint32_t entry_depth(const struct hotspot *s)
{
	enum { FIRST_MAJOR = 21, BYTES_OF_21 = 64, ALIGN = 16, RETURN_AND_FP = 16 };
	uint32_t bytes = s->type_bytes[T_CONTINUATION_ENTRY];

	if (s->major < FIRST_MAJOR || bytes > MAX_BLOB_HEAD)
		return 0;
	return ((bytes ? bytes : BYTES_OF_21) + ALIGN - 1) / ALIGN * ALIGN + RETURN_AND_FP;
}

/* The code that brings frames from the heap: sp is where the carrier's record is, until room for them is made. When a
 * virtual thread goes on on another carrier, the frame pointer tells where enterSpecial's frame is all the time. */
static void enter_thaw(struct maker *k)
{
	uint32_t bytes, dropped = hotspot_drops_return_bytes(k->code, k->end - k->start);
	uint64_t len = k->end - k->start;

	k->full = full_state(entry_depth(k->s));
	for (uint64_t i = 0; (i = hotspot_find_barrier(k->code, len, i, &bytes)) < len; i += bytes)
		enter(k, k->start + i + bytes, &k->full);
	k->full.reg[CODE_FP] = -16;
	enter(k, k->start + dropped, dropped ? &k->full : &code_state_entry);
}

/*
 * A return to the barrier is looked up at the byte in front of it, which is another function's last instruction, a plain
 * return of one byte. The frames of the virtual thread that are in the heap are left out there: the caller is the one of
 * Continuation.enterSpecial. If the outermost frame on the stack has arguments there, sp is below the record, and the walk
 * ends, as no return address is found.
 */
static int put_barriers(struct maker *k, struct row **rows, size_t *count)
{
	uint64_t len = k->end - k->start;
	uint32_t bytes;
	int error = 0;

	for (uint64_t i = 0; !error && (i = hotspot_find_barrier(k->code, len, i, &bytes)) < len; i += bytes) {
		const struct row row = law_row(k->start + (i ? i - 1 : 0), k->start + i + bytes, entry_depth(k->s));

		error = put_row(&row, rows, count);
	}
	return error;
}

static int stub_rows(struct maker *k, struct row **ret, size_t *count_ret)
{
	enter_call_stub(k);
	if (hotspot_begins_in_frame(k->code, k->end - k->start)) {
		k->full = full_state(k->b->frame_bytes);
		k->full.reg[CODE_SP] = CODE_UNKNOWN;
		k->full.reg[CODE_FP] = -16;
		enter(k, k->start, &k->full);
	} else {
		enter(k, k->start, &code_state_entry);
	}
	return decode(k, k->count, &code_state_entry, ret, count_ret);
}

/* A piece of a blob with many stubs. */
static int stubs_rows(struct maker *k, struct row **ret, size_t *count_ret)
{
	uint64_t len = k->end - k->start;
	uint32_t bytes;
	int error;

	if (!entry_depth(k->s) || hotspot_find_barrier(k->code, len, 0, &bytes) == len)
		return stub_rows(k, ret, count_ret);
	enter_thaw(k);
	error = decode(k, k->count, &code_state_entry, ret, count_ret);
	return error ? error : put_barriers(k, ret, count_ret);
}

/*
 * A method's adapters. First comes the one from the interpreter's calls to compiled code, which moves sp to make room for
 * arguments (src/hotspot/share/runtime/sharedRuntime.hpp): up to its jump a register has the caller's sp, if this CPU's has
 * such a one.
 */
static int adapter_rows(struct maker *k, struct row **ret, size_t *count_ret)
{
	int error = stub_rows(k, ret, count_ret);
	struct row first;
	uint32_t bytes;

	bytes = hotspot_adapter_row(k->s, k->code, k->end - k->start, &first);
	if (error || !bytes)
		return error;
	first.start = k->start;
	first.end = k->start + bytes;
	return put_row(&first, ret, count_ret);
}

static int make(struct maker *k, struct row **ret, size_t *count_ret)
{
	switch (k->b->kind) {
	case BLOB_NMETHOD:
	case BLOB_NATIVE:
		return method_rows(k, ret, count_ret);
	case BLOB_INTERPRETER:
		return hotspot_interpreter_rows(k->s, k->code, k->end - k->start, k->start, k->is_entry, ret, count_ret);
	case BLOB_FLAT:
		return flat_rows(k->start, k->end, ret, count_ret);
	case BLOB_ADAPTERS:
		return adapter_rows(k, ret, count_ret);
	case BLOB_STUBS:
		return stubs_rows(k, ret, count_ret);
	default:
		return stub_rows(k, ret, count_ret);
	}
}

int hotspot_rows(void *state, struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret)
{
	struct hotspot *s = state;
	struct maker k = { .s = s, .m = m, .start = b->start, .end = b->end, .is_entry = b->own[OWN_IS_ENTRY] };
	struct hotspot_blob blob;
	int error = 0;

	if (s->last.addr != b->own[OWN_BLOB]) {
		error = hotspot_find_blob(s, m, b->start, &s->last);
		if (error)
			return error;
	}
	blob = s->last; /* looking at calls' targets must not change it */
	k.b = &blob;
	if (b->start >= b->end || b->end - b->start > CODE_BLOCK_MAX_BYTES)
		return -EBADMSG;
	k.code = malloc(b->end - b->start);
	if (!k.code)
		return -ENOMEM;
	error = code_read(m, b->start, k.code, b->end - b->start);
	if (!error)
		error = make(&k, ret, count_ret);
	free(k.code);
	free(k.entries);
	return error;
}
