/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of .NET's code on a made-up process: sections with a heap of compiled code, an image that was compiled ahead
 * and stubs; and the metadata of an image by ECMA-335, mapped by its sections or as the file is. Structures are those of
 * CoreCLR 9.
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
#include "tests/unit/agent/runtime/code/reader_dump.h"

#ifdef __x86_64__
#define BASE 0x7f0000000000ull
enum {
	BYTES = 0x40000,
	VARIABLES = 0x100,
	LEVELS = 0x1000, /* of the map of sections, 0x800 bytes each */
	FRAGMENTS = 0x3800,
	SECTIONS = 0x3a00,
	NODE = 0x3c00,
	NIBBLES = 0x4000,
	HEADER_1 = 0x4800,
	HEADER_2 = 0x4900,
	MODULE = 0x5000,
	READY = 0x5800,
	FUNCTIONS = 0x6000,
	BUCKETS = 0x6800,
	METHODS = 0x7000, /* descriptions of methods, 8 bytes and one of them 64 */
	CHUNK = METHODS - 24,
	CLASS = 0x7400,
	IMAGE = 0x10000,
	STUBS = 0x1c000,
	HEAP = 0x20000,
	HEAP_END = 0x28000,
};

static uint8_t bytes[BYTES];
static struct code_memory memory;
static struct dotnet dotnet;

#define BYTES_AT BASE
#include "tests/unit/agent/runtime/code/made_bytes.h"

static void put_words(uint32_t at, size_t count, const uint64_t *words)
{
	memcpy(bytes + at, words, count * sizeof(*words));
}

static void put_entry(uint32_t at, uint32_t begin, uint32_t end, uint32_t unwind)
{
	memcpy(bytes + at, (uint32_t[]){ begin, end, unwind }, 12);
}

/* --- an image --- */

struct table {
	uint32_t at;
	bool is_big; /* indexes of texts have 4 bytes */
};

static void field(struct table *t, uint64_t value, uint32_t size)
{
	put(t->at, value, size);
	t->at += size;
}

static void text(struct table *t, uint32_t value)
{
	field(t, value, t->is_big ? 4 : 2);
}

/* Types <Module>, A.B.Outer`1 and in that Inner`1; methods Plain and Generic<U> of the one, Deep of the other. */
static void put_metadata(uint32_t root, bool is_big)
{
	static const char strings[] = "\0<Module>\0A.B\0Outer`1\0Inner`1\0Plain\0Generic\0Deep\0T\0U\0V";
	enum {
		MODULE_NAME = 1,
		SPACE = 10,
		OUTER = 14,
		INNER = 22,
		PLAIN = 30,
		GENERIC = 36,
		DEEP = 44,
		T = 49,
		U = 51,
		V = 53
	};
	struct table t = { root + 0x100 + 24, is_big };

	put(root, 0x424a5342, 4);
	put(root + 12, 4, 4);
	put(root + 16, 0x34302e76, 4);
	put(root + 22, 2, 2);
	put(root + 24, 0x800, 4);
	memcpy(bytes + root + 32, "#Strings\0\0\0", 12);
	put(root + 44, 0x100, 4);
	memcpy(bytes + root + 52, "#~\0", 4);
	memcpy(bytes + root + 0x800, strings, sizeof(strings));
	put(root + 0x106, is_big, 1);
	put(root + 0x108, 1ull << 0 | 1ull << 2 | 1ull << 6 | 1ull << 0x29 | 1ull << 0x2a, 8);
	for (int i = 0; i < 5; i++)
		field(&t, (uint32_t[]){ 1, 3, 3, 1, 4 }[i], 4);
	field(&t, 0, 2); /* Module */
	text(&t, MODULE_NAME);
	field(&t, 0, 2), field(&t, 0, 2), field(&t, 0, 2);
	for (int i = 0; i < 3; i++) { /* TypeDef */
		field(&t, 0, 4);
		text(&t, (uint32_t[]){ MODULE_NAME, OUTER, INNER }[i]);
		text(&t, (uint32_t[]){ 0, SPACE, 0 }[i]);
		field(&t, 0, 2), field(&t, 1, 2), field(&t, (uint32_t[]){ 1, 1, 3 }[i], 2);
	}
	for (int i = 0; i < 3; i++) { /* MethodDef */
		field(&t, 0, 4), field(&t, 0, 2), field(&t, 0, 2);
		text(&t, (uint32_t[]){ PLAIN, GENERIC, DEEP }[i]);
		field(&t, 0, 2), field(&t, 1, 2);
	}
	field(&t, 3, 2), field(&t, 2, 2); /* NestedClass */
	for (int i = 0; i < 4; i++) {	  /* GenericParam, by owner; inner types have those of outer ones, too */
		field(&t, (uint32_t[]){ 0, 0, 0, 1 }[i], 2), field(&t, 0, 2);
		field(&t, (uint32_t[]){ 2 << 1, 2 << 1 | 1, 3 << 1, 3 << 1 }[i], 2);
		text(&t, (uint32_t[]){ T, U, T, V }[i]);
	}
}

