/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a C library keeps the values of a thread's keys (pthread_getspecific). glibc tells debuggers by descriptors in
 * read-only data (nptl_db/structs.def; nptl_db/db_info.c): { bits of an element, elements, offset }. The block pointers
 * stand in struct pthread, at the thread pointer on x86-64 and below it on arm64. musl's pthread_getspecific is five
 * instructions (src/thread/pthread_getspecific.c): self->tsd[key]; they tell where in struct pthread tsd is.
 */
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "agent/runtime/file/thread_code.h"
#include "symbols/elf_image.h"

/* The word number @i of the descriptor @name. */
static bool descriptor_word(const struct elf_image *im, const char *name, unsigned i, uint32_t *ret)
{
	struct runtime_symbol symbol;
	const uint8_t *bytes;

	if (runtime_file_symbol(im, name, &symbol))
		return false;
	bytes = runtime_file_bytes(im, symbol.addr + i * sizeof(*ret), sizeof(*ret));
	if (bytes)
		memcpy(ret, bytes, sizeof(*ret));
	return bytes;
}

static bool read_glibc(const struct elf_image *im, struct thread_locator *ret)
{
	uint32_t offset, thread_bytes;

	if (!descriptor_word(im, "_thread_db_pthread_specific", 2, &offset) ||
	    !descriptor_word(im, "_thread_db_sizeof_pthread", 0, &thread_bytes) || offset >= thread_bytes ||
	    thread_bytes > 65536)
		return false;
	*ret = (struct thread_locator){
		.place = THREAD_KEY,
		.libc = THREAD_GLIBC,
		.offset = (int32_t)offset - (CPU_HAS_LR ? (int32_t)thread_bytes : 0),
	};
	return true;
}

/* --- musl --- */

enum { GETSPECIFIC_BYTES = 28 };

/* Perhaps endbr64; mov %fs:0,%rax; mov N(%rax),%rax; mov %edi,%edi; mov (%rax,%rdi,8),%rax; ret, as musl 1.1.24, 1.2.3
 * and 1.2.5 have it (gcc). */
static bool read_getspecific_x86_64(const uint8_t code[GETSPECIFIC_BYTES], int32_t *ret)
{
	static const uint8_t hint[] = { 0xf3, 0x0f, 0x1e, 0xfa }, self[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0 },
			     array[] = { 0x48, 0x8b, 0x80 }, value[] = { 0x89, 0xff, 0x48, 0x8b, 0x04, 0xf8, 0xc3 };
	const uint8_t *at;

	code += memcmp(code, hint, sizeof(hint)) == 0 ? sizeof(hint) : 0;
	at = code + sizeof(self);
	if (memcmp(code, self, sizeof(self)) != 0 || memcmp(at, array, sizeof(array)) != 0 ||
	    memcmp(at + sizeof(array) + sizeof(*ret), value, sizeof(value)) != 0)
		return false;
	memcpy(ret, at + sizeof(array), sizeof(*ret));
	return true;
}

/* Perhaps a hint; mrs x1, tpidr_el0; ldur x1, [x1, N]; ldr x0, [x1, w0, uxtw 3]; ret (musl 1.2.5). */
static bool read_getspecific_arm64(const uint8_t code[GETSPECIFIC_BYTES], int32_t *ret)
{
	uint32_t insns[GETSPECIFIC_BYTES / 4], *at = insns;

	memcpy(insns, code, sizeof(insns));
	at += *at == 0xd503245f;
	if (at[0] != 0xd53bd041 || (at[1] & 0xffe00fff) != 0xf8400021 || at[2] != 0xf8605820 || at[3] != 0xd65f03c0)
		return false;
	*ret = (int32_t)(at[1] << 11) >> 23;
	return true;
}

static bool read_getspecific(uint16_t machine, const uint8_t *code, struct thread_locator *ret)
{
	*ret = (struct thread_locator){ .place = THREAD_KEY, .libc = THREAD_MUSL };
	return code && (machine == EM_X86_64 ? read_getspecific_x86_64(code, &ret->offset)
					     : read_getspecific_arm64(code, &ret->offset));
}

static bool read_musl(const struct elf_image *im, struct thread_locator *ret)
{
	struct runtime_symbol get;

	return !runtime_file_symbol(im, "pthread_getspecific", &get) &&
	       read_getspecific(im->ehdr.e_machine, runtime_file_bytes(im, get.addr, GETSPECIFIC_BYTES), ret);
}

bool libc_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct thread_locator *thread = &ret->state.thread;

	if (!read_glibc(im, thread) && !read_musl(im, thread)) {
		*thread = (struct thread_locator){ 0 };
		return false;
	}
	ret->kind = RUNTIME_FILE_LIBC;
	return true;
}

/* --- programs with a C library in them --- */

/* Does the file need no other one? */
static bool is_static(const struct elf_image *im)
{
	const uint8_t *bytes;
	Elf64_Shdr section;
	Elf64_Dyn dyn;
	size_t len;

	if (!elf_image_find(im, ".dynamic", &section))
		return true;
	bytes = elf_image_bytes(im, &section, &len);
	for (size_t at = 0; bytes && at + sizeof(dyn) <= len; at += sizeof(dyn)) {
		memcpy(&dyn, bytes + at, sizeof(dyn));
		if (dyn.d_tag == DT_NEEDED)
			return false;
	}
	return bytes;
}

/* Finds musl's function among all code. */
static bool search_musl(const struct elf_image *im, struct thread_locator *ret)
{
	static const uint8_t self[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8b, 0x80 };
	const uint8_t *at, *end;
	Elf64_Shdr section;
	size_t len;

	if (im->ehdr.e_machine != EM_X86_64 || !elf_image_find(im, ".text", &section))
		return false;
	at = elf_image_bytes(im, &section, &len);
	if (!at)
		return false;
	for (end = at + len; (at = memmem(at, (size_t)(end - at), self, sizeof(self))); at++)
		if (end - at >= GETSPECIFIC_BYTES && read_getspecific(im->ehdr.e_machine, at, ret))
			return true;
	return false;
}

void libc_static_read(const struct elf_image *im, struct thread_locator *ret)
{
	/* struct pthread's specific, of all glibc 2.x for x86-64 since 2.4: the descriptors of 2.31, 2.36 and 2.43 */
	enum { GLIBC_SPECIFIC_X86_64 = 1296 };
	struct thread_locator found;
	Elf64_Shdr note;

	if (!is_static(im))
		return;
	if (search_musl(im, &found)) {
		ret->libc = THREAD_MUSL;
		ret->offset = found.offset;
	} else if (im->ehdr.e_machine == EM_X86_64 &&
		   elf_image_find(im, ".note.ABI-tag", &note)) { /* glibc's crt1.o has it */
		ret->libc = THREAD_GLIBC;
		ret->offset = GLIBC_SPECIFIC_X86_64;
	}
}
