/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 in an executable or a library. V8 exports constants for debuggers, v8dbg_*, which tell most of its layout; their names
 * end with C++ types that change from one version to the next, so they are known by how they begin. The rest is in a table
 * by version: measured on the node binaries of npm's package "node", 16.20.2, 18.20.8, 20.20.2, 22.23.3, 24.21.0, 25.9.0
 * and 26.10.0, stopped in optimized code, by the types of the objects in each field (tests/v8/). The functions that V8 is
 * built with, and the lengths of bytecodes, are symbols; where a file was stripped, they are found by V8's own tables.
 */
#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "agent/runtime/file/v8_bytecodes.h"
#include "agent/runtime/file/v8_layout.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "symbols/sources/v8_builtins.h"

enum {
	MAX_SYMBOLS = 1 << 21,
	LAST_FUNCTION_TYPE = 16, /* behind the first, where LastJSFunctionType is not told (before 12.x) */
};

#define VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))

/* A constant and the number in the layout that it is for. */
struct constant {
	const char *start; /* of its name, behind "v8dbg_" */
	uint16_t at;	   /* in struct v8_layout */
};

#define TYPE(member)   (uint16_t) offsetof(struct v8_layout, type.member)
#define OFFSET(member) (uint16_t) offsetof(struct v8_layout, offset.member)

static const struct constant constants[] = {
	{ "CodeKindBaseline", offsetof(struct v8_layout, kind_baseline) },
	{ "CodeKindInterpretedFunction", offsetof(struct v8_layout, kind_interpreted) },
	{ "frametype_WasmFrame", offsetof(struct v8_layout, frame_wasm) },
	{ "FirstNonstringType", TYPE(first_nonstring) },
	{ "LastJSFunctionType", TYPE(last_function) },
	{ "type_JSFunction__", TYPE(first_function) },
	{ "type_SharedFunctionInfo__", TYPE(shared) },
	{ "type_SharedFunctionInfoWrapper__", TYPE(shared_wrapper) },
	{ "type_Script__", TYPE(script) },
	{ "type_ScopeInfo__", TYPE(scope_info) },
	{ "type_Code__", TYPE(code) },
	{ "type_CodeDataContainer__", TYPE(code_container) },
	{ "type_InstructionStream__", TYPE(stream) },
	{ "type_BytecodeArray__", TYPE(bytecode) },
	{ "type_InterpreterData__", TYPE(interpreter_data) },
	{ "type_BaselineData__", TYPE(baseline_data) },
	{ "type_FixedArray__", TYPE(fixed_array) },
	{ "class_JSFunction__shared__", OFFSET(function_shared) },
	{ "class_SharedFunctionInfo__name_or_scope_info__", OFFSET(shared_name) },
	{ "class_SharedFunctionInfo__script__", OFFSET(shared_script) },
	{ "class_SharedFunctionInfo__script_or_debug_info__", OFFSET(shared_script) },
	{ "class_Script__name__", OFFSET(script_name) },
	{ "class_Script__line_ends__", OFFSET(script_line_ends) },
	{ "class_Code__flags__", OFFSET(code_flags) },
	{ "class_Code__instruction_size__", OFFSET(code_size) },
	{ "scopeinfo_idx_first_vars", OFFSET(scope_first) },
};

/* What no constant tells, or not in all versions: the same for versions from @version on up to the next row's. */
struct row {
	uint32_t version;
	uint16_t kind_baseline, position_flags;
	struct v8_offsets offset; /* 0: told by a constant, or there is none */
};

/* In all versions: Script's source, line_offset, column_offset, id; SharedFunctionInfo's (trusted_)function_data. */
#define EVERYWHERE .shared_data = 8, .script_source = 8, .script_line = 24, .script_column = 32, .script_id = 64