/* @is_flat: as the file is, where what is at 0x2000 stands at 0x400. @magic: 0x20b, or 0x10b for any CPU. */
static void put_image(bool is_flat, uint32_t magic, bool is_big)
{
	const uint32_t head = IMAGE + 0x80, place = is_flat ? 0x400 : 0x2000;

	memset(bytes + IMAGE, 0, 0x4000);
	put(IMAGE, 0x5a4d, 2);
	put(IMAGE + 0x3c, 0x80, 4);
	put(head, 0x4550, 4);
	put(head + 6, 2, 2);
	put(head + 20, 0xf0, 2);
	put(head + 24, magic, 2);
	put(head + 24 + (magic == 0x20b ? 112 : 96) + 8 * 14, 0x2000, 4);
	memcpy(bytes + head + 24 + 0xf0 + 8, (uint32_t[]){ 0x100, 0x1000, 0x100, 0x200 }, 16);
	memcpy(bytes + head + 24 + 0xf0 + 48, (uint32_t[]){ 0x1000, 0x2000, 0x1000, 0x400 }, 16);
	put(IMAGE + place + 8, 0x2100, 4);
	put_metadata(IMAGE + place + 0x100, is_big);
}

/* --- a process --- */

static int setup(void **state)
{
	const struct code_facts facts = { .version = 9 << 16, .fact = { [DOTNET_FACT_VARIABLES] = VARIABLES } };

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	memset(&dotnet, 0, sizeof(dotnet));
	memory = (struct code_memory){
		.read = read_made, .reads_left = 100000, .bytes_left = 1 << 24, .end_ns = UINT64_MAX
	};
	put(VARIABLES, BASE + LEVELS, 8);
	for (int level = 0, shift = 49; level < 4; level++, shift -= 8)
		put(LEVELS + 0x800 * level + 8 * (BASE >> shift & 255), (BASE + LEVELS + 0x800 * (level + 1)) | (level == 2),
		    8);
	for (uint64_t i = 0; i < 2; i++) /* 128 KB each */
		put(LEVELS + 0x800 * 4 + 8 * (uint32_t)((BASE >> 17 & 255) + i), BASE + FRAGMENTS, 8);
	put_words(FRAGMENTS, 4, (uint64_t[]){ (BASE + FRAGMENTS + 32) | 1, BASE + HEAP, BASE + HEAP_END, BASE + SECTIONS });
	put_words(FRAGMENTS + 32, 4,
		  (uint64_t[]){ BASE + FRAGMENTS + 64, BASE + IMAGE, BASE + STUBS, BASE + SECTIONS + 48 });
	put_words(FRAGMENTS + 64, 4, (uint64_t[]){ 0, BASE + STUBS, BASE + STUBS + 0x1800, BASE + SECTIONS + 96 });
	/* flags have 32 bits; what is beside them is anything */
	put_words(SECTIONS, 6, (uint64_t[]){ BASE + HEAP, BASE + HEAP_END, 2 | 7ull << 32, 0, 0, BASE + NODE });
	put_words(SECTIONS + 48, 6, (uint64_t[]){ BASE + IMAGE, BASE + STUBS, 0, 0, BASE + MODULE, 0 });
	put_words(SECTIONS + 96, 6, (uint64_t[]){ BASE + STUBS, BASE + STUBS + 0x1800, 4, 0, 0, 0 });
	put_words(NODE + 16, 4, (uint64_t[]){ BASE + HEAP, BASE + HEAP_END, BASE + HEAP, BASE + NIBBLES });
	/* methods at 0x100 and 0x150, a stub at 0x2800 */
	put(NIBBLES + 4, 1u << 28 | 5u << 20, 4);
	put(NIBBLES + 4 * 6, 0x150 | 9, 4); /* since .NET 10: what all 256 bytes belong to */
	put(NIBBLES + 4 * 0x28, 1u << 28, 4);
	put(HEAP + 0x100 - 8, BASE + HEADER_1, 8);
	put(HEAP + 0x150 - 8, BASE + HEADER_2, 8);
	put(HEAP + 0x2800 - 8, 3, 8);
	put(HEADER_1 + 24, BASE + METHODS, 8), put(HEADER_1 + 32, 2, 4);
	put_entry(HEADER_1 + 36, 0x100, 0x120, 0x7000);
	put_entry(HEADER_1 + 48, 0x120, 0x140, 0x7100); /* its handler */
	put(HEADER_2 + 24, BASE + METHODS + 8, 8), put(HEADER_2 + 32, 1, 4);
	put_entry(HEADER_2 + 36, 0x150, 0x700, 0x7200);
	put(MODULE + 288, BASE + IMAGE, 8), put(MODULE + 984, BASE + READY, 8);
	put(READY + 80, BASE + FUNCTIONS, 8), put(READY + 88, 4, 4), put(READY + 448, BASE + BUCKETS, 8);
	put_entry(FUNCTIONS, 0x5000, 0x5010, 0);
	put_entry(FUNCTIONS + 12, 0x6000, 0x6040, 0x9000);
	put_entry(FUNCTIONS + 24, 0x6040, 0x6080, 0x9100); /* a handler of it */
	put_entry(FUNCTIONS + 36, 0x7000, 0x7010, 0x9200);
	put(BUCKETS, 1, 8);
	put(BUCKETS + 64 + 8, BASE + IMAGE + 0x6000, 8), put(BUCKETS + 64 + 32 + 8, (BASE + METHODS + 16) >> 1, 8);
	put(BUCKETS + 64 + 16, BASE + IMAGE + 0x7000, 8), put(BUCKETS + 64 + 32 + 16, (BASE + METHODS + 24) >> 1, 8);
	/* MethodDescs: number, place in the chunk by 8 bytes, flags; and the chunk's class, whose module the image is */
	for (uint32_t i = 0; i < 4; i++) {
		put(METHODS + 8 * i, (uint32_t[]){ 1, 2, 3, 4 }[i], 2);
		put(METHODS + 8 * i + 2, i, 1);
	}
	put(CHUNK, BASE + CLASS, 8);
	put(CLASS + 24, BASE + MODULE, 8);
	put_image(false, 0x20b, false);
	assert_int_equal(code_dotnet.open(&dotnet, &memory, &facts, BASE), 0);
	return 0;
}

