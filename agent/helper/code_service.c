/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the readers' states of the processes asked about last; the coldest goes first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/helper/code_service.h"
#include "base/cleanup.h"

enum { MAX_STATES = 64 };

struct state {
	uint32_t number;
	uint64_t used;
	void *reader; /* owned; the reader's own state */
};

struct service {
	struct elf_service service;
	struct state states[MAX_STATES];
	uint32_t count;
	uint64_t clock;
	struct code_files files;
};

/* --- answering --- */

static void forget(struct service *s, uint32_t number)
{
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->states[i].number != number)
			continue;
		free(s->states[i].reader);
		s->states[i] = s->states[--s->count];
		return;
	}
}

/* The state of the memory @number, made if there is none. 0 or -errno. */
static int find_state(struct service *s, uint32_t number, const struct code_reader *reader, const struct code_request *r,
		      struct code_memory *m, void **ret)
{
	struct state *coldest = &s->states[0];
	int error;

	for (uint32_t i = 0; i < s->count; i++) {
		if (s->states[i].number == number) {
			s->states[i].used = ++s->clock;
			*ret = s->states[i].reader;
			return 0;
		}
		if (s->states[i].used < coldest->used)
			coldest = &s->states[i];
	}
	if (s->count == MAX_STATES)
		forget(s, coldest->number);
	*ret = calloc(1, reader->state_bytes);
	if (!*ret)
		return -ENOMEM;
	error = reader->open(*ret, m, &r->facts, r->bias);
	if (error) {
		free(*ret);
		return error;
	}
	s->states[s->count++] = (struct state){ number, ++s->clock, *ret };
	return 0;
}

static int answer_ranges(const struct code_reader *reader, void *state, const struct code_facts *facts,
			 struct code_memory *m, const struct code_range *given, size_t given_cnt, struct buf *reply)
{
	struct code_ranges ranges;
	int count;

	if (given_cnt > CODE_RANGES)
		return -EBADMSG;
	memset(&ranges, 0, sizeof(ranges));
	memcpy(ranges.ranges, given, given_cnt * sizeof(*given));
	count = reader->ranges(state, m, (uint32_t)given_cnt, ranges.ranges);
	if (count < 0)
		return count;
	ranges.count = (uint32_t)count;
	if (reader->captures)
		reader->captures(state, facts, ranges.captures);
	buf_append(reply, &ranges, sizeof(ranges));
	return 0;
}

/* Writes the names behind @reply's content. Returns their length; 0: there are none. */
static uint32_t write_names(const struct block_names *names, struct buf *reply)
{
	size_t before = reply->len;

	if (block_names_write(names, reply) && !reply->failed)
		reply->len = before;
	return (uint32_t)(reply->len - before);
}

static bool is_same_block(const struct code_block *a, const struct code_block *b)
{
	return a->start == b->start && a->end == b->end && memcmp(a->tokens, b->tokens, sizeof(a->tokens)) == 0;
}

/* Writes the names of @b behind @reply's content; their length. The runtime may move what tells them while they are read:
 * one more try. */
static uint32_t find_names(const struct code_reader *reader, void *state, struct code_memory *m, const struct code_block *b,
			   struct buf *reply)
{
	enum { TRIES = 2 };
	int error = -EFAULT;
	uint32_t bytes = 0;

	for (int i = 0; i < TRIES && error && error != -ENODATA && !m->is_spent; i++) {
		struct block_names *names = block_names_new();

		if (!names)
			return 0;
		if (i)
			code_memory_forget(m);
		error = reader->names(state, m, b, names);
		bytes = error ? 0 : write_names(names, reply);
		block_names_free(names);
	}
	return bytes;
}

/* What was read while the block became another one is worth nothing: looked at once more behind all else. */
static int answer_block(const struct code_reader *reader, void *state, struct code_memory *m, const struct code_request *r,
			struct buf *reply)
{
	AUTO_FREE struct row *rows = NULL;
	struct code_found answer, *put;
	struct code_block again;
	size_t count = 0;
	int error;

	memset(&answer, 0, sizeof(answer));
	memset(&again, 0, sizeof(again));
	error = reader->block(state, m, r->addr, &answer.block);
	if (!error)
		error = reader->rows(state, m, &answer.block, &rows, &count);
	if (error)
		return error;
	buf_append(reply, &answer, sizeof(answer));
	buf_append(reply, rows, count * sizeof(*rows));
	answer.name_bytes = find_names(reader, state, m, &answer.block, reply);
	answer.row_cnt = (uint32_t)count;
	answer.need = m->files->need;
	if (reply->failed)
		return -ENOMEM;
	put = (void *)reply->data;
	*put = answer;
	code_memory_forget(m);
	error = reader->block(state, m, r->addr, &again);
	return error ? error : is_same_block(&answer.block, &again) ? 0 : -EBADMSG;
}

