/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Go's function table. Most of the work is to find it: by its section's name, or, where sections were stripped or
 * merged, by its first bytes in what the file loads. The start of the code, from which its offsets count, is in the header
 * (up to Go 1.25), else in the runtime's module data, which points at the table and repeats it; in position-independent
 * files either may be zero until a relocation fills it. A start counts only if the table and the file agree with it. Nothing
 * is copied or kept: offsets are 64-bit sums of 32-bit values, each checked against the end of its segment at its use.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "symbols/sources/gopclntab.h"

enum {
	HEADER_BYTES = 8 + 8 * 8,
	FUNCTION_BYTES = 40, /* without the line of its start */
	NO_FILE = -1,
	MAX_CANDIDATES = 6, /* places looked at that could be the table, or its module data */
	MAX_NAME_BYTES = 64 << 10,
	/* words of the module data, the same in all versions */
	MODULE_FIRST = 20,
	MODULE_END,
	MODULE_TEXT,
	MODULE_FUNCTION_DATA_1_18 = 38,
	MODULE_FUNCTION_DATA = 40, /* since 1.20 */
	MODULE_WORDS,
	HEADER_TEXT = 3, /* word of the table's header */
	/* numbers that the runtime and the compiler agree on (internal/abi, symtab.go) */
	INLINED_VALUES = 2, /* PCDATA_InlTreeIndex */
	INLINED_CALLS = 3,  /* FUNCDATA_InlTree */
	CALL_BYTES = 16,
	CALL_BYTES_1_18 = 20,
};

static const uint32_t NO_OFFSET = UINT32_MAX;
static const uint32_t magics[] = { 0xfffffff0 /* 1.18 */, 0xfffffff1 /* 1.20 */ };

/* --- the file --- */

struct image {
	const uint8_t *data;
	size_t len;
	Elf64_Ehdr ehdr;
	const uint8_t *relocations; /* Elf64_Rela */
	size_t relocation_count;
};

/* @len bytes at file offset @off, or NULL. */
static const uint8_t *file_bytes(const struct image *im, uint64_t off, uint64_t len)
{
	return off <= im->len && len <= im->len - off ? im->data + off : NULL;
}

/* Segment @i with its size cut to what the file holds; false for one that holds nothing. */
static bool read_segment(const struct image *im, size_t i, Elf64_Phdr *ph)
{
	const uint8_t *p = file_bytes(im, im->ehdr.e_phoff + i * sizeof(*ph), sizeof(*ph));

	if (!p)
		return false;
	memcpy(ph, p, sizeof(*ph));
	if (ph->p_offset >= im->len)
		return false;
	if (ph->p_filesz > im->len - ph->p_offset)
		ph->p_filesz = im->len - ph->p_offset;
	return ph->p_filesz > 0 && ph->p_vaddr <= UINT64_MAX - ph->p_filesz;
}

/* The loaded segment around @addr that holds at least @len bytes from there on. */
static bool find_segment(const struct image *im, uint64_t addr, uint64_t len, Elf64_Phdr *ph)
{
	for (size_t i = 0; i < im->ehdr.e_phnum; i++)
		if (read_segment(im, i, ph) && ph->p_type == PT_LOAD && addr - ph->p_vaddr < ph->p_filesz &&
		    len <= ph->p_filesz - (addr - ph->p_vaddr))
			return true;
	return false;
}

static const uint8_t *loaded_bytes(const struct image *im, uint64_t addr, uint64_t len)
{
	Elf64_Phdr ph;

	return find_segment(im, addr, len, &ph) ? im->data + ph.p_offset + (addr - ph.p_vaddr) : NULL;
}

static bool read_section(const struct image *im, size_t i, Elf64_Shdr *sh)
{
	const uint8_t *p = file_bytes(im, im->ehdr.e_shoff + i * sizeof(*sh), sizeof(*sh));

	if (p)
		memcpy(sh, p, sizeof(*sh));
	return p;
}

/* The section of one of @names, in their order. */
static bool find_section(const struct image *im, const char *const *names, size_t name_count, Elf64_Shdr *ret)
{
	Elf64_Shdr strings;

	if (!im->ehdr.e_shoff || !read_section(im, im->ehdr.e_shstrndx, &strings))
		return false;
	for (size_t n = 0; n < name_count; n++) {
		size_t len = strlen(names[n]) + 1;

		for (size_t i = 0; i < im->ehdr.e_shnum && read_section(im, i, ret); i++) {
			const uint8_t *name = ret->sh_name < strings.sh_size && len <= strings.sh_size - ret->sh_name
						      ? file_bytes(im, strings.sh_offset + ret->sh_name, len)
						      : NULL;

			if (name && memcmp(name, names[n], len) == 0 && ret->sh_type == SHT_PROGBITS)
				return true;
		}
	}
	return false;
}