static int block_at(uint64_t off, struct code_block *b)
{
	return code_dotnet.block(&dotnet, &memory, BASE + off, b);
}

static void is_block(uint64_t off, uint64_t start, uint64_t end, uint32_t kind, uint64_t method, uint64_t unwind)
{
	struct code_block b;

	assert_int_equal(block_at(off, &b), 0);
	assert_int_equal(b.start, BASE + start);
	assert_int_equal(b.end, BASE + end);
	assert_int_equal(b.kind, kind);
	assert_int_equal(b.own[DOTNET_OWN_METHOD], method ? BASE + method : 0);
	assert_int_equal(b.own[DOTNET_OWN_UNWIND], unwind ? BASE + unwind : 0);
	for (int i = 0; i < CODE_TOKENS; i++) { /* each says what is there now */
		uint64_t now;

		if (!b.tokens[i].mask)
			continue;
		assert_int_equal(read_made(NULL, b.tokens[i].addr, &now, 8), 0);
		assert_int_equal(now & b.tokens[i].mask, b.tokens[i].value);
	}
	assert_true(b.tokens[0].mask);
}

static void compiled_methods_are_found(void **state)
{
	struct code_block b;

	(void)state;
	is_block(HEAP + 0x100, HEAP + 0x100, HEAP + 0x120, DOTNET_METHOD, METHODS, HEAP + 0x7000);
	is_block(HEAP + 0x11f, HEAP + 0x100, HEAP + 0x120, DOTNET_METHOD, METHODS, HEAP + 0x7000);
	is_block(HEAP + 0x120, HEAP + 0x120, HEAP + 0x140, DOTNET_METHOD, METHODS, HEAP + 0x7100);
	assert_int_equal(block_at(HEAP + 0x140, &b), -ENOENT); /* behind it */
	assert_int_equal(block_at(HEAP + 0x14f, &b), -ENOENT);
	is_block(HEAP + 0x150, HEAP + 0x150, HEAP + 0x700, DOTNET_METHOD, METHODS + 8, HEAP + 0x7200);
	is_block(HEAP + 0x5ff, HEAP + 0x150, HEAP + 0x700, DOTNET_METHOD, METHODS + 8,
		 HEAP + 0x7200); /* by the words before */
	is_block(HEAP + 0x610, HEAP + 0x150, HEAP + 0x700, DOTNET_METHOD, METHODS + 8, HEAP + 0x7200);
	assert_int_equal(block_at(HEAP + 0x700, &b), -ENOENT);
	assert_int_equal(block_at(HEAP + 0xff, &b), -ENOENT); /* before the first */
	is_block(HEAP + 0x2805, HEAP + 0x2800, HEAP + 0x2820, DOTNET_STUB, 0, 0);
	is_block(HEAP + 0x2811, HEAP + 0x2800, HEAP + 0x2840, DOTNET_STUB, 0, 0); /* an instruction may be that long */
	is_block(HEAP + 0x37ff, HEAP + 0x2800, HEAP + 0x3820, DOTNET_STUB, 0, 0);
	assert_int_equal(block_at(HEAP + 0x3800, &b), -ENOENT); /* a page away */
}

