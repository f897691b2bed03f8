/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names out of an ELF file's symbol tables. The questions are sorted; then each table is read once, from front to back, and
 * each symbol looks for the questions it may answer. So nothing is allocated for a symbol, whatever the table's size, and
 * nothing of it stays. libelf maps the file and checks that sections lie inside it; every index into them is checked here.
 * Text is appended to the caller's buffer. One thread a call.
 */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/gopclntab.h"
#include "symbols/symbols.h"

enum { MAX_NAME_BYTES = 64 << 10 /* a symbol with a longer name is passed over */ };

struct candidate {
	uint64_t start;
	uint64_t size;
	uint32_t name; /* offset in the string table, 0: no candidate */
	uint16_t section;
	uint8_t rank; /* lower is better */
};

/* One question. */
struct slot {
	uint64_t addr;
	size_t query;
	struct candidate best;	/* whose size covers addr */
	uint64_t floor;		/* the highest start of any symbol at or below addr ... */
	struct candidate empty; /* ... and the symbol that starts there, if all that do have size 0 */
	bool is_sized;		/* one of them has a size */
};

struct section {
	uint64_t addr;
	uint64_t size;
	bool is_code;
};

struct file {
	Elf *elf;
	bool is_relocatable;
	struct section *sections; /* owned */
	size_t section_count;
};

struct table {
	const uint8_t *symbols; /* of libelf */
	size_t count;
	const char *strings;
	size_t strings_len;
};

/* --- the file --- */

static void file_fini(struct file *f)
{
	free(f->sections);
	if (f->elf)
		elf_end(f->elf);
}

static int file_init(struct file *f, int fd)
{
	GElf_Ehdr ehdr;
	GElf_Shdr shdr;
	Elf_Scn *scn = NULL;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOTSUP;
	f->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &ehdr) ||
	    ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    elf_getshdrnum(f->elf, &f->section_count))
		return -ENOEXEC;
	f->is_relocatable = ehdr.e_type == ET_REL;
	if (f->section_count > SHN_LORESERVE) /* symbols name only these without a further table */
		f->section_count = SHN_LORESERVE;
	if (f->section_count == 0)
		return 0;
	f->sections = calloc(f->section_count, sizeof(*f->sections));
	if (!f->sections)
		return -ENOMEM;
	while ((scn = elf_nextscn(f->elf, scn))) {
		size_t i = elf_ndxscn(scn);

		if (i < f->section_count && gelf_getshdr(scn, &shdr))
			f->sections[i] = (struct section){ shdr.sh_addr, shdr.sh_size, shdr.sh_flags & SHF_EXECINSTR };
	}
	return 0;
}