/* clang-format off */
static const struct row rows[] = {
	{ VERSION(9, 0), 11, 0, { EVERYWHERE, .scope_flags = 32, .scope_receiver = 1, .stream_head = 96, .stream_step = 32, .code_deopt = 16,
		.code_positions = 24, .code_flags = 48, .code_size = 40, .bytecode_positions = 32, .bytecode_data = 54,
		.deopt_shared = 6, .deopt_inlined = 7, .deopt_literals = 2 } },
	{ VERSION(10, 0), 11, 0, { EVERYWHERE, .scope_flags = 32, .stream_head = 128, .stream_step = 64, .code_deopt = 16,
		.code_positions = 24, .code_flags = 48, .code_size = 40, .bytecode_positions = 32, .bytecode_data = 56,
		.deopt_shared = 6, .deopt_inlined = 7, .deopt_literals = 2 } },
	{ VERSION(11, 0), 11, 0, { EVERYWHERE, .scope_flags = 32, .stream_code = 8, .stream_head = 16, .stream_at = 48,
		.stream_step = 64, .code_deopt = 16, .code_positions = 24, .code_start = 40, .code_flags = 48, .code_size = 56,
		.bytecode_positions = 32, .bytecode_data = 54, .deopt_shared = 6, .deopt_inlined = 7, .deopt_literals = 2 } },
	{ VERSION(12, 0), 10, 0, { EVERYWHERE, .scope_flags = 32, .stream_code = 8, .stream_head = 32, .stream_at = 32,
		.stream_step = 64, .code_deopt = 8, .code_positions = 16, .code_start = 40, .code_flags = 48, .code_size = 52,
		.bytecode_positions = 24, .bytecode_data = 64, .deopt_shared = 6, .deopt_inlined = 7, .deopt_literals = 2 } },
	{ VERSION(13, 0), 10, 0, { EVERYWHERE, .scope_flags = 0, .stream_code = 8, .stream_head = 32, .stream_at = 32,
		.stream_step = 64, .code_deopt = 8, .code_positions = 16, .code_start = 40, .code_flags = 52, .code_size = 56,
		.bytecode_positions = 24, .bytecode_data = 64, .deopt_shared = 7, .deopt_inlined = 8, .deopt_literals = 3 } },
	{ VERSION(14, 0), 10, 2, { EVERYWHERE, .scope_flags = 0, .stream_code = 8, .stream_head = 32, .stream_at = 32,
		.stream_step = 64, .code_deopt = 8, .code_positions = 16, .code_start = 40, .code_flags = 52, .code_size = 56,
		.bytecode_positions = 24, .bytecode_data = 64, .deopt_shared = 7, .deopt_inlined = 8, .deopt_literals = 3 } },
	{ VERSION(15, 0), 0, 0, { 0 } }, /* not seen yet */
};
/* clang-format on */

/* The name of symbol number @i behind @start; NULL: it begins otherwise, or has no end inside the table. */
static const char *name_behind(const struct runtime_table *t, size_t i, const char *start, size_t start_len, Elf64_Sym *sym)
{
	const uint8_t *name;
	size_t room;

	memcpy(sym, t->symbols + i * sizeof(*sym), sizeof(*sym));
	if (sym->st_shndx == SHN_UNDEF || sym->st_name >= t->names_bytes)
		return NULL;
	name = t->names + sym->st_name;
	room = t->names_bytes - sym->st_name;
	if (room <= start_len || memcmp(name, start, start_len) != 0 || !memchr(name + start_len, 0, room - start_len))
		return NULL;
	return (const char *)name + start_len;
}

/* The int that the file has at the symbol; 0 where it has none, as constants of 0 may lie behind the file's bytes. */
static int32_t value_of(const struct elf_image *im, const Elf64_Sym *sym)
{
	const uint8_t *bytes = runtime_file_bytes(im, sym->st_value, sizeof(int32_t));
	int32_t value = 0;

	if (bytes)
		memcpy(&value, bytes, sizeof(value));
	return value;
}

/* Takes a constant called v8dbg_@name. A name may begin as several constants do not: the table's are told apart by their
 * ends. */
