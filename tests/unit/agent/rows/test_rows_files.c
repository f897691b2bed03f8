/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files built here in every way that decides where their call frame tables stand: .eh_frame with and without its search
 * table and section headers, .debug_frame plain and compressed, both in one file, and damaged. The witness is readelf, or
 * the same file undamaged.
 */
#include <errno.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/agent/rows_truth.h"
#include "tests/unit/descriptors.h"

static char folder[] = "/tmp/rows_files_XXXXXX";

#define UNIT_A                                                                                                          \
	"#include <alloca.h>\n#include <string.h>\n"                                                                    \
	"long g(long);\n"                                                                                               \
	"#define F(n) long f##n(long a, long b) { long s = 0; for (long i = 0; i < a; i++) s += g(i * n) * g(a - i);"   \
	" return s + g(b); }\n"                                                                                         \
	"void unused(void) { __asm__ volatile(\".skip 16384, 0x90\"); }\n" /* reaches far into the code if laid at 0 */ \
	"F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9)\n"                                                                \
	"long realigned(long n) {\n"                                                                                    \
	"	double v[8] __attribute__((aligned(64)));\n"                                                                  \
	"	char *more = alloca(n);\n"                                                                                    \
	"	memset(v, (int)n, sizeof(v)); memset(more, 1, n);\n"                                                          \
	"	return g((long)v[n & 7]) * g(more[3]) + f9(n, n); }\n"                                                        \
	"int main(int c, char **v) { (void)v; return (int)(f1(c, 2) + f7(c, 3) + realigned(c)); }\n"
#define UNIT_B "long g(long x) { return x > 3 ? x * 3 : g(x + 1) + 1; }\nlong h(long x) { return g(x) + g(x + 1); }\n"

/* eh_frame, eight bytes that only .debug_frame knows (CFA = rsp + 24), eh_frame. */
#define UNIT_TINY                                                                                       \
	".section .note.GNU-stack,\"\",@progbits\n.text\n.balign 256\n.globl f7, main\n"                \
	"main:\n"                                                                                       \
	"f7:	.cfi_startproc\n.skip 8, 0x90\n.cfi_endproc\n"                                             \
	"between: .skip 8, 0x90\n"                                                                      \
	"	.cfi_startproc\n.cfi_def_cfa_offset 32\n.skip 8, 0x90\n.cfi_endproc\n.skip 64, 0x90\n"        \
	".section .debug_frame,\"\",@progbits\n"                                                        \
	"cie:	.long 2f - 1f\n"                                                                          \
	"1:	.long -1\n.byte 1, 0\n.uleb128 1\n.sleb128 -8\n.byte 16, 0x0c, 7, 24, 0x90, 1\n.balign 8\n" \
	"2:	.long 4f - 3f\n"                                                                            \
	"3:	.long cie\n.quad between, 8\n.balign 8\n"                                                   \
	"4:\n"

static void write_text(const char *name, const char *text)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	write_text("a.c", UNIT_A);
	write_text("b.c", UNIT_B);
	write_text("both.h", "__asm__(\".cfi_sections .eh_frame, .debug_frame\");\n");
	write_text("tiny.s", UNIT_TINY);
	return 0;
}

static int remove_folder(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

/* Runs @command in the folder; it makes the file "out". Returns its path. */
static const char *build(const char *command)
{
	static char path[64];
	char line[512];

	snprintf(line, sizeof(line), "cd %s && %s", folder, command);
	assert_int_equal(system(line), 0);
	snprintf(path, sizeof(path), "%s/out", folder);
	return path;
}

#define GCC	   "gcc -O2 -mavx2 -fomit-frame-pointer -o out "
#define ONLY_DEBUG "-g -fno-asynchronous-unwind-tables -fno-unwind-tables "

static const struct {
	const char *name, *command;
	size_t min; /* rows */
} cases[] = {
	{ ".eh_frame", GCC "a.c b.c", 100 },
	{ "no search table", GCC "a.c b.c && objcopy -R .eh_frame_hdr out", 100 },
	{ "static", GCC "-static a.c b.c", 100 },
	{ ".debug_frame", GCC ONLY_DEBUG "a.c b.c", 100 },
	{ ".debug_frame, no PIE", GCC ONLY_DEBUG "-no-pie a.c b.c", 100 },
	{ ".debug_frame, compressed", GCC ONLY_DEBUG "-gz=zlib a.c b.c", 100 },
	{ ".debug_frame, compressed in the old way", GCC ONLY_DEBUG "-gz=zlib-gnu a.c b.c", 100 },
	{ "both, of different code", "gcc -O2 " ONLY_DEBUG "-c b.c && " GCC "a.c b.o", 100 },
	{ "both, of the same code", GCC "-include both.h a.c b.c", 100 },
	{ "code that the linker left out", GCC ONLY_DEBUG "-ffunction-sections -Wl,--gc-sections a.c b.c", 20 },
};

static void test_against_readelf(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t checked;

		print_message("%s\n", cases[i].name);
		checked = check_file(build(cases[i].command));
		print_message("%zu rows\n", checked);
		assert_true(checked > cases[i].min);
	}
}

