/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF that was made to be hard to read: references in circles, the same list over and over, absurd counts and depths, text
 * and programs without an end, packed sections that grow too large; and a sound program's, cut and with bytes changed. Each
 * must be read to an end, soon, within bounds; what is sound in it keeps its name.
 */
#include <dwarf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <zlib.h>

#include "base/cleanup.h"
#include "symbols/code/source.h"
#include "tests/unit/symbols/dwarf_elf.h"
#include "tests/unit/symbols/dwarf_program.h"

/* The sections of one program. */
struct made {
	struct buf info, abbrev, ranges, line, str;
};

static void made_fini(struct made *m)
{
	buf_fini(&m->info);
	buf_fini(&m->abbrev);
	buf_fini(&m->ranges);
	buf_fini(&m->line);
	buf_fini(&m->str);
}

static void put(struct buf *b, uint64_t value, size_t bytes)
{
	buf_append(b, &value, bytes); /* little-endian, as the machines we test on */
}

static void put_uleb(struct buf *b, uint64_t value)
{
	do {
		buf_putc(b, (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0)));
		value >>= 7;
	} while (value);
}

/* An abbreviation: pairs of attribute and form up to a 0. */
static void put_abbrev(struct buf *b, uint64_t code, uint64_t tag, bool has_children, const uint16_t *pairs)
{
	put_uleb(b, code);
	put_uleb(b, tag);
	put(b, has_children, 1);
	for (; *pairs; pairs++)
		put_uleb(b, *pairs);
	put(b, 0, 2);
}

/* The head of a unit of version 4, whose length is not known yet. */
static void put_unit(struct buf *b)
{
	put(b, 0, 4);
	put(b, 4, 2);
	put(b, 0, 4);
	put(b, 8, 1);
}

static void end_unit(struct buf *b, size_t start)
{
	uint32_t len = (uint32_t)(b->len - start - 4);

	memcpy(b->data + start, &len, sizeof(len));
}

static int fill_from_image(const struct symbol_image *image, struct code_names *names)
{
	struct symbol_files files = { .program = *image };
	int r = source_dwarf(&files, names);

	assert_true(r == 0 || r == -EBADMSG || r == -ENODATA);
	assert_int_equal(code_names_finish(names), 0);
	return r;
}

/* Reads the file @image. Returns what source_dwarf did. */
static int read_image(const struct symbol_image *image)
{
	struct code_names *names = code_names_new(NULL, 0);
	int r;

	assert_non_null(names);
	r = fill_from_image(image, names);
	code_names_free(names);
	return r;
}

static int fill(const struct made *m, struct code_names *names)
{
	const struct dwarf_elf_section sections[] = {
		{ ".debug_info", m->info.data, m->info.len, 0 },       { ".debug_abbrev", m->abbrev.data, m->abbrev.len, 0 },
		{ ".debug_ranges", m->ranges.data, m->ranges.len, 0 }, { ".debug_line", m->line.data, m->line.len, 0 },
		{ ".debug_str", m->str.data, m->str.len, 0 },
	};
	struct buf file = BUF_EMPTY;
	int r;

	dwarf_elf_build(&file, sections, ARRAY_LEN(sections));
	r = fill_from_image(&(struct symbol_image){ file.data, file.len }, names);
	buf_fini(&file);
	return r;
}

/* @names_ret may be NULL. */
static int read_made(const struct made *m, struct code_names **names_ret)
{
	struct code_names *names = code_names_new(NULL, 0);
	int r;

	assert_non_null(names);
	r = fill(m, names);
	if (names_ret)
		*names_ret = names;
	else
		code_names_free(names);
	return r;
}

/* The name at @addr, "" when there is none. */
static const char *name_at(const struct code_names *names, uint64_t addr)
{
	static struct code_answer answer;
	static char text[256];
	const char *name;
	size_t len;

	if (code_names_find(names, addr, &answer))
		return "";
	name = code_names_name(names, answer.frames[0].function, &len);
	snprintf(text, sizeof(text), "%.*s", (int)len, name);
	return text;
}

enum { UNIT = 1, FUNCTION, REFERRING, LISTED, NESTED };

