/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names out of hostile DWARF. The first byte chooses: the rest is the file itself (as a real one starts), or sections one
 * after the other, each a byte for which, two bytes of length, and the content, which become those of a program; those with
 * the highest bit set go to a second file, which is its common, its .dwo and its .dwp file at once.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbols/code/source.h"
#include "tests/unit/symbols/dwarf_elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { ".debug_info",    ".debug_abbrev", ".debug_str",	      ".debug_line_str",
				     ".debug_addr",    ".debug_ranges", ".debug_rnglists",    ".debug_line",
				     ".zdebug_line",   ".zdebug_str",	".debug_str_offsets", ".debug_info",
				     ".debug_cu_index" };
static const char *const split_names[] = { ".debug_info.dwo", ".debug_abbrev.dwo",	".debug_str.dwo",
					   ".debug_info",     ".debug_abbrev",		".debug_rnglists.dwo",
					   ".debug_str",      ".debug_str_offsets.dwo", ".debug_cu_index" };

struct parts {
	struct dwarf_elf_section sections[DWARF_ELF_MAX];
	size_t count;
};

static void add_part(struct parts *p, const char *name, const uint8_t *data, size_t len, bool is_packed)
{
	if (p->count < DWARF_ELF_MAX)
		p->sections[p->count++] = (struct dwarf_elf_section){ name, data, len, is_packed ? SHF_COMPRESSED : 0 };
}

static void divide(const uint8_t *data, size_t size, struct parts *program, struct parts *split)
{
	while (size >= 3) {
		uint8_t which = data[0];
		size_t len = (size_t)data[1] | (size_t)data[2] << 8;

		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		if (which & 0x80)
			add_part(split, split_names[(which & 0x3f) % ARRAY_LEN(split_names)], data, len, which & 0x40);
		else
			add_part(program, names[(which & 0x3f) % ARRAY_LEN(names)], data, len, which & 0x40);
		data += len;
		size -= len;
	}
}

static int open_again(void *arg, const char *dir, const char *name, struct symbol_image *ret)
{
	(void)dir;
	if (strlen(name) > 16) /* some are not there */
		return -1;
	*ret = *(const struct symbol_image *)arg;
	return 0;
}

static void close_nothing(void *arg, struct symbol_image *image)
{
	(void)arg;
	(void)image;
}

static void check_answers(const struct code_names *found, const uint64_t *addrs, size_t count)
{
	static struct code_answer answer;
	size_t len;

	for (size_t i = 0; i < count; i++) {
		if (code_names_find(found, addrs[i], &answer))
			continue;
		if (answer.start > addrs[i] || !answer.frame_count || answer.frame_count > CODE_MAX_FRAMES)
			abort();
		for (uint32_t k = 0; k < answer.frame_count; k++)
			code_names_name(found, answer.frames[k].function, &len);
	}
}

static void read_names(const struct symbol_files *files, bool is_all)
{
	static const uint64_t addrs[] = { 0, 1, 0x1000, 0x1001, 0x1080, 0x1234, 0x1ffe, 0x1fff, 0x2000, UINT64_MAX };
	struct code_names *found = code_names_new(is_all ? NULL : addrs, ARRAY_LEN(addrs));

	if (!found)
		return;
	source_dwarf(files, found);
	if (code_names_finish(found) == 0)
		check_answers(found, addrs, ARRAY_LEN(addrs));
	code_names_free(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct parts program = { 0 }, split = { 0 };
	struct buf program_file = BUF_EMPTY, split_file = BUF_EMPTY;
	struct symbol_image second;
	struct symbol_opener opener = { open_again, close_nothing, &second };
	struct symbol_files files = { .split = &opener };

	if (size < 1)
		return 0;
	if (data[0] == 0x7f) {
		buf_append(&program_file, data, size);
	} else {
		divide(data + 1, size - 1, &program, &split);
		dwarf_elf_build(&program_file, program.sections, program.count);
		dwarf_elf_build(&split_file, split.sections, split.count);
	}
	second = (struct symbol_image){ split_file.data, split_file.len };
	files.program = (struct symbol_image){ program_file.data, program_file.len };
	files.common = second;
	if (data[0] & 1)
		files.package = second;
	read_names(&files, data[0] & 2);
	buf_fini(&program_file);
	buf_fini(&split_file);
	return 0;
}