/* --- one file --- */

struct image {
	uint8_t *data;
	size_t len;
	uint64_t text, text_end; /* .text */
	uint64_t f7, f7_end;
};

static void read_image(const char *path, struct image *ret)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t names;
	Elf *elf;

	assert_int_equal(fstat(fd, &st), 0);
	*ret = (struct image){ .len = (size_t)st.st_size, .data = malloc((size_t)st.st_size) };
	assert_non_null(ret->data);
	assert_int_equal(read(fd, ret->data, ret->len), st.st_size);
	elf_version(EV_CURRENT);
	elf = elf_memory((char *)ret->data, ret->len);
	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr head;
		GElf_Sym sym;

		assert_non_null(gelf_getshdr(scn, &head));
		if (strcmp(elf_strptr(elf, names, head.sh_name), ".text") == 0) {
			ret->text = head.sh_addr;
			ret->text_end = head.sh_addr + head.sh_size;
		}
		for (int i = 0; head.sh_type == SHT_SYMTAB && gelf_getsym(elf_getdata(scn, NULL), i, &sym); i++) {
			if (strcmp(elf_strptr(elf, head.sh_link, sym.st_name), "f7") == 0) {
				ret->f7 = sym.st_value;
				ret->f7_end = sym.st_value + sym.st_size;
			}
		}
	}
	elf_end(elf);
	assert_true(ret->f7 && ret->text);
}

static struct row *rows_of(const struct image *image, size_t *count_ret)
{
	size_t max = image->text_end - image->text;
	struct row *rows = calloc(max, sizeof(*rows));
	struct row_source *src;

	assert_non_null(rows);
	assert_int_equal(row_source_new_memory(image->data, image->len, &src), 0);
	assert_int_equal(rows_build(src, image->text, image->text_end, rows, max, count_ret), 0);
	row_source_free(src);
	return rows;
}

/* The row of @addr that a table gives, if any. */
static const struct row *row_at(const struct row *rows, size_t count, uint64_t addr)
{
	for (size_t i = 0; i < count; i++)
		if (addr >= rows[i].start && addr < rows[i].end && !rows[i].is_guess)
			return &rows[i];
	return NULL;
}

/* What a row says, whatever its range. */
static bool is_same(const struct row *a, const struct row *b)
{
	const size_t how = offsetof(struct row, cfa), how_end = offsetof(struct row, capture) + 1,
		     offsets = offsetof(struct row, cfa_off); /* there is padding between */

	return a && b && memcmp((const uint8_t *)a + how, (const uint8_t *)b + how, how_end - how) == 0 &&
	       memcmp((const uint8_t *)a + offsets, (const uint8_t *)b + offsets, sizeof(*a) - offsets) == 0;
}

static void test_no_section_headers(void **state)
{
	struct image image;
	struct row *with, *without;
	size_t with_count, without_count, covered = 0;

	(void)state;
	read_image(build(GCC "a.c b.c"), &image);
	with = rows_of(&image, &with_count);
	memset(image.data + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(Elf64_Off));
	memset(image.data + offsetof(Elf64_Ehdr, e_shnum), 0, 2 * sizeof(Elf64_Half));
	without = rows_of(&image, &without_count);
	for (uint64_t addr = image.text; addr < image.text_end; addr++) {
		const struct row *a = row_at(with, with_count, addr), *b = row_at(without, without_count, addr);

		covered += a != NULL;
		assert_true(a == b || is_same(a, b));
	}
	assert_true(covered > (image.text_end - image.text) / 2);
	free(with);
	free(without);
	free(image.data);
}

/* Breaks the entry of f7 in .eh_frame: its pointer to the common part leads nowhere. */
static void break_entry(struct image *image)
{
	Elf *elf = elf_memory((char *)image->data, image->len);
	size_t names, broken = 0;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		uint32_t len, id;
		GElf_Shdr head;

		assert_non_null(gelf_getshdr(scn, &head));
		if (strcmp(elf_strptr(elf, names, head.sh_name), ".eh_frame") != 0)
			continue;
		for (uint64_t off = 0; off + 12 <= head.sh_size; off += 4 + len) {
			uint8_t *entry = image->data + head.sh_offset + off;
			int32_t start;

			memcpy(&len, entry, sizeof(len));
			memcpy(&id, entry + 4, sizeof(id));
			memcpy(&start, entry + 8, sizeof(start)); /* relative to itself */
			if (!id || head.sh_addr + off + 8 + (uint64_t)(int64_t)start != image->f7)
				continue;
			memset(entry + 4, 0x7e, sizeof(id));
			broken++;
		}
	}
	elf_end(elf);
	assert_int_equal(broken, 1);
}

