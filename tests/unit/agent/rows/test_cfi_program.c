/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows read in one pass against those of libdw, for every function of real files ($CFI_FILES: others, all of their
 * functions); and damaged tables, of which nothing outside is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/rows/cfi.h"
#include "tests/unit/descriptors.h"

enum { MAX_ROWS = 8192, MOST_FUNCTIONS = 4000 };

struct opened {
	const uint8_t *data;
	size_t len;
	Elf *elf;
	Dwarf_CFI *cfi;
	struct cfi_starts starts;
};

static bool open_file(const char *path, struct opened *o)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	uint64_t frame = 0;
	size_t count;
	GElf_Phdr ph;

	memset(o, 0, sizeof(*o));
	if (fd < 0 || fstat(fd, &st))
		return false;
	o->len = (size_t)st.st_size;
	o->data = mmap(NULL, o->len, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	assert_true(o->data != MAP_FAILED);
	elf_version(EV_CURRENT);
	o->elf = elf_memory((char *)(uintptr_t)o->data, o->len);
	o->cfi = dwarf_getcfi_elf(o->elf);
	if (!o->cfi || elf_getphdrnum(o->elf, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		assert_non_null(gelf_getphdr(o->elf, (int)i, &ph));
		if (ph.p_type != PT_GNU_EH_FRAME)
			continue;
		frame = ph.p_vaddr;
		o->starts = (struct cfi_starts){ .table = o->data + ph.p_offset + 12,
						 .count = *(const uint32_t *)(const void *)(o->data + ph.p_offset + 8),
						 .base = ph.p_vaddr };
		break;
	}
	assert_int_equal(elf_getphdrnum(o->elf, &count), 0);
	for (size_t i = 0; i < count && frame; i++) {
		assert_non_null(gelf_getphdr(o->elf, (int)i, &ph));
		if (ph.p_type == PT_LOAD && frame - ph.p_vaddr < ph.p_filesz)
			o->starts.frame = (struct cfi_bytes){ o->data + ph.p_offset, ph.p_vaddr, ph.p_filesz };
	}
	return o->starts.frame.data;
}

static void close_file(struct opened *o)
{
	dwarf_cfi_end(o->cfi);
	elf_end(o->elf);
	munmap((void *)(uintptr_t)o->data, o->len);
}

static bool same_rules(const struct row *a, const struct row *b)
{
	return a->cfa == b->cfa && a->cfa_reg == b->cfa_reg && a->is_signal_frame == b->is_signal_frame &&
	       a->cfa_off == b->cfa_off && a->cfa_off2 == b->cfa_off2 && !memcmp(a->saved, b->saved, sizeof(a->saved));
}

/* Equal neighbours become one. */
static size_t merge(struct row *rows, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if (n && rows[n - 1].end == rows[i].start && same_rules(&rows[n - 1], &rows[i]))
			rows[n - 1].end = rows[i].end;
		else
			rows[n++] = rows[i];
	}
	return n;
}

static struct row quick[MAX_ROWS], slow[MAX_ROWS];

/* The rows of [@start, @end) both ways. */
static void compare(const struct opened *o, const char *path, uint64_t start, uint64_t end)
{
	struct cfi_starts alone = o->starts;
	size_t quick_count, slow_count;

	alone.frame.data = NULL;
	assert_int_equal(rows_cfi_build(o->cfi, &o->starts, start, end, quick, MAX_ROWS, &quick_count), 0);
	assert_int_equal(rows_cfi_build(o->cfi, &alone, start, end, slow, MAX_ROWS, &slow_count), 0);
	quick_count = merge(quick, quick_count);
	slow_count = merge(slow, slow_count);
	if (quick_count != slow_count)
		fail_msg("%s %lx: %zu rows, libdw has %zu", path, start, quick_count, slow_count);
	for (size_t i = 0; i < quick_count; i++)
		if (quick[i].start != slow[i].start || quick[i].end != slow[i].end || !same_rules(&quick[i], &slow[i]))
			fail_msg("%s: row of %lx to %lx is another than libdw's", path, quick[i].start, quick[i].end);
}

static uint64_t word(const struct opened *o, size_t i, int which)
{
	int32_t value;

	memcpy(&value, o->starts.table + i * CFI_START_BYTES + which * 4, sizeof(value));
	return o->starts.base + (uint64_t)(int64_t)value;
}

