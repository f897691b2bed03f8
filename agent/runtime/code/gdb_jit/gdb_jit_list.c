/* SPDX-License-Identifier: Apache-2.0 */
/* The list of registered files: doubly linked, the newest first. The process may change it at any time, also while it is
 * read. */
#include <errno.h>
#include <string.h>

#include "agent/runtime/code/gdb_jit/gdb_jit.h"
#include "base/cleanup.h"

static const uint32_t ELF_MAGIC = ELFMAG0 | ELFMAG1 << 8 | ELFMAG2 << 16 | ELFMAG3 << 24;

/* struct jit_descriptor */
struct descriptor {
	uint32_t version, action;
	uint64_t relevant, first;
};

int gdb_jit_first(struct code_memory *m, uint64_t descriptor, uint64_t *ret)
{
	struct descriptor d;
	int error = code_read(m, descriptor, &d, sizeof(d));

	*ret = error ? 0 : d.first;
	return error ? error : d.version == 1 ? 0 : -ENOTSUP;
}

int gdb_jit_read_entry(struct code_memory *m, uint64_t addr, struct gdb_jit_entry *ret)
{
	return code_read(m, addr, ret, sizeof(*ret));
}

/* --- where the variable is, if no symbol says it --- */

/* Is @d such a variable, with something registered? */
static bool is_descriptor(struct code_memory *m, const struct descriptor *d)
{
	enum { MOST_ACTION = 2 }; /* JIT_UNREGISTER_FN */
	struct gdb_jit_entry e;

	return d->version == 1 && d->action <= MOST_ACTION && d->first && d->first % sizeof(uint64_t) == 0 &&
	       !gdb_jit_read_entry(m, d->first, &e) && !e.prev && e.image && e.bytes >= sizeof(Elf64_Ehdr) &&
	       e.bytes <= GDB_JIT_MAX_IMAGE_BYTES && code_read_u32(m, e.image) == ELF_MAGIC;
}

int gdb_jit_look(struct code_memory *m, uint64_t addr, uint64_t bytes, uint64_t *descriptor_ret)
{
	uint8_t piece[4096 + sizeof(struct descriptor)]; /* one that stands across two pieces is in the first of them */
	uint64_t from = (addr + 7) & ~7ull, end = addr + bytes;

	for (; from < end && end - from >= sizeof(struct descriptor); from += 4096) {
		size_t len = end - from < sizeof(piece) ? end - from : sizeof(piece);
		int error = code_read(m, from, piece, len);

		if (error)
			return error;
		for (size_t at = 0; at < 4096 && at + sizeof(struct descriptor) <= len; at += sizeof(uint64_t)) {
			struct descriptor d;

			memcpy(&d, piece + at, sizeof(d));
			if (is_descriptor(m, &d)) {
				*descriptor_ret = from + at;
				return 0;
			}
		}
	}
	return m->is_spent ? -EDQUOT : -EAGAIN;
}

/* --- what is remembered --- */

/* Is @c code of @e, and its header as it was? Another file may be where one of the same length was. */
static bool is_of(const struct gdb_jit_code *c, struct code_memory *m, uint64_t addr, const struct gdb_jit_entry *e)
{
	return c->entry == addr && c->image == e->image && c->bytes == e->bytes &&
	       code_read_u64(m, c->header + offsetof(Elf64_Shdr, sh_addr)) == c->start &&
	       code_read_u64(m, c->header + offsetof(Elf64_Shdr, sh_size)) == c->end - c->start;
}

static void remember(struct gdb_jit *s, const struct gdb_jit_code *code)
{
	if (s->known_cnt < GDB_JIT_KNOWN)
		s->known[s->known_cnt++] = *code;
	else
		s->known[s->turn++ % GDB_JIT_KNOWN] = *code;
}

static void forget(struct gdb_jit *s, uint64_t entry)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->known_cnt; i++)
		if (s->known[i].entry != entry)
			s->known[n++] = s->known[i];
	s->known_cnt = n;
}

/* Is @code's entry in the list, by what its neighbours say? */
static bool is_linked(const struct gdb_jit *s, struct code_memory *m, const struct gdb_jit_code *code)
{
	struct gdb_jit_entry e, other;
	uint64_t first;

	if (gdb_jit_read_entry(m, code->entry, &e) || !is_of(code, m, code->entry, &e))
		return false;
	if (e.prev)
		return !gdb_jit_read_entry(m, e.prev, &other) && other.next == code->entry;
	return !gdb_jit_first(m, s->descriptor, &first) && first == code->entry;
}