static void take_constant(const struct elf_image *im, const char *name, const Elf64_Sym *sym, struct v8_layout *l)
{
	static const char frame_type[] = "frametype_";

	if (!strncmp(name, frame_type, sizeof(frame_type) - 1) && strstr(name, "Wasm")) {
		int32_t type = value_of(im, sym);

		l->wasm_frames |= type >= 0 && type < 64 ? 1ull << type : 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(constants); i++) {
		const struct constant *c = &constants[i];
		int32_t value;
		uint16_t number;

		if (strncmp(name, c->start, strlen(c->start)) != 0)
			continue;
		value = value_of(im, sym);
		if (value < 0 || value > UINT16_MAX)
			continue;
		number = (uint16_t)value;
		memcpy((uint8_t *)l + c->at, &number, sizeof(number));
	}
}

static void widen(struct v8_range *r, uint64_t start, uint64_t end)
{
	if (!r->end || start < r->start)
		r->start = start;
	if (end > r->end)
		r->end = end;
}

/* Takes the builtin @name. The handlers of bytecodes are the last ones, that of Wide is the first of them. */
static void take_builtin(const char *name, uint64_t addr, uint64_t bytes, struct v8_layout *l)
{
	uint64_t end = addr + bytes;

	if (end < addr)
		return;
	widen(&l->builtins, addr, end);
	if (!strcmp(name, "InterpreterEntryTrampoline"))
		l->trampoline = (struct v8_range){ addr, end };
	else if (!strcmp(name, "WideHandler"))
		l->handlers.start = addr;
}

/* The lengths of bytecodes: Bytecodes::kBytecodeSizes, a row of bytes for each scale. */
static void take_bytecodes(const Elf64_Sym *sym, struct v8_layout *l)
{
	if (sym->st_size % V8_SCALES || sym->st_size / V8_SCALES > V8_MAX_BYTECODES)
		return;
	l->bytecode_lengths = sym->st_value;
	l->bytecode_cnt = (uint32_t)(sym->st_size / V8_SCALES);
}

/* The numbers of V8's version, of which the file has variables. */
struct version_numbers {
	uint32_t major, minor;
};

static void take_symbol(const struct elf_image *im, const struct runtime_table *t, size_t i, struct v8_layout *l,
			struct version_numbers *version)
{
	static const char dbg[] = "v8dbg_", internal[] = "_ZN2v88internal", builtin[] = V8_BUILTIN_PREFIX;
	const char *rest;
	Elf64_Sym sym;

	if ((rest = name_behind(t, i, dbg, sizeof(dbg) - 1, &sym))) {
		take_constant(im, rest, &sym, l);
	} else if ((rest = name_behind(t, i, builtin, sizeof(builtin) - 1, &sym))) {
		if (ELF64_ST_TYPE(sym.st_info) == STT_FUNC)
			take_builtin(rest, sym.st_value, sym.st_size, l);
	} else if ((rest = name_behind(t, i, internal, sizeof(internal) - 1, &sym))) {
		if (!strcmp(rest, "7Version6major_E"))
			version->major = (uint32_t)value_of(im, &sym);
		else if (!strcmp(rest, "7Version6minor_E"))
			version->minor = (uint32_t)value_of(im, &sym);
		else if (!strcmp(rest, "11interpreter9Bytecodes14kBytecodeSizesE"))
			take_bytecodes(&sym, l);
	}
}

static void take_symbols(const struct elf_image *im, struct v8_layout *l)
{
	struct version_numbers version = { 0, 0 };
	struct runtime_table t;

	if (!runtime_file_table(im, ".symtab", ".strtab", &t) && !runtime_file_table(im, ".dynsym", ".dynstr", &t))
		return;
	for (size_t i = 0; i < t.symbol_cnt && i < MAX_SYMBOLS; i++)
		take_symbol(im, &t, i, l, &version);
	if (version.major < 256 && version.minor < 256)
		l->version = VERSION(version.major, version.minor);
}

/* Takes from V8's own tables what no symbol told. */
static void take_content(const struct elf_image *im, struct v8_layout *l)
{
	AUTO(v8_builtins_close) struct v8_builtins all = { 0 };
	struct v8_builtin one;

	if (!l->bytecode_lengths)
		v8_bytecodes_find(im, l);
	if (l->builtins.end || v8_builtins_open(im, &all))
		return;
	for (uint32_t i = 0; v8_builtins_get(im, &all, i, &one); i++)
		take_builtin(one.name, one.addr, one.size_bytes, l);
}

