/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: each kind of row at its limits; blocks byte by byte, of made-up rows and of the libraries of this machine. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/walk/blocks.h"
#include "agent/helper/elf_service.h"
#include "base/cleanup.h"
#include "tests/unit/agent/stack_memory.h"
#include "tests/unit/descriptors.h"

/* --- rows --- */

static const struct {
	const char *name;
	struct row row; /* saved: only rbp and the return address matter */
	int32_t rbp, ra;
	uint32_t rule, base;
	int16_t fp;
	int32_t off, off2; /* RULE_DEREF: two of 16 bits */
} rows[] = {
	{ "none", { .cfa = ROW_CFA_NONE }, 0, 0, RULE_NONE, 0, 0, 0, 0 },
	{ "root", { .cfa = ROW_CFA_ROOT }, 0, 0, RULE_ROOT, 0, 0, 0, 0 },
	{ "end", { .cfa = ROW_CFA_REG, .cfa_reg = 7, .is_end = true }, ROW_SAME, -8, RULE_ROOT, ROOT_OF_RETURNS, 0, 0, 0 },
	{ "signal", { .cfa = ROW_CFA_SIGNAL, .is_signal_frame = true }, 0, 0, RULE_SIGNAL, 0, 0, 0, 0 },
	{ "scheduler",
	  { .cfa = ROW_CFA_SCHED, .cfa_reg = SCHED_RETURNS_DEPTH, .cfa_off = 40 },
	  ROW_SAME,
	  -8,
	  RULE_SCHED,
	  SCHED_RETURNS_DEPTH,
	  0,
	  40,
	  0 },
	{ "expression", { .cfa = ROW_CFA_EXPR }, ROW_SAME, -8, RULE_USER, 0, 0, 0, 0 },
	{ "rsp", { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = 8 }, ROW_SAME, -8, RULE_CFA, BASE_SP, 0, 8, 0 },
	{ "rbp", { .cfa = ROW_CFA_REG, .cfa_reg = 6, .cfa_off = 16 }, -16, -8, RULE_CFA, BASE_FP, -2, 16, 0 },
	{ "rbp restored far",
	  { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = 9 },
	  -262136,
	  -8,
	  RULE_CFA,
	  BASE_SP,
	  -32767,
	  9,
	  0 },
	{ "rbp too far", { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = 9 }, -262144, -8, RULE_USER, 0, 0, 0, 0 },
	{ "rbp above", { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = 9 }, 262136, -8, RULE_CFA, BASE_SP, 32767, 9, 0 },
	{ "rbp too far above", { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = 9 }, 262144, -8, RULE_USER, 0, 0, 0, 0 },
	{ "rbp at the CFA", { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = 9 }, 0, -8, RULE_USER, 0, 0, 0, 0 },
	{ "rbp between words", { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = 9 }, -20, -8, RULE_USER, 0, 0, 0, 0 },
	{ "rbp where it points",
	  { .cfa = ROW_CFA_DEREF, .cfa_reg = 6, .cfa_off = -8 },
	  ROW_AT_FP,
	  -8,
	  RULE_DEREF,
	  BASE_FP,
	  ROW_FP_AT_FP,
	  -8,
	  0 },
	{ "rbp beside", { .cfa = ROW_CFA_DEREF, .cfa_reg = 6 }, ROW_AT_FP - 8, -8, RULE_USER, 0, 0, 0, 0 },
	{ "rbp elsewhere", { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = 9 }, ROW_OTHER, -8, RULE_USER, 0, 0, 0, 0 },
	{ "return address elsewhere",
	  { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = 9 },
	  ROW_SAME,
	  -16,
	  RULE_USER,
	  0,
	  0,
	  0,
	  0 },
	{ "return address in rax", { .cfa = ROW_CFA_REG, .cfa_reg = 7 }, ROW_SAME, ROW_OTHER, RULE_USER, 0, 0, 0, 0 },
	{ "no return address",
	  { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = 8 },
	  ROW_SAME,
	  ROW_SAME,
	  RULE_USER,
	  0,
	  0,
	  0,
	  0 },
	{ "r10", { .cfa = ROW_CFA_REG, .cfa_reg = 10, .cfa_off = 0 }, ROW_SAME, -8, RULE_USER, 0, 0, 0, 0 },
	{ "rax, whose number is 0", { .cfa = ROW_CFA_REG, .cfa_off = 8 }, ROW_SAME, -8, RULE_USER, 0, 0, 0, 0 },
	{ "interrupted",
	  { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = 8, .is_signal_frame = true },
	  ROW_SAME,
	  -8,
	  RULE_USER,
	  0,
	  0,
	  0,
	  0 },
	{ "far CFA",
	  { .cfa = ROW_CFA_REG, .cfa_reg = 7, .cfa_off = INT32_MAX },
	  -16,
	  -8,
	  RULE_CFA,
	  BASE_SP,
	  -2,
	  INT32_MAX,
	  0 },
	{ "CFA below",
	  { .cfa = ROW_CFA_REG, .cfa_reg = 6, .cfa_off = INT32_MIN },
	  -16,
	  -8,
	  RULE_CFA,
	  BASE_FP,
	  -2,
	  INT32_MIN,
	  0 },
	{ "plt", { .cfa = ROW_CFA_PLT, .cfa_off = 11 }, ROW_SAME, -8, RULE_PLT, 0, 0, 11, 0 },
	{ "deref", { .cfa = ROW_CFA_DEREF, .cfa_reg = 6, .cfa_off = -8 }, -16, -8, RULE_DEREF, BASE_FP, -2, -8, 0 },
	{ "deref, highest",
	  { .cfa = ROW_CFA_DEREF, .cfa_reg = 7, .cfa_off = 32767, .cfa_off2 = 32767 },
	  ROW_SAME,
	  -8,
	  RULE_DEREF,
	  BASE_SP,
	  0,
	  32767,
	  32767 },
	{ "deref, lowest",
	  { .cfa = ROW_CFA_DEREF, .cfa_reg = 7, .cfa_off = -32768, .cfa_off2 = -32768 },
	  ROW_SAME,
	  -8,
	  RULE_DEREF,
	  BASE_SP,
	  0,
	  -32768,
	  -32768 },
	{ "deref above", { .cfa = ROW_CFA_DEREF, .cfa_reg = 7, .cfa_off = 32768 }, ROW_SAME, -8, RULE_USER, 0, 0, 0, 0 },
	{ "deref below", { .cfa = ROW_CFA_DEREF, .cfa_reg = 7, .cfa_off = -32769 }, ROW_SAME, -8, RULE_USER, 0, 0, 0, 0 },
	{ "deref, second above",
	  { .cfa = ROW_CFA_DEREF, .cfa_reg = 7, .cfa_off2 = 32768 },
	  ROW_SAME,
	  -8,
	  RULE_USER,
	  0,
	  0,
	  0,
	  0 },
	{ "deref, second below",
	  { .cfa = ROW_CFA_DEREF, .cfa_reg = 7, .cfa_off2 = -32769 },
	  ROW_SAME,
	  -8,
	  RULE_USER,
	  0,
	  0,
	  0,
	  0 },
	{ "deref of r10", { .cfa = ROW_CFA_DEREF, .cfa_reg = 10, .cfa_off = -8 }, -16, -8, RULE_USER, 0, 0, 0, 0 },
};