/* The linker's note "Go", which stays in stripped files. */
static bool has_go_note(const struct image *im)
{
	Elf64_Phdr ph;

	for (size_t i = 0; i < im->ehdr.e_phnum; i++) {
		if (!read_segment(im, i, &ph) || ph.p_type != PT_NOTE)
			continue;
		for (uint64_t off = 0; off + 16 <= ph.p_filesz;) {
			const uint8_t *note = im->data + ph.p_offset + off;
			uint64_t name = bytes_u32(note), desc = bytes_u32(note + 4);

			if (name == 4 && memcmp(note + 12, "Go\0", 4) == 0)
				return true;
			off += 12 + ((name + 3) & ~3ull) + ((desc + 3) & ~3ull);
		}
	}
	return false;
}

/* Finds the dynamic linker's table of places to add the load address to. */
static void find_relocations(struct image *im)
{
	uint64_t addr = 0, bytes = 0;
	Elf64_Phdr ph;

	for (size_t i = 0; i < im->ehdr.e_phnum; i++) {
		if (!read_segment(im, i, &ph) || ph.p_type != PT_DYNAMIC)
			continue;
		for (uint64_t off = 0; off + sizeof(Elf64_Dyn) <= ph.p_filesz; off += sizeof(Elf64_Dyn)) {
			uint64_t tag = bytes_u64(im->data + ph.p_offset + off);
			uint64_t value = bytes_u64(im->data + ph.p_offset + off + 8);

			if (tag == DT_NULL)
				break;
			if (tag == DT_RELA)
				addr = value;
			else if (tag == DT_RELASZ)
				bytes = value;
		}
	}
	if (bytes >= sizeof(Elf64_Rela))
		im->relocations = loaded_bytes(im, addr, bytes);
	if (im->relocations)
		im->relocation_count = bytes / sizeof(Elf64_Rela);
}

/* The address that stands at @addr once the program runs, less the load address. */
static uint64_t pointer_at(const struct image *im, uint64_t addr)
{
	const uint8_t *p = loaded_bytes(im, addr, 8);
	uint64_t value = p ? bytes_u64(p) : 0;

	for (size_t i = 0; !value && i < im->relocation_count; i++) {
		const uint8_t *r = im->relocations + i * sizeof(Elf64_Rela);

		if (bytes_u64(r) == addr && bytes_u64(r + 8) == R_X86_64_RELATIVE)
			value = bytes_u64(r + 16);
	}
	return value;
}

/* --- where the code starts --- */

static uint64_t code_offset(const struct gopclntab *t, uint32_t index)
{
	return bytes_u32(t->data + t->functions + 8ull * index);
}

/* @text is right if all functions then lie in one executable segment. */
static bool accept_text(const struct image *im, struct gopclntab *t, uint64_t text)
{
	uint64_t first = code_offset(t, 0), last = code_offset(t, t->function_count);
	Elf64_Phdr ph;

	if (!text || last <= first || text > UINT64_MAX - last || !find_segment(im, text + first, last - first, &ph) ||
	    !(ph.p_flags & PF_X))
		return false;
	t->text = text;
	t->code = im->data + ph.p_offset;
	t->code_len = ph.p_filesz;
	t->code_addr = ph.p_vaddr;
	return true;
}

/* Is the module data of this table at @addr? */
static bool accept_module(const struct image *im, struct gopclntab *t, uint64_t addr)
{
	uint64_t text = pointer_at(im, addr + 8 * MODULE_TEXT);

	if (addr > UINT64_MAX - 8 * MODULE_WORDS || pointer_at(im, addr + 8 * MODULE_FIRST) != text + code_offset(t, 0))
		return false;
	/* The table's end of the last function may lie behind the end of its code. */
	return pointer_at(im, addr + 8 * MODULE_END) <= text + code_offset(t, t->function_count) && accept_text(im, t, text);
}

