/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of code and their rows. Rules are kept once, for all pieces of all processes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/code/code_state.h"
#include "agent/kernel/sampler.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/search.h"
#include "base/vec.h"

/* --- things --- */

static void unwatch(struct code_process *cp, struct code_thing *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; t->is_watched && i < cp->watched_cnt; i++)
		if (cp->watched[i] != t)
			cp->watched[n++] = cp->watched[i];
	if (t->is_watched)
		cp->watched_cnt = n;
	t->is_watched = false;
}

void code_thing_fini(struct code_process *cp, struct code_thing *t)
{
	unwatch(cp, t);
	object_put(t->names);
}

static void piece_free(struct code_range_state *range, struct code_piece *piece)
{
	struct code_spaces *cs = range->process->all;

	code_thing_fini(range->process, &piece->thing);
	object_put(piece->told);
	cs->bytes -= sizeof(*piece) + piece->row_cnt * sizeof(*piece->rows);
	cs->piece_cnt--;
	free(piece);
}

void code_range_free(struct code_range_state *range)
{
	range->process->watched_cnt = 0; /* all go */
	for (uint32_t i = 0; i < range->count; i++) {
		range->pieces[i]->thing.is_watched = false;
		piece_free(range, range->pieces[i]);
	}
	for (uint32_t i = 0; i < range->buried_cnt && i < BURIED_KEPT; i++)
		piece_free(range, range->buried[i]);
	free(range->pieces);
	memory_file_free(range->file);
	free(range);
}

/* --- finding --- */

static uint32_t first_behind(const struct code_range_state *range, uint64_t va)
{
	return search_first(at, range->count, range->pieces[at]->end > va);
}

struct code_piece *code_piece_find(const struct code_range_state *range, uint64_t va)
{
	uint32_t i = first_behind(range, va);

	return i < range->count && range->pieces[i]->start <= va ? range->pieces[i] : NULL;
}

/* --- reading --- */

/* The number of @row's rule; UINT32_MAX without memory. */
static uint32_t rule_of(struct code_process *cp, const struct row *row)
{
	uint32_t number = UINT32_MAX;
	struct row rule;

	memset(&rule, 0, sizeof(rule)); /* what is between the members counts too */
	rule.cfa = row->cfa;
	rule.cfa_reg = row->cfa_reg;
	rule.cfa_off = row->cfa_off;
	rule.cfa_off2 = row->cfa_off2;
	rule.capture = row->capture ? (uint8_t)cp->classes[row->capture - 1] : 0;
	memcpy(rule.saved, row->saved, sizeof(rule.saved));
	return intern_add(cp->all->rules, &rule, sizeof(rule), &number) < 0 ? UINT32_MAX : number;
}

static const struct row *rule_at(const struct code_spaces *cs, uint32_t number)
{
	return intern_get(cs->rules, number, NULL);
}

/* Puts the rows into @piece, whose array has room for two for each of them. */
static bool take_rows(struct code_range_state *range, struct code_piece *piece, const struct row *rows, uint32_t count)
{
	static const struct row none = { .cfa = ROW_CFA_NONE };
	uint64_t at = range->start + piece->start;
	uint32_t n = 0, no_rule = rule_of(range->process, &none);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t rule = rule_of(range->process, &rows[i]);

		if (rule == UINT32_MAX || no_rule == UINT32_MAX)
			return false;
		if (rows[i].start > at)
			piece->rows[n++] = (struct code_piece_row){ (uint32_t)(at - range->start), no_rule };
		if (!n || piece->rows[n - 1].rule != rule)
			piece->rows[n++] = (struct code_piece_row){ (uint32_t)(rows[i].start - range->start), rule };
		at = rows[i].end;
	}
	if (at < range->start + piece->end)
		piece->rows[n++] = (struct code_piece_row){ (uint32_t)(at - range->start), no_rule };
	piece->row_cnt = n;
	return true;
}

static struct code_piece *make_piece(struct code_range_state *range, const struct code_found *a, uint64_t now_ns)
{
	struct code_spaces *cs = range->process->all;
	const struct row *rows = (const void *)(a + 1);
	struct code_piece *piece = calloc(1, sizeof(*piece) + (2 * (size_t)a->row_cnt + 1) * sizeof(*piece->rows)), *fit;

	if (!piece)
		return NULL;
	piece->start = (uint32_t)(a->block.start - range->start);
	piece->end = (uint32_t)(a->block.end - range->start);
	memcpy(piece->thing.tokens, a->block.tokens, sizeof(piece->thing.tokens));
	piece->thing.born_ns = piece->thing.checked_ns = now_ns;
	if (!take_rows(range, piece, rows, a->row_cnt)) {
		free(piece);
		return NULL;
	}
	fit = realloc(piece, sizeof(*piece) + piece->row_cnt * sizeof(*piece->rows));
	piece = fit ? fit : piece;
	if (a->name_bytes)
		(void)objects_add(cs->objects, OBJECT_OF_CODE + range->process->runtime->info.runtime.code.id,
				  rows + a->row_cnt, a->name_bytes, &piece->thing.names);
	cs->bytes += sizeof(*piece) + piece->row_cnt * sizeof(*piece->rows);
	cs->piece_cnt++;
	return piece;
}

