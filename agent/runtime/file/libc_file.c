/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a C library keeps the values of a thread's keys (pthread_getspecific). glibc tells debuggers by descriptors in
 * read-only data (nptl_db/structs.def; nptl_db/db_info.c): { bits of an element, elements, offset }. The block pointers
 * stand in struct pthread, at the thread pointer on x86-64 and below it on arm64.
 */
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
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

bool libc_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	uint32_t offset, thread_bytes;

	if (!descriptor_word(im, "_thread_db_pthread_specific", 2, &offset) ||
	    !descriptor_word(im, "_thread_db_sizeof_pthread", 0, &thread_bytes) || offset >= thread_bytes ||
	    thread_bytes > 65536)
		return false;
	ret->kind = RUNTIME_FILE_LIBC;
	ret->state.thread = (struct thread_locator){
		.place = THREAD_KEY,
		.offset = (int32_t)offset - (CPU_HAS_LR ? (int32_t)thread_bytes : 0),
	};
	return true;
}