/* The abbreviations that the tests below use, and a unit that stays open. */
static void begin(struct made *m)
{
	*m = (struct made){ 0 };
	put_abbrev(&m->abbrev, UNIT, DW_TAG_compile_unit, true, (const uint16_t[]){ 0 });
	put_abbrev(&m->abbrev, FUNCTION, DW_TAG_subprogram, false,
		   (const uint16_t[]){ DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_name, DW_FORM_string,
				       0 });
	put_abbrev(&m->abbrev, REFERRING, DW_TAG_subprogram, false,
		   (const uint16_t[]){ DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_abstract_origin,
				       DW_FORM_ref4, 0 });
	put_abbrev(&m->abbrev, LISTED, DW_TAG_subprogram, false,
		   (const uint16_t[]){ DW_AT_ranges, DW_FORM_sec_offset, DW_AT_name, DW_FORM_string, 0 });
	put_abbrev(&m->abbrev, NESTED, DW_TAG_inlined_subroutine, true,
		   (const uint16_t[]){ DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, DW_AT_name, DW_FORM_string,
				       0 });
	put(&m->abbrev, 0, 1);
	put_unit(&m->info);
	put_uleb(&m->info, UNIT);
}

static void put_function(struct made *m, uint64_t start, uint32_t bytes, const char *name)
{
	put_uleb(&m->info, FUNCTION);
	put(&m->info, start, 8);
	put(&m->info, bytes, 4);
	buf_append(&m->info, name, strlen(name) + 1);
}

static void put_referring(struct made *m, uint64_t start, uint64_t off)
{
	put_uleb(&m->info, REFERRING);
	put(&m->info, start, 8);
	put(&m->info, 16, 4);
	put(&m->info, off, 4);
}

static void end(struct made *m)
{
	put(&m->info, 0, 1);
	end_unit(&m->info, 0);
}

/* An entry whose origin is itself, two that are each other's, one that leads out of the unit. */
static void test_circles(void **state)
{
	struct code_names *names;
	struct made m;
	uint64_t at;

	(void)state;
	begin(&m);
	put_function(&m, 0x1000, 16, "sound");
	put_referring(&m, 0x1010, m.info.len);
	at = m.info.len;
	put_referring(&m, 0x1020, at + 17);
	put_referring(&m, 0x1030, at);
	put_referring(&m, 0x1040, 0xfffffff0);
	put_referring(&m, 0x1050, 3);
	put_function(&m, 0x1060, 16, "behind");
	end(&m);
	assert_int_equal(read_made(&m, &names), 0);
	assert_string_equal(name_at(names, 0x1008), "sound");
	for (uint64_t addr = 0x1010; addr < 0x1060; addr += 16)
		assert_string_equal(name_at(names, addr), "");
	assert_string_equal(name_at(names, 0x1060), "behind");
	code_names_free(names);
	made_fini(&m);
}

/* Where there is no code there are no names: dropped functions stand at 0 or at the top. */
static void test_dropped(void **state)
{
	struct code_names *names;
	struct made m;

	(void)state;
	begin(&m);
	put_function(&m, 0, 0x1800, "at_zero");
	put_function(&m, UINT64_MAX - 8, 16, "at_the_top");
	put_function(&m, 0x1ff0, 0x20, "beyond");
	put_function(&m, 0x1100, 0, "empty");
	put_function(&m, 0x1200, 8, "sound");
	end(&m);
	assert_int_equal(read_made(&m, &names), 0);
	assert_string_equal(name_at(names, 0x8), "");
	assert_string_equal(name_at(names, 0x1000), "");
	assert_string_equal(name_at(names, 0x1100), "");
	assert_string_equal(name_at(names, 0x1ff8), "");
	assert_string_equal(name_at(names, UINT64_MAX - 4), "");
	assert_string_equal(name_at(names, 0x1204), "sound");
	code_names_free(names);
	made_fini(&m);
}

/* 50,000 functions with the same 50,000 ranges: 2.5 thousand million, were they all looked at. */
static void test_shared_list(void **state)
{
	enum { MANY = 50000 };
	struct code_names *names;
	struct made m;

	(void)state;
	begin(&m);
	put_function(&m, 0x1000, 16, "sound");
	for (int i = 0; i < MANY; i++) {
		put(&m.ranges, 0x1100, 8);
		put(&m.ranges, 0x1100, 8); /* empty */
		put_uleb(&m.info, LISTED);
		put(&m.info, 0, 4);
		buf_append(&m.info, "f", 2);
	}
	put(&m.ranges, 0, 8);
	put(&m.ranges, 0, 8);
	end(&m);
	assert_int_equal(read_made(&m, &names), -EBADMSG);
	assert_string_equal(name_at(names, 0x1000), "sound");
	code_names_free(names);
	made_fini(&m);
}

