/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that a file tells of V8: files made by hand, with the constants that node 20 and node 24 export, whole or
 * stripped, and the node that is installed. */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/file/runtime_file.h"
#include "agent/runtime/file/v8_layout.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "symbols/sources/symbol_image.h"
#include "tests/unit/elf_head.h"
#include "tests/unit/made_v8.h"

enum { CODE_ADDR = 0x100000, HANDLERS = 0x100400, CODE_END = 0x100800, NODE_20 = 20, NODE_24 = 24 };

/* A symbol: a constant, or code of @size bytes at @value. */
struct symbol {
	const char *name;
	int64_t value;
	uint32_t size; /* 0: a constant */
	int node;      /* only in this one; 0: in both */
};

static const struct symbol symbols[] = {
	{ "v8dbg_SmiTag", 0, 0, 0 },
	{ "_ZN2v88internal7Version6major_E", 11, 0, NODE_20 },
	{ "_ZN2v88internal7Version6minor_E", 3, 0, NODE_20 },
	{ "_ZN2v88internal7Version6major_E", 13, 0, NODE_24 },
	{ "_ZN2v88internal7Version6minor_E", 6, 0, NODE_24 },
	{ "v8dbg_CodeKindBaseline", 11, 0, NODE_20 },
	{ "v8dbg_CodeKindBaseline", 10, 0, NODE_24 },
	{ "v8dbg_frametype_WasmFrame", 4, 0, NODE_20 },
	{ "v8dbg_frametype_WasmToJsFrame", 5, 0, 0 },
	{ "v8dbg_FirstNonstringType", 128, 0, 0 },
	{ "v8dbg_LastJSFunctionType", 2081, 0, NODE_24 },
	{ "v8dbg_type_JSFunction__JS_FUNCTION_TYPE", 2066, 0, NODE_20 },
	{ "v8dbg_type_JSFunction__JS_FUNCTION_TYPE", 2065, 0, NODE_24 },
	{ "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", 262, 0, 0 },
	{ "v8dbg_type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE", 195, 0, NODE_24 },
	{ "v8dbg_type_Script__SCRIPT_TYPE", 167, 0, 0 },
	{ "v8dbg_type_ScriptOrModule__SCRIPT_OR_MODULE_TYPE", 168, 0, 0 },
	{ "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE", 261, 0, 0 },
	{ "v8dbg_type_Code__CODE_TYPE", 245, 0, 0 },
	{ "v8dbg_type_InstructionStream__INSTRUCTION_STREAM_TYPE", 252, 0, 0 },
	{ "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE", 191, 0, 0 },
	{ "v8dbg_type_FixedArray__FIXED_ARRAY_TYPE", 175, 0, 0 },
	{ "v8dbg_class_JSFunction__shared__SharedFunctionInfo", 24, 0, NODE_20 },
	{ "v8dbg_class_JSFunction__shared__SharedFunctionInfo", 32, 0, NODE_24 },
	{ "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object", 16, 0, NODE_20 },
	{ "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_", 24, 0, NODE_24 },
	{ "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject", 32, 0, NODE_20 },
	{ "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_", 40, 0, NODE_24 },
	{ "v8dbg_class_Script__name__Object", 16, 0, 0 },
	{ "v8dbg_class_Code__flags__uint32_t", 52, 0, NODE_24 },
	{ "v8dbg_scopeinfo_idx_first_vars", 3, 0, NODE_20 },
	{ "v8dbg_scopeinfo_idx_first_vars", 5, 0, NODE_24 },
	{ "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE", 0x5000, 600, 0 },
	{ "Builtins_InterpreterEntryTrampoline", CODE_ADDR + 0x100, 0x80, 0 },
	{ "Builtins_RecordWriteSaveFP", CODE_ADDR, 0x40, 0 },
	{ "Builtins_WideHandler", HANDLERS, 0x40, 0 },
	{ "Builtins_AbortExtraWideHandler", CODE_END - 0x40, 0x40, 0 },
};

