/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds modules and functions from an address. The table of modules has no symbol; it is found among the emulator's
 * variables by its look: sorted ranges of memory for code that begin with headers. Whatever is found is believed only where
 * its parts agree.
 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/code/beam/beam_state.h"
#include "agent/runtime/file/beam_facts.h"
#include "base/cleanup.h"

enum {
	TABLE_WORDS = 4,	/* of one table: its ranges, their number, the room for them, where the last look ended */
	RANGE_BYTES = 16,	/* start, end */
	FUNCTIONS_FIRST = 0x50, /* where the functions' addresses may stand in a header ... */
	FUNCTIONS_LAST = 0xd0,
	MAX_DATA_BYTES = 8 << 20,
	INFO_BACK_BYTES = 1 << 16, /* how far from a place the name of its function may stand, outside of modules */
	MAX_FRAGMENT_BYTES = 1 << 16,
	ATOM_SEGMENTS_LAST = 256, /* where the table of atoms may have the address of its segments */
	ATOM_LAST = 64,
	ATOMS_SHIFT = 10, /* of a segment */
};

bool beam_is_code(const struct beam *s, uint64_t addr)
{
	for (uint32_t i = 0; i < s->range_cnt; i++)
		if (addr >= s->range[i].start && addr < s->range[i].end)
			return true;
	return false;
}

static int unreadable(const struct code_memory *m, int otherwise)
{
	return m->is_spent ? -EDQUOT : otherwise;
}

/* --- atoms --- */

enum {		       /* erts/emulator/beam/erl_term.h, erl_bits.h of release 29 */
       TERM_TAGS = 7,  /* bits of a term that are not the address of what it stands for */
       TERM_BOXED = 2, /* the lowest two of them */
       HEAD_TAGS = 0x3f,
       HEAD_OF_BITS = 0x20, /* a binary with its bytes, behind its size */
       HEAD_OF_PART = 0x24, /* one that is in another: the base, whose last two bits are flags, and its first bit */
};

/* The address of the bytes of the binary @term; 0: it is none. */
static uint64_t binary_text(struct code_memory *m, uint64_t term)
{
	const uint64_t binary = term & ~(uint64_t)TERM_TAGS;
	uint64_t head;

	if ((term & 3) != TERM_BOXED)
		return 0;
	head = code_read_u64(m, binary) & HEAD_TAGS;
	if (head == HEAD_OF_BITS)
		return binary + 16;
	return head == HEAD_OF_PART ? (code_read_u64(m, binary + 8) & ~3ull) + code_read_u64(m, binary + 16) / 8 : 0;
}

static bool is_false(struct code_memory *m, uint64_t text)
{
	char bytes[5];

	return text > 4096 && !code_read(m, text, bytes, sizeof(bytes)) && !memcmp(bytes, "false", sizeof(bytes));
}

/* Atom number 0 is false in all releases: by it the places of the segments and of texts are found. */
static int find_atoms(struct beam *s, struct code_memory *m, uint64_t table)
{
	for (uint32_t at = 0; at < ATOM_SEGMENTS_LAST; at += 8) {
		uint64_t segments = code_read_u64(m, table + at), segment, atom;

		segment = segments > 4096 ? code_read_u64(m, segments) : 0;
		atom = segment > 4096 ? code_read_u64(m, segment) : 0;
		for (uint32_t text = 16; atom > 4096 && text < ATOM_LAST; text += 8) {
			const uint64_t word = code_read_u64(m, atom + text);
			const bool is_address = is_false(m, word);

			if ((!is_address && !is_false(m, binary_text(m, word))) || code_read_u16(m, atom + text - 8) != 5)
				continue;
			s->atoms = segments;
			s->atom_text = text;
			s->has_binaries = !is_address;
			return 0;
		}
	}
	return unreadable(m, -EAGAIN);
}

int beam_atom(const struct beam *s, struct code_memory *m, uint64_t atom, char text[static BEAM_MAX_ATOM])
{
	uint64_t number = atom >> BEAM_ATOM_BITS, segment, entry, at;
	uint16_t len;

	if (!beam_is_atom(atom))
		return -EBADMSG;
	segment = code_read_u64(m, s->atoms + 8 * (number >> ATOMS_SHIFT));
	entry = segment ? code_read_u64(m, segment + 8 * (number & ((1 << ATOMS_SHIFT) - 1))) : 0;
	if (!entry)
		return unreadable(m, -EBADMSG);
	len = code_read_u16(m, entry + s->atom_text - 8);
	if (len > BEAM_MAX_ATOM)
		return -EBADMSG;
	at = code_read_u64(m, entry + s->atom_text);
	if (s->has_binaries)
		at = binary_text(m, at);
	return code_read(m, at, text, len) ? unreadable(m, -EFAULT) : len;
}

/* --- modules --- */