static void compare_file(const char *path, size_t most)
{
	size_t common = 0, asked = 0, count;
	struct opened o;
	uint64_t stop;

	if (!open_file(path, &o)) {
		printf("%s is not here\n", path);
		return;
	}
	for (size_t i = 0; i + 1 < o.starts.count; i += 1 + o.starts.count / most) {
		uint64_t start = word(&o, i, 0), end = word(&o, i + 1, 0);

		if (end - start > 4 * MAX_ROWS)
			end = start + 4 * MAX_ROWS;
		asked++;
		common += !cfi_program_rows(&o.starts.frame, word(&o, i, 1), start, start, end, quick, MAX_ROWS, &count,
					    &stop);
		compare(&o, path, start, end);
		if (end - start > 40)
			compare(&o, path, start + (end - start) / 3, end - 7);
	}
	printf("%s: %zu of %zu functions are of the common kind\n", path, common, asked);
	if (!CPU_HAS_LR)
		assert_true(CPU_HAS_LR || asked < 100 || common > asked * 9 / 10);
	close_file(&o);
}

static void test_real_files(void **state)
{
	static const char *const paths[] = { "/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6",
					     "/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/bin/gcc", "/usr/bin/bash" };
	char *more = getenv("CFI_FILES");

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		compare_file(paths[i], MOST_FUNCTIONS);
	while (more && *more)
		compare_file(strsep(&more, " "), SIZE_MAX);
}

/* At the end of readable memory; with bytes changed at random. */
static void test_damage(void **state)
{
	struct opened o;
	unsigned seed = 1;
	size_t page = 4096, len, count;
	uint8_t *copy;
	uint64_t stop;

	(void)state;
	assert_true(open_file("/proc/self/exe", &o));
	len = (o.starts.frame.len + page - 1) / page * page;
	copy = mmap(NULL, len + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(copy != MAP_FAILED);
	assert_int_equal(mprotect(copy + len, page, PROT_NONE), 0);
	copy += len - o.starts.frame.len;
	memcpy(copy, o.starts.frame.data, o.starts.frame.len);
	for (int i = 0; i < 200000; i++) {
		size_t which = (size_t)rand_r(&seed) % o.starts.count;
		uint64_t entry = word(&o, which, 1), start = word(&o, which, 0), off = entry - o.starts.frame.addr;
		uint64_t at = off + (unsigned)rand_r(&seed) % 48;
		struct cfi_bytes bytes = { copy, o.starts.frame.addr, o.starts.frame.len };

		if (at >= bytes.len)
			continue;
		if (i % 3 == 0)
			bytes.len = at;
		if (i % 7 == 0)
			entry += (unsigned)rand_r(&seed) % 64;
		copy[at] = (uint8_t)rand_r(&seed);
		if (cfi_program_rows(&bytes, entry, start, start, start + 4096, quick, 16 + i % 16, &count, &stop) == 0) {
			assert_true(count <= 16 + (size_t)i % 16 && stop > start);
			for (size_t k = 0; k < count; k++)
				assert_true(quick[k].start < quick[k].end &&
					    quick[k].start >= (k ? quick[k - 1].end : start) &&
					    quick[k].end <= start + 4096 && quick[k].cfa_reg < USER_REGS);
		}
		copy[at] = o.starts.frame.data[at];
	}
	close_file(&o);
}

/* One function of 32 bytes by hand. What its common entry says it must have finished: no address, no state put by. */
static void test_common_entry(void **state)
{
	enum { ENTRY = 24, FUNCTION = 0x2000, AT = 0x1000 };
	static const struct {
		uint8_t operations[2];
		int result;
	} cases[] = {
		{ { 0x00, 0x00 }, 0 },	     /* nop */
		{ { 0x0a, 0x0b }, 0 },	     /* remember_state, restore_state */
		{ { 0x00, 0x0a }, -ENOENT }, /* remember_state */
		{ { 0x41, 0x00 }, -ENOENT }, /* advance_loc */
	};
	uint8_t bytes[48] = { 20,   0, 0,  0, /* the common entry's length, its mark, version, letters */
			      0,    0, 0,  0, 1, 'z', 'R',	 0, 1, 0x78, 16, 1, 0x1b, /* ... alignments, ra, encoding */
			      0x0c, 7, 8,						  /* CFA = rsp + 8 */
			      0x90, 1,							  /* ra at CFA - 8 */
			      0,    0, 20, 0, 0, 0,   ENTRY + 4, 0, 0, 0 };
	const struct cfi_bytes frame = { bytes, AT, sizeof(bytes) };
	const int32_t begin = FUNCTION - (AT + ENTRY + 8), len = 32;
	struct row rows[4];
	uint64_t stop;
	size_t count;

	(void)state;
	if (CPU_HAS_LR) /* there libdw reads them all */
		skip();
	memcpy(bytes + ENTRY + 8, &begin, 4);
	memcpy(bytes + ENTRY + 12, &len, 4);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		memcpy(bytes + ENTRY - 2, cases[i].operations, 2);
		assert_int_equal(
			cfi_program_rows(&frame, AT + ENTRY, FUNCTION, FUNCTION, UINT64_MAX, rows, 4, &count, &stop),
			cases[i].result);
		if (cases[i].result)
			continue;
		assert_true(count == 1 && stop == FUNCTION + 32);
		assert_true(rows[0].start == FUNCTION && rows[0].end == FUNCTION + 32 && rows[0].cfa_off == 8);
	}
	memcpy(bytes + ENTRY - 2, cases[0].operations, 2);
	/* its last byte, and the one behind */
	assert_int_equal(cfi_program_rows(&frame, AT + ENTRY, FUNCTION, FUNCTION + 31, UINT64_MAX, rows, 4, &count, &stop),
			 0);
	assert_int_equal(cfi_program_rows(&frame, AT + ENTRY, FUNCTION, FUNCTION + 32, UINT64_MAX, rows, 4, &count, &stop),
			 -ENODATA);
	assert_int_equal(cfi_program_rows(&frame, AT + ENTRY, FUNCTION, FUNCTION, UINT64_MAX, rows, 0, &count, &stop),
			 -ENOSPC);
}

