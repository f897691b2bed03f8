/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces are disjoint and sorted, in chunks, as a tree of two levels: few places are touched when one is looked up, little
 * is moved when one comes. A function that lost its middle has two pieces, which share its body by counted references.
 *
 *   pieces:    [ A )      [ B          )[ C )        now
 *   replaced:  [ Z: since..until )                   what a sample of then may have run
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/search.h"
#include "base/text/utf8.h"
#include "base/vec.h"
#include "symbols/jit/jit_code.h"

struct row {
	uint32_t offset, line;
	uint32_t file, file_len; /* in the text */
};

/* Allocated as one: rows, then the text, which begins with the name. */
struct body {
	uint32_t refs;
	uint32_t bytes;
	uint32_t name_len;
	uint32_t row_cnt;
	struct row rows[];
};

struct piece {
	uint64_t start, end;
	uint64_t base; /* where the function begins, or would if it were whole */
	uint64_t since_ns;
	struct body *body; /* a reference; NULL: nobody's code */
};

struct replaced {
	struct piece piece;
	uint64_t until_ns;
};

enum { CHUNK_PIECES = 128 };

struct chunk {
	uint64_t end; /* of its last piece */
	uint32_t count;
	struct piece *pieces; /* owned, room for CHUNK_PIECES */
};

struct jit_code {
	struct chunk *chunks; /* owned, sorted; none is empty */
	uint32_t chunk_cnt, chunk_cap;
	size_t count;
	size_t bytes;
	struct replaced *replaced; /* a ring of JIT_CODE_MAX_REPLACED, in the order of coming */
	uint32_t first, replaced_cnt;
};

/* The position where a piece is or would be. */
struct place {
	uint32_t chunk, at;
};

struct jit_code *jit_code_new(void)
{
	return calloc(1, sizeof(struct jit_code));
}

enum { CHUNK_BYTES = sizeof(struct chunk) + CHUNK_PIECES * sizeof(struct piece) };

static void body_put(struct jit_code *c, struct body *body)
{
	if (!body || --body->refs)
		return;
	c->bytes -= body->bytes;
	free(body);
}

static struct body *body_get(struct body *body)
{
	if (body)
		body->refs++;
	return body;
}

/* The first piece that ends behind @addr. */
static struct place find_place(const struct jit_code *c, uint64_t addr)
{
	struct place p = { .chunk = search_first(at, c->chunk_cnt, c->chunks[at].end > addr) };

	if (p.chunk < c->chunk_cnt) {
		const struct chunk *chunk = &c->chunks[p.chunk];

		p.at = search_first(at, chunk->count, chunk->pieces[at].end > addr);
	}
	return p;
}

/* A piece that overlaps [start, end), with its place, or NULL. Valid until the next change. */
static struct piece *find_overlapping(const struct jit_code *c, uint64_t start, uint64_t end, struct place *place_ret)
{
	struct place p = find_place(c, start);
	struct piece *piece = p.chunk < c->chunk_cnt ? &c->chunks[p.chunk].pieces[p.at] : NULL;

	*place_ret = p;
	return piece && piece->start < end ? piece : NULL;
}

static void remove_chunk(struct jit_code *c, uint32_t i)
{
	free(c->chunks[i].pieces);
	c->chunk_cnt--;
	memmove(&c->chunks[i], &c->chunks[i + 1], (c->chunk_cnt - i) * sizeof(*c->chunks));
	c->bytes -= CHUNK_BYTES;
}

/* Takes a piece out; its reference is the caller's. */
static struct piece take_out(struct jit_code *c, struct place p)
{
	struct chunk *chunk = &c->chunks[p.chunk];
	struct piece piece = chunk->pieces[p.at];

	chunk->count--;
	c->count--;
	memmove(&chunk->pieces[p.at], &chunk->pieces[p.at + 1], (chunk->count - p.at) * sizeof(piece));
	if (chunk->count)
		chunk->end = chunk->pieces[chunk->count - 1].end;
	else
		remove_chunk(c, p.chunk);
	return piece;
}

