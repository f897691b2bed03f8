/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sorted array of marks: the functions of the symbol table and, when there is only the dynamic one, those of tables of
 * another kind, the ranges of .eh_frame (whose ends are where uncovered code begins) and what neither covers but
 * is called or has its address taken, in code or in data. A target counts only where a function can begin: aligned, or
 * behind a return, a jump or padding. The search for references looks at every byte; that four of them by chance make such a
 * target happens about once a megabyte of code. More than MAX_SCAN_BYTES of code are not searched, nor for what data points
 * at: there functions begin where it looks so (agent/rows/code/bounds.h). Made once, read only afterwards.
 */
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/code/bounds.h"
#include "agent/rows/code/starts.h"
#include "agent/rows/code/state.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"

enum {
	MAX_SEGMENTS = 8,
	MAX_MARKS = 1 << 20,
	MAX_SCAN_BYTES = 64 << 20,
	MAX_SIZE = 0x3fffffff,
	LONGEST_INSN = 15,
	MAX_HEADERS = 64, /* program headers that are looked at */
	MAX_NAME = 1024,
};

struct segment {
	uint64_t addr, len;
	const uint8_t *code;
};

/* A place where something starts; 8 bytes, as there are many. */
struct mark {
	uint32_t at;		 /* from the first segment's address */
	uint32_t size : 30;	 /* 0: not known */
	uint32_t is_entry : 1;	 /* can be called */
	uint32_t is_certain : 1; /* not a label: nothing inside its size is another function unless also certain */
};

struct code_starts {
	const struct row_image *image;
	struct segment segments[MAX_SEGMENTS];
	uint32_t segment_count;
	bool is_loaded, is_by_look;
	struct mark *marks;
	uint32_t count, room;
};

/* --- the file --- */

/* @len bytes at @off of the file. */
static const uint8_t *file_bytes(const struct row_image *image, uint64_t off, uint64_t len)
{
	return off <= image->len && len <= image->len - off ? image->data + off : NULL;
}

static const struct segment *find_segment(const struct code_starts *s, uint64_t addr)
{
	for (uint32_t i = 0; i < s->segment_count; i++)
		if (addr - s->segments[i].addr < s->segments[i].len)
			return &s->segments[i];
	return NULL;
}

const uint8_t *code_starts_bytes(const struct code_starts *s, uint64_t addr, uint64_t len)
{
	const struct segment *segment = find_segment(s, addr);

	return segment && len <= segment->len - (addr - segment->addr) ? segment->code + (addr - segment->addr) : NULL;
}

int code_starts_new(const struct row_image *image, struct code_starts **ret)
{
	struct code_starts *s = calloc(1, sizeof(*s));
	size_t count;

	if (!s)
		return -ENOMEM;
	s->image = image;
	if (elf_getphdrnum(image->elf, &count))
		count = 0;
	for (size_t i = 0; i < count && i < MAX_HEADERS && s->segment_count < MAX_SEGMENTS; i++) {
		struct segment *segment = &s->segments[s->segment_count];
		GElf_Phdr ph;

		if (!gelf_getphdr(image->elf, (int)i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) || !ph.p_filesz)
			continue;
		segment->code = file_bytes(image, ph.p_offset, ph.p_filesz);
		segment->addr = ph.p_vaddr;
		segment->len = ph.p_filesz;
		if (!segment->code || ph.p_vaddr > UINT64_MAX - ph.p_filesz || ph.p_vaddr < s->segments[0].addr ||
		    ph.p_vaddr + ph.p_filesz - s->segments[0].addr > UINT32_MAX)
			continue;
		s->segment_count++;
	}
	if (!s->segment_count) {
		free(s);
		return -ENODATA;
	}
	*ret = s;
	return 0;
}

void code_starts_free(struct code_starts *s)
{
	if (!s)
		return;
	free(s->marks);
	free(s);
}

void code_starts_forget(struct code_starts *s)
{
	free(s->marks);
	s->marks = NULL;
	s->count = s->room = 0;
	s->is_loaded = s->is_by_look = false;
}

/* --- marks --- */

static int add_mark(struct code_starts *s, uint64_t addr, uint64_t size, bool is_entry, bool is_certain)
{
	if (!find_segment(s, addr) || s->count == MAX_MARKS)
		return 0;
	if (vec_reach(&s->marks, &s->room, s->count))
		return -ENOMEM;
	s->marks[s->count++] = (struct mark){ .at = (uint32_t)(addr - s->segments[0].addr),
					      .size = size < MAX_SIZE ? (uint32_t)size : MAX_SIZE,
					      .is_entry = is_entry,
					      .is_certain = is_certain };
	return 0;
}

