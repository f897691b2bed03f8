/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds V8's builtins by the look of three things, each of which has to agree with the others.
 *  - The places: descriptions of a size that versions change, of which the first two numbers are a builtin's offset in the
 *    code and its length. Each begins behind the one before, on a border, with a byte between them at least.
 *  - The code: between two builtins are int3, just where the places say so.
 *  - The names: a table of 24 bytes a builtin, a pointer to its name first, found by the name of the interpreter's entry. A
 *    file that is loaded anywhere has the pointers in its relocations. The code of bytecodes comes last, so the table ends
 *    with the last name of a handler, and has as many entries as there are places. Where a compiler left entries of
 * functions in C++ to be made as the program starts, they are empty, and these builtins have no name. Each byte that should
 * be an int3 is one, and there are enough names, or nothing is found. The constants for debuggers that V8 exports tell which
 * files are worth a search.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "symbols/code/source.h"
#include "symbols/elf_image.h"
#include "symbols/sources/functions.h"
#include "symbols/sources/v8_builtins.h"

enum {
	NAME_STRIDE = 24,
	MOST_KINDS = 32,   /* the word behind a name's pointer is the builtin's kind: 5 to 8 were seen to be the highest */
	FEWEST = 512,	   /* builtins; 1,726 to 2,415 were seen */
	MOST_EMPTY = 1024, /* entries one after the other; 279 were seen */
	MOST_BYTES = 1 << 20,
	MOST_STRIDE = 64, /* of places; 12 to 32 were seen */
	PLACE_ALIGN = 8,
	CODE_ALIGN = 32,
	INT3 = 0xcc,
	MAX_TEXTS = 8,	 /* places that have the text looked for */
	MAX_ENTRIES = 8, /* pointers to it */
	MAX_HEADERS = 64,
	MAX_STEPS = 1 << 26, /* descriptions and gaps that are looked at; a file of 100 MB takes some 10 million */
	SLOTS = 2 * V8_BUILTINS_MAX,
};

static const char known_constant[] = "v8dbg_SmiTag", known_name[] = "InterpreterEntryTrampoline", handler[] = "Handler";

/* --- parts of the file --- */

/* A loaded segment, as far as the file has it. */
struct part {
	const uint8_t *data;
	uint64_t len, addr;
};

/* The next part, by a number that counts from 0: those without code, then those with code, where old linkers put data, too.
 * With @is_code the latter alone. False: there is no further one. */
static bool next_part(const struct elf_image *im, uint32_t *i, bool is_code, struct part *ret)
{
	uint32_t count = im->ehdr.e_phnum;
	Elf64_Phdr ph;

	for (*i += is_code && *i < count ? count : 0; *i < 2 * count; ++*i) {
		if (!elf_image_header(im, *i % count, &ph) || ph.p_type != PT_LOAD || !ph.p_filesz ||
		    !(ph.p_flags & PF_X) != (*i < count))
			continue;
		ret->data = elf_image_loaded(im, ph.p_vaddr, ph.p_filesz);
		ret->len = ph.p_filesz;
		ret->addr = ph.p_vaddr;
		if (!ret->data)
			continue;
		++*i;
		return true;
	}
	return false;
}

/* The relocations of a file that is loaded anywhere. */
struct relocations {
	const uint8_t *data;
	size_t count;
};

static struct relocations find_relocations(const struct elf_image *im)
{
	struct relocations ret = { NULL, 0 };
	uint64_t addr = 0, len = 0;
	Elf64_Phdr ph;
	Elf64_Dyn dyn;

	for (uint32_t i = 0; elf_image_header(im, i, &ph); i++) {
		const uint8_t *data = ph.p_type == PT_DYNAMIC ? elf_image_loaded(im, ph.p_vaddr, ph.p_filesz) : NULL;

		for (uint64_t at = 0; data && ph.p_filesz - at >= sizeof(dyn); at += sizeof(dyn)) {
			memcpy(&dyn, data + at, sizeof(dyn));
			if (dyn.d_tag == DT_RELA)
				addr = dyn.d_un.d_ptr;
			else if (dyn.d_tag == DT_RELASZ)
				len = dyn.d_un.d_val;
		}
	}
	ret.data = addr ? elf_image_loaded(im, addr, len) : NULL;
	ret.count = ret.data ? len / sizeof(Elf64_Rela) : 0;
	return ret;
}

