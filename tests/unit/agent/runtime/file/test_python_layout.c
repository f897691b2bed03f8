/* SPDX-License-Identifier: Apache-2.0 */
/* CPython's layouts out of the tables that interpreters have for debuggers (words behind the cookie, as Debian's 3.13.18,
 * 3.14.10 and 3.15.2 have them: od -t u8), against what gdb says of them, and out of tables that make no sense. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/file/python_layout.h"
#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "bpf/runtime/python_state.h"
#include "symbols/elf_image.h"
#include "tests/unit/symbols/dwarf_elf.h"

static const uint64_t words_3_13[] = {
	0x30d12f0, 0,	283408, 608, 632, 194984, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16, 7752, 0,   7768, 7760,
	312,	   0,	8,	16,  72,  152,	  160,	232,  32,   80,	  8,	0,    56,   72, 70,   208, 112,	 120,
	128,	   136, 68,	52,  96,  104,	  200,	16,   8,    416,  24,	88,   168,  32, 24,   16,  40,	 24,
	16,	   48,	32,	40,  24,  16,	  32,	16,   24,   40,	  16,	32,   64,   32, 16,   40,  240,	 200,
};
static const uint64_t words_3_14[] = {
	0x30e0af0, 0,	 316616, 784,  808, 225864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16,	 7784,
	0,	   7800, 7792,	 7992, 0,   832,    0,	  8,	16,   72,   152,  160,	232,  32,   88,	 8,
	0,	   56,	 80,	 74,   64,  0,	    216,  112,	120,  128,  136,  68,	52,   96,   104, 208,
	0,	   16,	 8,	 416,  24,  88,	    168,  40,	32,   16,   40,	  24,	16,   200,  24,	 40,
	32,	   48,	 32,	 40,   24,  16,	    32,	  16,	24,   40,   16,	  32,	64,   32,   16,	 40,
	264,	   192,	 160,	 24,   72,  67,	    0,	  8,	24,   304,  8076, 0,
};
static const uint64_t words_3_15[] = {
	0x30f02f0, 0,	 346568, 912, 936, 226240, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584, 16, 7736, 0,	  7752, 7744,
	7944,	   0,	 888,	 0,   8,   16,	   72,	 80,   88,   96,   176,	 184,  256,  32,   36, 40,   136, 288,	0,
	88,	   8,	 0,	 56,  80,  74,	   64,	 0,    216,  112,  120,	 128,  136,  68,   52, 96,   104, 208,	0,
	16,	   8,	 424,	 24,  88,  168,	   32,	 288,  944,  888,  40,	 32,   16,   40,   24, 16,   200, 24,	40,
	32,	   48,	 32,	 40,  24,  16,	   32,	 16,   24,   40,   16,	 32,   64,   32,   16, 40,   56,  176,	112,
	120,	   1120, 104,	 160, 24,  72,	   67,	 0,    8,    24,   344,	 8028, 0,    4,
};

/* In the order of enum python_offset. */
static const uint16_t offsets_3_13[] = { 72, 0,	 0, 0,	80, 0,	8, 56, 70, 0,	16,   128, 112, 136, 68, 200,
					 8,  16, 2, 40, 56, 16, 0, 0,  0,  640, 7344, 8,   16,	152, 56 };
static const uint16_t offsets_3_14[] = { 72, 0,	 0, 0,	88, 0,	8, 56, 74, 0,	16,   128, 112, 136, 68, 208,
					 8,  16, 2, 40, 56, 16, 0, 0,  0,  816, 7344, 8,   16,	152, 56 };
static const uint16_t offsets_3_15[] = { 72, 0,	 0, 0,	88, 0,	8, 56, 74, 0,	16,   128, 112, 136, 68, 208,
					 8,  16, 2, 40, 56, 16, 0, 0,  0,  944, 7336, 8,   16,	176, 56 };

enum {
	FREE_THREADED = 2,
	CEVAL_GIL = 15,
	GIL,
	GIL_LOCKED = 18,
	GIL_HOLDER,
	FRAME_BYTES = 31,
	FRAME_COPY = 38,
	CODE_LINES = 43,
	CODE_BYTECODE = 48,
	CODE_COPIES = 49
};

static uint16_t key;
static uint64_t table[PYTHON_TABLE_BYTES / 8];