/* Orders by address; of equal ones first what is no entry, then the most certain and longest. */
static uint64_t mark_key(const struct mark *m)
{
	return (uint64_t)m->at << 32 | (uint64_t)m->is_entry << 31 | (uint64_t)!m->is_certain << 30 | (MAX_SIZE - m->size);
}

static struct mark mark_of_key(uint64_t key)
{
	return (struct mark){ .at = (uint32_t)(key >> 32),
			      .size = MAX_SIZE - (uint32_t)(key & MAX_SIZE),
			      .is_entry = key >> 31 & 1,
			      .is_certain = !(key >> 30 & 1) };
}

/* Byte by byte, from the lowest: there are 100,000 and more, and comparing them would take most of the time that a file
 * takes. @other has room for as many. */
static void sort_keys(uint64_t *keys, uint64_t *other, uint32_t count)
{
	for (unsigned shift = 0; shift < 64; shift += 8) {
		uint32_t place[256] = { 0 }, next = 0;

		for (uint32_t i = 0; i < count; i++)
			place[keys[i] >> shift & 255]++;
		if (count && place[keys[0] >> shift & 255] == count)
			continue; /* of all the same */
		for (int digit = 0; digit < 256; digit++) {
			uint32_t n = place[digit];

			place[digit] = next;
			next += n;
		}
		for (uint32_t i = 0; i < count; i++)
			other[place[keys[i] >> shift & 255]++] = keys[i];
		memcpy(keys, other, count * sizeof(*keys));
	}
}

static int sort_marks(struct code_starts *s)
{
	AUTO_FREE uint64_t *keys = malloc(((size_t)s->count * 2 + 1) * sizeof(*keys));

	if (!keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->count; i++)
		keys[i] = mark_key(&s->marks[i]);
	sort_keys(keys, keys + s->count, s->count);
	for (uint32_t i = 0; i < s->count; i++)
		s->marks[i] = mark_of_key(keys[i]);
	return 0;
}

/* Sorts, and takes out duplicates and labels inside of what is certain. */
static int tidy(struct code_starts *s)
{
	uint64_t certain_end = 0;
	uint32_t n = 0;

	if (sort_marks(s))
		return -ENOMEM;
	for (uint32_t i = 0; i < s->count; i++) {
		struct mark m = s->marks[i];

		if ((n && s->marks[n - 1].at == m.at) || (!m.is_certain && m.at < certain_end))
			continue;
		if (m.is_certain && (uint64_t)m.at + m.size > certain_end)
			certain_end = (uint64_t)m.at + m.size;
		s->marks[n++] = m;
	}
	s->count = n;
	vec_fit(&s->marks, &s->room, n);
	return 0;
}

/* --- where marks come from --- */

/* Code that the compiler moved out of a function has a symbol of its own, but is not called. */
static bool is_part(const struct row_image *image, const GElf_Shdr *names, uint32_t name)
{
	const char *text = (const char *)file_bytes(image, names->sh_offset, names->sh_size);
	size_t left = text && name < names->sh_size ? names->sh_size - name : 0;

	return left && memmem(text + name, strnlen(text + name, left < MAX_NAME ? left : MAX_NAME), ".cold", 5);
}

static int add_symbols(struct code_starts *s, const GElf_Shdr *table, const GElf_Shdr *names)
{
	const uint8_t *data = file_bytes(s->image, table->sh_offset, table->sh_size);
	int r = 0;

	for (uint64_t at = 0; data && !r && table->sh_size >= sizeof(Elf64_Sym) && at <= table->sh_size - sizeof(Elf64_Sym);
	     at += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;
		int type;

		memcpy(&sym, data + at, sizeof(sym));
		type = ELF64_ST_TYPE(sym.st_info);
		if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= SHN_LORESERVE ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
			continue;
		r = add_mark(s, sym.st_value, sym.st_size, !is_part(s->image, names, sym.st_name), type != STT_NOTYPE);
	}
	return r;
}

/* Adds the marks of the symbol table of @type. 0; 1: there is no such table. */
static int add_symbol_table(struct code_starts *s, uint32_t type)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(s->image->elf, section))) {
		GElf_Shdr table, names;

		if (gelf_getshdr(section, &table) && table.sh_type == type && table.sh_size &&
		    gelf_getshdr(elf_getscn(s->image->elf, table.sh_link), &names))
			return add_symbols(s, &table, &names);
	}
	return 1;
}

