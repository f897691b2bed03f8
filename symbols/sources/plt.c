/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names stubs of the procedure linkage table, which have no symbols, name@plt. A stub jumps through a slot of the global
 * offset table, and the relocation that fills this slot says for which symbol. So the instructions are read, and how a
 * linker lays its stubs out (lazy or not, with landing pads and signed pointers, GNU ld's or lld's) does not matter. The
 * names are those of objdump: without versions; an ifunc of the file itself has none and is *ABS*+0x401000@plt.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "symbols/elf_image.h"
#include "symbols/code/source.h"

enum {
	MAX_NAME_BYTES = 64 << 10,
	X86_STUB_ALIGN = 8,
	X86_STUB_BYTES = 16, /* at most, as one that a PLT of its own ends with is padded */
	X86_JUMP_BYTES = 6,  /* jmp *disp32(%rip) */
	ARM_STUB_BYTES = 24,
};

/* The relocation that fills a slot of the global offset table. */
struct slot {
	uint64_t addr;
	uint64_t addend;
	uint32_t symbol; /* number in .dynsym; 0: none, the code at @addend says at run time */
};

struct slots {
	struct slot *all; /* owned */
	size_t count, cap;
};

/* A file's slots and the names for them. */
struct plt {
	struct elf_image im;
	struct slots slots;
	const uint8_t *symbols; /* of .dynsym; NULL: there is none */
	size_t symbols_len;
	const char *strings;
	size_t strings_len;
};

/* One stub. */
struct stub {
	uint64_t start, end;
	uint64_t slot; /* the address it jumps through */
};

static void plt_fini(struct plt *p)
{
	free(p->slots.all);
}

/* --- relocations --- */

static bool is_filled_by(uint16_t machine, uint64_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_IRELATIVE;
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_IRELATIVE;
}

static int add_slot(struct slots *s, const struct slot *new)
{
	if (vec_reach(&s->all, &s->cap, s->count))
		return -ENOMEM;
	s->all[s->count++] = *new;
	return 0;
}