static const uint8_t *make(const uint64_t *words, size_t bytes)
{
	memset(table, 0xff, sizeof(table));
	memcpy(table, "xdebugpy", 8);
	memcpy(&table[1], words, bytes);
	return (const uint8_t *)table;
}

static void check(const uint64_t *words, size_t bytes, uint32_t version, const uint16_t *offsets, uint16_t wanted_key)
{
	const uint8_t *runtime = make(words, bytes);
	struct chain_state s = { 0 };

	assert_int_equal(python_table_read(runtime, sizeof(table)).version, version);
	assert_int_equal(python_table_layout(runtime, sizeof(table), &s, &key), 0);
	assert_int_equal(s.style, PYTHON_SHIM);
	assert_int_equal(key, wanted_key);
	for (size_t i = 0; i < PYTHON_CODE_VERSION; i++)
		assert_int_equal(s.offset[i], offsets[i]);
	assert_int_equal(s.offset[PYTHON_CODE_VERSION], version >> 8);
	assert_int_equal(s.lock, 16); /* gdb's &((PyInterpreterState *)0)->ceval.gil */
	/* one that is not whole */
	assert_int_equal(python_table_read(runtime, sizeof(table) - 1).version, 0);
	assert_int_equal(python_table_layout(runtime, sizeof(table) - 1, &s, &key), -ENOENT);
	table[0]++;
	assert_int_equal(python_table_layout(runtime, sizeof(table), &s, &key), -ENOENT);
}

static void test_tables(void **state)
{
	(void)state;
	check(words_3_13, sizeof(words_3_13), 0x030d12, offsets_3_13, 2164);
	check(words_3_14, sizeof(words_3_14), 0x030e0a, offsets_3_14, 2340);
	check(words_3_15, sizeof(words_3_15), 0x030f02, offsets_3_15, 0);
	assert_int_equal(python_table_read(NULL, sizeof(table)).version, 0);
}

/* A build without the lock has copies of instructions, and other texts. */
static void test_free_threaded(void **state)
{
	const uint8_t *runtime = make(words_3_14, sizeof(words_3_14));
	struct chain_state s;

	(void)state;
	assert_int_equal(python_table_layout(runtime, sizeof(table), &s, &key), 0);
	assert_int_equal(s.lock, 16);
	table[FREE_THREADED] = 1;
	table[FRAME_COPY] = 72;
	table[CODE_COPIES] = 208;
	table[CODE_BYTECODE] = 232;
	assert_true(python_table_read(runtime, sizeof(table)).is_free_threaded);
	assert_int_equal(python_table_layout(runtime, sizeof(table), &s, &key), 0);
	assert_int_equal(s.offset[PYTHON_FRAME_COPY], 72);
	assert_int_equal(s.offset[PYTHON_CODE_COPIES], 208);
	assert_int_equal(s.offset[PYTHON_CODE_BYTECODE], 232);
	assert_int_equal(s.offset[PYTHON_TEXT_SHIFT], 8);
	assert_int_equal(key, 0);
	assert_int_equal(s.lock, 0);
}

/* A lock that looks otherwise than the kernel's program knows it is told as none; the frames stay. */
static void test_other_lock(void **state)
{
	static const uint8_t words[] = { CEVAL_GIL, GIL, GIL_LOCKED, GIL_HOLDER };
	struct chain_state s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const uint8_t *runtime = make(words_3_14, sizeof(words_3_14));

		table[words[i]] += 1 << 16;
		assert_int_equal(python_table_layout(runtime, sizeof(table), &s, &key), 0);
		assert_int_equal(s.lock, 0);
	}
}

/* As gdb has them: ceval.gil in _PyRuntimeState, in 3.12 in PyInterpreterState. */
static void test_locks(void **state)
{
	static const uint32_t locks[] = { 0, 0x4f0, 0x480, 0x160, 0x160, 0x168, 0x180 };
	struct chain_state s;

	(void)state;
	for (uint16_t i = 0; i < ARRAY_LEN(locks); i++) {
		assert_int_equal(python_layout_find(VERSION_3_6 + i, &s, &key), 0);
		assert_int_equal(s.lock, locks[i]);
	}
}