/* A common entry with any letters, and a function of 32 bytes that refers to it. */
struct made_entry {
	const char *letters;
	uint8_t version, code_align, data_align, ra;
	uint8_t augmentation[8]; /* its length first */
	int result;
};

enum { MADE_FUNCTION = 0x2000, MADE_ROWS = 4 };

/* The rows of the function, which has the @len operations at @program. */
static int rows_of(const struct made_entry *e, const uint8_t *program, size_t len, struct row rows[static MADE_ROWS],
		   size_t *count)
{
	enum { AT = 0x1000, HEAD_BYTES = 17, LEAST = 7 /* with nops */ };
	uint8_t bytes[96] = { 0 };
	const struct cfi_bytes frame = { bytes, AT, sizeof(bytes) };
	size_t at = 8, letters = strlen(e->letters) + 1;
	uint64_t stop;
	int32_t begin;

	bytes[at++] = e->version;
	memcpy(bytes + at, e->letters, letters);
	at += letters;
	bytes[at++] = e->code_align;
	bytes[at++] = e->data_align;
	bytes[at++] = e->ra;
	memcpy(bytes + at, e->augmentation, 1u + e->augmentation[0]);
	at += 1u + e->augmentation[0];
	memcpy(bytes + at, (uint8_t[]){ 0x0c, 7, 8, 0x90, 1 }, 5); /* CFA = rsp + 8, ra at CFA - 8 */
	at = (at + 5 + 3) & ~3u;
	bytes[0] = (uint8_t)(at - 4);
	bytes[at] = (uint8_t)(HEAD_BYTES - 4 + (len > LEAST ? len : LEAST));
	bytes[at + 4] = (uint8_t)(at + 4);
	begin = MADE_FUNCTION - (AT + (int32_t)at + 8);
	memcpy(bytes + at + 8, &begin, 4);
	bytes[at + 12] = 32;
	if (len)
		memcpy(bytes + at + HEAD_BYTES, program, len);
	return cfi_program_rows(&frame, AT + at, MADE_FUNCTION, MADE_FUNCTION, UINT64_MAX, rows, MADE_ROWS, count, &stop);
}

