/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of .NET's code on a made-up process of .NET Core 3.1, where sections are a list: a heap of compiled code
 * between two images that were compiled ahead. test_dotnet.c tests all that is as in later releases.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "agent/runtime/file/dotnet_facts.h"
#include "base/cleanup.h"

#ifdef __x86_64__
#define BASE 0x7f0000000000ull
enum {
	BYTES = 0x40000,
	VARIABLES = 0x100,
	LIST = 0x200, /* where the first section's address stands */
	LINKS = 0x1000,
	LINK_BYTES = 64,
	NODE = 0x1800,
	NIBBLES = 0x2000,
	HEADER = 0x2800,
	DEBUG = 0x2900,
	MODULE = 0x3000,
	OTHER = 0x3800, /* a module, too */
	FILE_AT = 0x4000,
	PE_AT = 0x4100,
	LAYOUTS = 0x4200,
	READY = 0x5000,
	FUNCTIONS = 0x5200,
	BUCKETS = 0x5400,
	METHODS = 0x6000,
	CHUNK = METHODS - 24,
	TABLE = 0x6400,
	SHARED = 0x6600,
	LOW = 0x10000, /* an image */
	HEAP = 0x20000,
	HEAP_END = 0x28000,
	HIGH = 0x30000, /* an image */
};

static uint8_t bytes[BYTES];
static struct code_memory memory;
static struct dotnet dotnet;
static const struct code_facts facts = { .version = 3 << 16, .fact = { [DOTNET_FACT_VARIABLES] = VARIABLES } };

#define BYTES_AT BASE
#include "tests/unit/agent/runtime/code/made_bytes.h"

static void put_link(uint32_t i, uint32_t start, uint32_t end, uint32_t flags, uint32_t owner, bool is_last)
{
	const uint64_t words[] = { BASE + start, BASE + end,	     7, is_last ? 0 : BASE + LINKS + (i + 1) * LINK_BYTES,
				   BASE + LINKS, flags | 9ull << 32, /* what is beside flags is anything */
				   BASE + owner };

	memcpy(bytes + LINKS + i * LINK_BYTES, words, sizeof(words));
}

static void put_entry(uint32_t at, uint32_t begin, uint32_t end, uint32_t unwind)
{
	memcpy(bytes + at, (uint32_t[]){ begin, end, unwind }, 12);
}

/* An image whose metadata have one type, X, and one method, Run. */
static void put_image(uint32_t at)
{
	static const char strings[] = "\0X\0Run";
	const uint32_t head = at + 0x80, root = at + 0x2100, rows = root + 0x100 + 24;

	put(at, 0x5a4d, 2), put(at + 0x3c, 0x80, 4);
	put(head, 0x4550, 4), put(head + 24, 0x20b, 2), put(head + 24 + 112 + 8 * 14, 0x2000, 4);
	put(at + 0x2000 + 8, 0x2100, 4);
	put(root, 0x424a5342, 4), put(root + 12, 4, 4), put(root + 22, 2, 2);
	put(root + 24, 0x200, 4), memcpy(bytes + root + 32, "#Strings\0\0\0", 12);
	put(root + 44, 0x100, 4), memcpy(bytes + root + 52, "#~\0", 4);
	memcpy(bytes + root + 0x200, strings, sizeof(strings));
	put(root + 0x108, 1ull << 2 | 1ull << 6, 8);
	put(rows, 1, 4), put(rows + 4, 1, 4);		   /* of TypeDef and MethodDef */
	put(rows + 8 + 4, 1, 2), put(rows + 8 + 12, 1, 2); /* the type's name and its first method */
	put(rows + 22 + 8, 3, 2), put(rows + 22 + 12, 1, 2);
}

