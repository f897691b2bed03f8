/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table is read from front to back, and symbols nobody asks for are passed over at once: only those that may name a
 * wanted address are kept and sorted. Struct code_names learns from the order of adding which of overlapping symbols wins:
 * symbols without a size first, then those with one by rising start, at one address the best last.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"
#include "symbols/elf_image.h"
#include "symbols/sources/symbol_table.h"

enum { MAX_NAME_BYTES = 64 << 10 /* a symbol with a longer name is passed over */ };

struct section {
	uint64_t start, end;
	bool is_code;
};

struct table {
	const uint8_t *symbols; /* Elf64_Sym */
	size_t count;
	const char *strings;
	size_t strings_len;
	bool is_relocatable;	  /* values count from the section */
	struct section *sections; /* owned */
	uint32_t section_count;
};

struct symbol {
	uint64_t start, end;
	uint32_t name; /* offset in the strings */
	uint8_t rank;  /* lower is better */
	bool is_bare;  /* has no size; @end is that of its section until the next symbol is known */
	bool is_indirect;
};

struct symbols {
	struct symbol *all; /* owned */
	size_t count, cap;
};

static void table_fini(struct table *t)
{
	free(t->sections);
}

static void symbols_fini(struct symbols *s)
{
	free(s->all);
}

/* --- the table --- */

static int read_sections(const struct elf_image *im, struct table *t)
{
	uint32_t count = im->section_count < SHN_LORESERVE ? im->section_count : SHN_LORESERVE;
	Elf64_Shdr sh;

	t->sections = calloc(count ? count : 1, sizeof(*t->sections));
	if (!t->sections)
		return -ENOMEM;
	for (uint32_t i = 0; i < count && elf_image_section(im, i, &sh); i++)
		if (sh.sh_flags & SHF_EXECINSTR && sh.sh_size <= UINT64_MAX - sh.sh_addr)
			t->sections[i] = (struct section){ sh.sh_addr, sh.sh_addr + sh.sh_size, true };
	t->section_count = count; /* without a further table, symbols name no others */
	t->is_relocatable = im->ehdr.e_type == ET_REL;
	return 0;
}

static int table_init(struct table *t, const struct elf_image *im, uint32_t type)
{
	Elf64_Shdr sh, strings;
	size_t len;

	for (uint32_t i = 1; elf_image_section(im, i, &sh); i++) {
		if (sh.sh_type != type)
			continue;
		t->symbols = elf_image_bytes(im, &sh, &len);
		t->count = len / sizeof(Elf64_Sym);
		if (!t->symbols || sh.sh_entsize != sizeof(Elf64_Sym) || !elf_image_section(im, sh.sh_link, &strings) ||
		    strings.sh_type != SHT_STRTAB)
			return -EBADMSG;
		t->strings = (const char *)elf_image_bytes(im, &strings, &t->strings_len);
		return t->strings ? read_sections(im, t) : -EBADMSG;
	}
	return -ENODATA;
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
	len = strnlen(name, max < MAX_NAME_BYTES ? max : MAX_NAME_BYTES);
	if (len == 0 || len == max || len == MAX_NAME_BYTES)
		return 0;
	at = memchr(name + 1, '@', len - 1);
	return at ? (size_t)(at - name) : len;
}

/* Reads symbol @i; false when it names no code. */
static bool read_symbol(const struct table *t, size_t i, struct symbol *ret)
{
	const struct section *section;
	uint8_t type, bind;
	Elf64_Sym sym;

	memcpy(&sym, t->symbols + i * sizeof(sym), sizeof(sym));
	type = ELF64_ST_TYPE(sym.st_info);
	bind = ELF64_ST_BIND(sym.st_info);
	if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) || sym.st_shndx >= t->section_count ||
	    !t->sections[sym.st_shndx].is_code || !sym.st_name || sym.st_name >= t->strings_len)
		return false;
	if (type == STT_NOTYPE && (t->strings[sym.st_name] == '$' ||
				   (!sym.st_size && bind == STB_LOCAL && ELF64_ST_VISIBILITY(sym.st_other) == STV_HIDDEN)))
		return false;
	section = &t->sections[sym.st_shndx];
	ret->start = sym.st_value + (t->is_relocatable ? section->start : 0);
	if (ret->start < section->start || ret->start >= section->end)
		return false;
	ret->is_bare = !sym.st_size;
	ret->is_indirect = type == STT_GNU_IFUNC;
	ret->end = sym.st_size && sym.st_size < section->end - ret->start ? ret->start + sym.st_size : section->end;
	ret->name = sym.st_name;
	ret->rank = (uint8_t)((bind == STB_LOCAL ? 4 : bind == STB_WEAK ? 2 : 0) + (type == STT_NOTYPE));
	return true;
}

/* --- which of them --- */

static int keep(struct symbols *s, const struct symbol *new)
{
	if (vec_reach(&s->all, &s->cap, s->count))
		return -ENOMEM;
	s->all[s->count++] = *new;
	return 0;
}