static int answer_function(const struct code_reader *reader, void *state, struct code_memory *m,
			   const struct code_request *r, struct buf *reply)
{
	AUTO(block_names_free_at) struct block_names *names = block_names_new();
	struct code_named named, *put;
	int error;

	memset(&named, 0, sizeof(named));
	if (!names || !reader->function)
		return names ? -ENOENT : -ENOMEM;
	error = reader->function(state, m, r->capture, r->words, &named.function, names);
	if (error)
		return error;
	buf_append(reply, &named, sizeof(named));
	named.name_bytes = write_names(names, reply);
	if (reply->failed)
		return -ENOMEM;
	put = (void *)reply->data;
	*put = named;
	return 0;
}

/* A piece of memory that was read as a whole: the words by which a piece of code is known are often next to each other. */
struct window {
	uint64_t start;
	size_t bytes;
	uint8_t memory[512];
};

static struct code_word read_word(struct code_memory *m, struct window *w, uint64_t addr)
{
	enum { PAGE_BYTES = 4096 };
	struct code_word word = { 0 };
	size_t left = PAGE_BYTES - addr % PAGE_BYTES;

	if (addr - w->start > w->bytes || w->bytes - (addr - w->start) < sizeof(word.value)) {
		w->start = addr;
		w->bytes = left < sizeof(w->memory) ? left : sizeof(w->memory);
		if (w->bytes < sizeof(word.value))
			w->bytes = sizeof(word.value);
		if (code_read(m, addr, w->memory, w->bytes)) {
			w->bytes = 0;
			return word;
		}
	}
	memcpy(&word.value, w->memory + (addr - w->start), sizeof(word.value));
	word.is_read = true;
	return word;
}

static int answer_words(struct code_memory *m, const uint64_t *addrs, size_t count, struct buf *reply)
{
	struct window window = { .bytes = 0 };

	if (count > CODE_MAX_WORDS)
		return -EBADMSG;
	m->pages = NULL; /* they are words here and there */
	for (size_t i = 0; i < count; i++) {
		struct code_word word = read_word(m, &window, addrs[i]);

		buf_append(reply, &word, sizeof(word));
	}
	return m->is_spent ? -EDQUOT : 0;
}

static int answer(struct service *s, uint32_t number, int fd, const void *payload, size_t len, struct buf *reply)
{
	const struct code_request *r = payload;
	const struct code_reader *reader;
	struct code_memory m;
	void *state;
	int error;

	if (len < sizeof(*r))
		return -EBADMSG;
	code_files_begin(&s->files, number);
	if (r->op == CODE_OP_FILE)
		return code_files_put(&s->files, r->addr, fd);
	if (fd < 0)
		return -EBADMSG;
	code_memory_of_process(&fd, &m);
	m.files = &s->files;
	if (r->op == CODE_OP_WORDS)
		return answer_words(&m, (const uint64_t *)(r + 1), (len - sizeof(*r)) / sizeof(uint64_t), reply);
	if (r->op == CODE_OP_HEAP)
		return len == sizeof(*r) + sizeof(struct go_heap_request) ? go_heap_read(&m, (const void *)(r + 1), reply)
									  : -EBADMSG;
	reader = code_reader_of(r->facts.id);
	error = reader ? find_state(s, number, reader, r, &m, &state) : -ENOENT;
	if (error)
		return error;
	switch ((enum code_op)r->op) {
	case CODE_OP_RANGES:
		return answer_ranges(reader, state, &r->facts, &m, (const struct code_range *)(r + 1),
				     (len - sizeof(*r)) / sizeof(struct code_range), reply);
	case CODE_OP_BLOCK:
		return answer_block(reader, state, &m, r, reply);
	case CODE_OP_FUNCTION:
		return answer_function(reader, state, &m, r, reply);
	default:
		return -EBADMSG;
	}
}

static int service_call(struct elf_service *service, const struct elf_request *request, int fd, const void *payload,
			size_t payload_bytes, struct buf *reply)
{
	struct service *s = (struct service *)service;
	int status;

	buf_reset(reply);
	if (request->op == ELF_OP_FORGET) {
		forget(s, request->file);
		code_files_forget(&s->files, request->file);
		return 0;
	}
	status = request->op == ELF_OP_CODE ? answer(s, request->file, fd, payload, payload_bytes, reply) : -EBADMSG;
	return !status && reply->failed ? -ENOMEM : status;
}

