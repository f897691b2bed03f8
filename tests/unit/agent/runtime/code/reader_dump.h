/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a reader of code says of a process, as text: its ranges; each block with its tokens, rows and names; and, for
 * the first block of each kind, what becomes of a question when one of its first reads fails, or the budget ends there.
 * Compared with a file below tests/golden/, it shows what a change of a reader changes. Include it after cmocka.h.
 */
#ifndef HEARTH_TESTS_READER_DUMP_H
#define HEARTH_TESTS_READER_DUMP_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/code_reader.h"
#include "base/buf.h"
#include "tests/unit/proto/golden.h"

/* Do the tokens of @b hold in @m? */
static inline bool tokens_hold(struct code_memory m, const struct code_block *b)
{
	for (int i = 0; i < CODE_TOKENS; i++)
		if (b->tokens[i].mask && (code_read_u64(&m, b->tokens[i].addr) & b->tokens[i].mask) != b->tokens[i].value)
			return false;
	return true;
}

enum { DUMP_READS = 16, DUMP_ALL = 1 << 20, DUMP_NONE = 1 << 20 };

struct dumped {
	const struct code_reader *reader;
	const struct code_facts *facts;
	uint64_t bias, from, to;  /* where blocks are looked for */
	struct code_range memory; /* without a file */
	int (*read)(void *arg, uint64_t addr, void *dst, size_t len);
	void *arg;
	struct {
		uint32_t capture;
		uint64_t words[CODE_CAPTURE_WORDS];
	} captured[4]; /* those of capture 0 are none */
	/* of this question */
	uint32_t reads, fails_at;
	uint32_t kinds; /* of blocks, as bits, that failures were told of */
	_Alignas(16) uint8_t state[CODE_STATE_BYTES];
};

static int dump_read(void *arg, uint64_t addr, void *dst, size_t len)
{
	struct dumped *d = arg;

	return d->reads++ == d->fails_at ? -EFAULT : d->read(d->arg, addr, dst, len);
}

static struct code_memory dump_memory(struct dumped *d, uint32_t fails_at, uint32_t budget)
{
	d->reads = 0;
	d->fails_at = fails_at;
	return (struct code_memory){
		.read = dump_read, .arg = d, .reads_left = budget, .bytes_left = CODE_MAX_BYTES, .end_ns = UINT64_MAX
	};
}

static const char *dump_error(int error)
{
	return error == -EFAULT	   ? "unreadable"
	       : error == -EDQUOT  ? "spent"
	       : error == -EBADMSG ? "nonsense"
	       : error == -ENOENT  ? "nothing"
	       : error == -ENODATA ? "no names"
	       : error == -EAGAIN  ? "later"
	       : error == -ENOTSUP ? "unknown form"
				   : strerror(-error);
}

static void dump_offset(const struct dumped *d, const char *before, uint64_t addr, struct buf *out)
{
	buf_printf(out, "%s%#llx", before, (unsigned long long)(addr - (d->bias ? d->bias : d->from)));
}

static void dump_row(const struct dumped *d, const struct row *r, struct buf *out)
{
	dump_offset(d, "  ", r->start, out);
	dump_offset(d, "-", r->end, out);
	buf_printf(out, " cfa %u %u%+d%+d", r->cfa, r->cfa_reg, r->cfa_off, r->cfa_off2);
	for (int i = 0; i < SAVED_MAX; i++)
		if (r->saved[i] != ROW_SAME)
			buf_printf(out, " [%d] %d", i, r->saved[i]);
	buf_printf(out, "%s%s\n", r->is_signal_frame ? " signal" : "", r->capture ? " captures" : "");
}

/* Each answer: its text in @out, or why there is none. */
static int dump_rows(struct dumped *d, struct code_memory *m, const struct code_block *b, struct buf *out)
{
	struct row *rows = NULL;
	size_t count = 0;
	int error = d->reader->rows(d->state, m, b, &rows, &count);

	for (size_t i = 0; !error && i < count; i++)
		dump_row(d, &rows[i], out);
	free(rows);
	return error;
}