/* The first table of @type (SHT_SYMTAB, SHT_DYNSYM) with its strings; false when there is none that is sound. */
static bool find_table(const struct file *f, uint32_t type, struct table *ret)
{
	GElf_Shdr shdr, strings_shdr;
	Elf_Scn *scn = NULL, *strings_scn;
	Elf_Data *symbols, *strings;

	while ((scn = elf_nextscn(f->elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != type)
			continue;
		strings_scn = elf_getscn(f->elf, shdr.sh_link);
		if (!strings_scn || !gelf_getshdr(strings_scn, &strings_shdr) || strings_shdr.sh_type != SHT_STRTAB)
			continue;
		symbols = elf_rawdata(scn, NULL);
		strings = elf_rawdata(strings_scn, NULL);
		if (!symbols || !symbols->d_buf || !strings || !strings->d_buf)
			continue;
		*ret = (struct table){ symbols->d_buf, symbols->d_size / sizeof(Elf64_Sym), strings->d_buf,
				       strings->d_size };
		return true;
	}
	return false;
}

/* The length of the name at @offset without a version (foo@@GLIBC_2.2.5); 0 when it is empty, unterminated or too long. */
static size_t name_len(const struct table *t, uint32_t offset)
{
	const char *name, *at;
	size_t max, len;

	if (offset >= t->strings_len)
		return 0;
	name = t->strings + offset;
	max = t->strings_len - offset;
	len = strnlen(name, max);
	if (len == 0 || len == max || len > MAX_NAME_BYTES)
		return 0;
	at = memchr(name + 1, '@', len - 1);
	return at ? (size_t)(at - name) : len;
}

/* --- matching --- */

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The first slot at or above @addr. */
static size_t lower_bound(const struct slot *slots, size_t count, uint64_t addr)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (slots[middle].addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Takes @new into *@best when it is the better answer: the nearer start, then the order that symbols.h tells. */
static void consider(const struct table *t, struct candidate *best, const struct candidate *new)
{
	bool is_better = !best->name;

	if (best->name) {
		if (new->start != best->start)
			is_better = new->start > best->start;
		else if (new->rank != best->rank)
			is_better = new->rank < best->rank;
		else if (new->size != best->size)
			is_better = new->size > best->size;
		else
			is_better = name_len(t, new->name) < name_len(t, best->name);
	}
	if (is_better && name_len(t, new->name))
		*best = *new;
}

/* Reads symbol @i; false when it names no code. */
static bool read_symbol(const struct file *f, const struct table *t, size_t i, struct candidate *ret)
{
	Elf64_Sym sym;
	uint8_t type, bind;

	memcpy(&sym, t->symbols + i * sizeof(sym), sizeof(sym));
	type = ELF64_ST_TYPE(sym.st_info);
	bind = ELF64_ST_BIND(sym.st_info);
	if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) || sym.st_shndx >= f->section_count ||
	    !f->sections[sym.st_shndx].is_code || !sym.st_name)
		return false;
	/* $x and the like mark code and data on some machines */
	if (type == STT_NOTYPE && sym.st_name < t->strings_len && t->strings[sym.st_name] == '$')
		return false;
	ret->start = sym.st_value + (f->is_relocatable ? f->sections[sym.st_shndx].addr : 0);
	ret->size = sym.st_size;
	ret->name = sym.st_name;
	ret->section = sym.st_shndx;
	ret->rank = (uint8_t)((bind == STB_LOCAL ? 4 : bind == STB_WEAK ? 2 : 0) + (type == STT_NOTYPE));
	return true;
}

static void match_table(const struct file *f, const struct table *t, struct slot *slots, size_t count)
{
	for (size_t i = 0; i < t->count; i++) {
		struct candidate c;
		size_t first, at;

		if (!read_symbol(f, t, i, &c) || c.start > slots[count - 1].addr)
			continue;
		first = lower_bound(slots, count, c.start);
		for (at = first; at < count && slots[at].addr - c.start < c.size; at++)
			consider(t, &slots[at].best, &c);
		if (c.start > slots[first].floor) {
			slots[first].floor = c.start;
			slots[first].empty.name = 0;
			slots[first].is_sized = false;
		}
		if (c.start != slots[first].floor)
			continue;
		slots[first].is_sized |= c.size > 0;
		if (slots[first].is_sized)
			slots[first].empty.name = 0;
		else
			consider(t, &slots[first].empty, &c);
	}
	/* A symbol left its mark at the first question above it only; the later ones learn of it here. */
	for (size_t i = 0; i < count; i++) {
		struct slot *s = &slots[i];
		const struct section *section;

		if (i && s->floor < s[-1].floor) {
			s->floor = s[-1].floor;
			s->empty = s[-1].empty;
		}
		section = &f->sections[s->empty.section];
		if (!s->best.name && s->empty.name && s->addr - section->addr < section->size)
			s->best = s->empty;
	}
}

/* --- answers --- */