static int32_t read_s32(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* The bytes at address @addr of a loaded segment, code or not. */
static const uint8_t *loaded_bytes(const struct row_image *image, uint64_t addr, uint64_t len)
{
	size_t count;

	if (elf_getphdrnum(image->elf, &count))
		return NULL;
	for (size_t i = 0; i < count && i < MAX_HEADERS; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(image->elf, (int)i, &ph) && ph.p_type == PT_LOAD && addr - ph.p_vaddr < ph.p_filesz &&
		    len <= ph.p_filesz - (addr - ph.p_vaddr) && ph.p_offset <= image->len)
			return file_bytes(image, ph.p_offset + (addr - ph.p_vaddr), len);
	}
	return NULL;
}

/* The ranges of .eh_frame by the search table at @addr, in the one form that linkers write; another form is passed over. */
static int add_frame_ranges(struct code_starts *s, uint64_t addr, uint64_t len)
{
	static const uint8_t form[] = { 1, 0x1b, 0x03,
					0x3b }; /* table: count, then pairs of 32-bit offsets from its start */
	const uint8_t *table = loaded_bytes(s->image, addr, len);
	uint32_t count;
	int r = 0;

	if (!table || len < 12 || memcmp(table, form, sizeof(form)))
		return 0;
	count = (uint32_t)read_s32(table + 8);
	for (uint32_t i = 0; i < count && i < MAX_MARKS && 12 + 8 * ((uint64_t)i + 1) <= len && !r; i++) {
		uint64_t start = addr + (uint64_t)read_s32(table + 12 + 8ull * i);
		uint64_t entry = addr + (uint64_t)read_s32(table + 16 + 8ull * i);
		const uint8_t *fde = loaded_bytes(s->image, entry, 16);

		if (fde &&
		    entry + 8 + (uint64_t)read_s32(fde + 8) == start) /* its own idea of its start, in the usual form */
			r = add_mark(s, start, (uint32_t)read_s32(fde + 12), false, true);
	}
	return r;
}

static int add_references(struct code_starts *s, const struct segment *segment)
{
	uint64_t end = segment->len - CODE_REFERENCE_BYTES + 1, target;
	AUTO_FREE uint8_t *seen = calloc(segment->len / 8 + 1, 1); /* a bit a byte: most functions are called many times */
	int r = seen ? 0 : -ENOMEM;

	for (uint64_t at = 0; !r && (at = code_next_reference(segment->code, segment->addr, at, end, &target)) < end; at++) {
		uint64_t off = target - segment->addr;

		if (off >= segment->len || seen[off / 8] >> off % 8 & 1 || !code_may_follow(segment->code, off))
			continue;
		seen[off / 8] |= (uint8_t)(1u << off % 8);
		r = add_mark(s, target, 0, true, false);
	}
	return r;
}

/* An address of code that stands in data, as a pointer to a function does. */
static int add_pointer(struct code_starts *s, uint64_t target)
{
	const struct segment *segment = find_segment(s, target);

	return segment && code_may_follow(segment->code, target - segment->addr) ? add_mark(s, target, 0, true, false) : 0;
}

/* The words of the @len bytes of data at @data that are addresses of code. */
static int add_words(struct code_starts *s, const uint8_t *data, uint64_t len)
{
	int r = 0;

	for (uint64_t at = 0; !r && len - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, data + at, sizeof(word));
		r = add_pointer(s, word);
	}
	return r;
}

/* The addresses that the dynamic linker will put into data, by the @len bytes of its table at @addr. */
static int add_relocations(struct code_starts *s, uint64_t addr, uint64_t len)
{
	const uint8_t *data = loaded_bytes(s->image, addr, len);
	int r = 0;

	for (uint64_t at = 0; data && !r && len - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;

		memcpy(&rela, data + at, sizeof(rela));
		if (ELF64_R_TYPE(rela.r_info) == CPU_RELATIVE)
			r = add_pointer(s, (uint64_t)rela.r_addend);
	}
	return r;
}