/* What compilers write for C and for C++, and what is left to libdw. */
static void test_augmentation(void **state)
{
	enum { R = 0x1b, P = 0x9b, L = 0x1b }; /* encodings: relative, 4 bytes; P through a pointer */
	static const struct made_entry entries[] = {
		{ "zR", 1, 1, 0x78, 16, { 1, R }, 0 },
		{ "zPLR", 1, 1, 0x78, 16, { 7, P, 1, 2, 3, 4, L, R }, 0 },
		{ "zPR", 1, 1, 0x78, 16, { 6, P, 1, 2, 3, 4, R }, 0 },
		{ "zLR", 1, 1, 0x78, 16, { 2, L, R }, 0 },
		{ "zPLR", 1, 1, 0x78, 16, { 7, 0x0c, 1, 2, 3, 4, L, R }, -ENOENT }, /* a pointer of 8 bytes */
		{ "zPLR", 1, 1, 0x78, 16, { 6, P, 1, 2, 3, 4, L }, -ENOENT },	    /* shorter than its letters */
		{ "zPR", 1, 1, 0x78, 16, { 4, P, 1, 2, 3 }, -ENOENT },
		{ "zLR", 1, 1, 0x78, 16, { 1, L }, -ENOENT },
		{ "zL", 1, 1, 0x78, 16, { 1, L }, -ENOENT }, /* addresses are not relative */
		{ "zR", 1, 1, 0x78, 16, { 1, 0x00 }, -ENOENT },
		{ "zRS", 1, 1, 0x78, 16, { 1, R }, -ENOENT }, /* a signal's frame */
		{ "zRB", 1, 1, 0x78, 16, { 1, R }, -ENOENT },
		{ "R", 1, 1, 0x78, 16, { 1, R }, -ENOENT },
		{ "zR", 3, 1, 0x78, 16, { 1, R }, -ENOENT },
		{ "zR", 1, 1, 0x7c, 16, { 1, R }, -ENOENT }, /* -4 */
		{ "zR", 1, 1, 0x78, 17, { 1, R }, -ENOENT },
	};

	struct row rows[MADE_ROWS];
	size_t count;

	(void)state;
	if (CPU_HAS_LR)
		skip();
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
		if (rows_of(&entries[i], NULL, 0, rows, &count) != entries[i].result)
			fail_msg("entry %zu, \"%s\"", i, entries[i].letters);
}

/* The stubs of .plt, whose CFA an expression tells; any other expression is left to libdw. */
static void test_plt(void **state)
{
	static const struct made_entry entry = { "zR", 1, 1, 0x78, 16, { 1, 0x1b }, 0 };
	/* CFA = rsp + 16, 6 bytes on rsp + 24, 10 bytes on the expression: its length, breg7 + 8, breg16 + 0, lit15, and,
	 * lit11, ge, lit3, shl, plus; 8 bytes on, for the rest, rsp + 8 */
	uint8_t program[] = { 0x0e, 16,	  0x46, 0x0e, 24,   0x4a, 0x0f, 11,   0x77, 8, 0x80, 0,
			      0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22, 0x48, 0x0c, 7, 8 };
	enum { EXPRESSION = 7, LITERAL = 14, LAST = 19 };
	struct row rows[MADE_ROWS];
	size_t count;

	(void)state;
	if (CPU_HAS_LR)
		skip();
	assert_int_equal(rows_of(&entry, program, sizeof(program), rows, &count), 0);
	assert_int_equal(count, 4);
	assert_true(rows[1].cfa == ROW_CFA_REG && rows[1].cfa_reg == REG_SP && rows[1].cfa_off == 24);
	assert_true(rows[2].start == MADE_FUNCTION + 16 && rows[2].end == MADE_FUNCTION + 24);
	assert_true(rows[2].cfa == ROW_CFA_PLT && rows[2].cfa_off == 11 && rows[2].saved[SAVED_RA] == -8);
	assert_true(rows[3].cfa == ROW_CFA_REG && rows[3].cfa_reg == REG_SP && rows[3].cfa_off == 8);
	for (size_t i = EXPRESSION; i < LAST;
	     i++) { /* each byte of it counts; of the literal's its four lowest bits do not */
		program[i] ^= 0x40;
		assert_int_equal(rows_of(&entry, program, sizeof(program), rows, &count), -ENOENT);
		program[i] ^= 0x40;
	}
	program[LITERAL] = 0x36;
	assert_int_equal(rows_of(&entry, program, sizeof(program), rows, &count), 0);
	assert_int_equal(rows[2].cfa_off, 6);
	program[LAST + 1] = 0x0e; /* an offset from a register, but there is none */
	assert_int_equal(rows_of(&entry, program, sizeof(program), rows, &count), -ENOENT);
	program[LAST + 1] = 0x0d; /* another register, but for no offset */
	assert_int_equal(rows_of(&entry, program, sizeof(program), rows, &count), -ENOENT);
	for (uint8_t reg = USER_REGS; reg < USER_REGS + 4; reg++)
		assert_int_equal(rows_of(&entry, (const uint8_t[]){ 0x0d, reg }, 2, rows, &count), -ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_real_files), cmocka_unit_test(test_damage),
						   cmocka_unit_test(test_common_entry), cmocka_unit_test(test_augmentation),
						   cmocka_unit_test(test_plt) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
