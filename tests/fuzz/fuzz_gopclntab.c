/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's function table out of hostile files. The first byte chooses: the rest is the file itself, or what the read-only
 * segment of a sound file holds, the table's header first, so that the search does not have to invent the file around it.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rows/row_builder.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/sources/gopclntab.h"
#include "symbols/code/source.h"
#include "tests/unit/elf_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CODE_ADDR = 0x1000, CODE_BYTES = 512, TABLE_ADDR = 0x8000, MAX_FUNCTIONS = 64, MAX_VALUES = 1 << 16 };

static void wrap(struct buf *file, const uint8_t *data, size_t size)
{
	static const uint8_t note[20] = "\4\0\0\0\4\0\0\0\4\0\0\0Go\0\0abcd";
	static uint8_t code[CODE_BYTES];
	enum { TABLE, CODE, NOTE, SEGMENTS };
	size_t start = sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr);
	Elf64_Ehdr ehdr = {
		ELF_HEAD(EM_X86_64),
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_phnum = SEGMENTS,
	};
	Elf64_Phdr segments[SEGMENTS] = {
		[TABLE] = { .p_type = PT_LOAD,
			    .p_flags = PF_R | PF_W,
			    .p_offset = start + sizeof(note) + sizeof(code),
			    .p_vaddr = TABLE_ADDR,
			    .p_filesz = size },
		[CODE] = { .p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_offset = start + sizeof(note),
			   .p_vaddr = CODE_ADDR,
			   .p_filesz = sizeof(code) },
		[NOTE] = { .p_type = PT_NOTE, .p_offset = start, .p_filesz = sizeof(note) },
	};

	for (size_t i = 0; i < sizeof(code); i += 8)
		memcpy(code + i, "\x55\x48\x89\xe5\x48\x8b\x66\x38", 8);
	buf_append(file, &ehdr, sizeof(ehdr));
	buf_append(file, segments, sizeof(segments));
	buf_append(file, note, sizeof(note));
	buf_append(file, code, sizeof(code));
	buf_append(file, data, size);
}

static void read_function(const struct gopclntab *t, const struct gopclntab_function *fn)
{
	struct gopclntab_values it;
	uint64_t start, end, last = fn->entry;
	const char *file;
	int32_t value;
	size_t len;

	if (fn->entry >= fn->end || strlen(fn->name) != fn->name_len)
		abort();
	gopclntab_values_init(t, fn, fn->sp_values, &it);
	for (int i = 0; i < MAX_VALUES && gopclntab_values_next(&it, &start, &end, &value); i++, last = end)
		if (start != last || end <= start)
			abort();
	if (gopclntab_line(t, fn, fn->entry + (fn->end - fn->entry) / 2, &file, &len, &value) == 0 && strlen(file) != len)
		abort();
}

/* Inlined calls by number, and all that the table says as a source of names. */
static void read_inlined(struct gopclntab *t)
{
	const struct symbol_files files = { .program = { t->image, t->image_len } };
	struct code_names *names = code_names_new(NULL, 0);
	struct gopclntab_inlined inlined;
	struct gopclntab_function fn;
	struct code_answer answer;

	if (gopclntab_open_inlined(t) == 0)
		for (uint32_t i = 0; i < t->function_count && i < MAX_FUNCTIONS; i++)
			if (gopclntab_function(t, i, &fn) == 0 && gopclntab_inlined(t, &fn, i, &inlined) == 0 &&
			    (strlen(inlined.name) != inlined.name_len || inlined.call_addr >= fn.end))
				abort();
	if (!names)
		return;
	source_go(&files, names);
	if (code_names_finish(names) == 0)
		for (uint64_t addr = t->text; addr - t->text < CODE_BYTES; addr++)
			if (code_names_find(names, addr, &answer) == 0 && !answer.frame_count)
				abort();
	code_names_free(names);
}

static void read_rows(const struct row_image *image, uint64_t start)
{
	struct row rows[256];
	size_t count;
	void *state;

	if (rows_go.open(image, &state))
		return;
	for (int block = 0; block < 4; block++, start += 200) {
		if (rows_go.build(state, start, start + ARRAY_LEN(rows), rows, ARRAY_LEN(rows), &count))
			abort();
		for (size_t i = 0; i < count; i++)
			if (rows[i].start < (i ? rows[i - 1].end : start) || rows[i].end <= rows[i].start ||
			    rows[i].end > start + ARRAY_LEN(rows) || rows[i].cfa > ROW_CFA_ROOT)
				abort();
	}
	rows_go.close(state);
}

static void read_table(const uint8_t *data, size_t size)
{
	const struct row_image image = { .data = data, .len = size };
	struct gopclntab_function fn;
	struct gopclntab t;
	uint32_t index;

	if (gopclntab_open(data, size, &t))
		return;
	for (uint32_t i = 0; i < t.function_count && i < MAX_FUNCTIONS; i++)
		if (gopclntab_function(&t, i, &fn) == 0)
			read_function(&t, &fn);
	if (gopclntab_find(&t, t.text, &index) == 0 && index >= t.function_count)
		abort();
	read_inlined(&t);
	read_rows(&image, t.text > 128 ? t.text - 128 : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf file = BUF_EMPTY;

	if (size < 1)
		return 0;
	if (data[0] == 0x7f) { /* as a real file starts */
		buf_append(&file, data, size);
	} else {
		wrap(&file, data + 1, size - 1);
	}
	if (!file.failed)
		read_table(file.data, file.len);
	buf_fini(&file);
	return 0;
}