/* One damaged function costs that function, with or without the search table; nothing when .debug_frame has it too. */
static void test_bad_entry(void **state)
{
	static const struct {
		const char *command;
		bool has_other;
	} files[] = {
		{ GCC "a.c b.c", false },
		{ GCC "a.c b.c && objcopy -R .eh_frame_hdr out", false },
		{ GCC "-include both.h a.c b.c", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		size_t sound_count, bad_count, lost = 0;
		struct row *sound, *bad;
		struct image image;

		print_message("%s\n", files[i].command);
		read_image(build(files[i].command), &image);
		sound = rows_of(&image, &sound_count);
		break_entry(&image);
		bad = rows_of(&image, &bad_count);
		for (uint64_t addr = image.text; addr < image.text_end; addr++) {
			const struct row *was = row_at(sound, sound_count, addr), *is = row_at(bad, bad_count, addr);

			if (was && !is)
				lost++;
			else
				assert_true(was == is || is_same(was, is));
			/* with the padding on both sides */
			assert_true(is || !was || (addr + 16 > image.f7 && addr < image.f7_end + 16));
		}
		assert_true(files[i].has_other ? lost == 0 : lost >= image.f7_end - image.f7);
		free(sound);
		free(bad);
		free(image.data);
	}
}

/* Code between two functions, short as padding, that another table covers. */
static void test_not_padding(void **state)
{
	struct image image;
	struct row *rows;
	size_t count;

	(void)state;
	read_image(build("gcc -o out tiny.s"), &image);
	rows = rows_of(&image, &count);
	for (uint64_t off = 0; off < 24; off++) {
		const struct row *row = row_at(rows, count, image.f7 + off);

		assert_true(row && row->cfa == ROW_CFA_REG && row->cfa_reg == REG_SP);
		assert_int_equal(row->cfa_off, off < 8 ? 8 : off < 16 ? 24 : 32);
	}
	assert_null(row_at(rows, count, image.f7 + 24));
	free(rows);
	free(image.data);
}

/* gcc's code for over-aligned stacks: the caller's rbp stands where rbp points, up to the pop that gives it back. */
static void test_realigned(void **state)
{
	static const uint8_t epilogue[] = { 0x5d, 0x49, 0x8d, 0x62, 0xf8, 0xc3 }; /* pop rbp; lea -8(r10), rsp; ret */
	size_t count, realigned = 0, given_back = 0;
	struct image image;
	struct row *rows;

	(void)state;
	read_image(build(GCC "a.c b.c"), &image);
	rows = rows_of(&image, &count);
	for (size_t i = 0; i < count; i++)
		realigned += rows[i].cfa == ROW_CFA_DEREF && rows[i].cfa_reg == REG_FP &&
			     rows[i].saved[SAVED_FP] == ROW_AT_FP && row_is_at_fp(rows[i].saved[SAVED_RBX]);
	assert_true(realigned > 0);
	for (const uint8_t *at = image.data;
	     (at = memmem(at, (size_t)(image.data + image.len - at), epilogue, sizeof(epilogue))); at++) {
		uint64_t addr = (uint64_t)(at - image.data); /* the same in the file and in memory */
		const struct row *pop = row_at(rows, count, addr), *lea = row_at(rows, count, addr + 1),
				 *ret = row_at(rows, count, addr + 5);

		given_back++;
		assert_true(pop && pop->cfa_reg == 10 && pop->saved[SAVED_FP] == ROW_AT_FP);
		assert_true(lea && lea->cfa_reg == 10 && lea->saved[SAVED_FP] == ROW_SAME);
		assert_true(ret && ret->cfa_reg == REG_SP && ret->cfa_off == 8 && ret->saved[SAVED_FP] == ROW_SAME);
	}
	assert_true(given_back > 0);
	free(rows);
	free(image.data);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_readelf), cmocka_unit_test(test_no_section_headers),
		cmocka_unit_test(test_bad_entry),	cmocka_unit_test(test_not_padding),
		cmocka_unit_test(test_realigned),
	};

	return run_group_of_descriptors(tests, make_folder, remove_folder);
}