struct module {
	uint64_t start, end; /* start: of its header */
	uint64_t functions;  /* address of their addresses */
	uint64_t count;
};

static bool is_info(struct code_memory *m, uint64_t info)
{
	uint64_t name[3];

	return info % 8 == 0 && !code_read(m, info + BEAM_CODE_INFO_NAME, name, sizeof(name)) && beam_is_atom(name[0]) &&
	       beam_is_atom(name[1]) && name[2] <= BEAM_MAX_ARITY;
}

/* Are the functions' addresses at @functions? The one behind the last is the end of the code. */
static bool has_functions(struct code_memory *m, const struct module *k, uint64_t functions)
{
	uint64_t first = code_read_u64(m, functions), end = code_read_u64(m, functions + 8 * k->count);

	return first > functions && first < k->end && end > first && end <= k->end && is_info(m, first);
}

/* Completes @k, of which start and end are known. */
static int open_module(struct beam *s, struct code_memory *m, struct module *k)
{
	k->count = code_read_u64(m, k->start);
	if (!k->count || k->count > BEAM_MAX_FUNCTIONS)
		return unreadable(m, -EBADMSG);
	for (uint32_t at = FUNCTIONS_FIRST; !s->functions && at <= FUNCTIONS_LAST; at += 8)
		if (has_functions(m, k, k->start + at))
			s->functions = at;
	k->functions = k->start + s->functions;
	return s->functions && has_functions(m, k, k->functions) ? 0 : unreadable(m, -EBADMSG);
}

/* Is there a table of modules at @at? Its ranges rise, are memory for code, and begin with headers. */
static bool is_table(struct beam *s, struct code_memory *m, const uint64_t table[TABLE_WORDS])
{
	enum { LOOKED_AT = 4 };
	uint64_t last = 0;

	if (table[0] < 4096 || table[0] % 8 || table[1] < LOOKED_AT || table[1] > table[2] || table[2] > BEAM_MAX_MODULES ||
	    table[3] < table[0] || table[3] > table[0] + RANGE_BYTES * table[1])
		return false;
	for (uint32_t i = 0; i < LOOKED_AT; i++) {
		struct module k = { code_read_u64(m, table[0] + RANGE_BYTES * i),
				    code_read_u64(m, table[0] + RANGE_BYTES * i + 8), 0, 0 };

		if (k.start < last || k.end < k.start || !beam_is_code(s, k.start) ||
		    (k.end > k.start && open_module(s, m, &k)))
			return false;
		last = k.end;
	}
	return true;
}

static uint32_t active_table(const struct beam *s, struct code_memory *m)
{
	uint32_t active = code_read_u32(m, s->active_code);

	return active < BEAM_INDEXES ? active : 0;
}

/* One of the tables is at @found: of the places where the first of them may be, that counts where most are, the active one
 * among them. */
static int choose_tables(struct beam *s, struct code_memory *m, uint64_t found)
{
	uint32_t active = active_table(s, m), most = 0;

	for (uint32_t i = 0; i < BEAM_INDEXES; i++) {
		uint64_t first = found - 8ull * TABLE_WORDS * i, table[TABLE_WORDS];
		uint32_t count = 0;
		bool has_active = false;

		for (uint32_t k = 0; k < BEAM_INDEXES; k++) {
			if (code_read(m, first + 8ull * TABLE_WORDS * k, table, sizeof(table)) || !is_table(s, m, table))
				continue;
			count++;
			has_active |= k == active;
		}
		if (!has_active || count <= most)
			continue;
		most = count;
		s->tables = first;
	}
	return most ? 0 : unreadable(m, -EAGAIN);
}

static int find_tables(struct beam *s, struct code_memory *m)
{
	enum { CHUNK_WORDS = 512 };
	uint64_t words[CHUNK_WORDS + TABLE_WORDS];

	if (s->data_end - s->data > MAX_DATA_BYTES)
		return -ENOTSUP;
	for (uint64_t at = s->data; at < s->data_end; at += 8ull * CHUNK_WORDS) {
		size_t len = s->data_end - at < sizeof(words) ? s->data_end - at : sizeof(words);

		if (code_read(m, at, words, len & ~7ul))
			continue;
		for (size_t i = 0; i < CHUNK_WORDS && (i + TABLE_WORDS) * 8 <= len; i++) {
			if (is_table(s, m, &words[i]))
				return choose_tables(s, m, at + 8 * i);
		}
	}
	return unreadable(m, -EAGAIN);
}

/* The module whose range is the last that begins at or before @pc: in @before; it may end before @pc. *@next is where the
 * following one begins; UINT64_MAX: there is none. */