static void images_and_stubs_are_found(void **state)
{
	struct code_block b;

	(void)state;
	is_block(IMAGE + 0x500f, IMAGE + 0x5000, IMAGE + 0x5010, DOTNET_NO_NAME, 0, IMAGE);
	is_block(IMAGE + 0x6000, IMAGE + 0x6000, IMAGE + 0x6040, DOTNET_METHOD, METHODS + 16, IMAGE + 0x9000);
	is_block(IMAGE + 0x6040, IMAGE + 0x6040, IMAGE + 0x6080, DOTNET_METHOD, METHODS + 16, IMAGE + 0x9100);
	is_block(IMAGE + 0x7001, IMAGE + 0x7000, IMAGE + 0x7010, DOTNET_METHOD, METHODS + 24, IMAGE + 0x9200);
	assert_int_equal(block_at(IMAGE + 0x4fff, &b), -ENOENT);
	assert_int_equal(block_at(IMAGE + 0x5010, &b), -ENOENT);
	assert_int_equal(block_at(IMAGE + 0x7010, &b), -ENOENT);
	is_block(STUBS + 0x10, STUBS, STUBS + 0x1000, DOTNET_STUB, 0, 0);
	is_block(STUBS + 0x1010, STUBS + 0x1000, STUBS + 0x1800, DOTNET_STUB, 0, 0);
	assert_int_equal(block_at(STUBS + 0x1800, &b), -ENOENT);
	assert_int_equal(block_at(0x20, &b), -ENOENT);
	assert_int_equal(block_at(1ull << 30, &b), -ENOENT);
	/* memory without a file that is in no section, where helpers were copied to */
	dotnet.given_cnt = 1;
	dotnet.given[0] = (struct code_range){ BASE + (1ull << 30), BASE + (1ull << 30) + 0x1000 };
	assert_int_equal(block_at((1ull << 30) + 0x1000, &b), -ENOENT);
	/* what the section says of itself counts */
	put(SECTIONS + 8, BASE + HEAP + 0x110, 8);
	assert_int_equal(block_at(HEAP + 0x110, &b), -EBADMSG);
	is_block(HEAP + 0x10f, HEAP + 0x100, HEAP + 0x120, DOTNET_METHOD, METHODS, HEAP + 0x7000);
	memory.reads_left = 3;
	assert_int_equal(block_at(HEAP + 0x100, &b), -EDQUOT);
}