/* A file whose values stand at their offsets, which are their addresses. */
static void make(struct buf *file, int node, const char *without, const char *table, const char *names)
{
	enum { SECTIONS = 4 };
	struct buf sym = BUF_EMPTY, str = BUF_EMPTY, values = BUF_EMPTY, section_names = BUF_EMPTY;
	size_t head = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + SECTIONS * sizeof(Elf64_Shdr), at;
	Elf64_Shdr sections[SECTIONS] = { 0 };
	Elf64_Phdr load = { .p_type = PT_LOAD };
	Elf64_Ehdr ehdr = { ELF_HEAD(EM_X86_64), .e_phoff = sizeof(Elf64_Ehdr),
			    .e_phnum = 1,	 .e_shoff = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			    .e_shnum = SECTIONS, .e_shstrndx = 3 };

	buf_putc(&str, 0);
	for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
		const struct symbol *s = &symbols[i];
		int32_t value = (int32_t)s->value;
		Elf64_Sym e = { .st_name = (uint32_t)str.len,
				.st_shndx = 1,
				.st_info = ELF64_ST_INFO(STB_LOCAL, s->size ? STT_FUNC : STT_OBJECT),
				.st_value = s->size ? (uint64_t)s->value : head + values.len,
				.st_size = s->size ? s->size : 4 };

		if ((s->node && s->node != node) || (without && !strcmp(s->name, without)))
			continue;
		if (!s->size)
			buf_append(&values, &value, sizeof(value));
		buf_append(&sym, &e, sizeof(e));
		buf_append(&str, s->name, strlen(s->name) + 1);
	}
	buf_putc(&section_names, 0);
	buf_append(&section_names, table, strlen(table) + 1);
	buf_append(&section_names, names, strlen(names) + 1);
	at = head + values.len;
	sections[1] = (Elf64_Shdr){ .sh_name = 1, .sh_type = SHT_SYMTAB, .sh_offset = at, .sh_size = sym.len };
	sections[2] = (Elf64_Shdr){
		.sh_name = 2 + (uint32_t)strlen(table), .sh_type = SHT_STRTAB, .sh_offset = at + sym.len, .sh_size = str.len
	};
	sections[3] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
				    .sh_offset = at + sym.len + str.len,
				    .sh_size = section_names.len };
	load.p_filesz = load.p_memsz = at;
	buf_append(file, &ehdr, sizeof(ehdr));
	buf_append(file, &load, sizeof(load));
	buf_append(file, sections, sizeof(sections));
	buf_append(file, values.data, values.len);
	buf_append(file, sym.data, sym.len);
	buf_append(file, str.data, str.len);
	buf_append(file, section_names.data, section_names.len);
	buf_fini(&sym);
	buf_fini(&str);
	buf_fini(&values);
	buf_fini(&section_names);
}

static bool read_made(int node, const char *without, struct v8_layout *l)
{
	struct buf file = BUF_EMPTY;
	struct runtime_file ret;
	struct elf_image im;

	make(&file, node, without, ".dynsym", ".dynstr");
	memset(&ret, 0xff, sizeof(ret));
	assert_int_equal(elf_image_open(file.data, file.len, &im), 0);
	runtime_file_read(&im, &ret);
	buf_fini(&file);
	memcpy(l, ret.code.fact, sizeof(*l));
	if (ret.kind == RUNTIME_FILE_CODE) {
		assert_int_equal(ret.code.id, CODE_V8);
		assert_true(runtime_file_is_sound(&ret));
		assert_true(ret.version > 0); /* for who asks why its functions are not known */
	}
	return ret.kind == RUNTIME_FILE_CODE && v8_layout_is_sound(l);
}

static void check_code(const struct v8_layout *l)
{
	assert_int_equal(l->builtins.start, CODE_ADDR);
	assert_int_equal(l->builtins.end, CODE_END);
	assert_int_equal(l->trampoline.start, CODE_ADDR + 0x100);
	assert_int_equal(l->trampoline.end, CODE_ADDR + 0x180);
	assert_int_equal(l->handlers.start, HANDLERS);
	assert_int_equal(l->handlers.end, CODE_END);
	assert_int_equal(l->bytecode_lengths, 0x5000);
	assert_int_equal(l->bytecode_cnt, 200);
}

static void test_node_20(void **state)
{
	struct v8_layout l;

	(void)state;
	assert_true(read_made(NODE_20, NULL, &l));
	assert_int_equal(l.version, 11 << 16 | 3);
	assert_int_equal(l.kind_baseline, 11);
	assert_int_equal(l.frame_wasm, 4);
	assert_int_equal(l.wasm_frames, 1 << 4 | 1 << 5);
	assert_int_equal(l.kind_interpreted, 10);
	assert_int_equal(l.type.first_function, 2066);
	assert_int_equal(l.type.last_function, 2082); /* not told there */
	assert_int_equal(l.type.script, 167);
	assert_int_equal(l.type.shared_wrapper, 0);
	assert_int_equal(l.offset.function_shared, 24);
	assert_int_equal(l.offset.shared_name, 16);
	assert_int_equal(l.offset.shared_script, 32);
	assert_int_equal(l.offset.code_flags, 48);
	assert_int_equal(l.offset.stream_head, 16);
	assert_int_equal(l.offset.bytecode_data, 54);
	assert_int_equal(l.offset.scope_flags, 32);
	assert_int_equal(l.offset.scope_receiver, 0);
	check_code(&l);
}

static void test_node_24(void **state)
{
	struct v8_layout l;

	(void)state;
	assert_true(read_made(NODE_24, NULL, &l));
	assert_int_equal(l.version, 13 << 16 | 6);
	assert_int_equal(l.kind_baseline, 10);
	assert_int_equal(l.frame_wasm, 0);
	assert_int_equal(l.wasm_frames, 1 << 5);
	assert_int_equal(l.type.last_function, 2081);
	assert_int_equal(l.type.shared_wrapper, 195);
	assert_int_equal(l.offset.shared_script, 40);
	assert_int_equal(l.offset.code_flags, 52);
	assert_int_equal(l.offset.deopt_shared, 7);
	assert_int_equal(l.offset.scope_flags, 0);
	check_code(&l);
}