static int setup(void **state)
{
	(void)state;
	memset(bytes, 0, sizeof(bytes));
	memset(&dotnet, 0, sizeof(dotnet));
	memory = (struct code_memory){
		.read = read_made, .reads_left = 200000, .bytes_left = 1 << 24, .end_ns = UINT64_MAX
	};
	put(VARIABLES, LIST, 4), put(VARIABLES + 4, 0x77, 4); /* another variable's */
	put(LIST, BASE + LINKS, 8);
	put_link(0, HIGH, HIGH + 0x8000, 4, OTHER, false);
	put_link(1, HEAP, HEAP_END, 2, NODE, false);
	put_link(2, LOW, LOW + 0x8000, 4, MODULE, true);
	memcpy(bytes + NODE + 16, (uint64_t[]){ BASE + HEAP, BASE + HEAP_END, BASE + HEAP, BASE + NIBBLES }, 32);
	put(NIBBLES + 4, 1u << 28, 4);	      /* a method at 0x100 ... */
	put(NIBBLES + 4 * 0x28, 1u << 28, 4); /* ... and stubs at 0x2800 */
	put(HEAP + 0x100 - 8, BASE + HEADER, 8), put(HEAP + 0x2800 - 8, 2, 8);
	put(HEADER, BASE + DEBUG, 8), put(HEADER + 24, BASE + METHODS, 8), put(HEADER + 32, 1, 4);
	put_entry(HEADER + 36, 0x100, 0x140, 0x7000);
	put(MODULE + 16, BASE + FILE_AT, 8), put(MODULE + 1216, BASE + READY, 8);
	put(FILE_AT + 8, BASE + PE_AT, 8), put(PE_AT + 72, BASE + LAYOUTS, 8), put(LAYOUTS + 8, BASE + LOW, 8);
	put(READY + 24, BASE + FUNCTIONS, 8), put(READY + 32, 1, 4), put(READY + 352, BASE + BUCKETS, 8);
	put_entry(FUNCTIONS, 0x6000, 0x6040, 0x7000);
	put(BUCKETS, 1, 8), put(BUCKETS + 64, BASE + LOW + 0x6000, 8), put(BUCKETS + 96, (BASE + METHODS) >> 1, 8);
	put(METHODS, 1, 2);
	put(CHUNK, BASE + TABLE, 8), put(TABLE + 24, BASE + MODULE, 8);
	put_image(LOW);
	assert_int_equal(code_dotnet.open(&dotnet, &memory, &facts, BASE), 0);
	return 0;
}

static int block_at(uint64_t off, struct code_block *b)
{
	return code_dotnet.block(&dotnet, &memory, BASE + off, b);
}

static void sections_are_listed(void **state)
{
	struct code_block b;

	(void)state;
	assert_int_equal(block_at(HEAP + 0x13f, &b), 0);
	assert_true(b.start == BASE + HEAP + 0x100 && b.end == BASE + HEAP + 0x140 && b.kind == DOTNET_METHOD);
	assert_int_equal(b.own[DOTNET_OWN_METHOD], BASE + METHODS);
	assert_int_equal(block_at(HEAP + 0x140, &b), -ENOENT);
	assert_int_equal(block_at(LOW + 0x6000, &b), 0); /* of the image that the section is */
	assert_true(b.start == BASE + LOW + 0x6000 && b.end == BASE + LOW + 0x6040 && b.kind == DOTNET_METHOD);
	assert_int_equal(b.own[DOTNET_OWN_METHOD], BASE + METHODS);
	assert_int_equal(b.own[DOTNET_OWN_UNWIND], BASE + LOW + 0x7000);
	assert_int_equal(block_at(HIGH + 0x8000, &b), -ENOENT); /* above all, between two, below all */
	assert_int_equal(block_at(HEAP_END, &b), -ENOENT);
	assert_int_equal(block_at(LOW - 1, &b), -ENOENT);
	put_link(2, LOW, LOW + 0x8000, 0, MODULE, true); /* an image of another form */
	assert_int_equal(block_at(LOW + 0x6000, &b), -ENOENT);
}

static void a_list_without_an_end_is_left(void **state)
{
	struct code_block b;

	(void)state;
	put(LINKS + LINK_BYTES + 24, BASE + LINKS, 8); /* from the second on to the first */
	assert_int_equal(block_at(HEAP + 0x100, &b), 0);
	assert_int_equal(block_at(LOW + 0x6000, &b), -ENOENT);
	assert_true(memory.reads_left > 0);
	memory.reads_left = 100;
	assert_int_equal(block_at(LOW + 0x6000, &b), -EDQUOT);
}