static int find_range(struct beam *s, struct code_memory *m, uint64_t pc, struct module *before, uint64_t *next)
{
	uint64_t table[TABLE_WORDS], from = 0, to;

	if (code_read(m, s->tables + 8ull * TABLE_WORDS * active_table(s, m), table, sizeof(table)))
		return unreadable(m, -EFAULT);
	to = table[1];
	if (to > BEAM_MAX_MODULES)
		return -EBADMSG;
	while (from < to) {
		uint64_t middle = from + (to - from) / 2;

		if (code_read_u64(m, table[0] + RANGE_BYTES * middle) > pc)
			to = middle;
		else
			from = middle + 1;
	}
	*next = from < table[1] ? code_read_u64(m, table[0] + RANGE_BYTES * from) : UINT64_MAX;
	before->start = from ? code_read_u64(m, table[0] + RANGE_BYTES * (from - 1)) : 0;
	before->end = from ? code_read_u64(m, table[0] + RANGE_BYTES * (from - 1) + 8) : 0;
	return m->is_spent ? -EDQUOT : 0;
}

/* --- blocks --- */

static void add_token(struct code_block *b, uint32_t i, uint64_t addr, uint64_t value)
{
	b->tokens[i] = (struct code_token){ addr, value, UINT64_MAX };
}

/* The function whose name stands at @info: its name tells it from others that come to the same place. */
static int make_function(const struct beam *s, struct code_memory *m, uint64_t info, uint64_t end, struct code_block *ret)
{
	uint64_t name[3];

	if (code_read(m, info + BEAM_CODE_INFO_NAME, name, sizeof(name)))
		return unreadable(m, -EFAULT);
	if (!beam_is_atom(name[0]) || !beam_is_atom(name[1]) || name[2] > BEAM_MAX_ARITY)
		return -EBADMSG;
	ret->start = info;
	ret->end = end;
	ret->kind = s->normal_exit >= info && s->normal_exit < end ? BEAM_ROOT : BEAM_FUNCTION;
	ret->own[BEAM_OWN_MODULE] = name[0];
	ret->own[BEAM_OWN_FUNCTION] = name[1];
	ret->own[BEAM_OWN_ARITY] = name[2];
	for (uint32_t i = 0; i < ARRAY_LEN(name); i++)
		add_token(ret, i, info + BEAM_CODE_INFO_NAME + 8 * i, name[i]);
	return 0;
}

static int block_in_module(struct beam *s, struct code_memory *m, uint64_t pc, struct module *k, struct code_block *ret)
{
	int error = open_module(s, m, k);
	uint64_t from = 0, to = k->count, first = code_read_u64(m, k->functions), info, end;

	if (error)
		return error;
	if (pc < first) {
		ret->start = k->start;
		ret->end = first;
		ret->kind = BEAM_HEADER;
		ret->own[BEAM_OWN_MODULE] = code_read_u64(m, first + BEAM_CODE_INFO_NAME);
		add_token(ret, 0, k->functions, first);
		add_token(ret, 1, first + BEAM_CODE_INFO_NAME, ret->own[BEAM_OWN_MODULE]);
		return 0;
	}
	while (from < to) {
		uint64_t middle = from + (to - from) / 2;

		if (code_read_u64(m, k->functions + 8 * middle) > pc)
			to = middle;
		else
			from = middle + 1;
	}
	end = from ? code_read_u64(m, k->functions + 8 * from) : 0;
	info = from ? code_read_u64(m, k->functions + 8 * (from - 1)) : 0;
	if (!from || info > pc || end <= pc || end > k->end)
		return unreadable(m, from == k->count ? -ENOENT : -EBADMSG);
	error = make_function(s, m, info, end, ret);
	ret->own[BEAM_OWN_HEADER] = k->start;
	ret->own[BEAM_OWN_MODULE_END] = k->end;
	ret->own[BEAM_OWN_INDEX] = from - 1;
	/* The same function of a module that was loaded anew has other lines. */
	add_token(ret, 3, k->start + BEAM_LINE_TABLE, code_read_u64(m, k->start + BEAM_LINE_TABLE));
	return error;
}

/* The first name of a function from @from on, @end where there is none below that. */
static uint64_t next_info(struct code_memory *m, uint64_t from, uint64_t end)
{
	for (uint64_t at = (from + 7) & ~7ull; at < end; at += 8)
		if (is_info(m, at))
			return at;
	return end;
}

/* The last name of a function in [@low, @pc), whose end is looked for below @high. */
static int block_of_info(const struct beam *s, struct code_memory *m, uint64_t pc, uint64_t low, uint64_t high,
			 struct code_block *ret)
{
	uint64_t info = 0, limit, end;

	for (uint64_t at = pc & ~7ull; at >= low && pc - at < INFO_BACK_BYTES && !info; at -= 8)
		if (is_info(m, at))
			info = at;
	if (!info)
		return unreadable(m, -ENOENT);
	limit = high - info > INFO_BACK_BYTES ? info + INFO_BACK_BYTES : high;
	end = next_info(m, (pc & ~7ull) + 8, limit);
	return end == limit && limit < high ? unreadable(m, -ENOENT) : make_function(s, m, info, end, ret);
}