/* Relocation number @i; false: it is none that puts an address of this file into a word. */
static bool get_relocation(const struct relocations *r, size_t i, Elf64_Rela *ret)
{
	memcpy(ret, r->data + i * sizeof(*ret), sizeof(*ret));
	return ELF64_R_TYPE(ret->r_info) == R_X86_64_RELATIVE;
}

/* --- places --- */

/* Where the builtin behind one that ends at @end may begin. */
static bool may_begin(uint64_t start, uint64_t end)
{
	return start % CODE_ALIGN == 0 && start > end && start - end <= (uint64_t)2 * CODE_ALIGN;
}

/* How many descriptions of @stride bytes there are, one behind the other, in the @len bytes at @p; 0: too few. */
static uint32_t count_places(const uint8_t *p, uint64_t len, uint32_t stride, uint64_t *steps)
{
	uint64_t end = 0;
	uint32_t i = 0;

	for (; i < len / stride && i <= V8_BUILTINS_MAX; i++, ++*steps) {
		uint64_t start = bytes_u32(p + (size_t)i * stride), size = bytes_u32(p + (size_t)i * stride + 4);

		if ((i ? !may_begin(start, end) : start != 0) || !size || size > MOST_BYTES)
			break;
		end = start + size;
	}
	return i >= FEWEST && i <= V8_BUILTINS_MAX ? i : 0;
}

static bool find_places(const struct elf_image *im, struct v8_builtins *b)
{
	uint64_t steps = 0;
	struct part part;

	for (uint32_t i = 0; next_part(im, &i, false, &part);) {
		for (uint64_t at = (uint64_t) - (int64_t)part.addr % PLACE_ALIGN;
		     at + MOST_STRIDE + 8 <= part.len && steps < MAX_STEPS; at += PLACE_ALIGN) {
			const uint8_t *p = part.data + at;
			uint32_t size = bytes_u32(p + 4);

			if (bytes_u32(p) || !size || size > MOST_BYTES)
				continue;
			for (b->stride = 8; b->stride <= MOST_STRIDE; b->stride += 4) {
				b->places = p;
				b->count = count_places(p, part.len - at, b->stride, &steps);
				if (b->count)
					return true;
			}
		}
	}
	return false;
}

/* --- code --- */

static bool is_padding(const uint8_t *p, uint64_t from, uint64_t to)
{
	while (from < to && p[from] == INT3)
		from++;
	return from == to;
}

/* Is the code in the @len bytes at @p? */
static bool is_code(const struct v8_builtins *b, const uint8_t *p, uint64_t len, uint64_t *steps)
{
	for (uint32_t i = 0; i < b->count; i++, ++*steps) {
		const uint8_t *place = b->places + (size_t)i * b->stride;
		uint64_t end = (uint64_t)bytes_u32(place) + bytes_u32(place + 4);
		uint64_t next = i + 1 < b->count ? bytes_u32(place + b->stride) : end + 1;

		if (next > len || !is_padding(p, end, next))
			return false;
	}
	return true;
}

static bool find_code(const struct elf_image *im, struct v8_builtins *b)
{
	uint64_t steps = 0;
	struct part part;

	for (uint32_t i = 0; next_part(im, &i, true, &part);) {
		for (uint64_t at = (uint64_t) - (int64_t)part.addr % CODE_ALIGN; at < part.len && steps < MAX_STEPS;
		     at += CODE_ALIGN) {
			b->code = part.addr + at;
			if (is_code(b, part.data + at, part.len - at, &steps))
				return true;
		}
	}
	return false;
}

/* --- names --- */