static void ranges_are_around_listed_sections(void **state)
{
	static const struct {
		struct code_range given;
		int count;
	} cases[] = { { { BASE + HEAP, BASE + HEAP_END }, 1 },
		      { { BASE + HEAP - 0x1000, BASE + HEAP + 1 }, 1 },
		      { { BASE + HEAP_END - 1, BASE + HEAP_END + 1 }, 1 },
		      { { BASE + HEAP_END, BASE + HIGH }, 0 },
		      { { BASE + HIGH + 0x8000, BASE + BYTES }, 0 },
		      { { BASE, BASE + LOW }, 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct code_range ranges[CODE_RANGES] = { cases[i].given };

		assert_int_equal(code_dotnet.ranges(&dotnet, &memory, 1, ranges), cases[i].count);
		if (cases[i].count)
			assert_true(ranges[0].start == BASE && ranges[0].end == BASE + (1ull << 31));
	}
}

static void it_has_begun_when_there_is_a_section(void **state)
{
	(void)state;
	put(LIST, 0, 8);
	assert_int_equal(code_dotnet.open(&dotnet, &memory, &facts, BASE), -EAGAIN);
	put(LIST, BASE + LINKS, 8);
	put(VARIABLES, 0, 4); /* the table is filled at the start */
	assert_int_equal(code_dotnet.open(&dotnet, &memory, &facts, BASE), -EAGAIN);
	put(VARIABLES, LIST, 4);
	assert_int_equal(code_dotnet.open(&dotnet, &memory, &facts, BASE), 0);
}

/* --- names --- */

static bool is_called(const char *wanted, int error_wanted)
{
	AUTO(block_names_free_at) struct block_names *names = block_names_new();
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct code_block b;
	int error;

	assert_int_equal(block_at(HEAP + 0x100, &b), 0);
	error = code_dotnet.names(&dotnet, &memory, &b, names);
	if (error)
		return error == error_wanted;
	assert_int_equal(block_names_write(names, &out), 0);
	assert_int_equal(block_names_find(out.data, out.len, 0, false, lines), 1);
	return wanted && lines[0].name_bytes == strlen(wanted) && !memcmp(lines[0].name, wanted, strlen(wanted));
}

static void methods_have_names(void **state)
{
	(void)state;
	assert_true(is_called("X.Run", 0));	 /* the image as its file is, in memory */
	put(PE_AT + 88, BASE + LAYOUTS + 16, 8); /* and by its sections: that counts */
	assert_true(is_called(NULL, -EBADMSG));
	put(LAYOUTS + 24, BASE + LOW, 8);
	assert_true(is_called("X.Run", 0));
	put(METHODS, 1 | 1 << 13, 2); /* of the number 14 bits are the method's ... */
	assert_true(is_called(NULL, -EBADMSG));
	put(METHODS, 1 | 1 << 14, 2);
	assert_true(is_called("X.Run", 0));
	put(CHUNK + 18, 1, 2); /* ... and 10 the chunk's */
	assert_true(is_called(NULL, -EBADMSG));
	put(CHUNK + 18, 1 << 10, 2);
	assert_true(is_called("X.Run", 0));
	put(METHODS + 6, 7, 2);
	put(METHODS + 24, BASE + 0x7000, 8), memcpy(bytes + 0x7000, "made", 5);
	assert_true(is_called("[dynamic] made", 0));
}

/* An instance that was loaded for another module has its own one in a slot, which is one of those behind the table. */
static void modules_of_instances(void **state)
{
	static const struct {
		uint32_t flags, slot;
	} cases[] = { { 0x10, 48 }, { 0x11, 56 }, { 0x12, 48 }, { 0x13, 64 + 16 }, { 0x17, 72 + 16 }, { 0x1f, 80 + 16 } };

	(void)state;
	put(TABLE + 24, BASE + OTHER, 8);      /* it was loaded for */
	put(TABLE + 40, BASE + SHARED + 2, 8); /* not its class */
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		memset(bytes + SHARED, 0, 0x100);
		put(SHARED + 8, cases[i].flags, 2);
		put(SHARED + 12, 9, 2); /* virtual methods: slots for two pieces */
		put(SHARED + 24, BASE + OTHER, 8);
		assert_true(is_called(NULL, -EBADMSG));
		put(SHARED + cases[i].slot, BASE + MODULE, 8);
		assert_true(is_called("X.Run", 0));
	}
	memset(bytes + SHARED, 0, 0x100);
	put(SHARED + 24, BASE + MODULE, 8); /* no slot */
	assert_true(is_called("X.Run", 0));
}