/* Fills in what no constant told. The words of both tables are in the same places. */
static void complete(struct v8_layout *l, const struct row *row)
{
	const uint16_t *from = (const uint16_t *)&row->offset;
	uint16_t *to = (uint16_t *)&l->offset;

	for (size_t i = 0; i < sizeof(l->offset) / sizeof(*to); i++)
		if (!to[i])
			to[i] = from[i];
	if (!l->kind_baseline)
		l->kind_baseline = row->kind_baseline;
	l->position_flags = row->position_flags;
	l->kind_regexp = l->kind_baseline == 11 && l->version >= VERSION(14, 2) ? 4 : 3;
	if (!l->kind_interpreted)
		l->kind_interpreted = l->kind_baseline - 1;
	l->handlers.end = l->handlers.start ? l->builtins.end : 0;
	if (!l->type.last_function)
		l->type.last_function = l->type.first_function + LAST_FUNCTION_TYPE;
	if (!l->type.stream)
		l->type.stream = l->type.code;
}

static const struct row *find_row(uint32_t version)
{
	for (size_t i = 0; i + 1 < ARRAY_LEN(rows); i++)
		if (version >= rows[i].version && version < rows[i + 1].version)
			return &rows[i];
	return NULL;
}

static bool has_types(const struct v8_types *t)
{
	return t->first_function && t->last_function >= t->first_function && t->shared && t->script && t->scope_info &&
	       t->code && t->stream && t->bytecode && t->fixed_array && t->first_nonstring;
}

static bool range_is_sound(const struct v8_range *r)
{
	return r->start <= r->end;
}

bool v8_layout_is_sound(const struct v8_layout *l)
{
	const struct v8_offsets *o = &l->offset;
	const uint16_t *numbers = (const uint16_t *)o;

	for (size_t i = 0; i < sizeof(*o) / sizeof(*numbers); i++)
		if (numbers[i] > 512)
			return false;
	return l->version && has_types(&l->type) && l->kind_baseline && o->function_shared && o->shared_name &&
	       o->shared_script && o->script_name && o->stream_head && o->stream_step >= 32 && o->stream_step % 8 == 0 &&
	       o->stream_at % 8 == 0 && o->stream_at < o->stream_step && (o->stream_code == 0) == (o->code_start == 0) &&
	       o->code_deopt && o->code_size && o->bytecode_data && o->bytecode_positions &&
	       (o->scope_flags == 0 || o->scope_flags == 32) && o->scope_first && o->scope_receiver <= 1 &&
	       range_is_sound(&l->builtins) && range_is_sound(&l->trampoline) && range_is_sound(&l->handlers) &&
	       l->bytecode_cnt <= V8_MAX_BYTECODES;
}

bool v8_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct v8_layout l = { 0 };
	struct runtime_symbol symbol;
	const struct row *row;

	/* Whoever embeds V8 for extensions, as node does, exports its interface; other files' symbols are not searched. */
	if (runtime_file_symbol(im, "v8dbg_SmiTag", &symbol) &&
	    runtime_file_symbol(im, "_ZN2v87Isolate10GetCurrentEv", &symbol))
		return false;
	take_symbols(im, &l);
	if (!l.version)
		return false;
	row = find_row(l.version);
	if (row) {
		take_content(im, &l);
		complete(&l, row);
	}
	_Static_assert(sizeof(l) <= sizeof(ret->code.fact), "facts hold a layout");
	ret->kind = RUNTIME_FILE_CODE;
	ret->version = (l.version & 0xff0000) | (l.version & 0xff) << 8;
	ret->code.id = CODE_V8;
	ret->code.version = ret->version;
	if (row && v8_layout_is_sound(&l)) /* else it is V8, but none that can be read */
		memcpy(ret->code.fact, &l, sizeof(l));
	return true;
}