/* Looks for words of @data, loaded at @addr, that point at the table. */
static bool search_module(const struct image *im, struct gopclntab *t, uint64_t table, const uint8_t *data, uint64_t len,
			  uint64_t addr, unsigned *left, uint64_t *ret)
{
	for (uint64_t off = -addr & 7; off + 8 <= len && *left; off += 8) {
		if (bytes_u64(data + off) != table || !(*left)--)
			continue;
		*ret = addr + off;
		if (accept_module(im, t, *ret))
			return true;
	}
	return false;
}

/* Finds the module data of the table at @table. */
static bool find_module(const struct image *im, struct gopclntab *t, uint64_t table, uint64_t *ret)
{
	static const char *const names[] = { ".go.module" };
	uint64_t relative = im->ehdr.e_machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
	unsigned left = MAX_CANDIDATES;
	Elf64_Shdr sh;
	Elf64_Phdr ph;

	if (find_section(im, names, 1, &sh) && accept_module(im, t, sh.sh_addr)) {
		*ret = sh.sh_addr;
		return true;
	}
	for (size_t i = 0; i < im->relocation_count && left; i++) {
		const uint8_t *r = im->relocations + i * sizeof(Elf64_Rela);

		if (bytes_u64(r + 16) == table && bytes_u64(r + 8) == relative && left--) {
			*ret = bytes_u64(r);
			if (accept_module(im, t, *ret))
				return true;
		}
	}
	for (size_t i = 0; i < im->ehdr.e_phnum; i++)
		if (read_segment(im, i, &ph) && ph.p_type == PT_LOAD && ph.p_flags & PF_W &&
		    search_module(im, t, table, im->data + ph.p_offset, ph.p_filesz, ph.p_vaddr, &left, ret))
			return true;
	return false;
}

static bool find_text(const struct image *im, struct gopclntab *t)
{
	uint64_t module;

	return accept_text(im, t, pointer_at(im, t->addr + 8 * HEADER_TEXT)) || find_module(im, t, t->addr, &module);
}

/* --- the table --- */

/* Bytes that instructions are a multiple of: the unit of the table's code lengths. */
static uint8_t quantum_of(const struct image *im)
{
	return im->ehdr.e_machine == EM_AARCH64 ? 4 : 1;
}

/* Reads the header at @data, of which @len bytes are there. */
static bool read_header(struct gopclntab *t, const uint8_t *data, size_t len, uint8_t quantum)
{
	uint64_t count;
	uint32_t magic;

	if (len < HEADER_BYTES)
		return false;
	magic = bytes_u32(data);
	if ((magic != magics[0] && magic != magics[1]) || data[4] || data[5] || data[6] != quantum || data[7] != 8)
		return false;
	count = bytes_u64(data + 8);
	*t = (struct gopclntab){
		.data = data,
		.len = len,
		.names = bytes_u64(data + 32),
		.units = bytes_u64(data + 40),
		.files = bytes_u64(data + 48),
		.values = bytes_u64(data + 56),
		.functions = bytes_u64(data + 64),
		.function_count = (uint32_t)count,
		.quantum = quantum,
		.has_start_line = magic == magics[1],
	};
	return count > 0 && count <= len / 8 && count <= INT32_MAX && t->names <= len && t->units <= len &&
	       t->files <= len && t->values <= len && t->functions <= len && 8 * count + 4 <= len - t->functions;
}

static bool try_table(const struct image *im, const Elf64_Phdr *ph, uint64_t off, struct gopclntab *t)
{
	if (!read_header(t, im->data + ph->p_offset + off, ph->p_filesz - off, quantum_of(im)))
		return false;
	t->image = im->data;
	t->image_len = im->len;
	t->addr = ph->p_vaddr + off;
	return find_text(im, t);
}

/* The table by its first bytes, which are at a multiple of eight. */
static bool search_table(const struct image *im, struct gopclntab *t)
{
	uint64_t first = 0x08000000fffffff1 | (uint64_t)quantum_of(im) << 48;
	unsigned left = MAX_CANDIDATES;
	Elf64_Phdr ph;

	for (size_t i = 0; i < im->ehdr.e_phnum; i++) {
		if (!read_segment(im, i, &ph) || ph.p_type != PT_LOAD || ph.p_flags & PF_X)
			continue;
		for (uint64_t off = -ph.p_vaddr & 7; off + HEADER_BYTES <= ph.p_filesz && left; off += 8)
			if ((bytes_u64(im->data + ph.p_offset + off) | 1) == first && left--)
				if (try_table(im, &ph, off, t))
					return true;
	}
	return false;
}