void jit_code_free(struct jit_code *c)
{
	if (!c)
		return;
	jit_code_forget(c, UINT64_MAX);
	for (uint32_t i = 0; i < c->chunk_cnt; i++) {
		for (uint32_t k = 0; k < c->chunks[i].count; k++)
			body_put(c, c->chunks[i].pieces[k].body);
		free(c->chunks[i].pieces);
	}
	free(c->chunks);
	free(c->replaced);
	free(c);
}

/* --- making --- */

/* A chunk at number @i that takes over the upper half of the one before it, if there is one. */
static int add_chunk(struct jit_code *c, uint32_t i)
{
	struct piece *pieces = malloc(CHUNK_PIECES * sizeof(*pieces));

	if (!pieces)
		return -ENOMEM;
	if (vec_reach(&c->chunks, &c->chunk_cap, c->chunk_cnt)) {
		free(pieces);
		return -ENOMEM;
	}
	memmove(&c->chunks[i + 1], &c->chunks[i], (c->chunk_cnt++ - i) * sizeof(*c->chunks));
	c->chunks[i] = (struct chunk){ .pieces = pieces };
	c->bytes += CHUNK_BYTES;
	if (i) {
		struct chunk *full = &c->chunks[i - 1], *half = &c->chunks[i];

		half->count = full->count / 2;
		full->count -= half->count;
		memcpy(half->pieces, full->pieces + full->count, half->count * sizeof(*pieces));
		half->end = full->end;
		full->end = full->pieces[full->count - 1].end;
	}
	return 0;
}

/* A piece of @like's function; takes a reference of its own. Nothing else may be there. */
static int insert(struct jit_code *c, const struct piece *like)
{
	struct place p = find_place(c, like->start);
	struct chunk *chunk;

	if (p.chunk == c->chunk_cnt && p.chunk) { /* behind all */
		p.chunk--;
		p.at = c->chunks[p.chunk].count;
	}
	if (!c->chunk_cnt || c->chunks[p.chunk].count == CHUNK_PIECES) {
		if (add_chunk(c, c->chunk_cnt ? p.chunk + 1 : 0))
			return -ENOMEM;
		if (p.at > c->chunks[p.chunk].count) {
			p.at -= c->chunks[p.chunk].count;
			p.chunk++;
		}
	}
	chunk = &c->chunks[p.chunk];
	memmove(&chunk->pieces[p.at + 1], &chunk->pieces[p.at], (chunk->count++ - p.at) * sizeof(*like));
	chunk->pieces[p.at] = *like;
	chunk->end = chunk->pieces[chunk->count - 1].end;
	body_get(like->body);
	c->count++;
	return 0;
}

static void forget_oldest(struct jit_code *c)
{
	body_put(c, c->replaced[c->first].piece.body);
	c->first = (c->first + 1) % JIT_CODE_MAX_REPLACED;
	c->replaced_cnt--;
}

static void remember(struct jit_code *c, const struct piece *p, uint64_t start, uint64_t end, uint64_t until_ns)
{
	struct replaced *r;

	if (p->since_ns > until_ns || !until_ns)
		return;
	if (!c->replaced)
		c->replaced = calloc(JIT_CODE_MAX_REPLACED, sizeof(*c->replaced));
	if (!c->replaced)
		return;
	if (c->replaced_cnt == JIT_CODE_MAX_REPLACED)
		forget_oldest(c);
	r = &c->replaced[(c->first + c->replaced_cnt++) % JIT_CODE_MAX_REPLACED];
	*r = (struct replaced){ *p, until_ns };
	r->piece.start = start;
	r->piece.end = end;
	if (p->since_ns == until_ns) /* only the order is known: it came at some time before */
		r->piece.since_ns = 0;
	body_get(p->body);
}

/* Empties [start, end): what stood there ends at @time_ns. Without memory for what is left of a piece beside it that is
 * lost. */
