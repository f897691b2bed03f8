/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile separate debug files and links to them. By the first byte, the rest is what the program's .gnu_debuglink holds, or
 * the .debug_frame of a debug file that fits the program by its build id, or that whole file. Only what fits is believed,
 * and rows keep their promises.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "agent/rows/rows.h"
#include "base/cleanup.h"
#include "symbols/find/debug_search.h"
#include "symbols/sources/symbol_image.h"
#include "tests/unit/elf_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libdw takes register numbers up to 2^27 at their word and makes room for them; here it is told that there is little. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=24";
}

enum { CODE_ADDR = 0x1000, CODE_BYTES = 36 };
enum { IS_LINK, IS_FRAME, IS_FILE, KINDS };

/* A file with a build id and the section @name of @size bytes. Its descriptor. */
static int make_file(const char *name, const uint8_t *data, size_t size)
{
	static const uint8_t note[24] = "\4\0\0\0\10\0\0\0\3\0\0\0GNU\0\xfe\xed\xc0\xde\1\2\3\4";
	enum { NOTE = 1, SECTION, STRINGS, SECTIONS };
	size_t start = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr);
	char names[40] = "\0.note.gnu.build-id";
	struct buf file = BUF_EMPTY;
	Elf64_Ehdr ehdr = {
		ELF_HEAD(EM_X86_64),
		.e_shoff = sizeof(Elf64_Ehdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = STRINGS,
	};
	Elf64_Shdr sections[SECTIONS] = {
		[NOTE] = { .sh_name = 1, .sh_type = SHT_NOTE, .sh_offset = start + sizeof(names), .sh_size = sizeof(note) },
		[SECTION] = { .sh_name = 20,
			      .sh_type = SHT_PROGBITS,
			      .sh_offset = start + sizeof(names) + sizeof(note),
			      .sh_size = size },
		[STRINGS] = { .sh_type = SHT_STRTAB, .sh_offset = start, .sh_size = sizeof(names) },
	};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	strcpy(names + 20, name);
	buf_append(&file, &ehdr, sizeof(ehdr));
	buf_append(&file, sections, sizeof(sections));
	buf_append(&file, names, sizeof(names));
	buf_append(&file, note, sizeof(note));
	buf_append(&file, data, size);
	if (fd < 0 || write(fd, file.data, file.len) != (ssize_t)file.len)
		abort();
	buf_fini(&file);
	return fd;
}

static void build_rows(int program, const struct debug_search *s)
{
	struct row rows[CODE_BYTES];
	struct row_source *src;
	size_t count;

	if (row_source_new_debug(program, (void *)(uintptr_t)s->files.debug.data, s->files.debug.len_bytes, &src))
		return;
	if (rows_build(src, CODE_ADDR, CODE_ADDR + CODE_BYTES, rows, CODE_BYTES, &count))
		abort();
	for (size_t i = 0; i < count; i++)
		if (rows[i].start < (i ? rows[i - 1].end : CODE_ADDR) || rows[i].end <= rows[i].start ||
		    rows[i].end > CODE_ADDR + CODE_BYTES)
			abort();
	row_source_free(src);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int kind = size ? data[0] % KINDS : -1, program, debug;
	struct debug_need needed;
	struct symbol_image image;
	struct debug_search s;

	if (kind < 0)
		return 0;
	program = make_file(".gnu_debuglink", data + 1, kind == IS_LINK ? size - 1 : 0);
	debug = kind == IS_FILE ? memfd_create("fuzz", MFD_CLOEXEC) : make_file(".debug_frame", data + 1, size - 1);
	if (debug < 0 || (kind == IS_FILE && write(debug, data + 1, size - 1) != (ssize_t)size - 1))
		abort();
	if (symbol_image_map(program, &image))
		abort();
	debug_search_start(&s, program, &image, data[0] & 0x80, UINT64_MAX);
	while (debug_search_next(&s, &needed)) {
		if (!debug_need_is_sound(&needed))
			abort();
		if (kind == IS_LINK && needed.kind == DEBUG_NEED_BUILD_ID) /* on to the link */
			(void)debug_search_take(&s, DEBUG_NEED_BUILD_ID, -1);
		else if (debug_search_take(&s, (enum debug_need_kind)needed.kind, debug))
			(void)debug_search_take(&s, (enum debug_need_kind)needed.kind, -1);
	}
	build_rows(program, &s);
	debug_search_fini(&s);
	symbol_image_unmap(&image);
	close(program);
	close(debug);
	return 0;
}