static void ranges_are_around_sections(void **state)
{
	struct code_range ranges[CODE_RANGES] = { { BASE + HEAP, BASE + HEAP_END },
						  { BASE + STUBS, BASE + STUBS + 0x1000 },
						  { BASE + (1ull << 32), BASE + (1ull << 32) + 0x1000 } };

	(void)state;
	assert_int_equal(code_dotnet.ranges(&dotnet, &memory, 3, ranges), 1);
	assert_int_equal(ranges[0].start, BASE);
	assert_int_equal(ranges[0].end, BASE + (1ull << 31));
}

static void releases_are_told_apart(void **state)
{
	struct code_facts facts = { .version = 9 << 16, .fact = { [DOTNET_FACT_VARIABLES] = VARIABLES } };

	(void)state;
	for (uint32_t release = 1; release < 13; release++) {
		facts.version = release << 16;
		assert_int_equal(!code_dotnet.lacks(&facts), release == 3 || (release >= 8 && release <= 10));
	}
	assert_int_equal(code_dotnet.open(&dotnet, &memory, &facts, BASE), -ENOTSUP);
	facts.version = 10 << 16;
	assert_int_equal(code_dotnet.open(&dotnet, &memory, &facts, BASE), 0);
	assert_int_equal(dotnet_layout_of(&dotnet)->release, 10);
	put(VARIABLES, 0, 8); /* it has not begun */
	assert_int_equal(code_dotnet.open(&dotnet, &memory, &facts, BASE), -EAGAIN);
}

/* .NET 8 leaves something else in a module whose image was not compiled ahead: that one is known by its file. */
static void modules_of_8_lead_to_images(void **state)
{
	enum { FILE_AT = 0x8100, PE_AT = 0x8200, LAYOUT_AT = 0x8300 };
	struct code_facts facts = { .version = 8 << 16, .fact = { [DOTNET_FACT_VARIABLES] = VARIABLES } };

	(void)state;
	assert_int_equal(code_dotnet.open(&dotnet, &memory, &facts, BASE), 0);
	put(MODULE + 272, BASE + FILE_AT, 8);
	put(FILE_AT + 8, BASE + PE_AT, 8);
	put(PE_AT + 112, BASE + LAYOUT_AT, 8);
	put(LAYOUT_AT + 8, BASE + IMAGE, 8);
	assert_int_equal(dotnet_module_base(&dotnet, &memory, BASE + MODULE), BASE + IMAGE);
	put(MODULE + 1656, 0x9d600000000, 8);
	assert_int_equal(dotnet_module_base(&dotnet, &memory, BASE + MODULE), BASE + IMAGE);
	put(MODULE + 1656, BASE + STUBS, 8);
	put(STUBS, 0x5a4d, 2);
	assert_int_equal(dotnet_module_base(&dotnet, &memory, BASE + MODULE), BASE + STUBS);
}