static void service_free(struct elf_service *service)
{
	struct service *s = (struct service *)service;

	for (uint32_t i = 0; i < s->count; i++)
		free(s->states[i].reader);
	code_files_fini(&s->files);
	free(s);
}

int code_service_new(struct elf_service **ret)
{
	static const struct elf_service_ops ops = { .call = service_call, .free = service_free };
	struct service *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->service.ops = &ops;
	*ret = &s->service;
	return 0;
}

/* --- what came from a worker --- */

static bool ranges_are_sound(const struct code_ranges *r, size_t len)
{
	if (len != sizeof(*r) || r->count > CODE_RANGES)
		return false;
	for (uint32_t i = 0; i < r->count; i++)
		if (r->ranges[i].start >= r->ranges[i].end || r->ranges[i].end >> CPU_USER_BITS ||
		    r->ranges[i].end - r->ranges[i].start > UINT32_MAX)
			return false;
	for (int i = 0; i < CODE_CAPTURES; i++)
		if (r->captures[i].count > CODE_CAPTURE_WORDS)
			return false;
	for (int i = 0; i < CODE_CAPTURES * CODE_CAPTURE_WORDS; i++) {
		int8_t reg = r->captures[i / CODE_CAPTURE_WORDS].words[i % CODE_CAPTURE_WORDS].leaf_reg;

		if (reg < -1 || reg >= USER_REGS)
			return false;
	}
	return true;
}

static bool saved_is_sound(int32_t saved)
{
	return saved != ROW_OTHER && (saved < ROW_IN_REG || row_is_in_reg(saved));
}

static bool row_is_sound(const struct row *row, const struct code_block *b, uint64_t at)
{
	const uint8_t *bytes = (const void *)row;

	for (size_t i = offsetof(struct row, is_signal_frame); i <= offsetof(struct row, is_end); i++)
		if (bytes[i])
			return false;
	if (row->start < at || row->end <= row->start || row->end > b->end || row->capture > CODE_CAPTURES ||
	    row->cfa_reg >= USER_REGS ||
	    (row->cfa != ROW_CFA_NONE && row->cfa != ROW_CFA_REG && row->cfa != ROW_CFA_DEREF && row->cfa != ROW_CFA_ROOT &&
	     row->cfa != ROW_CFA_SCHED && row->cfa != ROW_CFA_TAGGED))
		return false;
	for (int i = 0; i < SAVED_MAX; i++)
		if (!saved_is_sound(row->saved[i]))
			return false;
	return true;
}

static bool answer_is_sound(const struct code_found *a, size_t len, uint64_t addr)
{
	const struct row *rows = (const void *)(a + 1);
	uint64_t at = a->block.start;
	size_t left;

	if (len < sizeof(*a) || (a->need.base && !code_need_is_sound(&a->need)) || addr < a->block.start ||
	    addr >= a->block.end || a->block.end - a->block.start > CODE_BLOCK_MAX_BYTES)
		return false;
	left = len - sizeof(*a);
	if (a->row_cnt > left / sizeof(*rows) || left - a->row_cnt * sizeof(*rows) != a->name_bytes)
		return false;
	for (uint32_t i = 0; i < a->row_cnt; i++) {
		if (!row_is_sound(&rows[i], &a->block, at))
			return false;
		at = rows[i].end;
	}
	return !a->name_bytes || block_names_are_sound(rows + a->row_cnt, a->name_bytes);
}

static bool named_is_sound(const struct code_named *n, size_t len)
{
	return len >= sizeof(*n) && n->function.word <= CODE_CAPTURE_WORDS && n->function.shift < 64 && n->function.key &&
	       len - sizeof(*n) == n->name_bytes && (!n->name_bytes || block_names_are_sound(n + 1, n->name_bytes));
}

bool code_reply_is_sound(const struct code_request *request, const void *reply, size_t len)
{
	switch ((enum code_op)request->op) {
	case CODE_OP_RANGES:
		return ranges_are_sound(reply, len);
	case CODE_OP_BLOCK:
		return answer_is_sound(reply, len, request->addr);
	case CODE_OP_FUNCTION:
		return named_is_sound(reply, len);
	case CODE_OP_WORDS:
		return len % sizeof(struct code_word) == 0;
	case CODE_OP_HEAP:
		return go_heap_is_sound(reply, len);
	case CODE_OP_FILE:
		return !len;
	}
	return false;
}
