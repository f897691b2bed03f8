/* SPDX-License-Identifier: Apache-2.0 */
/* The tables by which HotSpot describes itself, in a made-up process (fake_hotspot.h): what must be in them, how wide fields
 * are, how far entries may lie apart, and tables that end where memory does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/runtime/code/hotspot/hotspot_state.h"
#include "tests/unit/agent/runtime/code/fake_hotspot.h"

enum { ENTRY_BYTES = 48, STATICS = 3 };

static struct fake fake;
static struct hotspot hotspot;

static int make(void **state)
{
	(void)state;
	fake_make(&fake);
	return 0;
}

static int open_it(void)
{
	struct code_memory memory = { .read = fake_read,
				      .arg = &fake,
				      .reads_left = CODE_MAX_READS,
				      .bytes_left = CODE_MAX_BYTES,
				      .end_ns = UINT64_MAX };

	memset(&hotspot, 0, sizeof(hotspot));
	return hotspot_open(&hotspot, &memory, &fake.facts, FAKE_BASE);
}

/* The address of the variable that holds @fact. */
static uint64_t variable_of(int fact)
{
	return FAKE_BASE + fake.facts.fact[fact];
}

static uint64_t word_at(uint64_t addr)
{
	uint64_t value;

	memcpy(&value, fake_at(&fake, addr), sizeof(value));
	return value;
}

static const char *text_at(uint64_t addr)
{
	return fake_at(&fake, word_at(addr));
}

/* The entry of the structures' table for @type's @field. */
static uint64_t entry_of(const char *type, const char *field)
{
	uint64_t at = word_at(variable_of(HOTSPOT_FACT_STRUCTS));

	while (word_at(at) && (strcmp(text_at(at), type) != 0 || strcmp(text_at(at + 8), field) != 0))
		at += ENTRY_BYTES;
	if (!word_at(at))
		fail_msg("there is no %s::%s", type, field);
	return at;
}

/* That of the types' table. */
static uint64_t type_of(const char *type)
{
	uint64_t at = word_at(variable_of(HOTSPOT_FACT_TYPES));

	while (word_at(at) && strcmp(text_at(at), type) != 0)
		at += 16;
	assert_true(word_at(at));
	return at;
}

static void find_method(struct hotspot_blob *b)
{
	struct code_memory memory = { .read = fake_read,
				      .arg = &fake,
				      .reads_left = CODE_MAX_READS,
				      .bytes_left = CODE_MAX_BYTES,
				      .end_ns = UINT64_MAX };

	assert_int_equal(open_it(), 0);
	assert_int_equal(hotspot_find_blob(&hotspot, &memory, fake.code, b), 0);
}

/* A method's tables of handlers and null checks: behind its code, in that order, or in memory of their own the other way
 * round. */
static void test_order(void **state)
{
	enum { HANDLERS = 280, NUL_CHECKS = 284, DATA = 120, END = 296, PCS = 268 };
	uint64_t data = FAKE_BASE + 0x100;
	struct hotspot_blob b;

	make(state);
	fake_put(&fake, fake.nmethod + HANDLERS, 500, 4);
	fake_put(&fake, fake.nmethod + NUL_CHECKS, 524, 4);
	fake_put(&fake, fake.nmethod + END, 564, 4);
	find_method(&b);
	assert_int_equal(b.handlers, fake.nmethod + 500);
	assert_int_equal(b.handlers_end, fake.nmethod + 524);
	assert_int_equal(b.nul_checks, fake.nmethod + 524);
	assert_int_equal(b.nul_checks_end, fake.nmethod + 564);
	fake_put(&fake, entry_of("CompiledMethod", "_scopes_data_begin") + 8, fake_text(&fake, "_immutable_data"), 8);
	fake_put(&fake, entry_of("CompiledMethod", "_immutable_data"), fake_text(&fake, "nmethod"), 8);
	fake_put(&fake, fake.nmethod + DATA, data, 8);
	fake_put(&fake, fake.nmethod + NUL_CHECKS, 16, 4);
	fake_put(&fake, fake.nmethod + HANDLERS, 40, 4);
	fake_put(&fake, fake.nmethod + PCS, 96, 4);
	find_method(&b);
	assert_int_equal(b.nul_checks, data + 16);
	assert_int_equal(b.nul_checks_end, data + 40);
	assert_int_equal(b.handlers, data + 40);
	assert_int_equal(b.handlers_end, data + 96);
}