/* --- rows and bounds --- */

static int32_t depth_at(const struct row *rows, size_t count, uint64_t addr)
{
	for (size_t i = 0; i < count; i++)
		if (addr >= rows[i].start && addr < rows[i].end)
			return rows[i].cfa == ROW_CFA_REG && rows[i].cfa_reg == REG_SP ? rows[i].cfa_off : -1;
	return -1;
}

/* What stands between stubs is no code, whatever it looks like. */
static void data_between_stubs_are_none(void **state)
{
	static const uint8_t code[] = {
		0xe8, 0,    0,	  0, 0, 0x5e, 0, 0,		      /* 0: call; pop rsi as a mark */
		0xe9, 0,    1,	  0, 0, 0x5f, 0, 0,		      /* 8: jmp */
		0x90, 0x48, 0xb8, 1, 2, 3,    4, 5, 6, 7, 8,	0x50, /* 16: mov rax, ...; 27: push rax */
		0x48, 0xb8, 1,	  2, 3, 4,    5, 6, 7, 8, 0xff, 0xe0, /* 28: mov rax, ...; 38: jmp rax */
		0x5f, 0x5f,					      /* 40 */
	};
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count = 0;

	(void)state;
	memcpy(bytes + HEAP + 0x2800, code, sizeof(code));
	assert_int_equal(block_at(HEAP + 0x2830, &b), 0);
	assert_true(b.kind == DOTNET_STUB && b.start == BASE + HEAP + 0x2800);
	assert_int_equal(code_dotnet.rows(&dotnet, &memory, &b, &rows, &count), 0);
	for (uint64_t off = 0; off < b.end - b.start; off++)
		assert_int_equal(depth_at(rows, count, b.start + off), off > 27 && off < 40 ? 16 : 8);
	assert_true(rows[0].start == b.start && rows[count - 1].end == b.end);
	for (size_t i = 1; i < count; i++)
		assert_true(rows[i].start == rows[i - 1].end);
}

/* Debug information has no byte of flags in front. */
static void bounds_begin_at_once(void **state)
{
	/* 3 bytes of bounds, none of variables; one bound: 2 further on, instructions from 4 (+ 3) on, no flags */
	static const uint8_t debug[] = { 0x03, 0x21, 0xf7 & 0x07, 0 };
	struct dotnet_bounds bounds;
	struct code_block b;

	(void)state;
	memcpy(bytes + DEBUG, debug, sizeof(debug));
	assert_int_equal(block_at(HEAP + 0x100, &b), 0);
	assert_int_equal(dotnet_bounds_read(&dotnet, &memory, &b, &bounds), 0);
	assert_int_equal(bounds.count, 1);
	assert_int_equal(bounds.bounds[0].native, 2);
	assert_int_equal(bounds.bounds[0].il, 4);
	free(bounds.bounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(sections_are_listed, setup),
		cmocka_unit_test_setup(a_list_without_an_end_is_left, setup),
		cmocka_unit_test_setup(ranges_are_around_listed_sections, setup),
		cmocka_unit_test_setup(it_has_begun_when_there_is_a_section, setup),
		cmocka_unit_test_setup(methods_have_names, setup),
		cmocka_unit_test_setup(modules_of_instances, setup),
		cmocka_unit_test_setup(data_between_stubs_are_none, setup),
		cmocka_unit_test_setup(bounds_begin_at_once, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	return 0;
}
#endif
