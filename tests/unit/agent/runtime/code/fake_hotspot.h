/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process with a virtual machine as small as can be, in the layout of JDK 17 (offsets by the tables that
 * libjvm exports: 17.0.15, Debian): one heap with a compiled method, into which another is inlined, a stub that does not
 * return, and the interpreter with two codelets. For tests and as a seed for the fuzzer.
 */
#ifndef HEARTH_TESTS_FAKE_HOTSPOT_H
#define HEARTH_TESTS_FAKE_HOTSPOT_H

#include <string.h>

#include "agent/runtime/code/code_reader.h"
#include "agent/runtime/file/hotspot_facts.h"
#include "base/cleanup.h"

#define FAKE_BASE 0x7f0000000000ull
enum { FAKE_BYTES = 1 << 16, FAKE_HEAP = 0x8000, FAKE_HEAP_BYTES = 0x4000, FAKE_SEGMENT_LOG2 = 7 };

struct fake {
	uint8_t bytes[FAKE_BYTES];
	uint32_t used;
	struct code_facts facts;
	uint64_t nmethod, code, call_end, stub, heap_array; /* addresses */
	uint64_t entry_codelet, frame_codelet;
	uint64_t method, inlined;
};

#include "tests/unit/agent/runtime/code/fake_memory.h"

static inline uint64_t fake_text(struct fake *f, const char *text)
{
	uint64_t addr = fake_take(f, (uint32_t)strlen(text) + 1);

	memcpy(fake_at(f, addr), text, strlen(text));
	return addr;
}

static const struct {
	const char *type, *field, *type_string;
	uint32_t offset;
} fake_fields[] = {
	{ "GrowableArrayBase", "_len", "int", 0 },
	{ "GrowableArray<int>", "_data", "int*", 8 },
	{ "CodeHeap", "_memory", "VirtualSpace", 8 },
	{ "CodeHeap", "_segmap", "VirtualSpace", 120 },
	{ "CodeHeap", "_log2_segment_size", "int", 256 },
	{ "VirtualSpace", "_low_boundary", "char*", 0 },
	{ "VirtualSpace", "_high_boundary", "char*", 8 },
	{ "VirtualSpace", "_low", "char*", 16 },
	{ "VirtualSpace", "_high", "char*", 24 },
	{ "HeapBlock::Header", "_used", "bool", 8 },
	{ "CodeBlob", "_name", "const char*", 96 },
	{ "CodeBlob", "_size", "int", 12 },
	{ "CodeBlob", "_frame_size", "int", 28 },
	{ "CodeBlob", "_code_begin", "address", 32 },
	{ "CodeBlob", "_code_end", "address", 40 },
	{ "CompiledMethod", "_method", "Method*", 112 },
	{ "CompiledMethod", "_scopes_data_begin", "address", 120 },
	{ "CompiledMethod", "_deopt_handler_begin", "address", 128 },
	{ "nmethod", "_entry_bci", "int", 192 },
	{ "nmethod", "_entry_point", "address", 216 },
	{ "nmethod", "_verified_entry_point", "address", 224 },
	{ "nmethod", "_osr_entry_point", "address", 232 },
	{ "nmethod", "_exception_offset", "int", 240 },
	{ "nmethod", "_metadata_offset", "int", 260 },
	{ "nmethod", "_scopes_pcs_offset", "int", 268 },
	{ "nmethod", "_dependencies_offset", "int", 272 },
	{ "nmethod", "_handler_table_offset", "int", 280 },
	{ "nmethod", "_nul_chk_table_offset", "int", 284 },
	{ "nmethod", "_nmethod_end_offset", "int", 296 },
	{ "nmethod", "_compile_id", "int", 304 },
	{ "Method", "_constMethod", "ConstMethod*", 8 },
	{ "ConstMethod", "_constants", "ConstantPool*", 8 },
	{ "ConstMethod", "_constMethod_size", "int", 24 },
	{ "ConstMethod", "_flags", "u2", 28 },
	{ "ConstMethod", "_code_size", "u2", 32 },
	{ "ConstMethod", "_name_index", "u2", 34 },
	{ "ConstantPool", "_pool_holder", "InstanceKlass*", 24 },
	{ "ConstantPool", "_source_file_name_index", "u2", 54 },
	{ "ConstantPool", "_length", "int", 60 },
	{ "Klass", "_name", "Symbol*", 24 },
	{ "Symbol", "_length", "u2", 4 },
	{ "Symbol", "_body[0]", "u1", 6 },
	{ "Symbol", "_body", "", 6 },
	{ "StubQueue", "_stub_buffer", "address", 8 },
	{ "StubQueue", "_buffer_limit", "int", 20 },
	{ "StubQueue", "_number_of_stubs", "int", 32 },
	{ "InterpreterCodelet", "_size", "int", 8 },
	{ "InterpreterCodelet", "_description", "const char*", 0 },
};