/* --- names --- */

static void is_called(const char *wanted, uint64_t off)
{
	AUTO(block_names_free_at) struct block_names *names = block_names_new();
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct code_block b;

	assert_int_equal(block_at(off, &b), 0);
	assert_int_equal(code_dotnet.names(&dotnet, &memory, &b, names), 0);
	assert_int_equal(block_names_write(names, &out), 0);
	assert_int_equal(block_names_find(out.data, out.len, 0, false, lines), 1);
	assert_int_equal(lines[0].name_bytes, strlen(wanted));
	assert_memory_equal(lines[0].name, wanted, strlen(wanted));
}

static void methods_are_called_as_people_write_them(void **state)
{
	static const struct {
		bool is_flat;
		uint32_t magic;
		bool is_big;
	} forms[] = { { false, 0x20b, false },
		      { false, 0x10b, false },
		      { true, 0x20b, true },
		      { true, 0x10b, false },
		      { false, 0x20b, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		put_image(forms[i].is_flat, forms[i].magic, forms[i].is_big);
		is_called("A.B.Outer<T>.Plain", HEAP + 0x100);
		is_called("A.B.Outer<T>.Generic<U>", HEAP + 0x150);
		is_called("A.B.Outer<T>.Inner<V>.Deep", IMAGE + 0x6000);
	}
	is_called("[.NET stub]", STUBS);
}

static void what_has_no_name_gets_none(void **state)
{
	AUTO(block_names_free_at) struct block_names *names = block_names_new();
	struct code_block b;

	(void)state;
	assert_int_equal(block_at(IMAGE + 0x5000, &b), 0);
	assert_int_equal(code_dotnet.names(&dotnet, &memory, &b, names), -ENODATA);
	assert_int_equal(block_at(IMAGE + 0x7000, &b), 0); /* method number 4 of 3 */
	assert_int_equal(code_dotnet.names(&dotnet, &memory, &b, names), -EBADMSG);
	put(METHODS + 24, 0, 2);
	assert_int_equal(code_dotnet.names(&dotnet, &memory, &b, names), -EBADMSG);
	put(CHUNK + 18, 1, 2); /* the upper bits of the number are the chunk's */
	put(METHODS + 24, 1, 2);
	assert_int_equal(code_dotnet.names(&dotnet, &memory, &b, names), -EBADMSG);
	put(CHUNK + 18, 0, 2);
	assert_int_equal(code_dotnet.names(&dotnet, &memory, &b, names), 0);
	put(IMAGE, 0, 2); /* no image any more */
	assert_int_equal(code_dotnet.names(&dotnet, &memory, &b, names), -EBADMSG);
	put(CHUNK, 0, 8);
	assert_int_equal(code_dotnet.names(&dotnet, &memory, &b, names), -EBADMSG);
}

/* Made at run time, with a name of its own. */
static void dynamic_methods_are_told(void **state)
{
	(void)state;
	put(METHODS + 6, 7, 2);
	put(METHODS + 32, BASE + 0x8000, 8);
	memcpy(bytes + 0x8000, "lambda_method", 14);
	is_called("[dynamic] lambda_method", HEAP + 0x100);
}

/* --- rows --- */

static const struct row *row_of(const struct row *rows, size_t count, uint64_t addr)
{
	for (size_t i = 0; i < count; i++)
		if (addr >= rows[i].start && addr < rows[i].end)
			return &rows[i];
	return NULL;
}

static void put_unwind(uint32_t at, uint8_t prologue, uint32_t frame_slots)
{
	/* the last is done first: 5: sub rsp; 1: push rbp */
	const uint8_t unwind[] = { 1, prologue, 2, 0, 5, (uint8_t)(2 | (frame_slots - 1) << 4), 1, 0 | 5 << 4 };

	memcpy(bytes + at, unwind, sizeof(unwind));
}

/* Where the caller's stack pointer is, and its rbp, at each instruction of a method. */
static void rows_follow_a_method(void **state)
{
	static const uint8_t code[] = {
		0x55,			      /* 0: push rbp */
		0x48, 0x83, 0xec, 0x20,	      /* 1: sub rsp, 32 */
		0x48, 0x8d, 0x6c, 0x24, 0x20, /* 5: lea rbp, [rsp + 32] */
		0xe8, 0,    0x10, 0,	0,    /* 10: call */
		0x48, 0x83, 0xc4, 0x20,	      /* 15: add rsp, 32 */
		0x5d,			      /* 19: pop rbp */
		0xc3,			      /* 20: ret */
	};
	static const struct {
		uint32_t off, depth; /* of rsp below the caller's */
		bool is_saved, has_fp;
	} at[] = { { 0, 8, false, false }, { 1, 16, true, false }, { 5, 48, true, false }, { 10, 48, true, true },
		   { 14, 48, true, true }, { 15, 48, true, true }, { 19, 16, true, true }, { 20, 8, false, false } };
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count = 0;

	(void)state;
	memset(bytes + HEAP + 0x100, 0xcc, 0x20);
	memcpy(bytes + HEAP + 0x100, code, sizeof(code));
	put_unwind(HEAP + 0x7000, 5, 4);
	assert_int_equal(block_at(HEAP + 0x100, &b), 0);
	assert_int_equal(code_dotnet.rows(&dotnet, &memory, &b, &rows, &count), 0);
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		const struct row *row = row_of(rows, count, b.start + at[i].off);

		assert_non_null(row);
		assert_int_equal(row->cfa, ROW_CFA_REG);
		if (row->cfa_reg == REG_FP)
			assert_true(at[i].has_fp && row->cfa_off == 16);
		else
			assert_true(row->cfa_reg == REG_SP && row->cfa_off == (int32_t)at[i].depth);
		assert_int_equal(row->saved[SAVED_FP], at[i].is_saved ? -16 : ROW_SAME);
	}
}

