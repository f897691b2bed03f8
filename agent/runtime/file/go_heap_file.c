/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a Go program keeps its own samples of its heap: by its symbols, or, where these were stripped, by the code of two
 * functions of its runtime that its table of functions (gopclntab) still names. Each begins with the variable looked for.
 */
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "symbols/sources/gopclntab.h"

enum { LOOKED_AT = 512 /* bytes of a function's code */ };

/* The variable of 8 bytes that the code at @addr reads first, by an address relative to the instruction; 0: none. x86-64:
 * REX.W, mov r64 <- m (8B) or cmp m, imm8 (83 /7), of [rip + 32 bits] (Intel SDM volume 2, 2.1.5). */
static uint64_t first_variable(const uint8_t *code, size_t len, uint64_t addr)
{
	for (size_t i = 0; i + 8 <= len; i++) {
		bool is_load = (code[i] & 0xfb) == 0x48 && code[i + 1] == 0x8b && (code[i + 2] & 0xc7) == 0x05;
		bool is_compare = code[i] == 0x48 && code[i + 1] == 0x83 && code[i + 2] == 0x3d;
		int32_t offset;

		if (!is_load && !is_compare)
			continue;
		memcpy(&offset, code + i + 3, sizeof(offset));
		return addr + i + (is_compare ? 8 : 7) + (uint64_t)(int64_t)offset;
	}
	return 0;
}

/* The same of the function called @name. */
static uint64_t variable_of(const struct gopclntab *t, const char *name)
{
	for (uint32_t i = 0; i < t->function_count; i++) {
		struct gopclntab_function f;
		const uint8_t *code;
		size_t len;

		if (gopclntab_function(t, i, &f) || f.name_len != strlen(name) || memcmp(f.name, name, f.name_len) != 0)
			continue;
		len = f.end > f.entry && f.end - f.entry < LOOKED_AT ? f.end - f.entry : LOOKED_AT;
		code = gopclntab_code(t, f.entry, len);
		return code ? first_variable(code, len, f.entry) : 0;
	}
	return 0;
}

static void read_code(const struct elf_image *im, struct runtime_file *ret)
{
	static const char *const readers_of_rate[] = { "runtime.nextSample", "runtime.allocmcache" };
	struct gopclntab t;

	if (im->ehdr.e_machine != EM_X86_64 || gopclntab_open(im->data, im->len_bytes, &t))
		return;
	ret->go_heap.buckets = variable_of(&t, "runtime.mProf_FlushLocked");
	for (size_t i = 0; i < ARRAY_LEN(readers_of_rate) && ret->go_heap.buckets && !ret->go_heap.rate; i++)
		ret->go_heap.rate = variable_of(&t, readers_of_rate[i]);
	if (!ret->go_heap.rate)
		ret->go_heap.buckets = 0;
}

void go_heap_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct runtime_symbol buckets, rate;
	Elf64_Shdr section;

	if (!elf_image_find(im, ".gopclntab", &section) && !elf_image_find(im, ".data.rel.ro.gopclntab", &section) &&
	    !elf_image_find(im, ".go.buildinfo", &section))
		return;
	if (!runtime_file_own_symbol(im, "runtime.mbuckets", &buckets) &&
	    !runtime_file_own_symbol(im, "runtime.MemProfileRate", &rate)) {
		ret->go_heap.buckets = buckets.addr;
		ret->go_heap.rate = rate.addr;
	} else {
		read_code(im, ret);
	}
}