static void test_whole(void **state)
{
	static const struct {
		const char *type, *field;
		bool is_needed;
	} cases[] = {
		{ "CodeHeap", "_memory", true },
		{ "CodeHeap", "_segmap", true },
		{ "CodeHeap", "_log2_segment_size", true },
		{ "VirtualSpace", "_low", true },
		{ "VirtualSpace", "_high", true },
		{ "HeapBlock::Header", "_used", true },
		{ "CodeBlob", "_name", true },
		{ "CodeBlob", "_size", true },
		{ "CodeBlob", "_frame_size", true },
		{ "CodeBlob", "_code_begin", true },
		{ "CodeBlob", "_code_end", true },
		{ "CompiledMethod", "_method", true },
		{ "nmethod", "_compile_id", true },
		{ "nmethod", "_entry_bci", true },
		{ "Method", "_constMethod", true },
		{ "ConstMethod", "_constants", true },
		{ "ConstMethod", "_name_index", true },
		{ "ConstantPool", "_pool_holder", true },
		{ "Klass", "_name", true },
		{ "Symbol", "_length", true },
		{ "Symbol", "_body", true },
		{ "nmethod", "_osr_entry_point", false },
		{ "ConstMethod", "_flags", false },
		{ "ConstantPool", "_source_file_name_index", false },
		{ "StubQueue", "_stub_buffer", false },
	};
	static const uint64_t sizes[] = { 0, 1, MAX_BLOB_HEAD, MAX_BLOB_HEAD + 1 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		make(state);
		fake_put(&fake, entry_of(cases[i].type, cases[i].field) + 8, fake_text(&fake, "_other"), 8);
		if (open_it() != (cases[i].is_needed ? -ENOTSUP : 0))
			fail_msg("without %s::%s", cases[i].type, cases[i].field);
	}
	for (size_t i = 0; i < ARRAY_LEN(fake_types); i++)
		for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
			make(state);
			fake_put(&fake, type_of(fake_types[i].type) + 8, sizes[k], 8);
			if (open_it() != (sizes[k] && sizes[k] <= MAX_BLOB_HEAD ? 0 : -ENOTSUP))
				fail_msg("%s of %d bytes", fake_types[i].type, (int)sizes[k]);
		}
	make(state);
	fake_put(&fake, type_of("nmethod") + 8, MAX_BLOB_HEAD, 8);
	assert_int_equal(open_it(), 0);
	assert_int_equal(hotspot.type_bytes[T_NMETHOD], MAX_BLOB_HEAD);
	assert_int_equal(hotspot.type_bytes[T_PC_DESC], 16);
}

/* Where newer ones say where a blob's code begins and ends, both are there. */
static void test_offsets_instead(void **state)
{
	static const char *const fields[2] = { "_code_offset", "_data_offset" };
	static const char *const replaced[2] = { "_code_begin", "_code_end" };

	for (int given = 1; given <= 3; given++) {
		make(state);
		for (int i = 0; i < 2; i++) {
			uint64_t entry = entry_of("CodeBlob", replaced[i]);

			fake_put(&fake, entry + 8, fake_text(&fake, given >> i & 1 ? fields[i] : "_other"), 8);
			fake_put(&fake, entry + 16, fake_text(&fake, "int"), 8);
		}
		assert_int_equal(open_it(), given == 3 ? 0 : -ENOTSUP);
	}
	assert_int_equal(hotspot.field[F_BLOB_CODE_OFFSET].offset, 32);
	assert_int_equal(hotspot.field[F_BLOB_DATA_OFFSET].offset, 40);
}