static int clear(struct jit_code *c, uint64_t start, uint64_t end, uint64_t time_ns)
{
	struct place at;
	int error = 0;

	while (find_overlapping(c, start, end, &at)) {
		struct piece old = take_out(c, at), front = old, back = old;

		remember(c, &old, old.start > start ? old.start : start, old.end < end ? old.end : end, time_ns);
		front.end = start;
		back.start = end;
		if (front.start < front.end && insert(c, &front))
			error = -ENOMEM;
		if (back.start < back.end && insert(c, &back))
			error = -ENOMEM;
		body_put(c, old.body);
	}
	return error;
}

/* Appends @text as UTF-8 without control characters, at most @max bytes of it. Returns how many those are. */
static size_t add_text(struct buf *out, const char *text, size_t len, size_t max)
{
	size_t start = out->len;

	utf8_append_clean(out, text, len < max ? len : max);
	if (out->failed)
		return 0;
	if (out->len - start > max)
		out->len = start + utf8_cut(out->data + start, out->len - start, max);
	for (size_t i = start; i < out->len; i++)
		if (out->data[i] < ' ' || out->data[i] == 0x7f)
			out->data[i] = '?';
	return out->len - start;
}

/* The files' names of a function's lines mostly are one. */
static bool is_file_of(const struct jit_line *a, const struct jit_line *b)
{
	return a->file_len == b->file_len && !memcmp(a->file, b->file, a->file_len);
}

static struct body *make_body(const struct jit_function *f)
{
	size_t rows_bytes = sizeof(struct row) * f->line_cnt;
	struct buf bytes = BUF_EMPTY;
	struct body *body;

	if (buf_reserve(&bytes, sizeof(*body) + rows_bytes + f->name_len))
		return NULL;
	bytes.len = sizeof(*body) + rows_bytes;
	memset(bytes.data, 0, bytes.len);
	((struct body *)(void *)bytes.data)->name_len = (uint32_t)add_text(&bytes, f->name, f->name_len,
									   JIT_CODE_MAX_NAME_BYTES);
	for (uint32_t i = 0; i < f->line_cnt && !bytes.failed; i++) {
		const struct jit_line *line = &f->lines[i];
		struct row row = { .offset = line->offset, .line = line->line };

		if (i && is_file_of(line, line - 1)) {
			const struct row *before = &((struct body *)(void *)bytes.data)->rows[i - 1];

			row.file = before->file;
			row.file_len = before->file_len;
		} else {
			row.file = (uint32_t)(bytes.len - sizeof(*body) - rows_bytes);
			row.file_len = (uint32_t)add_text(&bytes, line->file, line->file_len, PATH_MAX);
		}
		if (!bytes.failed)
			((struct body *)(void *)bytes.data)->rows[i] = row;
	}
	if (bytes.failed || bytes.len > JIT_CODE_MAX_BYTES) {
		buf_fini(&bytes);
		return NULL;
	}
	body = realloc(bytes.data, bytes.len); /* a buffer has room to grow, a body needs none */
	body = body ? body : (void *)bytes.data;
	body->bytes = (uint32_t)bytes.len;
	body->row_cnt = f->line_cnt;
	body->refs = 1;
	return body;
}

static const char *text_of(const struct body *body)
{
	return (const char *)&body->rows[body->row_cnt];
}

static int check_range(const struct jit_code *c, uint64_t start, uint64_t end)
{
	if (start >= end || end - start > JIT_CODE_MAX_FUNCTION_BYTES)
		return -EINVAL;
	return c->count + 2 > JIT_CODE_MAX_PIECES || c->bytes > JIT_CODE_MAX_BYTES ? -ENOSPC : 0;
}

/* Was the same said before? Maps are read again, and JITs announce code twice. */
static bool is_known(const struct jit_code *c, const struct jit_function *f)
{
	struct place at;
	const struct piece *there = find_overlapping(c, f->start, f->end, &at);

	return there && there->start == f->start && there->end == f->end && there->base == f->start && there->body &&
	       !there->body->row_cnt && !f->line_cnt && there->body->name_len == f->name_len &&
	       !memcmp(text_of(there->body), f->name, f->name_len);
}

static int put(struct jit_code *c, const struct piece *p)
{
	int error = clear(c, p->start, p->end, p->since_ns);

	return error ? error : insert(c, p);
}