/* Collects the symbols that may name a wanted address: with sizes into @sized, without into @bare. */
static int collect(const struct table *t, const struct code_names *names, struct symbols *sized, struct symbols *bare)
{
	struct symbol symbol;

	for (size_t i = 0; i < t->count; i++) {
		if (!read_symbol(t, i, &symbol) || !code_names_wants(names, symbol.start, symbol.end) ||
		    !name_len(t, symbol.name))
			continue;
		if (keep(symbol.is_bare ? bare : sized, &symbol))
			return -ENOMEM;
	}
	return 0;
}

static int compare_names(const struct table *t, uint32_t a, uint32_t b)
{
	size_t a_len = name_len(t, a), b_len = name_len(t, b);

	return a_len != b_len ? (a_len < b_len ? -1 : 1) : memcmp(t->strings + a, t->strings + b, a_len);
}

/* By start; at one address the best first. */
static int compare_symbols(const void *a, const void *b, void *table)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return compare_names(table, x->name, y->name);
}

/* The last of the sorted @s that starts below @addr; NULL: none does. */
static struct symbol *last_below(const struct symbols *s, uint64_t addr)
{
	size_t i = search_first(at, s->count, s->all[at].start >= addr);

	return i ? &s->all[i - 1] : NULL;
}

/* Leaves the best at each address, sorted, and ends each at the next symbol of the table; one that is not alone ends where
 * it starts. */
static void settle_bare(const struct table *t, struct symbols *bare)
{
	struct symbol symbol, *before;
	size_t left = 0;

	if (!bare->count)
		return;
	qsort_r(bare->all, bare->count, sizeof(*bare->all), compare_symbols, (void *)t);
	for (size_t i = 0; i < bare->count; i++)
		if (!left || bare->all[i].start != bare->all[left - 1].start)
			bare->all[left++] = bare->all[i];
	bare->count = left;
	for (size_t i = 0; i < t->count; i++) {
		if (!read_symbol(t, i, &symbol) || !name_len(t, symbol.name))
			continue;
		before = last_below(bare, symbol.start + !symbol.is_bare);
		if (before && before->end > symbol.start)
			before->end = symbol.start;
	}
}

/* --- adding them --- */

static void add(const struct table *t, const struct symbol *s, struct code_names *names)
{
	uint32_t function = code_names_function(names, t->strings + s->name, name_len(t, s->name), 0);

	code_names_range(names, s->start, s->end, code_names_node(names, CODE_NONE, function, CODE_NONE, 0, 0));
}

static void add_bare(const struct table *t, const struct symbols *bare, struct code_names *names)
{
	for (size_t i = 0; i < bare->count; i++)
		if (bare->all[i].start < bare->all[i].end && code_names_wants(names, bare->all[i].start, bare->all[i].end))
			add(t, &bare->all[i], names);
}

/* At one address only symbols that reach further than all better ones can be seen. */
static void add_sized(const struct table *t, struct symbols *sized, struct code_names *names)
{
	struct symbol *all = sized->all;

	if (sized->count)
		qsort_r(all, sized->count, sizeof(*all), compare_symbols, (void *)t);
	for (size_t first = 0, next; first < sized->count; first = next) {
		size_t seen = first + 1;

		for (next = first + 1; next < sized->count && all[next].start == all[first].start; next++)
			if (all[next].end > all[seen - 1].end)
				all[seen++] = all[next];
		while (seen-- > first)
			add(t, &all[seen], names);
	}
}

int symbol_table_add(const struct symbol_image *image, uint32_t type, struct code_names *names)
{
	AUTO(symbols_fini) struct symbols sized = { 0 };
	AUTO(symbols_fini) struct symbols bare = { 0 };
	AUTO(table_fini) struct table t = { 0 };
	struct elf_image im;
	int error;

	if (elf_image_open(image->data, image->len_bytes, &im))
		return -ENODATA;
	error = table_init(&t, &im, type);
	if (error || !t.count)
		return error ? error : -ENODATA;
	error = collect(&t, names, &sized, &bare);
	if (error)
		return error;
	settle_bare(&t, &bare);
	add_bare(&t, &bare, names);
	add_sized(&t, &sized, names);
	return 0;
}

int symbol_table_each(const struct symbol_image *image, uint32_t type,
		      void (*fn)(void *arg, const struct function_symbol *symbol), void *arg)
{
	AUTO(table_fini) struct table t = { 0 };
	struct symbol symbol;
	struct elf_image im;
	int error;

	if (elf_image_open(image->data, image->len_bytes, &im))
		return -ENODATA;
	error = table_init(&t, &im, type);
	if (error)
		return error;
	for (size_t i = 0; i < t.count; i++) {
		struct function_symbol found;

		if (!read_symbol(&t, i, &symbol))
			continue;
		found = (struct function_symbol){ .name = t.strings + symbol.name,
						  .len = name_len(&t, symbol.name),
						  .addr = symbol.start,
						  .size_bytes = symbol.is_bare ? 0 : symbol.end - symbol.start,
						  .is_indirect = symbol.is_indirect };
		if (found.len)
			fn(arg, &found);
	}
	return 0;
}