static int read_relocations(struct plt *p, const Elf64_Shdr *sh)
{
	size_t len;
	const uint8_t *data = elf_image_bytes(&p->im, sh, &len);

	for (size_t i = 0; i < len / sizeof(Elf64_Rela); i++) {
		Elf64_Rela rela;
		struct slot slot;

		memcpy(&rela, data + i * sizeof(rela), sizeof(rela));
		if (!is_filled_by(p->im.ehdr.e_machine, ELF64_R_TYPE(rela.r_info)))
			continue;
		slot = (struct slot){ rela.r_offset, (uint64_t)rela.r_addend, (uint32_t)ELF64_R_SYM(rela.r_info) };
		/* No part of what is called: by -z mark-plt linkers keep the stub's own address here. */
		if (ELF64_R_TYPE(rela.r_info) ==
		    (p->im.ehdr.e_machine == EM_X86_64 ? R_X86_64_JUMP_SLOT : R_AARCH64_JUMP_SLOT))
			slot.addend = 0;
		if (add_slot(&p->slots, &slot))
			return -ENOMEM;
	}
	return 0;
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static const struct slot *find_slot(const struct plt *p, uint64_t addr)
{
	const struct slot key = { .addr = addr };

	return p->slots.count ? bsearch(&key, p->slots.all, p->slots.count, sizeof(key), compare_slots) : NULL;
}

/* Reads what the file's loaded relocations fill slots with. 0, -ENODATA, -ENOMEM. */
static int plt_init(struct plt *p, const struct symbol_image *program)
{
	Elf64_Shdr sh, strings;

	if (elf_image_open(program->data, program->len_bytes, &p->im) ||
	    (p->im.ehdr.e_machine != EM_X86_64 && p->im.ehdr.e_machine != EM_AARCH64))
		return -ENODATA;
	for (uint32_t i = 1; elf_image_section(&p->im, i, &sh); i++) {
		if (sh.sh_type == SHT_RELA && sh.sh_flags & SHF_ALLOC && read_relocations(p, &sh))
			return -ENOMEM;
		if (sh.sh_type == SHT_DYNSYM && !p->symbols && elf_image_section(&p->im, sh.sh_link, &strings)) {
			p->symbols = elf_image_bytes(&p->im, &sh, &p->symbols_len);
			p->strings = (const char *)elf_image_bytes(&p->im, &strings, &p->strings_len);
		}
	}
	if (p->slots.count)
		qsort(p->slots.all, p->slots.count, sizeof(*p->slots.all), compare_slots);
	return p->slots.count ? 0 : -ENODATA;
}

/* --- names --- */

/* Appends the symbol's name without its version; nothing when it has none. */
static void append_symbol(const struct plt *p, uint32_t number, struct buf *out)
{
	uint64_t off = (uint64_t)number * sizeof(Elf64_Sym);
	size_t len, max;
	Elf64_Sym sym;

	if (!p->symbols || !p->strings || off + sizeof(sym) > p->symbols_len)
		return;
	memcpy(&sym, p->symbols + off, sizeof(sym));
	if (sym.st_name >= p->strings_len)
		return;
	max = p->strings_len - sym.st_name < MAX_NAME_BYTES ? p->strings_len - sym.st_name : MAX_NAME_BYTES;
	len = strnlen(p->strings + sym.st_name, max);
	if (len < max)
		buf_append(out, p->strings + sym.st_name, strcspn(p->strings + sym.st_name, "@"));
}

/* Adds @stub to @names if a relocation says what its slot is for. 0, -ENOMEM. */
static int add_stub(const struct plt *p, const struct stub *stub, struct buf *text, struct code_names *names)
{
	const struct slot *slot = find_slot(p, stub->slot);

	if (!slot || !code_names_wants(names, stub->start, stub->end))
		return 0;
	buf_reset(text);
	if (slot->symbol)
		append_symbol(p, slot->symbol, text);
	else
		buf_puts(text, "*ABS*");
	if (!text->len)
		return text->failed ? -ENOMEM : 0;
	if (slot->addend)
		buf_printf(text, "+0x%llx", (unsigned long long)slot->addend);
	buf_puts(text, "@plt");
	if (text->failed)
		return -ENOMEM;
	code_names_range(names, stub->start, stub->end,
			 code_names_node(names, CODE_NONE,
					 code_names_function(names, (const char *)text->data, text->len, 0), CODE_NONE, 0,
					 0));
	return 0;
}

/* --- instructions --- */

/* The code of a section. */
struct code {
	const uint8_t *data;
	size_t len;
	uint64_t addr;
};

/* The next stub at or behind @*at; false: there is none. */
typedef bool (*next_stub_fn)(const struct code *code, size_t *at, struct stub *ret);

static bool has_bytes(const struct code *c, size_t at, const char *bytes, size_t len)
{
	return at <= c->len && len <= c->len - at && !memcmp(c->data + at, bytes, len);
}

/* [endbr64] [bnd] jmp *slot(%rip), at a multiple of eight. The bytes up to the next one belong to it. */
static bool next_x86_64(const struct code *c, size_t *at, struct stub *ret)
{
	for (; *at < c->len; *at += X86_STUB_ALIGN) {
		size_t jump = *at;
		int32_t distance;

		if (has_bytes(c, jump, "\xf3\x0f\x1e\xfa", 4))
			jump += 4;
		if (has_bytes(c, jump, "\xf2", 1))
			jump++;
		if (!has_bytes(c, jump, "\xff\x25", 2) || c->len - jump < X86_JUMP_BYTES)
			continue;
		memcpy(&distance, c->data + jump + 2, sizeof(distance));
		ret->start = c->addr + *at;
		ret->slot = c->addr + jump + X86_JUMP_BYTES + (uint64_t)(int64_t)distance;
		ret->end = ret->start + X86_STUB_BYTES;
		*at += X86_STUB_ALIGN;
		return true;
	}
	return false;
}

static uint32_t instruction(const struct code *c, size_t at)
{
	uint32_t v = 0;

	if (at <= c->len && sizeof(v) <= c->len - at)
		memcpy(&v, c->data + at, sizeof(v));
	return v;
}

/* [bti c] adrp x16, PAGE; ldr x17, [x16, #OFFSET]; add x16, x16, #OFFSET; [autia1716] br x17. */
static bool next_aarch64(const struct code *c, size_t *at, struct stub *ret)
{
	for (; *at + 16 <= c->len; *at += 4) {
		bool has_pad = instruction(c, *at) == 0xd503245f;
		uint32_t adrp = instruction(c, *at + (has_pad ? 4 : 0)), ldr = instruction(c, *at + (has_pad ? 8 : 4));
		uint64_t page = c->addr + *at + (has_pad ? 4 : 0);
		int64_t pages;

		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		/* 21 bits with a sign: 19 of them from bit 5 on, the lowest two at bit 29 */
		pages = (int32_t)((adrp >> 5 & 0x7ffff) << 13) >> 11 | (int32_t)(adrp >> 29 & 3);
		ret->start = c->addr + *at;
		ret->slot = (page & ~0xfffull) + ((uint64_t)pages << 12) + ((ldr >> 10 & 0xfff) << 3);
		ret->end = ret->start + ARM_STUB_BYTES;
		*at += 16;
		return true;
	}
	return false;
}

/* A stub ends where the next one starts. */
static int add_section(const struct plt *p, const struct code *code, struct buf *text, struct code_names *names)
{
	next_stub_fn next = p->im.ehdr.e_machine == EM_X86_64 ? next_x86_64 : next_aarch64;
	struct stub stub, following;
	bool has_stub, has_next;
	size_t at = 0;
	int error = 0;

	for (has_stub = next(code, &at, &stub); has_stub && !error; has_stub = has_next, stub = following) {
		has_next = next(code, &at, &following);
		if (has_next && following.start < stub.end)
			stub.end = following.start;
		if (stub.end > code->addr + code->len)
			stub.end = code->addr + code->len;
		error = add_stub(p, &stub, text, names);
	}
	return error;
}

static bool is_plt(const struct elf_image *im, const Elf64_Shdr *sh)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got", ".plt.bnd", ".iplt" };

	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		if (elf_image_is_called(im, sh, sections[i]))
			return true;
	return false;
}

int source_plt(const struct symbol_files *files, struct code_names *names)
{
	AUTO(plt_fini) struct plt p = { 0 };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	int error = plt_init(&p, &files->program);
	bool has_any = false;
	Elf64_Shdr sh;

	code_names_begin(names, CODE_SOURCE_PLT);
	for (uint32_t i = 1; !error && elf_image_section(&p.im, i, &sh); i++) {
		struct code code = { .addr = sh.sh_addr };

		if (!(sh.sh_flags & SHF_EXECINSTR) || !is_plt(&p.im, &sh))
			continue;
		code.data = elf_image_bytes(&p.im, &sh, &code.len);
		if (!code.data || code.len > UINT64_MAX - code.addr)
			continue;
		has_any = true;
		error = add_section(&p, &code, &text, names);
	}
	return error ? error : has_any ? 0 : -ENODATA;
}