static const struct {
	const char *type;
	uint32_t bytes;
} fake_types[] = {
	{ "HeapBlock", 16 }, { "nmethod", 352 },     { "ConstMethod", 48 },
	{ "PcDesc", 16 },    { "ConstantPool", 72 }, { "InterpreterCodelet", 16 },
};

static inline uint64_t fake_symbol(struct fake *f, const char *text)
{
	uint64_t addr = fake_take(f, 8 + (uint32_t)strlen(text));

	fake_put(f, addr + 4, strlen(text), 2);
	memcpy(fake_at(f, addr + 6), text, strlen(text));
	return addr;
}

/* A method with 20 bytes of code, whose first line is @line, and whose bytes from 8 on are on the line behind that. */
static inline uint64_t fake_method(struct fake *f, const char *class, const char *name, const char *file, uint32_t line)
{
	uint64_t method = fake_take(f, 88), constant = fake_take(f, 96), pool = fake_take(f, 72 + 4 * 8),
		 klass = fake_take(f, 464);
	const uint8_t lines[] = { 0xff, 0, (uint8_t)(2 * line), 8 << 3 | 1, 0 };

	fake_put(f, method + 8, constant, 8);
	fake_put(f, constant + 8, pool, 8);
	fake_put(f, constant + 24, 12, 4);
	fake_put(f, constant + 28, 1, 2);
	fake_put(f, constant + 32, 20, 2);
	fake_put(f, constant + 34, 1, 2);
	memcpy(fake_at(f, constant + 48 + 20), lines, sizeof(lines));
	fake_put(f, pool + 24, klass, 8);
	fake_put(f, pool + 54, 2, 2);
	fake_put(f, pool + 60, 4, 4);
	fake_put(f, pool + 72 + 8, fake_symbol(f, name), 8);
	fake_put(f, pool + 72 + 16, fake_symbol(f, file), 8);
	fake_put(f, klass + 24, fake_symbol(f, class), 8);
	return method;
}

/* A blob of @size bytes in the heap at @off, whose code is the @len bytes @code at @begin from its start. */
static inline uint64_t fake_blob(struct fake *f, uint32_t off, const char *name, uint32_t size, uint32_t begin,
				 const uint8_t *code, uint32_t len, uint32_t frame_words)
{
	uint64_t header = FAKE_BASE + FAKE_HEAP + off, blob = header + 16;
	uint8_t *map = f->bytes + 0x7000 + (off >> FAKE_SEGMENT_LOG2);
	uint32_t segments = (size + 16 + (1 << FAKE_SEGMENT_LOG2) - 1) >> FAKE_SEGMENT_LOG2;

	for (uint32_t i = 0; i < segments; i++)
		map[i] = (uint8_t)i;
	fake_put(f, header, segments, 8);
	fake_put(f, header + 8, 1, 1);
	fake_put(f, blob + 12, size, 4);
	fake_put(f, blob + 28, frame_words, 4);
	fake_put(f, blob + 32, blob + begin, 8);
	fake_put(f, blob + 40, blob + begin + len, 8);
	fake_put(f, blob + 96, fake_text(f, name), 8);
	memcpy(fake_at(f, blob + begin), code, len);
	return blob;
}