/* Reads the dynamic section at @addr: the functions run first and last, and relocations. */
static int add_dynamic(struct code_starts *s, uint64_t addr, uint64_t len)
{
	const uint8_t *data = loaded_bytes(s->image, addr, len);
	uint64_t table = 0, table_len = 0;
	int r = 0;

	for (uint64_t at = 0; data && !r && len - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn dyn;

		memcpy(&dyn, data + at, sizeof(dyn));
		if (dyn.d_tag == DT_INIT || dyn.d_tag == DT_FINI)
			r = add_mark(s, dyn.d_un.d_ptr, 0, true, false);
		else if (dyn.d_tag == DT_RELA)
			table = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_RELASZ)
			table_len = dyn.d_un.d_val;
	}
	return r ? r : add_relocations(s, table, table_len);
}

/* Functions that only data leads to. In a file that is not relocated its words are the addresses. */
static int add_pointers(struct code_starts *s, const GElf_Phdr *ph)
{
	bool is_fixed = s->segments[0].addr >= CODE_LEAST_FIXED_ADDR;
	const uint8_t *data;

	if (ph->p_type == PT_DYNAMIC)
		return add_dynamic(s, ph->p_vaddr, ph->p_filesz);
	if (ph->p_type != PT_LOAD || ph->p_flags & PF_X || !is_fixed || ph->p_filesz > MAX_SCAN_BYTES)
		return 0;
	data = file_bytes(s->image, ph->p_offset, ph->p_filesz);
	return data ? add_words(s, data, ph->p_filesz) : 0;
}

static int add_certain(void *arg, uint64_t addr, uint64_t bytes)
{
	return add_mark(arg, addr, bytes, true, true);
}

static int load_without_symtab(struct code_starts *s)
{
	int r = add_symbol_table(s, SHT_DYNSYM);
	size_t count;

	if (r < 0 || elf_getphdrnum(s->image->elf, &count))
		return r < 0 ? r : 0;
	r = s->image->functions ? s->image->functions(s->image, add_certain, s) : 0;
	for (size_t i = 0; i < count && i < MAX_HEADERS && !r; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(s->image->elf, (int)i, &ph) && ph.p_type == PT_GNU_EH_FRAME)
			r = add_frame_ranges(s, ph.p_vaddr, ph.p_filesz);
	}
	for (uint32_t i = 0; i < s->segment_count; i++)
		s->is_by_look |= s->segments[i].len > MAX_SCAN_BYTES;
	for (uint32_t i = 0; i < s->segment_count && s->is_by_look && !r; i++)
		r = add_mark(s, s->segments[i].addr, 0, true, false);
	if (r || s->is_by_look)
		return r;
	r = tidy(s); /* the calls need the room */
	for (uint32_t i = 0; i < s->segment_count && !r; i++)
		if (s->segments[i].len >= CODE_REFERENCE_BYTES)
			r = add_references(s, &s->segments[i]);
	for (size_t i = 0; i < count && i < MAX_HEADERS && !r; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(s->image->elf, (int)i, &ph))
			r = add_pointers(s, &ph);
	}
	return r;
}

static int load(struct code_starts *s)
{
	int r = add_symbol_table(s, SHT_SYMTAB);

	if (r == 1)
		r = load_without_symtab(s);
	if (!r)
		r = add_mark(s, s->image->entry, 0, true, false);
	if (!r)
		r = tidy(s);
	s->is_loaded = !r;
	return r;
}

/* --- answers --- */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t mark_addr(const struct code_starts *s, uint32_t i)
{
	return s->segments[0].addr + s->marks[i].at;
}

/* The first address from @addr on, below @end, that is not padding. */
static uint64_t skip_padding(const struct segment *segment, uint64_t addr, uint64_t end)
{
	uint64_t bytes = 1;

	for (; bytes && addr < end; addr += bytes)
		bytes = code_padding_bytes(segment->code + (addr - segment->addr), end - addr);
	return addr;
}

bool code_starts_narrow(const struct code_starts *s, uint64_t addr, struct code_function *f)
{
	const struct segment *segment = find_segment(s, f->start);
	uint64_t base = segment ? segment->addr : 0, at = addr > f->start ? addr : f->start, start, end;

	if (!segment || !code_bounds_around(segment->code, f->start - base, at - base, f->end - base, &start, &end))
		return false;
	*f = (struct code_function){ base + start, base + end, segment->code + start, true, true };
	return true;
}