static void dump_lines(const struct buf *content, uint32_t place, bool is_return, struct buf *out)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	uint32_t n = block_names_find(content->data, content->len, place, is_return, lines);

	for (uint32_t i = 0; i < n; i++)
		buf_printf(out, "%s%.*s (%.*s:%u from %u%s)", i ? " in " : " ", lines[i].name_bytes, lines[i].name,
			   lines[i].file_bytes, lines[i].file, lines[i].line, lines[i].start_line,
			   lines[i].is_approximate ? ", about" : "");
}

/* Where the names at places of @content change. */
static void dump_content(const struct buf *content, uint32_t bytes, struct buf *out)
{
	AUTO(buf_fini) struct buf last = BUF_EMPTY;

	assert_true(block_names_are_sound(content->data, content->len));
	for (uint32_t place = 0; place < bytes; place++) {
		AUTO(buf_fini) struct buf now = BUF_EMPTY;

		dump_lines(content, place, false, &now);
		buf_puts(&now, " | call:");
		dump_lines(content, place, true, &now);
		if (!strcmp(buf_text(&now), buf_text(&last)))
			continue;
		buf_printf(out, "  %u:%s\n", place, buf_text(&now));
		buf_reset(&last);
		buf_append(&last, now.data, now.len);
	}
}

static int dump_names(struct dumped *d, struct code_memory *m, const struct code_block *b, struct buf *out)
{
	AUTO(buf_fini) struct buf content = BUF_EMPTY;
	struct block_names *n = block_names_new();
	int error = d->reader->names(d->state, m, b, n);

	if (!error)
		error = block_names_write(n, &content);
	if (!error)
		dump_content(&content, (uint32_t)(b->end - b->start < 512 ? b->end - b->start : 512), out);
	block_names_free(n);
	return error;
}

static void dump_tokens(const struct dumped *d, const struct code_token *tokens, struct buf *out)
{
	for (int i = 0; i < CODE_TOKENS; i++) {
		if (!tokens[i].mask)
			continue;
		dump_offset(d, ", ", tokens[i].addr, out);
		buf_printf(out, " & %#llx = %#llx", (unsigned long long)tokens[i].mask, (unsigned long long)tokens[i].value);
	}
	buf_puts(out, "\n");
}

static int dump_captured(struct dumped *d, struct code_memory *m, int i, struct buf *out)
{
	AUTO(buf_fini) struct buf content = BUF_EMPTY;
	struct block_names *n = block_names_new();
	struct captured_function f = { 0 };
	int error = d->reader->function(d->state, m, d->captured[i].capture, d->captured[i].words, &f, n);

	if (!error)
		error = block_names_write(n, &content);
	block_names_free(n);
	if (error)
		return error;
	buf_printf(out, "captured %d: key %#llx, place (word %u >> %u) - %#llx below %llu", i, (unsigned long long)f.key,
		   f.word, f.shift, (unsigned long long)f.base, (unsigned long long)f.bytes);
	dump_tokens(d, f.tokens, out);
	dump_content(&content, 128, out);
	return 0;
}

static int dump_block(struct dumped *d, struct code_memory *m, uint64_t pc, struct code_block *b, struct buf *out)
{
	int error;

	memset(b, 0, sizeof(*b));
	error = d->reader->block(d->state, m, pc, b);
	if (error)
		return error;
	assert_true(b->start <= pc && pc < b->end);
	dump_offset(d, "block ", b->start, out);
	dump_offset(d, "-", b->end, out);
	buf_printf(out, " kind %u", b->kind);
	dump_tokens(d, b->tokens, out);
	return 0;
}

enum dump_what { DUMP_BLOCK, DUMP_ROWS, DUMP_NAMES, DUMP_CAPTURED /* and those behind it */ };

static int dump_ask(struct dumped *d, enum dump_what what, struct code_memory *m, const struct code_block *b,
		    struct buf *out)
{
	struct code_block again;

	return what == DUMP_BLOCK   ? dump_block(d, m, b->start, &again, out)
	       : what == DUMP_ROWS  ? dump_rows(d, m, b, out)
	       : what == DUMP_NAMES ? dump_names(d, m, b, out)
				    : dump_captured(d, m, (int)what - DUMP_CAPTURED, out);
}