/* A variable with @value; returns its address. */
static inline uint64_t fake_variable(struct fake *f, uint64_t value)
{
	uint64_t addr = fake_take(f, 8);

	fake_put(f, addr, value, 8);
	return addr;
}

static inline void fake_heaps(struct fake *f)
{
	uint64_t heap = fake_take(f, 344), data = fake_take(f, 8);

	for (int i = 0; i < 2; i++) { /* reserved, committed */
		fake_put(f, heap + 8 + 16 * i, FAKE_BASE + FAKE_HEAP, 8);
		fake_put(f, heap + 16 + 16 * i, FAKE_BASE + FAKE_HEAP + FAKE_HEAP_BYTES, 8);
	}
	fake_put(f, heap + 120 + 16, FAKE_BASE + 0x7000, 8);
	fake_put(f, heap + 256, FAKE_SEGMENT_LOG2, 4);
	memset(f->bytes + 0x7000, 0xff, FAKE_HEAP_BYTES >> FAKE_SEGMENT_LOG2);
	f->heap_array = fake_take(f, 24);
	fake_put(f, f->heap_array, 1, 4);
	fake_put(f, f->heap_array + 8, data, 8);
	fake_put(f, data, heap, 8);
}

#ifdef __aarch64__
/* nop; sub sp, sp, 32; stp x29, x30, [sp, 16]; cbz x0 over the next one; bl stub (returns not); bl method; nop; ldp x29,
 * x30, [sp, 16]; add sp, sp, 32; ret; brk */
static const uint32_t fake_method_code[12] = { 0xd503201f, 0xd10083ff, 0xa9017bfd, 0xb4000040, 0x94000000, 0x94000000,
					       0xd503201f, 0xa9417bfd, 0x910083ff, 0xd65f03c0, 0xd4200000 };
static const uint32_t fake_stub_code[] = { 0xd503201f, 0xd503201f, 0xd65f03c0 };
/* and sp, x20, -16; stp x20, x22, [sp, -96]!; stp x8, x12, [sp, 48]; stp x29, x30, [sp, 80]; add x29, sp, 80; stp xzr, x13,
 * [sp, 64]; blr x8; ret, as a method is entered; nop; ldur x9, [x29, -8]; mov x20, x9; mov sp, x29; ldp x29, x30, [sp], 16;
 * and sp, x20, -16; ret, as it is left. */
static const uint32_t fake_entry_code[] = { 0x927cee9f, 0xa9ba5bf4, 0xa90333e8, 0xa9057bfd,
					    0x910143fd, 0xa90437ff, 0xd63f0100, 0xd65f03c0 };
static const uint32_t fake_leave_code[] = { 0xd503201f, 0xf85f83a9, 0xaa0903f4, 0x910003bf,
					    0xa8c17bfd, 0x927cee9f, 0xd65f03c0 };
enum { FAKE_TRAP_END = 20, FAKE_CALL_END = 24, FAKE_CODELET_ALIGN = 64 };

/* Makes the call that ends at @end one of @target. */
static inline void fake_call(struct fake *f, uint64_t end, uint64_t target)
{
	fake_put(f, end - 4, 0x94000000 | ((target - (end - 4)) >> 2 & 0x3ffffff), 4);
}
#else
/* push rbp; sub rsp, 16; je over the next one; call stub (returns not); call method; nop; add rsp, 16; pop rbp; ret; int3 */
static const uint8_t fake_method_code[48] = { 0x55, 0x48, 0x83, 0xec, 0x10, 0x74, 0x05, 0xe8, 0,    0,	  0,	0,   0xe8,
					      0,    0,	  0,	0,    0x90, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3, 0xcc };
static const uint8_t fake_stub_code[] = { 0x90, 0x90, 0xc3 };
/* pop rax; push rax; push rbp; mov rbp, rsp; push r13; push 0; push rbx; ret, as a method is entered; nop; mov rbx, [rbp -
 * 8]; leave; pop rdi; mov rsp, rbx; jmp rdi, as it is left. */