int jit_code_add(struct jit_code *c, const struct jit_function *f)
{
	struct piece p = { .start = f->start, .end = f->end, .base = f->start, .since_ns = f->time_ns };
	int error = check_range(c, f->start, f->end);

	if (error || is_known(c, f))
		return error;
	p.body = make_body(f);
	if (!p.body)
		return -ENOMEM;
	c->bytes += p.body->bytes;
	error = put(c, &p);
	body_put(c, p.body);
	return error;
}

int jit_code_move(struct jit_code *c, uint64_t from, uint64_t to, uint64_t size, uint64_t time_ns)
{
	const struct piece *there;
	struct place at;
	struct piece p;
	int error;

	if (to > UINT64_MAX - size || from == UINT64_MAX)
		return -EINVAL;
	error = check_range(c, to, to + size);
	there = find_overlapping(c, from, from + 1, &at);
	if (error || !there || !there->body)
		return error ? error : -ENOENT;
	p = (struct piece){ .start = to,
			    .end = to + size,
			    .base = to - (from - there->base),
			    .since_ns = time_ns,
			    .body = body_get(there->body) };
	error = put(c, &p);
	body_put(c, p.body);
	return error;
}

int jit_code_remove(struct jit_code *c, uint64_t start, uint64_t end, uint64_t time_ns)
{
	struct piece p = { .start = start, .end = end, .base = start, .since_ns = time_ns };
	int error = check_range(c, start, end);

	return error ? error : put(c, &p);
}

/* --- asking --- */

/* The piece that a sample of @time_ns at @addr ran. */
static const struct piece *find_then(const struct jit_code *c, uint64_t addr, uint64_t time_ns)
{
	struct place at;
	const struct piece *now = find_overlapping(c, addr, addr + 1, &at), *first = now;

	if (now && now->since_ns <= time_ns)
		return now;
	for (uint32_t i = 0; i < c->replaced_cnt; i++) {
		const struct replaced *r = &c->replaced[(c->first + i) % JIT_CODE_MAX_REPLACED];

		if (addr < r->piece.start || addr >= r->piece.end)
			continue;
		if (r->piece.since_ns <= time_ns && time_ns < r->until_ns)
			return &r->piece;
		if (r->piece.since_ns > time_ns && (!first || r->piece.since_ns < first->since_ns))
			first = &r->piece;
	}
	return first;
}

static const struct row *find_row(const struct body *body, uint64_t offset)
{
	uint32_t behind = search_first(at, body->row_cnt, body->rows[at].offset > offset);

	return behind ? &body->rows[behind - 1] : NULL;
}

int jit_code_find(const struct jit_code *c, uint64_t addr, uint64_t time_ns, struct jit_answer *ret)
{
	const struct piece *p = addr == UINT64_MAX ? NULL : find_then(c, addr, time_ns);
	const struct row *row;

	if (!p)
		return -ENOENT;
	*ret = (struct jit_answer){ .start = p->base, .since_ns = p->since_ns };
	if (!p->body)
		return -ENODATA;
	ret->name = text_of(p->body);
	ret->name_len = p->body->name_len;
	row = find_row(p->body, addr - p->base);
	if (row) {
		ret->file = text_of(p->body) + row->file;
		ret->file_len = row->file_len;
		ret->line = row->line;
	}
	return 0;
}

bool jit_code_has_replaced(const struct jit_code *c)
{
	return c->replaced_cnt;
}

void jit_code_forget(struct jit_code *c, uint64_t time_ns)
{
	while (c->replaced_cnt && c->replaced[c->first].until_ns <= time_ns)
		forget_oldest(c);
}

size_t jit_code_count(const struct jit_code *c)
{
	return c->count;
}

size_t jit_code_memory_bytes(const struct jit_code *c)
{
	return sizeof(*c) + c->bytes + c->chunk_cap * sizeof(*c->chunks) +
	       (c->replaced ? JIT_CODE_MAX_REPLACED * sizeof(*c->replaced) : 0);
}