/* The same question when its first reads fail, one each, and when that is all that may be read. */
static void dump_failures(struct dumped *d, enum dump_what what, const struct code_block *b, const struct buf *wanted,
			  uint32_t reads, struct buf *out)
{
	uint8_t *state = malloc(sizeof(d->state));

	assert_non_null(state);
	memcpy(state, d->state, sizeof(d->state));
	for (int by_budget = 0; by_budget < 2; by_budget++) {
		buf_puts(out, by_budget ? "  spent:" : "  fails:");
		for (uint32_t k = 0; k < reads && k < DUMP_READS; k++) {
			AUTO(buf_fini) struct buf text = BUF_EMPTY;
			struct code_memory m = dump_memory(d, by_budget ? DUMP_NONE : k, by_budget ? k : DUMP_ALL);
			int error = dump_ask(d, what, &m, b, &text);
			bool is_same = text.len == wanted->len && (!text.len || !memcmp(text.data, wanted->data, text.len));

			buf_printf(out, " %s,", error ? dump_error(error) : is_same ? "the same" : "less");
			memcpy(d->state, state, sizeof(d->state));
		}
		buf_puts(out, "\n");
	}
	free(state);
}

static void dump_answers(struct dumped *d, const struct code_block *b, struct buf *out)
{
	static const char *const titles[] = { "block\n", "rows\n", "names\n" };

	for (enum dump_what what = DUMP_BLOCK; what <= DUMP_NAMES; what++) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY;
		struct code_memory m = dump_memory(d, DUMP_NONE, DUMP_ALL);
		int error = dump_ask(d, what, &m, b, &text);

		buf_puts(out, what == DUMP_BLOCK ? "" : titles[what]);
		buf_append(out, text.data, text.len);
		if (error)
			buf_printf(out, "  %s\n", dump_error(error));
		if (!(d->kinds >> b->kind & 1))
			dump_failures(d, what, b, &text, d->reads, out);
	}
	d->kinds |= 1u << b->kind;
}

static inline void dump_reader(struct dumped *d, struct buf *out)
{
	struct code_range ranges[CODE_RANGES] = { d->memory };
	struct code_memory m = dump_memory(d, DUMP_NONE, DUMP_ALL);
	int count, last = 0;

	memset(d->state, 0, sizeof(d->state));
	assert_int_equal(d->reader->open(d->state, &m, d->facts, d->bias), 0);
	count = d->reader->ranges(d->state, &m, d->memory.end != 0, ranges);
	for (int i = 0; i < count; i++) {
		dump_offset(d, "range ", ranges[i].start, out);
		dump_offset(d, "-", ranges[i].end, out);
		buf_puts(out, "\n");
	}
	for (uint64_t pc = d->from; pc < d->to;) {
		AUTO(buf_fini) struct buf ignored = BUF_EMPTY;
		struct code_block b;
		int error;

		m = dump_memory(d, DUMP_NONE, DUMP_ALL);
		error = dump_block(d, &m, pc, &b, &ignored);
		if (error && error != last) {
			dump_offset(d, "", pc, out);
			buf_printf(out, ": %s\n", dump_error(error));
		}
		last = error;
		pc = error ? pc + 1 : b.end;
		if (!error)
			dump_answers(d, &b, out);
	}
}

static inline void dump_functions(struct dumped *d, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(d->captured) && d->captured[i].capture; i++) {
		struct code_memory m = dump_memory(d, DUMP_NONE, DUMP_ALL);
		AUTO(buf_fini) struct buf text = BUF_EMPTY;
		int error = dump_captured(d, &m, (int)i, &text);

		buf_append(out, text.data, text.len);
		if (error)
			buf_printf(out, "captured %zu: %s\n", i, dump_error(error));
		dump_failures(d, DUMP_CAPTURED + (enum dump_what)i, &(struct code_block){ 0 }, &text, d->reads, out);
	}
}

/* Compares all of it with the file @name below tests/golden/. */
static inline void reader_is_as_written(const struct dumped *what, const char *name)
{
#ifdef __x86_64__
	struct dumped *d = malloc(sizeof(*d));
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	assert_non_null(d);
	memcpy(d, what, sizeof(*d));
	dump_reader(d, &out);
	dump_functions(d, &out);
	free(d);
	assert_false(out.failed);
	assert_golden(&out, name);
#else
	(void)what, (void)name;
	skip(); /* registers have other numbers */
#endif
}

#endif