/* Unwind codes that say something else than the code does: these count, behind the prologue alone. */
static void codes_count_where_paths_differ(void **state)
{
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count = 0;

	(void)state;
	memset(bytes + HEAP + 0x100, 0x90, 0x20);
	put_unwind(HEAP + 0x7000, 5, 4);
	assert_int_equal(block_at(HEAP + 0x100, &b), 0);
	assert_int_equal(code_dotnet.rows(&dotnet, &memory, &b, &rows, &count), 0);
	assert_int_equal(count, 1);
	assert_true(rows[0].start == b.start + 5 && rows[0].end == b.end);
	assert_true(rows[0].cfa == ROW_CFA_REG && rows[0].cfa_reg == REG_SP && rows[0].cfa_off == 48);
	assert_int_equal(rows[0].saved[SAVED_FP], -16);
	bytes[HEAP + 0x7000 + 5] = 6; /* a code that no frame is made of */
	free(rows);
	rows = NULL;
	assert_int_equal(code_dotnet.rows(&dotnet, &memory, &b, &rows, &count), -EBADMSG);
	bytes[HEAP + 0x7000 + 5] = 1; /* a code whose slots are not there */
	bytes[HEAP + 0x7000 + 2] = 1;
	assert_int_equal(code_dotnet.rows(&dotnet, &memory, &b, &rows, &count), -EBADMSG);
}