/* The type's name tells how wide a field is; where it does not, it is as wide as it was in all versions. */
static void test_widths(void **state)
{
	static const struct {
		const char *type;
		uint8_t bytes;
		bool is_signed;
	} cases[] = {
		{ "int", 4, true },	      { "jint", 4, true },     { "int16_t", 2, true },
		{ "short", 2, true },	      { "u2", 2, false },      { "uint16_t", 2, false },
		{ "jushort", 2, false },      { "u4", 4, false },      { "uint32_t", 4, false },
		{ "u1", 1, false },	      { "bool", 1, false },    { "size_t", 8, false },
		{ "unsigned int", 4, false }, { "address", 8, false }, { "Symbol*", 8, false },
		{ "Whatever", 2, false },     { "", 2, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct hotspot_field_place *place = &hotspot.field[F_CONST_FLAGS];

		make(state);
		fake_put(&fake, entry_of("ConstMethod", "_flags") + 16, fake_text(&fake, cases[i].type), 8);
		assert_int_equal(open_it(), 0);
		if (place->bytes != cases[i].bytes || place->is_signed != cases[i].is_signed || place->offset != 28)
			fail_msg("%s: %d bytes", cases[i].type, place->bytes);
	}
	make(state);
	fake_put(&fake, entry_of("ConstMethod", "_flags") + 16, 0, 8);
	assert_int_equal(open_it(), 0);
	assert_int_equal(hotspot.field[F_CONST_FLAGS].bytes, 2);
	assert_int_equal(hotspot.field[F_HEAP_MEMORY].bytes, 8);
	assert_int_equal(hotspot.field[F_SYMBOL_BODY].bytes, 1);
	assert_int_equal(hotspot.field[F_CLASS_FILE].offset, NO_FIELD);
}

static void test_offsets(void **state)
{
	for (uint64_t offset = NO_FIELD - 1; offset <= NO_FIELD + 1; offset++) {
		make(state);
		fake_put(&fake, entry_of("nmethod", "_osr_entry_point") + 32, offset, 8);
		assert_int_equal(open_it(), 0);
		assert_int_equal(hotspot.field[F_NM_OSR].offset, offset < NO_FIELD ? offset : NO_FIELD);
	}
	make(state); /* what is static has no offset */
	fake_put(&fake, entry_of("nmethod", "_osr_entry_point") + 24, 1, 4);
	assert_int_equal(open_it(), 0);
	assert_int_equal(hotspot.field[F_NM_OSR].offset, NO_FIELD);
	make(state); /* either name of the type */
	fake_put(&fake, entry_of("CompiledMethod", "_method"), fake_text(&fake, "nmethod"), 8);
	assert_int_equal(open_it(), 0);
	assert_int_equal(hotspot.field[F_NM_METHOD].offset, 112);
	make(state);
	fake_put(&fake, entry_of("CompiledMethod", "_method"), fake_text(&fake, "Method"), 8);
	assert_int_equal(open_it(), -ENOTSUP);
}

/* The virtual machine may not have begun; entries lie neither closer nor farther apart than can be. */
static void test_places(void **state)
{
	static const struct {
		int fact;
		uint64_t value;
		int code;
	} cases[] = {
		{ HOTSPOT_FACT_STRUCTS, 0, -EAGAIN },
		{ HOTSPOT_FACT_TYPES, 0, -EAGAIN },
		{ HOTSPOT_FACT_STRUCTS, FAKE_BASE + FAKE_BYTES, -EFAULT },
		{ HOTSPOT_FACT_TYPES, FAKE_BASE + FAKE_BYTES, -EFAULT },
		{ HOTSPOT_FACT_STRUCT_STRIDE, 0, -ENOTSUP },
		{ HOTSPOT_FACT_STRUCT_STRIDE, 15, -ENOTSUP },
		{ HOTSPOT_FACT_STRUCT_STRIDE, 257, -ENOTSUP },
		{ HOTSPOT_FACT_TYPE_STRIDE, 15, -ENOTSUP },
		{ HOTSPOT_FACT_TYPE_STRIDE, 257, -ENOTSUP },
		/* a word that does not lie within an entry is 0: the table ends at once */
		{ HOTSPOT_FACT_STRUCT_TYPE, ENTRY_BYTES - 7, -ENOTSUP },
		{ HOTSPOT_FACT_TYPE_SIZE, 9, -ENOTSUP },
		{ HOTSPOT_FACT_TYPE_SIZE, 8, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int code;

		make(state);
		fake_put(&fake, variable_of(cases[i].fact), cases[i].value, 8);
		code = open_it();
		if (code != cases[i].code)
			fail_msg("case %zu: %d", i, code);
	}
}

/* Entries as far apart as they may be. */
static void test_largest_stride(void **state)
{
	enum { STRIDE = 256 };
	const uint64_t types = FAKE_BASE + FAKE_BYTES - STRIDE * (ARRAY_LEN(fake_types) + 1);

	make(state);
	for (size_t i = 0; i < ARRAY_LEN(fake_types); i++)
		memcpy(fake_at(&fake, types + STRIDE * i), fake_at(&fake, type_of(fake_types[i].type)), 16);
	fake_put(&fake, variable_of(HOTSPOT_FACT_TYPES), types, 8);
	fake_put(&fake, variable_of(HOTSPOT_FACT_TYPE_STRIDE), STRIDE, 8);
	assert_int_equal(open_it(), 0);
	assert_int_equal(hotspot.type_bytes[T_NMETHOD], 352);
}

/* Whole entries are read up to the end of what is mapped, and none is made up behind it. */
static void test_end_of_memory(void **state)
{
	const uint32_t bytes = ENTRY_BYTES * (ARRAY_LEN(fake_fields) + STATICS + 1);

	for (uint32_t cut = 0; cut <= ENTRY_BYTES; cut += ENTRY_BYTES) {
		uint64_t to = FAKE_BASE + FAKE_BYTES - bytes + cut;

		make(state);
		memmove(fake_at(&fake, to), fake_at(&fake, word_at(variable_of(HOTSPOT_FACT_STRUCTS))), bytes - cut);
		fake_put(&fake, variable_of(HOTSPOT_FACT_STRUCTS), to, 8);
		assert_int_equal(open_it(), cut ? -EFAULT : 0);
	}
	make(state); /* a name that cannot be read */
	fake_put(&fake, entry_of("ConstMethod", "_flags") + 8, FAKE_BASE + FAKE_BYTES, 8);
	assert_int_equal(open_it(), -EFAULT);
	make(state);
	fake_put(&fake, type_of("PcDesc"), 1, 8);
	assert_int_equal(open_it(), -EFAULT);
}

static void test_variables(void **state)
{
	uint64_t stub;

	make(state);
	assert_int_equal(open_it(), 0);
	assert_int_equal(hotspot.major, 17);
	assert_int_equal(hotspot.heap_cnt, 1);
	assert_int_equal(hotspot.stub_var_cnt, 0);
	assert_true(hotspot.variable[S_HEAPS] == word_at(entry_of("CodeCache", "_heaps") + 40));

	stub = entry_of("AbstractInterpreter", "_code"); /* as a stub's entry */
	fake_put(&fake, stub, fake_text(&fake, "StubRoutines"), 8);
	assert_int_equal(open_it(), 0);
	assert_int_equal(hotspot.stub_var_cnt, 0); /* it is no address */
	fake_put(&fake, stub + 16, fake_text(&fake, "address"), 8);
	assert_int_equal(open_it(), 0);
	assert_int_equal(hotspot.stub_var_cnt, 1);
	assert_true(hotspot.stubs[0].variable == word_at(stub + 40));
	assert_true(hotspot.stubs[0].name == word_at(stub + 8));
	assert_int_equal(hotspot.stubs[0].bytes_before, 0);
	fake_put(&fake, stub + 8, fake_text(&fake, "_cont_returnBarrierExc"), 8);
	assert_int_equal(open_it(), 0);
	assert_true(hotspot.stubs[0].bytes_before); /* it is returned to */

	make(state); /* 8 has one heap */
	fake_put(&fake, entry_of("CodeCache", "_heaps") + 40, fake_variable(&fake, word_at(word_at(fake.heap_array + 8))),
		 8);
	fake_put(&fake, entry_of("CodeCache", "_heaps") + 8, fake_text(&fake, "_heap"), 8);
	assert_int_equal(open_it(), 0);
	assert_int_equal(hotspot.major, 8);
	assert_int_equal(hotspot.heap_cnt, 1);
	assert_true(hotspot.heaps[0].low == FAKE_BASE + FAKE_HEAP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	      cmocka_unit_test(test_offsets_instead),
		cmocka_unit_test(test_widths),	      cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_places),	      cmocka_unit_test(test_largest_stride),
		cmocka_unit_test(test_end_of_memory), cmocka_unit_test(test_variables),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