/* Calls inlined 200,000 deep. */
static void test_deep(void **state)
{
	enum { MANY = 200000 };
	struct code_names *names;
	struct made m;

	(void)state;
	begin(&m);
	for (int i = 0; i < MANY; i++) {
		put_uleb(&m.info, NESTED);
		put(&m.info, 0x1000, 8);
		put(&m.info, 16, 1);
		buf_append(&m.info, "f", 2);
	}
	end(&m);
	assert_int_equal(read_made(&m, &names), 0);
	assert_string_equal(name_at(names, 0x1008), "f");
	code_names_free(names);
	made_fini(&m);
}

static void put_nested(struct made *m, uint64_t start, const char *name)
{
	put_uleb(&m->info, NESTED);
	put(&m->info, start, 8);
	put(&m->info, 16, 1);
	buf_append(&m->info, name, strlen(name) + 1);
}

/* A call inlined into one whose range it lies outside of, as compilers make them; also where it alone is asked for. */
static void test_call_outside(void **state)
{
	static const uint64_t wanted[] = { 0x1048 };
	static struct code_answer answer;

	(void)state;
	for (size_t count = 0; count < 2; count++) {
		struct code_names *names = code_names_new(count ? wanted : NULL, count);
		struct made m;

		begin(&m);
		put_nested(&m, 0x1000, "outer");
		put_nested(&m, 0x1010, "middle");
		put_nested(&m, 0x1040, "inner");
		put(&m.info, 0, 3);
		end(&m);
		assert_int_equal(fill(&m, names), 0);
		assert_int_equal(code_names_find(names, 0x1048, &answer), 0);
		assert_int_equal(answer.frame_count, 3);
		code_names_free(names);
		made_fini(&m);
	}
}

/* A name that does not end with its unit, a unit that does not end with its section, an abbreviation without an end. */
static void test_no_end(void **state)
{
	struct code_names *names;
	struct made m;

	(void)state;
	begin(&m);
	put_function(&m, 0x1000, 16, "sound");
	put_function(&m, 0x1010, 16, "cut");
	m.info.len -= 2;
	end_unit(&m.info, 0);
	assert_int_equal(read_made(&m, &names), -EBADMSG);
	assert_string_equal(name_at(names, 0x1000), "sound");
	assert_string_equal(name_at(names, 0x1010), "");
	code_names_free(names);
	m.info.data[0]++;
	assert_int_equal(read_made(&m, &names), -EBADMSG);
	assert_string_equal(name_at(names, 0x1000), "");
	code_names_free(names);
	made_fini(&m);

	begin(&m);
	put_function(&m, 0x1000, 16, "sound");
	end(&m);
	m.abbrev.len -= 2;
	assert_int_equal(read_made(&m, NULL), -EBADMSG);
	made_fini(&m);
}

/* --- line programs --- */

/* A unit with the line program in m->line. */
static void begin_lines(struct made *m)
{
	*m = (struct made){ 0 };
	put_abbrev(&m->abbrev, UNIT, DW_TAG_compile_unit, false,
		   (const uint16_t[]){ DW_AT_stmt_list, DW_FORM_sec_offset, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
				       DW_FORM_data4, 0 });
	put(&m->abbrev, 0, 1);
	put_unit(&m->info);
	put_uleb(&m->info, UNIT);
	put(&m->info, 0, 4);
	put(&m->info, 0x1000, 8);
	put(&m->info, 0x100, 4);
	end_unit(&m->info, 0);
}