static const uint8_t fake_entry_code[] = { 0x58, 0x50, 0x55, 0x48, 0x8b, 0xec, 0x41, 0x55, 0x6a, 0, 0x53, 0xc3 };
static const uint8_t fake_leave_code[] = { 0x90, 0x48, 0x8b, 0x5d, 0xf8, 0xc9, 0x5f, 0x48, 0x8b, 0xe3, 0xff, 0xe7 };
enum { FAKE_TRAP_END = 12, FAKE_CALL_END = 17, FAKE_CODELET_ALIGN = 32 };

static inline void fake_call(struct fake *f, uint64_t end, uint64_t target)
{
	fake_put(f, end - 4, (uint32_t)(target - end), 4);
}
#endif

/* A method of fake_method_code, with a frame of 32 bytes; behind it the tables. */
static inline void fake_nmethod(struct fake *f)
{
	enum { BEGIN = 384, TABLES = 448, SIZE = 640, TRAP_END = FAKE_TRAP_END, CALL_END = FAKE_CALL_END };
	const uint8_t scopes[] = { 0xff, 0, 1, 2, 1, 2, 9 }; /* at 1: {0, method 1, bci 1}; at 4: {in 1, method 2, bci 8} */
	uint64_t b;

	f->stub = fake_blob(f, 0x1000, "UncommonTrapBlob", 256, 128, (const uint8_t *)fake_stub_code, sizeof(fake_stub_code),
			    8);
	b = f->nmethod = fake_blob(f, 0x400, "nmethod", SIZE, BEGIN, (const uint8_t *)fake_method_code,
				   sizeof(fake_method_code), 4);
	f->code = b + BEGIN;
	f->call_end = f->code + CALL_END;
	fake_call(f, f->code + TRAP_END, f->stub + 128);
	fake_call(f, f->call_end, f->code);
	fake_put(f, b + 112, f->method, 8);
	fake_put(f, b + 120, b + TABLES + 32, 8);
	fake_put(f, b + 192, UINT32_MAX, 4);
	fake_put(f, b + 216, f->code, 8);
	fake_put(f, b + 224, f->code, 8);
	fake_put(f, b + 240, UINT32_MAX, 4);
	fake_put(f, b + 260, TABLES, 4);
	fake_put(f, b + 268, TABLES + 48, 4);
	fake_put(f, b + 272, TABLES + 48 + 4 * 16, 4);
	fake_put(f, b + 280, TABLES + 128, 4);
	fake_put(f, b + 284, TABLES + 128, 4);
	fake_put(f, b + 296, TABLES + 128, 4);
	fake_put(f, b + 304, 77, 4);
	fake_put(f, b + TABLES, f->method, 8);
	fake_put(f, b + TABLES + 8, f->inlined, 8);
	memcpy(fake_at(f, b + TABLES + 32), scopes, sizeof(scopes));
	for (int i = 0; i < 4; i++) {
		const int32_t offsets[] = { -1, TRAP_END, CALL_END, 1000 }, decode[] = { 0, 1, 4, 0 };

		fake_put(f, b + TABLES + 48 + 16 * (uint64_t)i, (uint32_t)offsets[i], 4);
		fake_put(f, b + TABLES + 48 + 16 * (uint64_t)i + 4, (uint32_t)decode[i], 4);
	}
}

/* Its two codelets: methods are entered by one and left by the other. */
static inline uint64_t fake_interpreter(struct fake *f)
{
	const uint8_t nothing[0x200] = { 0 };
	uint64_t blob = fake_blob(f, 0x2000, "Interpreter", 0x400, 128, nothing, sizeof(nothing), 0);
	uint64_t buffer = blob + 128, queue = fake_take(f, 48);

	for (int i = 0; i < 2; i++) {
		uint64_t codelet = buffer + 128 * (uint64_t)i,
			 code = (codelet + 16 + FAKE_CODELET_ALIGN - 1) & -(uint64_t)FAKE_CODELET_ALIGN;

		fake_put(f, codelet, fake_text(f, i ? "ireturn" : "method entry point (kind = zerolocals)"), 8);
		fake_put(f, codelet + 8, 128, 4);
		if (i)
			memcpy(fake_at(f, code), fake_leave_code, sizeof(fake_leave_code));
		else
			memcpy(fake_at(f, code), fake_entry_code, sizeof(fake_entry_code));
		*(i ? &f->frame_codelet : &f->entry_codelet) = code;
	}
	fake_put(f, queue + 8, buffer, 8);
	fake_put(f, queue + 20, sizeof(nothing), 4);
	fake_put(f, queue + 32, 2, 4);
	return queue;
}