/* Behind the last one are functions again, which the emulator makes by hand: it reaches up to the first of them. */
static int block_of_fragment(const struct beam *s, struct code_memory *m, uint64_t pc, uint32_t i, uint64_t high,
			     struct code_block *ret)
{
	ret->start = s->fragments[i].start;
	ret->end = high - ret->start > MAX_FRAGMENT_BYTES ? ret->start + MAX_FRAGMENT_BYTES : high;
	ret->end = next_info(m, (pc & ~7ull) + 8, ret->end);
	ret->kind = BEAM_FRAGMENT;
	ret->own[BEAM_OWN_FRAGMENT] = i;
	add_token(ret, 0, ret->start, code_read_u64(m, ret->start));
	return 0;
}

/* Code between modules, in [@low, @high). */
static int block_between(const struct beam *s, struct code_memory *m, uint64_t pc, uint64_t low, uint64_t high,
			 struct code_block *ret)
{
	uint32_t behind = 0;

	if (high <= pc) /* where the next module begins was not read */
		return unreadable(m, -ENOENT);
	while (behind < s->fragment_cnt && s->fragments[behind].start <= pc)
		behind++;
	if (behind && s->fragments[behind - 1].start >= low)
		low = s->fragments[behind - 1].start;
	else
		behind = 0;
	if (behind < s->fragment_cnt && s->fragments[behind].start < high && s->fragments[behind].start > pc)
		high = s->fragments[behind].start;
	if (block_of_info(s, m, pc, low, high, ret) == 0)
		return 0;
	memset(ret, 0, sizeof(*ret));
	return behind && !m->is_spent ? block_of_fragment(s, m, pc, behind - 1, high, ret) : unreadable(m, -ENOENT);
}

int beam_block(void *state, struct code_memory *m, uint64_t pc, struct code_block *ret)
{
	struct module before = { 0 };
	struct beam *s = state;
	uint64_t next, low = 0, high = 0;
	int error = s->tables ? 0 : find_tables(s, m);

	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; i < s->range_cnt && !high; i++) {
		if (pc < s->range[i].start || pc >= s->range[i].end)
			continue;
		low = s->range[i].start;
		high = s->range[i].end;
	}
	if (!error && !high)
		error = -ENOENT;
	if (!error)
		error = find_range(s, m, pc, &before, &next);
	if (error)
		return error;
	if (before.start && pc < before.end)
		return block_in_module(s, m, pc, &before, ret);
	return block_between(s, m, pc, before.end > low ? before.end : low, next < high ? next : high, ret);
}

/* --- the process --- */

static int beam_open(void *state, struct code_memory *m, const struct code_facts *facts, uint64_t bias)
{
	uint64_t shared = 0, names = facts->fact[BEAM_FACT_SHARED_NAMES];
	struct beam *s = state;
	int error;

	/* Frames with frame pointers (+JPperf true) are walked by these, and named by the map that such a process writes. */
	if (code_read_u32(m, facts->fact[BEAM_FACT_FRAME_LAYOUT] + bias))
		return -ENOTSUP;
	s->active_code = facts->fact[BEAM_FACT_ACTIVE_CODE] + bias;
	s->data = facts->fact[BEAM_FACT_DATA_START] + bias;
	s->data_end = facts->fact[BEAM_FACT_DATA_END] + bias;
	s->normal_exit = code_read_u64(m, facts->fact[BEAM_FACT_NORMAL_EXIT] + bias);
	if (!s->normal_exit)
		return unreadable(m, -EAGAIN);
	error = find_atoms(s, m, facts->fact[BEAM_FACT_ATOM_TABLE] + bias);
	if (!error && facts->fact[BEAM_FACT_SHARED])
		shared = beam_fragments_find(s, m, code_read_u64(m, facts->fact[BEAM_FACT_SHARED] + bias));
	if (shared)
		beam_fragments_read(s, m, shared, names ? names + bias : 0);
	return error;
}

/* Code is in memory that the emulator reserved for nothing else. */
static int beam_ranges(void *state, struct code_memory *m, uint32_t given, struct code_range ranges[static CODE_RANGES])
{
	struct beam *s = state;

	(void)m;
	memcpy(s->range, ranges, given * sizeof(*ranges));
	s->range_cnt = given;
	return (int)given;
}

const struct code_reader code_beam = {
	.name = "beam",
	.frame_type = "beam",
	.state_bytes = sizeof(struct beam),
	.open = beam_open,
	.ranges = beam_ranges,
	.block = beam_block,
	.rows = beam_rows,
	.names = beam_names,
};