static int answer(const struct table *t, const struct slot *s, struct symbol_query *q, struct buf *names)
{
	const char *raw = t->strings + s->best.name;
	size_t raw_len = name_len(t, s->best.name), start = names->len, len;

	symbols_demangle(raw, raw_len, names);
	len = names->len - start;
	if (!names->failed && (len != raw_len || memcmp(names->data + start, raw, len) != 0))
		buf_append(names, raw, raw_len);
	if (names->failed || names->len > UINT32_MAX)
		return -ENOMEM;
	q->sym_addr = s->best.start;
	q->name_off = (uint32_t)start;
	q->name_len = (uint32_t)len;
	q->raw_off = (uint32_t)(start + len);
	q->raw_len = (uint32_t)(names->len - start - len);
	return 0;
}

/* Answers what @t can; the slots without an answer move to the front, *@count becomes their number. */
static int resolve_table(const struct file *f, const struct table *t, struct slot *slots, size_t *count,
			 struct symbol_query *queries, struct buf *names)
{
	const struct symbol_query *last = NULL; /* the one answered before, from symbol last_name */
	uint32_t last_name = 0;
	size_t left = 0;

	match_table(f, t, slots, *count);
	for (size_t i = 0; i < *count; i++) {
		const struct slot *s = &slots[i];
		struct symbol_query *q = &queries[s->query];

		if (!s->best.name) {
			slots[left++] = (struct slot){ .addr = s->addr, .query = s->query };
			continue;
		}
		if (last && last->sym_addr == s->best.start && last_name == s->best.name) {
			uint64_t addr = q->addr;

			*q = *last;
			q->addr = addr;
			continue;
		}
		if (answer(t, s, q, names))
			return -ENOMEM;
		last = q;
		last_name = s->best.name;
	}
	*count = left;
	return 0;
}

/* The same out of the table that Go's runtime reads, which stripping leaves. */
static int resolve_go(const struct file *f, struct slot *slots, size_t *count, struct symbol_query *queries,
		      struct buf *names)
{
	struct gopclntab_function fn = { 0 };
	struct gopclntab table;
	size_t len = 0, left = 0, name_off = 0;
	const char *image = elf_rawfile(f->elf, &len);

	if (!image || gopclntab_open(image, len, &table))
		return 0;
	for (size_t i = 0; i < *count; i++) {
		const struct slot *s = &slots[i];
		uint32_t index;

		if (s->addr < fn.entry || s->addr >= fn.end) {
			if (gopclntab_find(&table, s->addr, &index) || gopclntab_function(&table, index, &fn) ||
			    !fn.name_len) {
				fn = (struct gopclntab_function){ 0 };
				slots[left++] = *s;
				continue;
			}
			name_off = names->len;
			buf_append(names, fn.name, fn.name_len);
			if (names->failed || names->len > UINT32_MAX)
				return -ENOMEM;
		}
		queries[s->query].sym_addr = fn.entry;
		queries[s->query].name_off = (uint32_t)name_off;
		queries[s->query].name_len = (uint32_t)fn.name_len;
	}
	*count = left;
	return 0;
}

static int resolve_symbols(const struct file *f, uint32_t type, struct slot *slots, size_t *count,
			   struct symbol_query *queries, struct buf *names)
{
	struct table t;

	return *count && find_table(f, type, &t) ? resolve_table(f, &t, slots, count, queries, names) : 0;
}

int symbols_resolve_elf(int fd, struct symbol_query *queries, size_t count, struct buf *names)
{
	AUTO(file_fini) struct file f = { 0 };
	AUTO_FREE struct slot *slots = NULL;
	int r;

	for (size_t i = 0; i < count; i++)
		queries[i] = (struct symbol_query){ .addr = queries[i].addr };
	r = file_init(&f, fd);
	if (r || count == 0)
		return r;
	slots = calloc(count, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		slots[i].addr = queries[i].addr;
		slots[i].query = i;
	}
	qsort(slots, count, sizeof(*slots), compare_slots);
	r = resolve_symbols(&f, SHT_SYMTAB, slots, &count, queries, names);
	if (r == 0 && count)
		r = resolve_go(&f, slots, &count, queries, names);
	if (r == 0)
		r = resolve_symbols(&f, SHT_DYNSYM, slots, &count, queries, names);
	return r;
}