static inline void fake_tables(struct fake *f, uint64_t interpreter, uint64_t heaps, uint64_t major)
{
	enum { STRIDE = 48, TYPE_STRIDE = 16 };
	const struct {
		const char *type, *field, *type_string;
		uint64_t addr;
	} statics[] = { { "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", heaps },
			{ "AbstractInterpreter", "_code", "StubQueue*", interpreter },
			{ "Abstract_VM_Version", "_vm_major_version", "int", major } };
	const uint64_t offsets[HOTSPOT_FACT_MAX] = {
		[HOTSPOT_FACT_STRUCT_FIELD] = 8,      [HOTSPOT_FACT_STRUCT_TYPE_STRING] = 16,
		[HOTSPOT_FACT_STRUCT_IS_STATIC] = 24, [HOTSPOT_FACT_STRUCT_OFFSET] = 32,
		[HOTSPOT_FACT_STRUCT_ADDRESS] = 40,   [HOTSPOT_FACT_STRUCT_STRIDE] = STRIDE,
		[HOTSPOT_FACT_TYPE_SIZE] = 8,	      [HOTSPOT_FACT_TYPE_STRIDE] = TYPE_STRIDE,
	};
	uint64_t structs = fake_take(f, STRIDE * (ARRAY_LEN(fake_fields) + ARRAY_LEN(statics) + 1)), at = structs;
	uint64_t types = fake_take(f, TYPE_STRIDE * (ARRAY_LEN(fake_types) + 1));

	for (size_t i = 0; i < ARRAY_LEN(fake_fields); i++, at += STRIDE) {
		fake_put(f, at, fake_text(f, fake_fields[i].type), 8);
		fake_put(f, at + 8, fake_text(f, fake_fields[i].field), 8);
		fake_put(f, at + 16, fake_text(f, fake_fields[i].type_string), 8);
		fake_put(f, at + 32, fake_fields[i].offset, 8);
	}
	for (size_t i = 0; i < ARRAY_LEN(statics); i++, at += STRIDE) {
		fake_put(f, at, fake_text(f, statics[i].type), 8);
		fake_put(f, at + 8, fake_text(f, statics[i].field), 8);
		fake_put(f, at + 16, fake_text(f, statics[i].type_string), 8);
		fake_put(f, at + 24, 1, 4);
		fake_put(f, at + 40, statics[i].addr, 8);
	}
	for (size_t i = 0; i < ARRAY_LEN(fake_types); i++) {
		fake_put(f, types + TYPE_STRIDE * i, fake_text(f, fake_types[i].type), 8);
		fake_put(f, types + TYPE_STRIDE * i + 8, fake_types[i].bytes, 8);
	}
	for (int i = 0; i < HOTSPOT_FACT_MAX; i++)
		f->facts.fact[i] = fake_variable(f, i == HOTSPOT_FACT_STRUCTS ? structs
						    : i == HOTSPOT_FACT_TYPES ? types
									      : offsets[i]) -
				   FAKE_BASE;
	f->facts.id = CODE_HOTSPOT;
}

static inline void fake_make(struct fake *f)
{
	uint64_t interpreter, heaps, major;

	memset(f, 0, sizeof(*f));
	f->used = 64;
	f->method = fake_method(f, "com/acme/Outer$$Lambda$14+0x0000000800c03000", "run", "Outer.java", 30);
	f->inlined = fake_method(f, "com/acme/Inner$In", "twice", "Inner.java", 50);
	fake_heaps(f);
	fake_nmethod(f);
	interpreter = fake_variable(f, fake_interpreter(f));
	heaps = fake_variable(f, f->heap_array);
	major = fake_variable(f, 17);
	fake_tables(f, interpreter, heaps, major);
}

#endif