/* The code at @pc that was met before and is still there; NULL: none is. */
static const struct gdb_jit_code *find_known(struct gdb_jit *s, struct code_memory *m, uint64_t pc)
{
	for (uint32_t i = 0; i < s->known_cnt; i++) {
		const struct gdb_jit_code *c = &s->known[i];

		if (pc < c->start || pc >= c->end)
			continue;
		if (is_linked(s, m, c))
			return c;
		forget(s, c->entry);
		return NULL;
	}
	return NULL;
}

/* --- the list itself --- */

struct visit {
	struct gdb_jit *state;
	struct code_memory *memory;
	bool (*fn)(void *arg, const struct gdb_jit_code *code);
	void *arg;
};

/* Visits what is known of @e's code. *@is_met: anything is. False: no more is wanted. */
static bool visit_known(const struct visit *v, uint64_t addr, const struct gdb_jit_entry *e, bool *is_met)
{
	*is_met = false;
	for (uint32_t i = 0; i < v->state->known_cnt; i++) {
		const struct gdb_jit_code *c = &v->state->known[i];

		if (!is_of(c, v->memory, addr, e))
			continue;
		*is_met = true;
		if (!v->fn(v->arg, c))
			return false;
	}
	return true;
}

/* Reads where @e has code, and visits that. What is no ELF file has none: the interface does not say that it must be one.
 * False: no more is wanted. */
static bool visit_new(const struct visit *v, uint64_t addr, const struct gdb_jit_entry *e)
{
	AUTO(gdb_jit_sections_free) struct gdb_jit_sections sections = { 0 };
	struct gdb_jit_code code = { .entry = addr, .image = e->image, .bytes = (uint32_t)e->bytes };
	bool goes_on = true;

	if (gdb_jit_sections_read(v->memory, e->image, e->bytes, &sections))
		return true;
	forget(v->state, addr);
	for (uint32_t i = 0; i < sections.count && goes_on; i++) {
		if (!gdb_jit_is_code(&sections.all[i]))
			continue;
		code.header = e->image + sections.head.e_shoff + i * sizeof(Elf64_Shdr);
		code.start = sections.all[i].sh_addr;
		code.end = code.start + sections.all[i].sh_size;
		remember(v->state, &code);
		goes_on = v->fn(v->arg, &code);
	}
	return goes_on;
}

int gdb_jit_each(struct gdb_jit *s, struct code_memory *m, bool (*fn)(void *arg, const struct gdb_jit_code *code), void *arg)
{
	const struct visit v = { s, m, fn, arg };
	struct gdb_jit_entry e;
	bool is_met;
	uint64_t at;
	int error = gdb_jit_first(m, s->descriptor, &at);

	for (uint32_t i = 0; !error && at && i < GDB_JIT_MAX_ENTRIES; i++, at = e.next) {
		error = gdb_jit_read_entry(m, at, &e);
		if (error || e.bytes > GDB_JIT_MAX_IMAGE_BYTES)
			continue;
		if (!visit_known(&v, at, &e, &is_met) || (!is_met && !visit_new(&v, at, &e)))
			return 0;
	}
	return error ? error : m->is_spent ? -EDQUOT : 0;
}

/* --- finding --- */

struct search {
	uint64_t pc;
	bool is_found;
	struct gdb_jit_code *ret; /* until it is found, the gap */
};

static bool look(void *arg, const struct gdb_jit_code *code)
{
	struct search *s = arg;

	if (s->pc >= code->start && s->pc < code->end) {
		*s->ret = *code;
		s->is_found = true;
		return false;
	}
	if (code->end <= s->pc && code->end > s->ret->start)
		s->ret->start = code->end;
	if (code->start > s->pc && code->start < s->ret->end)
		s->ret->end = code->start;
	return true;
}

int gdb_jit_find(struct gdb_jit *s, struct code_memory *m, uint64_t pc, struct gdb_jit_code *ret)
{
	const struct gdb_jit_code *known = find_known(s, m, pc);
	struct search search = { .pc = pc, .ret = ret };
	int error;

	*ret = known ? *known : (struct gdb_jit_code){ .end = UINT64_MAX };
	if (known)
		return 0;
	error = gdb_jit_each(s, m, look, &search);
	return search.is_found ? 0 : error ? error : -ENOENT;
}