static bool open_image(const void *data, size_t len_bytes, struct image *ret)
{
	*ret = (struct image){ .data = data, .len = len_bytes };
	if (len_bytes < sizeof(ret->ehdr))
		return false;
	memcpy(&ret->ehdr, data, sizeof(ret->ehdr));
	return memcmp(ret->ehdr.e_ident, ELFMAG, SELFMAG) == 0 && ret->ehdr.e_ident[EI_CLASS] == ELFCLASS64 &&
	       (ret->ehdr.e_machine == EM_X86_64 || ret->ehdr.e_machine == EM_AARCH64) &&
	       ret->ehdr.e_phentsize == sizeof(Elf64_Phdr) && ret->ehdr.e_phoff <= len_bytes &&
	       ret->ehdr.e_shoff <= len_bytes;
}

int gopclntab_open(const void *image, size_t len_bytes, struct gopclntab *ret)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	struct image im;
	Elf64_Shdr sh;
	Elf64_Phdr ph;

	if (!open_image(image, len_bytes, &im))
		return -ENODATA;
	if (find_section(&im, names, ARRAY_LEN(names), &sh) && find_segment(&im, sh.sh_addr, HEADER_BYTES, &ph)) {
		find_relocations(&im);
		return try_table(&im, &ph, sh.sh_addr - ph.p_vaddr, ret) ? 0 : -ENODATA;
	}
	if (!has_go_note(&im))
		return -ENODATA;
	find_relocations(&im);
	return search_table(&im, ret) ? 0 : -ENODATA;
}

/* The text at @off of the table; NULL when it has no end. */
static const char *text_at(const struct gopclntab *t, uint64_t off, size_t *len_ret)
{
	size_t max;

	if (off >= t->len)
		return NULL;
	max = t->len - off < MAX_NAME_BYTES ? t->len - off : MAX_NAME_BYTES;
	*len_ret = strnlen((const char *)t->data + off, max);
	return *len_ret < max ? (const char *)t->data + off : NULL;
}

int gopclntab_function(const struct gopclntab *t, uint32_t index, struct gopclntab_function *ret)
{
	uint64_t bytes = FUNCTION_BYTES + (t->has_start_line ? 4 : 0), off, lists;
	uint32_t value_lists;
	const uint8_t *f;

	if (index >= t->function_count)
		return -EBADMSG;
	off = t->functions + bytes_u32(t->data + t->functions + 8ull * index + 4);
	if (off > t->len || bytes > t->len - off)
		return -EBADMSG;
	f = t->data + off;
	*ret = (struct gopclntab_function){
		.entry = t->text + code_offset(t, index),
		.end = t->text + code_offset(t, index + 1),
		.sp_values = bytes_u32(f + 16),
		.file_values = bytes_u32(f + 20),
		.line_values = bytes_u32(f + 24),
		.unit = bytes_u32(f + 32),
		.start_line = t->has_start_line ? bytes_u32(f + 36) : 0,
		.flags = f[bytes - 3],
		.inlined = NO_OFFSET,
	};
	/* Behind the function's head: offsets of lists of values, then of other data. */
	value_lists = bytes_u32(f + 28);
	lists = (t->len - off - bytes) / 4;
	if (value_lists > INLINED_VALUES && (uint64_t)value_lists + INLINED_CALLS < lists && f[bytes - 1] > INLINED_CALLS) {
		ret->inlined_values = bytes_u32(f + bytes + 4ull * INLINED_VALUES);
		ret->inlined = bytes_u32(f + bytes + 4 * ((uint64_t)value_lists + INLINED_CALLS));
	}
	ret->name = text_at(t, t->names + bytes_u32(f + 4), &ret->name_len);
	return ret->name && ret->entry < ret->end ? 0 : -EBADMSG;
}

int gopclntab_find(const struct gopclntab *t, uint64_t addr, uint32_t *index_ret)
{
	uint64_t off = addr - t->text;

	if (addr < t->text || off < code_offset(t, 0) || off >= code_offset(t, t->function_count))
		return -ENOENT;
	*index_ret = search_first(at, t->function_count, code_offset(t, at) > off) - 1;
	return 0;
}

const uint8_t *gopclntab_code(const struct gopclntab *t, uint64_t addr, size_t len)
{
	uint64_t off = addr - t->code_addr;

	return off <= t->code_len && len <= t->code_len - off ? t->code + off : NULL;
}

/* --- values --- */