/* A header of version 5 up to its tables. */
static void put_lines_head(struct buf *b)
{
	static const uint8_t fixed[] = { 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

	put(b, 0, 4);
	put(b, 5, 2);
	put(b, 8, 1);
	put(b, 0, 1);
	put(b, 0, 4);
	buf_append(b, fixed, sizeof(fixed));
}

/* 2^60 directories that take no bytes, or a form nobody knows. */
static void test_counts(void **state)
{
	struct made m;

	(void)state;
	for (int form = -1; form < 256; form++) {
		begin_lines(&m);
		put_lines_head(&m.line);
		put(&m.line, form >= 0, 1);
		if (form >= 0) {
			put_uleb(&m.line, DW_LNCT_path);
			put_uleb(&m.line, (uint64_t)form);
		}
		put_uleb(&m.line, 1ull << 60);
		put(&m.line, 0, 8);
		end_unit(&m.line, 0);
		m.line.data[8] = (uint8_t)(m.line.len - 12);
		assert_int_equal(read_made(&m, NULL), -EBADMSG);
		made_fini(&m);
	}
}

/* A program without an end of its sequence: rows up to its last are known. */
static void test_endless_lines(void **state)
{
	static const uint8_t tables[] = { 1, DW_LNCT_path, DW_FORM_string, 1, '/', 'd', 0,
					  1, DW_LNCT_path, DW_FORM_string, 2, 'a', 0,	'b',
					  0 };
	static struct code_answer answer;
	struct code_names *names;
	struct made m;

	(void)state;
	begin_lines(&m);
	put_lines_head(&m.line);
	buf_append(&m.line, tables, sizeof(tables));
	m.line.data[8] = (uint8_t)(m.line.len - 12);
	put(&m.line, 0x0900 | DW_LNE_set_address << 16, 3);
	put(&m.line, 0x1000, 8);
	for (int i = 0; i < 1 << 20; i++)
		put(&m.line, 13 + 5 + 14 + 1, 1); /* one byte and one line further */
	end_unit(&m.line, 0);
	assert_int_equal(read_made(&m, &names), 0);
	assert_int_equal(code_names_find(names, 0x1010, &answer), -ENOENT);
	assert_int_equal(answer.frame_count, 1);
	assert_int_equal(answer.frames[0].line, 17);
	code_names_free(names);
	made_fini(&m);
}

/* --- packed sections --- */

/* Says that 4 GB are in it, or more than there are, or fewer. */
static void test_packed(void **state)
{
	static const uint64_t sizes[] = { 1ull << 32, 1ull << 30, 1, 0, UINT64_MAX };
	static uint8_t zeros[1 << 20], packed[1 << 12];
	uLongf packed_len = sizeof(packed) - sizeof(Elf64_Chdr);

	(void)state;
	assert_int_equal(compress2(packed + sizeof(Elf64_Chdr), &packed_len, zeros, sizeof(zeros), 9), Z_OK);
	for (size_t i = 0; i < 3 * ARRAY_LEN(sizes); i++) {
		/* zlib, zstd, which these bytes are not, and what nobody knows. */
		Elf64_Chdr head = { .ch_type = (Elf64_Word)(1 + i % 3), .ch_addralign = 1, .ch_size = sizes[i / 3] };
		const struct dwarf_elf_section section = { ".debug_info", packed, sizeof(head) + packed_len,
							   SHF_COMPRESSED };
		struct buf file = BUF_EMPTY;

		memcpy(packed, &head, sizeof(head));
		dwarf_elf_build(&file, &section, 1);
		assert_int_equal(read_image(&(struct symbol_image){ file.data, file.len }), -EBADMSG);
		buf_fini(&file);
	}
}

/* --- a real program, damaged --- */

static void test_damaged(void **state)
{
	static const char *const sections[] = { ".debug_info", ".debug_abbrev", ".debug_line", ".debug_rnglists" };
	struct symbol_image program;
	AUTO_FREE uint8_t *copy = NULL;
	uint64_t seed = 1;

	(void)state;
	assert_int_equal(dwarf_run("gcc -O2 -gdwarf-5 -w $D/dwarf_calls.c $D/dwarf_calls_far.c -o program"), 0);
	program = dwarf_map("program");
	copy = malloc(program.len_bytes);
	for (size_t len = 0; len < program.len_bytes; len += program.len_bytes / 64)
		read_image(&(struct symbol_image){ program.data, len });
	for (int round = 0; round < 1500; round++) {
		Elf64_Shdr s = dwarf_section_header(&program, sections[round % 4]);

		memcpy(copy, program.data, program.len_bytes);
		for (int i = 0; i < 1 + round % 3; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			copy[s.sh_offset + (seed >> 33) % s.sh_size] = (uint8_t)(seed >> 24);
		}
		read_image(&(struct symbol_image){ copy, program.len_bytes });
	}
	symbol_image_unmap(&program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_circles), cmocka_unit_test(test_dropped),	      cmocka_unit_test(test_shared_list),
		cmocka_unit_test(test_deep),	cmocka_unit_test(test_call_outside),  cmocka_unit_test(test_no_end),
		cmocka_unit_test(test_counts),	cmocka_unit_test(test_endless_lines), cmocka_unit_test(test_packed),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, dwarf_make_folder, dwarf_remove_folder);
}