static struct row with_saved(const struct row *from, int32_t rbp, int32_t ra)
{
	struct row row = *from;

	for (int i = 0; i < SAVED_MAX; i++)
		row.saved[i] = ROW_SAME;
	row.saved[SAVED_FP] = rbp;
	row.saved[SAVED_RA] = ra;
	return row;
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct row row = with_saved(&rows[i].row, rows[i].rbp, rows[i].ra);
		uint64_t packed = block_pack_row(&row, CODE_BLOCK_BYTES - 1);

		print_message("%s\n", rows[i].name);
		assert_int_equal(ROW_START(packed), CODE_BLOCK_BYTES - 1);
		assert_int_equal(ROW_RULE(packed), rows[i].rule);
		assert_int_equal(ROW_BASE(packed), rows[i].base);
		assert_int_equal(ROW_FP(packed), rows[i].fp);
		if (rows[i].rule == RULE_DEREF)
			assert_true(ROW_OFF1(packed) == rows[i].off && ROW_OFF2(packed) == rows[i].off2);
		else
			assert_int_equal(ROW_OFFSET(packed), rows[i].off);
	}
}

/* --- blocks --- */

enum { FILE_ID = 77 };

/* Every byte of block @block must find in @parts what @all say of it. Returns the number of parts. */
static uint32_t check_block(uint64_t block, const struct row *all, size_t count)
{
	struct unwind_block parts[MAX_BLOCK_PARTS + 1];
	uint32_t n, part = 0;

	memset(parts, 0xa5, sizeof(parts));
	n = blocks_pack(FILE_ID, block, all, count, parts);
	assert_in_range(n, 1, MAX_BLOCK_PARTS);
	assert_int_equal(parts[MAX_BLOCK_PARTS].file, 0xa5a5a5a5);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(parts[i].file == FILE_ID && parts[i].block == block && parts[i].part == i);
		assert_in_range(parts[i].row_cnt, 1, BLOCK_ROWS);
		assert_int_equal(ROW_START(parts[i].rows[0]), i ? parts[i - 1].end : 0);
		for (uint32_t k = 1; k < parts[i].row_cnt; k++)
			assert_true(ROW_START(parts[i].rows[k]) > ROW_START(parts[i].rows[k - 1]));
	}
	assert_int_equal(parts[n - 1].end, CODE_BLOCK_BYTES);
	for (uint32_t off = 0; off < CODE_BLOCK_BYTES; off++) {
		uint64_t addr = block * CODE_BLOCK_BYTES + off, expected = ROW(0, RULE_NONE, 0, 0, 0), found;

		for (size_t i = 0; i < count; i++)
			if (addr >= all[i].start && addr < all[i].end)
				expected = block_pack_row(&all[i], 0);
		while (off >= parts[part].end)
			part++;
		found = unwind_search(parts[part].rows, parts[part].row_cnt, off);
		assert_true(ROW_START(found) <= off);
		assert_int_equal(ROW_BODY(found), ROW_BODY(expected));
	}
	return n;
}