/* Takes pieces out whose place @piece has: they have gone. Returns where it is to stand. */
static uint32_t make_place(struct code_range_state *range, const struct code_piece *piece)
{
	uint32_t i = first_behind(range, piece->start), n = i;

	while (n < range->count && range->pieces[n]->start < piece->end)
		range->pieces[n++]->thing.has_gone = range->process->has_gone = true;
	return n == i ? i : UINT32_MAX;
}

static bool is_inside(const struct code_range_state *range, const struct code_block *b)
{
	return b->start >= range->start && b->end <= range->end;
}

/* Asks for the block at @addr. Where a file is needed for its lines that is brought, and all is asked again; what came
 * without it counts if there is none. 0 or -errno. */
static int ask_for_block(struct code_process *cp, uint64_t addr)
{
	struct code_request request = code_request_of(cp, CODE_OP_BLOCK);
	struct code_need need;
	int error;

	request.addr = addr;
	error = code_ask(cp, &request, NULL, 0);
	if (error)
		return error;
	need = ((const struct code_found *)(const void *)cp->all->reply.data)->need;
	return need.base && code_bring(cp, &need) ? code_ask(cp, &request, NULL, 0) : 0;
}

struct code_piece *code_piece_read(struct code_range_state *range, uint64_t va)
{
	struct code_process *cp = range->process;
	uint64_t now_ns = clock_mono_ns();
	const struct code_found *answer;
	struct code_piece *piece;
	uint32_t i;

	if (ask_for_block(cp, range->start + va)) {
		metric_add(cp->all->refused, 1);
		return NULL;
	}
	answer = (const void *)cp->all->reply.data;
	piece = is_inside(range, &answer->block) ? make_piece(range, answer, now_ns) : NULL;
	if (!piece)
		return NULL;
	metric_add(cp->all->pieces, 1);
	i = make_place(range, piece);
	if (i == UINT32_MAX) { /* the caller buries what has gone, then reads again */
		piece_free(range, piece);
		return NULL;
	}
	if (vec_reach(&range->pieces, &range->cap, range->count)) {
		piece_free(range, piece);
		return NULL;
	}
	memmove(&range->pieces[i + 1], &range->pieces[i], (range->count - i) * sizeof(*range->pieces));
	range->pieces[i] = piece;
	range->count++;
	return piece;
}

/* --- death --- */

static void forget_blocks(const struct code_range_state *range, const struct code_piece *piece)
{
	struct sampler *sampler = range->process->all->sampler;

	for (uint32_t block = piece->start / CODE_BLOCK_BYTES; sampler && block <= (piece->end - 1) / CODE_BLOCK_BYTES;
	     block++)
		sampler_forget_block(sampler, range->file->id, block);
}

static void bury(struct code_range_state *range, struct code_piece *piece)
{
	struct code_piece **place = &range->buried[range->buried_cnt % BURIED_KEPT];

	piece->gone_ns = clock_mono_ns();
	unwatch(range->process, &piece->thing);
	if (range->buried_cnt++ >= BURIED_KEPT)
		piece_free(range, *place);
	*place = piece;
}

/* Returns whether the kernel had rows of a piece and has them no more. Of one that had long been idle nobody knows when it
 * went: it is as if it had never been known. */
static bool bury_pieces(struct code_range_state *range)
{
	bool has_changed = false;
	uint32_t n = 0;

	for (uint32_t i = 0; i < range->count; i++) {
		struct code_piece *piece = range->pieces[i];
		const bool was_out = piece->is_out;

		piece->is_out |= piece->thing.has_gone || piece->thing.is_idle;
		if (piece->is_out && !was_out) {
			forget_blocks(range, piece);
			has_changed = true;
		}
		if (!piece->thing.has_gone) {
			range->pieces[n++] = piece;
			continue;
		}
		metric_add(range->process->all->gone, 1);
		if (was_out)
			piece_free(range, piece);
		else
			bury(range, piece);
	}
	range->count = n;
	return has_changed;
}

void code_bury(struct code_process *cp, struct process *p)
{
	bool has_buried = false;

	if (!cp->has_gone && !cp->has_idle)
		return;
	cp->has_gone = cp->has_idle = false;
	code_functions_bury(cp);
	for (uint32_t i = 0; i < cp->range_cnt; i++)
		has_buried |= bury_pieces(cp->ranges[i]);
	if (!has_buried)
		return;
	address_space_renew(p->as);
	if (cp->all->sampler)
		process_publish(p, cp->all->sampler);
}

void code_settle(struct process *p)
{
	if (p->as->code)
		code_bury((struct code_process *)p->as->code, p);
}

static uint32_t first_row_behind(const struct code_piece *piece, uint64_t va)
{
	return search_first(at, piece->row_cnt, piece->rows[at].start > va);
}