/* Each word, made too large, is refused or without meaning here; what is taken can be read by the kernel's program. */
static void test_senseless(void **state)
{
	static const uint64_t wrong[] = { 0, 1, 127, 128, 4096, UINT16_MAX, 1 << 16, UINT64_MAX };
	struct chain_state s;

	(void)state;
	for (size_t i = 3; i <= ARRAY_LEN(words_3_14); i++) {
		for (size_t k = 0; k < ARRAY_LEN(wrong); k++) {
			const uint8_t *runtime = make(words_3_14, sizeof(words_3_14));

			table[i] = wrong[k];
			if (python_table_layout(runtime, sizeof(table), &s, &key))
				continue;
			assert_in_range(s.offset[PYTHON_FRAME_BYTES], 72, 127);
			assert_true(s.offset[PYTHON_FRAME_OWNER] < s.offset[PYTHON_FRAME_BYTES]);
			assert_true(s.offset[PYTHON_CODE_LINES] + 8 <= PYTHON_CODE_BYTES);
			assert_int_equal(s.offset[PYTHON_CODE_CHECKED] + PYTHON_CHECKED_NAME * 8,
					 s.offset[PYTHON_CODE_NAME]);
		}
	}
	for (size_t k = 3; k < ARRAY_LEN(wrong); k++) {
		const uint8_t *runtime = make(words_3_14, sizeof(words_3_14));

		table[FRAME_BYTES] = wrong[k];
		assert_int_equal(python_table_layout(runtime, sizeof(table), &s, &key), -EBADMSG);
		table[FRAME_BYTES] = 88;
		table[CODE_LINES] = wrong[k];
		assert_int_equal(python_table_layout(runtime, sizeof(table), &s, &key), -EBADMSG);
	}
}

/* Later versions are read as the newest known one, if that makes sense; earlier ones had no table. */
static void test_other_versions(void **state)
{
	const uint8_t *runtime = make(words_3_15, sizeof(words_3_15));
	struct chain_state s;

	(void)state;
	table[1] = 0x31000a0;
	assert_int_equal(python_table_layout(runtime, sizeof(table), &s, &key), 0);
	assert_int_equal(s.offset[PYTHON_CODE_VERSION], 0x310);
	table[1] = 0x30c00f0;
	assert_int_equal(python_table_layout(runtime, sizeof(table), &s, &key), -ENOENT);
	assert_int_equal(python_layout_find(VERSION_3_13, &s, &key), -ENOENT);
	assert_int_equal(python_layout_find(0, &s, &key), -ENOENT);
	assert_int_equal(python_layout_find(0x0207, &s, &key), -ENOENT);
	assert_int_equal(python_layout_find(VERSION_3_12, &s, &key), 0);
	assert_int_equal(s.offset[PYTHON_CODE_VERSION], 0x30c);
	assert_int_equal(key, 1548);
	assert_int_equal(python_layout_find(VERSION_3_6, &s, &key), 0);
	assert_int_equal(key, 0);
}

/* Programs without symbols: a section says that they are CPython, the table or a constant says which. */
static void test_stripped(void **state)
{
	static const struct {
		uint64_t constants[4];
		uint32_t version;
	} cases[] = {
		{ { 1, 0x030b02f0, 0x030b02f0 }, 0x030b02 },
		{ { 0x030c0cf0, 7, 8, 9 }, 0x030c0c },
		{ { 0x030c0cf0, 0x030c0df0 }, 0 }, /* one of them means something else */
		{ { 0x030b02a1, 0x0f030b02f0, 0x030e00f0, 0x020712f0 }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf file = BUF_EMPTY;
		struct runtime_file found;
		struct elf_image im;

		memset(table, 0, sizeof(table));
		dwarf_elf_build(&file,
				(struct dwarf_elf_section[]){
					{ ".PyRuntime", table, sizeof(table), SHF_ALLOC },
					{ ".rodata", cases[i].constants, sizeof(cases[i].constants), SHF_ALLOC } },
				2);
		assert_int_equal(elf_image_open(file.data, file.len, &im), 0);
		runtime_file_read(&im, &found);
		assert_int_equal(found.kind, RUNTIME_FILE_CHAIN);
		assert_int_equal(found.id, RUNTIME_PYTHON);
		assert_int_equal(found.version, cases[i].version);
		assert_int_equal(runtime_file_has_threads(&found), cases[i].version != 0);
		assert_int_equal(found.state.type, 0); /* not known: told by its name */
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),	  cmocka_unit_test(test_free_threaded),
		cmocka_unit_test(test_senseless), cmocka_unit_test(test_other_versions),
		cmocka_unit_test(test_stripped),  cmocka_unit_test(test_other_lock),
		cmocka_unit_test(test_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