/* Is there a builtin's name at @addr? */
static const char *name_at(const struct elf_image *im, uint64_t addr)
{
	const char *name = (const char *)elf_image_loaded(im, addr, 1);
	size_t left = name ? im->len_bytes - (size_t)((const uint8_t *)name - im->data) : 0, len = 0;

	while (len < left && len < V8_BUILTIN_NAME_MAX &&
	       ((name[len] >= '0' && name[len] <= '9') || ((name[len] | 0x20) >= 'a' && (name[len] | 0x20) <= 'z') ||
		name[len] == '_'))
		len++;
	return len && len < left && !name[len] ? name : NULL;
}

/* The names of the entries around the one at @entry: those that @slots has at half of its length. 0: it is empty. */
static void fill_slots(const struct elf_image *im, const struct relocations *r, uint64_t entry, uint64_t slots[SLOTS])
{
	uint64_t start = entry - (uint64_t)NAME_STRIDE * (SLOTS / 2);
	Elf64_Rela rela;

	for (size_t i = 0; i < SLOTS; i++) {
		const uint8_t *word = elf_image_loaded(im, start + i * NAME_STRIDE, 2 * sizeof(uint64_t));

		slots[i] = word && bytes_u32(word + sizeof(uint64_t)) < MOST_KINDS ? bytes_u64(word) : UINT64_MAX;
	}
	for (size_t i = 0; i < r->count; i++) {
		uint64_t at;

		if (!get_relocation(r, i, &rela))
			continue;
		at = rela.r_offset - start;
		if (at / NAME_STRIDE < SLOTS && at % NAME_STRIDE == 0 && slots[at / NAME_STRIDE] != UINT64_MAX)
			slots[at / NAME_STRIDE] = (uint64_t)rela.r_addend;
	}
}

static bool is_handler(const struct elf_image *im, uint64_t addr)
{
	const char *name = name_at(im, addr);
	size_t len = name ? strlen(name) : 0;

	return len >= sizeof(handler) - 1 && !strcmp(name + len - (sizeof(handler) - 1), handler);
}

/* Takes the table around the entry at @entry, if there is one. 0; -ENODATA; -ENOMEM. */
static int take_names(const struct elf_image *im, const struct relocations *r, uint64_t entry, struct v8_builtins *ret)
{
	AUTO_FREE uint64_t *slots = malloc(SLOTS * sizeof(*slots));
	size_t end = 0, start, named = 0;
	unsigned empty = 0;

	if (!slots)
		return -ENOMEM;
	fill_slots(im, r, entry, slots);
	for (size_t i = SLOTS / 2; i < SLOTS && empty <= MOST_EMPTY && (!slots[i] || name_at(im, slots[i])); i++) {
		empty = slots[i] ? 0 : empty + 1;
		if (slots[i] && is_handler(im, slots[i]))
			end = i + 1;
	}
	if (end < ret->count || end - ret->count > SLOTS / 2)
		return -ENODATA;
	start = end - ret->count;
	for (size_t i = start; i < end; i++) {
		if (slots[i] && !name_at(im, slots[i]))
			return -ENODATA;
		named += slots[i] != 0;
	}
	if (!slots[start] || named < ret->count / 2)
		return -ENODATA;
	memmove(slots, slots + start, ret->count * sizeof(*slots));
	ret->names = slots;
	slots = NULL;
	return 0;
}

/* Takes the table that has a pointer to the text at @text. */
static int find_entry(const struct elf_image *im, const struct relocations *r, uint64_t text, struct v8_builtins *ret)
{
	unsigned left = MAX_ENTRIES;
	int error = -ENODATA;
	struct part part;
	Elf64_Rela rela;

	for (size_t i = 0; i < r->count && error == -ENODATA && left; i++)
		if (get_relocation(r, i, &rela) && (uint64_t)rela.r_addend == text && left--)
			error = take_names(im, r, rela.r_offset, ret);
	for (uint32_t i = 0; error == -ENODATA && next_part(im, &i, false, &part);) {
		const uint8_t *end = part.data + part.len, *at = part.data;

		while (error == -ENODATA && left && at < end && (at = memmem(at, (size_t)(end - at), &text, sizeof(text)))) {
			uint64_t addr = part.addr + (uint64_t)(at - part.data);

			if (addr % sizeof(uint64_t) == 0 && left--)
				error = take_names(im, r, addr, ret);
			at++;
		}
	}
	return error;
}