void gopclntab_values_init(const struct gopclntab *t, const struct gopclntab_function *f, uint32_t values,
			   struct gopclntab_values *it)
{
	uint64_t off = t->values + values;

	*it = (struct gopclntab_values){ .pc = f->entry, .value = -1, .stop = t->data + t->len, .quantum = t->quantum };
	it->at = values && off < t->len ? t->data + off : it->stop;
}

/* A number of at most 32 bits, seven in a byte, the low ones first. */
static bool read_number(struct gopclntab_values *it, uint32_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; shift < 35 && it->at < it->stop; shift += 7) {
		uint8_t byte = *it->at++;

		*ret |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

bool gopclntab_values_next(struct gopclntab_values *it, uint64_t *start_ret, uint64_t *end_ret, int32_t *value_ret)
{
	uint32_t change, bytes;

	if (!read_number(it, &change) || (change == 0 && it->has_begun) || !read_number(it, &bytes) || bytes == 0 ||
	    (uint64_t)bytes * it->quantum > UINT64_MAX - it->pc)
		return false;
	it->has_begun = true;
	it->value = (int32_t)((uint32_t)it->value + (change & 1 ? ~(change >> 1) : change >> 1));
	*start_ret = it->pc;
	it->pc += (uint64_t)bytes * it->quantum;
	*end_ret = it->pc;
	*value_ret = it->value;
	return true;
}

static int32_t value_at(const struct gopclntab *t, const struct gopclntab_function *f, uint32_t values, uint64_t addr)
{
	struct gopclntab_values it;
	uint64_t start, end;
	int32_t value;

	gopclntab_values_init(t, f, values, &it);
	while (gopclntab_values_next(&it, &start, &end, &value))
		if (addr < end)
			return value;
	return -1;
}

const char *gopclntab_path(const struct gopclntab *t, const struct gopclntab_function *f, int32_t file, size_t *len_ret)
{
	uint64_t unit = t->units + 4ull * ((uint64_t)f->unit + (uint32_t)file);

	if (file < 0 || unit > t->len - 4 || (int32_t)bytes_u32(t->data + unit) == NO_FILE)
		return NULL;
	return text_at(t, t->files + bytes_u32(t->data + unit), len_ret);
}

int gopclntab_line(const struct gopclntab *t, const struct gopclntab_function *f, uint64_t addr, const char **file_ret,
		   size_t *len_ret, int32_t *line_ret)
{
	*line_ret = value_at(t, f, f->line_values, addr);
	if (addr < f->entry || *line_ret < 0)
		return -ENOENT;
	*file_ret = gopclntab_path(t, f, value_at(t, f, f->file_values, addr), len_ret);
	return *file_ret ? 0 : -ENOENT;
}

/* --- inlined calls --- */

int gopclntab_open_inlined(struct gopclntab *t)
{
	uint64_t module, base;
	struct image im;
	Elf64_Phdr ph;

	if (!open_image(t->image, t->image_len, &im))
		return -ENODATA;
	find_relocations(&im);
	if (!find_module(&im, t, t->addr, &module))
		return -ENODATA;
	base = pointer_at(&im, module + 8 * (t->has_start_line ? MODULE_FUNCTION_DATA : MODULE_FUNCTION_DATA_1_18));
	if (!base || !find_segment(&im, base, 1, &ph))
		return -ENODATA;
	t->inlined = im.data + ph.p_offset + (base - ph.p_vaddr);
	t->inlined_len = ph.p_filesz - (base - ph.p_vaddr);
	return 0;
}

int gopclntab_inlined(const struct gopclntab *t, const struct gopclntab_function *f, uint32_t index,
		      struct gopclntab_inlined *ret)
{
	uint64_t bytes = t->has_start_line ? CALL_BYTES : CALL_BYTES_1_18, off = f->inlined + bytes * index;
	const uint8_t *call;

	if (!t->inlined || f->inlined == NO_OFFSET)
		return -ENODATA;
	if (off > t->inlined_len || bytes > t->inlined_len - off)
		return -EBADMSG;
	call = t->inlined + off;
	*ret = (struct gopclntab_inlined){
		.start_line = t->has_start_line ? bytes_u32(call + 12) : 0,
		.call_addr = f->entry + bytes_u32(call + (t->has_start_line ? 8 : 16)),
	};
	ret->name = text_at(t, t->names + bytes_u32(call + (t->has_start_line ? 4 : 12)), &ret->name_len);
	return ret->name && ret->call_addr < f->end ? 0 : -EBADMSG;
}