/* Was @piece there at @time_ns, and went since? */
static bool went_since(const struct code_piece *piece, uint64_t time_ns)
{
	return piece->thing.born_ns <= time_ns && piece->thing.checked_ns >= time_ns;
}

struct code_piece *code_piece_known(struct code_range_state *range, uint64_t va, uint64_t time_ns)
{
	struct code_piece *piece = code_piece_find(range, va);

	if (piece && !code_thing_is_there(range->process, &piece->thing, time_ns))
		piece = NULL;
	for (uint32_t i = 0; i < range->buried_cnt && i < BURIED_KEPT && !(piece && piece->thing.born_ns <= time_ns); i++)
		if (range->buried[i]->start <= va && range->buried[i]->end > va && went_since(range->buried[i], time_ns))
			return range->buried[i];
	return piece;
}

/* The rule at @va of @piece; UINT32_MAX: it has none there. */
static uint32_t rule_in(const struct code_piece *piece, uint64_t va)
{
	uint32_t i = first_row_behind(piece, va);

	return i ? piece->rows[i - 1].rule : UINT32_MAX;
}

/* Is the code of both at @va walked and named alike? */
static bool are_alike(const struct code_piece *a, const struct code_piece *b, uint64_t va)
{
	return a->start == b->start && a->thing.names == b->thing.names && rule_in(a, va) == rule_in(b, va);
}

enum code_then code_piece_then(const struct code_range_state *range, const struct code_piece *piece, uint64_t va,
			       uint64_t time_ns)
{
	enum code_then then = CODE_UNSEEN;

	if (piece->thing.born_ns <= time_ns)
		return CODE_ITSELF;
	for (uint32_t i = 0; i < range->buried_cnt && i < BURIED_KEPT; i++) {
		const struct code_piece *gone = range->buried[i];

		if (gone->gone_ns <= time_ns || gone->start >= piece->end || gone->end <= piece->start)
			continue;
		if (gone->start == piece->start && gone->end <= va) /* it has grown since, as stubs come one by one */
			continue;
		if (!are_alike(gone, piece, va))
			return CODE_ANOTHER;
		if (gone->thing.born_ns <= time_ns)
			then = CODE_ITS_LIKE;
	}
	return then;
}

/* --- rows --- */

/* Row number @i of @piece. */
static struct row row_at(const struct code_spaces *cs, const struct code_piece *piece, uint32_t i)
{
	struct row row = *rule_at(cs, piece->rows[i].rule);

	row.start = piece->rows[i].start;
	row.end = i + 1 < piece->row_cnt ? piece->rows[i + 1].start : piece->end;
	return row;
}

/* The piece at @va at @time_ns, read if it is not known. */
static struct code_piece *piece_at(struct code_range_state *range, struct process *p, uint64_t va, uint64_t time_ns,
				   bool *is_new)
{
	struct code_piece *piece = code_piece_known(range, va, time_ns);

	if (piece) {
		*is_new = piece->is_out;
		piece->is_out = false;
		return piece;
	}
	*is_new = true;
	for (int i = 0; i < 2; i++) { /* reading shows what else has gone */
		code_bury(range->process, p);
		piece = code_piece_read(range, va);
		if (piece || !range->process->has_gone)
			break;
	}
	return piece;
}

int code_row(struct code_spaces *cs, struct process *p, struct file *file, uint64_t va, uint64_t time_ns, struct row *row,
	     struct code_piece_range *ret)
{
	struct code_piece *piece;
	uint32_t i;

	ret->is_new = false;
	piece = piece_at(code_range_of(file), p, va, time_ns, &ret->is_new);
	if (!piece)
		return -ENOENT;
	ret->start = piece->start;
	ret->end = piece->end;
	i = first_row_behind(piece, va);
	if (!i)
		return 1;
	*row = row_at(cs, piece, i - 1);
	return row->cfa == ROW_CFA_NONE;
}

size_t code_block_rows(const struct code_spaces *cs, const struct file *file, uint64_t va, struct row *rows)
{
	uint64_t from = va / CODE_BLOCK_BYTES * CODE_BLOCK_BYTES, to = from + CODE_BLOCK_BYTES, at = from;
	const struct code_range_state *range = code_range_of(file);
	size_t n = 0;

	for (uint32_t i = first_behind(range, from); i < range->count && range->pieces[i]->start < to; i++) {
		const struct code_piece *piece = range->pieces[i];
		uint32_t k = first_row_behind(piece, from);

		if (piece->is_out)
			continue;
		if (piece->start > at)
			rows[n++] = (struct row){ .start = at, .end = piece->start, .cfa = ROW_CFA_UNASKED };
		for (k -= k > 0; k < piece->row_cnt && piece->rows[k].start < to; k++)
			rows[n++] = row_at(cs, piece, k);
		at = piece->end;
	}
	if (at < to)
		rows[n++] = (struct row){ .start = at, .end = to, .cfa = ROW_CFA_UNASKED };
	return n;
}