/* Stubs have no frame, but where they save rdx. */
static void rows_of_stubs(void **state)
{
	static const uint8_t code[] = { 0x52, 0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, /* push rdx; mov r10, ... */
					0x5a,					  /* 11: pop rdx */
					0xff, 0xe0 };				  /* 12: jmp rax */
	AUTO_FREE struct row *rows = NULL;
	struct code_block b;
	size_t count = 0;

	(void)state;
	memset(bytes + STUBS, 0xcc, 0x1000);
	memcpy(bytes + STUBS + 0x40, code, sizeof(code));
	assert_int_equal(block_at(STUBS + 0x40, &b), 0);
	assert_int_equal(code_dotnet.rows(&dotnet, &memory, &b, &rows, &count), 0);
	for (uint32_t off = 0; off < 13; off++) {
		const struct row *row = row_of(rows, count, BASE + STUBS + 0x40 + off);

		assert_non_null(row);
		assert_true(row->cfa == ROW_CFA_REG && row->cfa_reg == REG_SP);
		if (off == 0 || off == 1 || off == 11 || off == 12)
			assert_int_equal(row->cfa_off, off == 1 || off == 11 ? 16 : 8);
	}
}

/* A stub of a heap is known up to the address that is asked for: the instruction there is whole. */
static void rows_of_a_stub_in_a_heap(void **state)
{
	enum { BEGIN = HEAP + 0x2800, BORDER = BEGIN + 32, LOOKUP = BORDER + 13 };
	static const uint8_t head[] = { 0x52, 0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8 }, /* push rdx; mov r10, ... */
		tail[] = { 0x48, 0x8b, 0x40, 0x10, 0x5a, 0xff, 0xe0 }, /* mov rax, [rax + 16]; pop rdx; jmp rax */
		lookup[] = { 0x50, 0x21, 0x1f, 0xf1, 0x71, 0x7f, 0, 0, /* data */
			     0x48, 0x8b, 0x47, 0x30 };		       /* mov rax, [rdi + 48] */
	AUTO_FREE struct row *rows = NULL;
	const struct row *row;
	struct code_block b;
	size_t count = 0;

	(void)state;
	memset(bytes + BEGIN, 0x90, 64);
	memcpy(bytes + BEGIN, head, sizeof(head));
	memcpy(bytes + BORDER - 2, tail, sizeof(tail));
	memcpy(bytes + LOOKUP - 8, lookup, sizeof(lookup));
	assert_int_equal(block_at(BORDER - 2, &b), 0);
	assert_int_equal(code_dotnet.rows(&dotnet, &memory, &b, &rows, &count), 0);
	row = row_of(rows, count, BASE + BORDER - 2);
	assert_non_null(row);
	assert_int_equal(row->cfa_off, 16);
	row = row_of(rows, count, BASE + LOOKUP); /* behind data, a byte of which is a push */
	assert_non_null(row);
	assert_int_equal(row->cfa_off, 8);
}

static void all_is_as_written(void **state)
{
	static const struct code_facts facts = { .version = 9 << 16, .fact = { [DOTNET_FACT_VARIABLES] = VARIABLES } };
	static struct dumped what;

	(void)state;
	what = (struct dumped){ .reader = &code_dotnet,
				.facts = &facts,
				.bias = BASE,
				.from = BASE + IMAGE,
				.to = BASE + HEAP_END + 16,
				.memory = { BASE + STUBS, BASE + HEAP_END },
				.read = read_made };
	reader_is_as_written(&what, "code_dotnet.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_is_as_written, setup),
		cmocka_unit_test_setup(compiled_methods_are_found, setup),
		cmocka_unit_test_setup(images_and_stubs_are_found, setup),
		cmocka_unit_test_setup(ranges_are_around_sections, setup),
		cmocka_unit_test_setup(releases_are_told_apart, setup),
		cmocka_unit_test_setup(modules_of_8_lead_to_images, setup),
		cmocka_unit_test_setup(methods_are_called_as_people_write_them, setup),
		cmocka_unit_test_setup(what_has_no_name_gets_none, setup),
		cmocka_unit_test_setup(dynamic_methods_are_told, setup),
		cmocka_unit_test_setup(rows_follow_a_method, setup),
		cmocka_unit_test_setup(codes_count_where_paths_differ, setup),
		cmocka_unit_test_setup(rows_of_stubs, setup),
		cmocka_unit_test_setup(rows_of_a_stub_in_a_heap, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	return 0;
}
#endif