/* What cannot be done without. */
static void test_not_whole(void **state)
{
	static const char *const needed[] = { "_ZN2v88internal7Version6major_E",
					      "v8dbg_type_JSFunction__JS_FUNCTION_TYPE",
					      "v8dbg_type_Code__CODE_TYPE",
					      "v8dbg_class_JSFunction__shared__SharedFunctionInfo",
					      "v8dbg_class_Script__name__Object",
					      "v8dbg_scopeinfo_idx_first_vars",
					      "v8dbg_SmiTag" };
	struct v8_layout l;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		assert_false(read_made(NODE_20, needed[i], &l));
	assert_false(v8_layout_is_sound(&(struct v8_layout){ 0 }));
	assert_true(read_made(NODE_20, "v8dbg_CodeKindBaseline", &l));
	assert_int_equal(l.kind_baseline, 11);
}

/* The layout of the file that @m says, with node 24's constants. */
static bool read_stripped(struct made_v8 m, struct v8_layout *l)
{
	AUTO(buf_fini) struct buf file = BUF_EMPTY;
	struct made_v8_symbol constants[ARRAY_LEN(symbols)];
	struct runtime_file ret;
	struct elf_image im;

	m.symbols = constants;
	m.stride = 12;
	for (size_t i = 1; i < ARRAY_LEN(symbols); i++)
		if (!symbols[i].size && (!symbols[i].node || symbols[i].node == NODE_24))
			constants[m.symbol_cnt++] = (struct made_v8_symbol){ symbols[i].name, (int32_t)symbols[i].value };
	made_v8(&m, &file);
	assert_int_equal(elf_image_open(file.data, file.len, &im), 0);
	runtime_file_read(&im, &ret);
	memcpy(l, ret.code.fact, sizeof(*l));
	return ret.kind == RUNTIME_FILE_CODE && ret.code.id == CODE_V8 && runtime_file_is_sound(&ret);
}

static void test_stripped(void **state)
{
	struct v8_layout l;

	(void)state;
	assert_true(read_stripped((struct made_v8){ 0 }, &l));
	assert_int_equal(l.version, 13 << 16 | 6);
	assert_int_equal(l.builtins.start, MADE_V8_CODE);
	assert_int_equal(l.builtins.end,
			 MADE_V8_CODE + made_v8_start(MADE_V8_BUILTINS - 1) + made_v8_size(MADE_V8_BUILTINS - 1));
	assert_int_equal(l.trampoline.start, MADE_V8_CODE + made_v8_start(MADE_V8_ENTRY));
	assert_int_equal(l.trampoline.end, l.trampoline.start + made_v8_size(MADE_V8_ENTRY));
	assert_int_equal(l.handlers.start, MADE_V8_CODE + made_v8_start(MADE_V8_HANDLERS));
	assert_int_equal(l.handlers.end, l.builtins.end);
	assert_true(l.bytecode_lengths > 0);
	assert_int_equal(l.bytecode_cnt, MADE_V8_BYTECODES);
	/* the constants tell enough for compiled code, whatever else is missing */
	assert_true(read_stripped((struct made_v8){ .bad_padding = 9, .has_other_lengths = true }, &l));
	assert_int_equal(l.builtins.end, 0);
	assert_int_equal(l.handlers.start, 0);
	assert_int_equal(l.bytecode_lengths, 0);
	assert_int_equal(l.bytecode_cnt, 0);
}

/* The file that has the V8 of /usr/bin/node: itself, or a library of Debian's. */
static int open_installed(void)
{
	char path[256] = "/usr/bin/node";
	FILE *f = popen("ldd /usr/bin/node 2>/dev/null | sed -n 's/.*libnode.* => \\([^ ]*\\) .*/\\1/p'", "r");

	assert_non_null(f);
	(void)!fscanf(f, "%255s", path);
	pclose(f);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void test_installed(void **state)
{
	AUTO_CLOSE int fd = open_installed();
	struct symbol_image image = { 0 };
	struct runtime_file found;
	struct v8_layout l;
	struct elf_image im;
	int major, minor;
	FILE *f;

	(void)state;
	if (fd < 0)
		skip();
	f = popen("/usr/bin/node -p process.versions.v8", "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d.%d", &major, &minor), 2);
	assert_int_equal(pclose(f), 0);
	assert_int_equal(symbol_image_map(fd, &image), 0);
	assert_int_equal(elf_image_open(image.data, image.len_bytes, &im), 0);
	runtime_file_read(&im, &found);
	symbol_image_unmap(&image);
	assert_int_equal(found.code.id, CODE_V8);
	memcpy(&l, found.code.fact, sizeof(l));
	assert_int_equal(l.version, major << 16 | minor);
	assert_true(v8_layout_is_sound(&l));
	assert_true(l.handlers.start && l.trampoline.start && l.bytecode_cnt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_node_20),	 cmocka_unit_test(test_node_24),   cmocka_unit_test(test_not_whole),
		cmocka_unit_test(test_stripped), cmocka_unit_test(test_installed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