static struct row made_row(uint64_t start, uint64_t end, int32_t off)
{
	static const struct row plain = { .cfa = ROW_CFA_REG, .cfa_reg = REG_SP };
	struct row row = with_saved(&plain, ROW_SAME, -8);

	row.start = start;
	row.end = end;
	row.cfa_off = off;
	return row;
}

static void test_shapes(void **state)
{
	struct row all[CODE_BLOCK_BYTES];

	(void)state;
	assert_int_equal(check_block(4, NULL, 0), 1);
	all[0] = made_row(0x1000, 0x1400, 8);
	assert_int_equal(check_block(4, all, 1), 1);
	all[0] = made_row(0xf00, 0x1500, 8); /* reaches over both borders */
	assert_int_equal(check_block(4, all, 1), 1);
	all[0] = made_row(0x1080, 0x1081, 8); /* a gap on both sides */
	assert_int_equal(check_block(4, all, 1), 1);
	all[0] = made_row(0x13ff, 0x1480, 8);
	assert_int_equal(check_block(4, all, 1), 1);
	all[0] = made_row(0xf00, 0x1000, 8); /* beside the block */
	all[1] = made_row(0x1400, 0x1500, 16);
	assert_int_equal(check_block(4, all, 2), 1);
	for (uint32_t i = 0; i < CODE_BLOCK_BYTES; i++) /* one row a byte */
		all[i] = made_row(0x1000 + i, 0x1001 + i, 8 + 8 * (int32_t)i);
	assert_int_equal(check_block(4, all, CODE_BLOCK_BYTES), MAX_BLOCK_PARTS);
	for (uint32_t i = 0; i < CODE_BLOCK_BYTES; i++) /* the same, all alike */
		all[i] = made_row(0x1000 + i, 0x1001 + i, 8);
	assert_int_equal(check_block(4, all, CODE_BLOCK_BYTES), 1);
	for (uint32_t i = 0; i < CODE_BLOCK_BYTES / 2; i++) /* rows and gaps in turn */
		all[i] = made_row(0x1000 + 2 * i, 0x1001 + 2 * i, 8);
	assert_int_equal(check_block(4, all, CODE_BLOCK_BYTES / 2), MAX_BLOCK_PARTS);
	for (uint32_t i = 0; i <= BLOCK_ROWS; i++)
		all[i] = made_row(0x1000 + 15 * i, 0x100f + 15 * i, 8 * (int32_t)i);
	assert_int_equal(check_block(4, all, BLOCK_ROWS), 2); /* with the gap at the end */
	assert_int_equal(check_block(4, all, BLOCK_ROWS + 1), 2);
}