static int find_names(const struct elf_image *im, struct v8_builtins *ret)
{
	struct relocations r = find_relocations(im);
	unsigned texts = 0;
	struct part part;

	for (uint32_t i = 0; next_part(im, &i, false, &part);) {
		const uint8_t *end = part.data + part.len, *at = part.data;

		while (at < end && (at = memmem(at, (size_t)(end - at), known_name, sizeof(known_name)))) {
			int error = ++texts > MAX_TEXTS ? -ENOENT : -ENODATA;

			if (at > part.data && !at[-1] && error == -ENODATA)
				error = find_entry(im, &r, part.addr + (uint64_t)(at - part.data), ret);
			if (error != -ENODATA)
				return error == -ENOENT ? -ENODATA : error;
			at++;
		}
	}
	return -ENODATA;
}

/* --- all --- */

/* Does the file export V8's constants for debuggers, and has no whole table of symbols? */
static bool is_worth_it(const struct elf_image *im)
{
	const uint8_t *names;
	Elf64_Shdr section;
	size_t len;

	if (im->ehdr.e_machine != EM_X86_64 || im->ehdr.e_phnum > MAX_HEADERS ||
	    (elf_image_find(im, ".symtab", &section) && section.sh_type == SHT_SYMTAB) ||
	    !elf_image_find(im, ".dynstr", &section))
		return false;
	names = elf_image_bytes(im, &section, &len);
	return names && memmem(names, len, known_constant, sizeof(known_constant));
}

int v8_builtins_open(const struct elf_image *im, struct v8_builtins *ret)
{
	int error;

	*ret = (struct v8_builtins){ 0 };
	error = is_worth_it(im) && find_places(im, ret) && find_code(im, ret) ? find_names(im, ret) : -ENODATA;
	if (error)
		v8_builtins_close(ret);
	return error;
}

void v8_builtins_close(struct v8_builtins *b)
{
	free(b->names);
	*b = (struct v8_builtins){ 0 };
}

bool v8_builtins_get(const struct elf_image *im, const struct v8_builtins *b, uint32_t i, struct v8_builtin *ret)
{
	const uint8_t *place;

	if (i >= b->count)
		return false;
	place = b->places + (size_t)i * b->stride;
	ret->name = b->names[i] ? name_at(im, b->names[i]) : "";
	ret->addr = b->code + bytes_u32(place);
	ret->size_bytes = bytes_u32(place + 4);
	return ret->name;
}

/* --- as a source of names --- */

int source_v8(const struct symbol_files *files, struct code_names *names)
{
	AUTO(v8_builtins_close) struct v8_builtins all = { 0 };
	struct v8_builtin one;
	struct elf_image im;
	int error;

	if (!code_names_wants(names, 0, UINT64_MAX) || elf_image_open(files->program.data, files->program.len_bytes, &im))
		return -ENODATA;
	error = v8_builtins_open(&im, &all);
	if (error)
		return error;
	code_names_begin(names, CODE_SOURCE_V8);
	for (uint32_t i = 0; v8_builtins_get(&im, &all, i, &one); i++) {
		char name[sizeof(V8_BUILTIN_PREFIX) + V8_BUILTIN_NAME_MAX] = V8_BUILTIN_PREFIX;
		size_t len = strlen(one.name);

		if (!len || !code_names_wants(names, one.addr, one.addr + one.size_bytes))
			continue;
		memcpy(name + sizeof(V8_BUILTIN_PREFIX) - 1, one.name, len);
		code_names_range(names, one.addr, one.addr + one.size_bytes,
				 code_names_node(names, CODE_NONE,
						 code_names_function(names, name, sizeof(V8_BUILTIN_PREFIX) - 1 + len, 0),
						 CODE_NONE, 0, 0));
	}
	return 0;
}