bool code_starts_widen(const struct code_starts *s, struct code_function *f)
{
	const struct segment *segment = find_segment(s, f->start);
	uint64_t off, start, end;

	if (!segment || f->start == segment->addr)
		return false;
	off = f->start - segment->addr - 1;
	if (!code_bounds_around(segment->code, 0, off, off + 1, &start, &end))
		return false;
	f->code = segment->code + start;
	f->start = segment->addr + start;
	f->is_all_its = f->is_by_look = true;
	return true;
}

/* The function at mark @i, or the one behind it that has no mark (the end of a covered neighbour is its start). */
static bool function_of(const struct code_starts *s, uint32_t i, uint64_t addr, uint64_t limit, struct code_function *ret)
{
	const struct mark *m = &s->marks[i];
	const struct segment *segment = find_segment(s, mark_addr(s, i));
	uint64_t start = mark_addr(s, i), end, stop;
	bool is_behind;

	if (!segment)
		return false;
	end = segment->addr + segment->len;
	if (i + 1 < s->count && mark_addr(s, i + 1) < end)
		end = mark_addr(s, i + 1);
	stop = m->size && m->size < end - start ? start + m->size : end;
	is_behind = !m->is_entry || (s->is_by_look && addr >= stop);
	if (is_behind ? stop == end || addr >= end : addr >= stop)
		return false;
	if (is_behind) {
		start = skip_padding(segment, stop, end);
		stop = end;
	}
	if (start >= limit || start >= stop)
		return false;
	*ret = (struct code_function){ start, stop, segment->code + (start - segment->addr),
				       start == mark_addr(s, i) && m->size, false };
	if (s->is_by_look && !ret->is_all_its)
		(void)code_starts_narrow(s, addr, ret);
	return true;
}

/* The index of the first mark behind @addr. */
static uint32_t mark_behind(const struct code_starts *s, uint64_t addr)
{
	return search_first(at, s->count, mark_addr(s, at) > addr);
}

bool code_starts_is_padding(const struct code_starts *s, uint64_t addr, uint64_t end)
{
	const struct segment *segment = find_segment(s, addr);

	return segment && skip_padding(segment, addr, min_u64(end + LONGEST_INSN, segment->addr + segment->len)) >= end;
}

int code_starts_find(struct code_starts *s, uint64_t addr, uint64_t limit, struct code_function *ret)
{
	const struct segment *segment = find_segment(s, addr);
	uint32_t behind;
	int r;

	if (!s->is_loaded && segment &&
	    skip_padding(segment, addr, min_u64(limit + LONGEST_INSN, segment->addr + segment->len)) >= limit)
		return -ENOENT; /* what looks like the gaps between functions does not make a file's symbols worth reading */
	r = s->is_loaded ? 0 : load(s);
	if (r)
		return r;
	behind = mark_behind(s, addr);
	for (uint32_t i = behind ? behind - 1 : 0; i < s->count && mark_addr(s, i) < limit; i++)
		if (function_of(s, i, addr, limit, ret) && ret->end > addr)
			return 0;
	return -ENOENT;
}

/* The part of mark @i: its own range when it is no function, else what stands between its end and the next mark. */
static bool part_of(const struct code_starts *s, uint32_t i, struct code_function *ret)
{
	const struct mark *m = &s->marks[i];
	const struct segment *segment = find_segment(s, mark_addr(s, i));
	uint64_t start = mark_addr(s, i), stop = start + m->size, end;

	if (!segment || !m->size)
		return false;
	end = segment->addr + segment->len;
	if (i + 1 < s->count)
		end = min_u64(end, mark_addr(s, i + 1));
	stop = min_u64(stop, end);
	if (m->is_entry) {
		start = skip_padding(segment, stop, end);
		stop = end;
	}
	*ret = (struct code_function){ start, stop, segment->code + (start - segment->addr), false, false };
	return start < stop;
}

int code_starts_find_part(struct code_starts *s, uint64_t addr, uint64_t limit, struct code_function *ret)
{
	int r = s->is_loaded ? 0 : load(s);
	uint32_t behind = r ? 0 : mark_behind(s, addr);

	for (uint32_t i = behind ? behind - 1 : 0; !r && i < s->count && mark_addr(s, i) < limit; i++)
		if (part_of(s, i, ret) && ret->end > addr && ret->start < limit)
			return 0;
	return r ? r : -ENOENT;
}

const uint8_t *code_starts_segment(const struct code_starts *s, uint32_t i, uint64_t *addr, uint64_t *len)
{
	if (i >= s->segment_count)
		return NULL;
	*addr = s->segments[i].addr;
	*len = s->segments[i].len;
	return s->segments[i].code;
}