static void test_random_blocks(void **state)
{
	uint64_t seen_parts = 0;

	(void)state;
	srandom(7);
	for (int round = 0; round < 3000; round++) {
		uint64_t block = 1 + (uint64_t)random() % 0xfffffff,
			 at = block * CODE_BLOCK_BYTES - (uint64_t)(random() % 20);
		uint64_t end = (block + 1) * CODE_BLOCK_BYTES;
		uint32_t longest = 1u << random() % 8;
		struct row all[2 * CODE_BLOCK_BYTES];
		size_t count = 0;

		while (at < end) {
			uint64_t len = 1 + (uint64_t)random() % longest;

			if (random() % 4)
				all[count++] = made_row(at, at + len, 8 * (int32_t)(random() % 4));
			at += len;
		}
		seen_parts |= 1ull << check_block(block, all, count);
	}
	assert_int_equal(seen_parts & 0xe, 0xe); /* one part, two, three, and many */
	assert_true(seen_parts >> 16);
}

/* --- libraries --- */

/* All code of the library @name; returns the number of its blocks. */
static uint32_t check_library(const char *name)
{
	struct elf_service *service;
	struct buf reply = BUF_EMPTY;
	uint32_t blocks = 0, covered = 0;
	struct elf_info info;
	struct link_map *map;
	void *library = dlopen(name, RTLD_NOW);
	AUTO_CLOSE int fd = -1;

	if (!library)
		return 0;
	assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	fd = open(map->l_name, O_RDONLY | O_CLOEXEC);
	dlclose(library);
	assert_int_equal(elf_service_new(&service), 0);
	assert_int_equal(elf_service_call(service, &(struct elf_request){ .op = ELF_OP_INFO }, fd, NULL, 0, &reply), 0);
	assert_int_equal(reply.len, sizeof(info));
	memcpy(&info, reply.data, sizeof(info));
	for (uint32_t i = 0; i < info.segment_count; i++) {
		uint64_t first = info.segments[i].vaddr / CODE_BLOCK_BYTES;
		uint64_t last = (info.segments[i].vaddr + info.segments[i].size_bytes - 1) / CODE_BLOCK_BYTES;

		for (uint64_t block = first; block <= last; block++, blocks++) {
			struct elf_request request = { .op = ELF_OP_ROWS,
						       .file = 1,
						       .addr = block * CODE_BLOCK_BYTES,
						       .addr_end = (block + 1) * CODE_BLOCK_BYTES };

			assert_int_equal(elf_service_call(service, &request, fd, NULL, 0, &reply), 0);
			check_block(block, (const void *)reply.data, reply.len / sizeof(struct row));
			covered += reply.len > 0;
		}
	}
	print_message("%s: %u blocks, %u with rows\n", name, blocks, covered);
	assert_true(covered > blocks / 10 * 8);
	buf_fini(&reply);
	elf_service_free(service);
	return blocks;
}

static void test_libc(void **state)
{
	(void)state;
	assert_true(check_library("libc.so.6") > 1000);
}

static void test_libcrypto(void **state)
{
	(void)state;
	if (!check_library("libcrypto.so.3") && !check_library("libcrypto.so.1.1"))
		skip();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows), cmocka_unit_test(test_shapes),    cmocka_unit_test(test_random_blocks),
		cmocka_unit_test(test_libc), cmocka_unit_test(test_libcrypto),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
