/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lua 5.1 to 5.5 and LuaJIT 2.1 in an executable or a library: version, the layout of its structures by version, and the
 * place of the loop that runs instructions. Lua's layouts were measured by offsetof on the sources of 5.1.1, 5.2.3, 5.3.6,
 * 5.4.3 to 5.4.8, 5.5.0 and 5.5.1 (gcc -I lua-5.4.4, #include "lstate.h", offsetof(lua_State, errorJmp) and the like); 5.3.0
 * to 5.3.2 and 5.4.0 to 5.4.2 differ in how their calls are marked, and are not among them. LuaJIT's is constant
 * (luajit_state.h) but for the global state, measured in the same way.
 */
#include <stdio.h>
#include <string.h>

#include "agent/runtime/file/lua_code.h"
#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "bpf/runtime/lua_state.h"
#include "bpf/runtime/luajit_state.h"
#include "symbols/elf_image.h"

#define VERSION(major, minor, micro) ((uint32_t)(major) << 16 | (minor) << 8 | (micro))

/* Versions from @least to @most have this layout. */
struct layout {
	uint32_t least, most, style;
	uint16_t offset[LUA_OFFSETS];
};

/* clang-format off */
static const struct layout layouts[] = {
	{ VERSION(5, 1, 0), VERSION(5, 1, 255), LUA_CALLS_ARRAY, {
		[LUA_CALL] = 40, [LUA_FIRST_CALL] = 80, [LUA_STACK] = 64, [LUA_STACK_END] = 56, [LUA_JUMP] = 168,
		[LUA_GLOBAL] = 32, [LUA_CURRENT_PC] = 48, [LUA_HAS_PC] = 1, [LUA_MAIN] = 176,
		[LUA_CALL_FUNCTION] = 8, [LUA_CALL_PC] = 24, [LUA_CLOSURE_PROTO] = 32,
		[LUA_PROTO_TYPE] = 9, [LUA_CODE] = 24, [LUA_CODE_COUNT] = 80, [LUA_LINES] = 40, [LUA_LINES_COUNT] = 84,
		[LUA_SOURCE] = 64, [LUA_LINE] = 96, [LUA_TEXT_LONG] = 16 } },
	{ VERSION(5, 2, 0), VERSION(5, 2, 255), LUA_CALLS_LINKED, {
		[LUA_CALL] = 32, [LUA_STACK] = 56, [LUA_STACK_END] = 48, [LUA_JUMP] = 112,
		[LUA_GLOBAL] = 24, [LUA_MAIN] = 264,
		[LUA_CALL_FUNCTION] = 0, [LUA_CALL_PC] = 56, [LUA_CALL_STATUS] = 34,
		[LUA_STATUS_C] = 1, [LUA_STATUS_SCRIPT] = 1, [LUA_STATUS_LOOP] = 4, [LUA_STATUS_BEGINS] = 0,
		[LUA_CLOSURE_PROTO] = 24,
		[LUA_PROTO_TYPE] = 9, [LUA_CODE] = 24, [LUA_CODE_COUNT] = 88, [LUA_LINES] = 40, [LUA_LINES_COUNT] = 92,
		[LUA_SOURCE] = 72, [LUA_LINE] = 104, [LUA_TEXT_LONG] = 16 } },
	{ VERSION(5, 3, 3), VERSION(5, 3, 255), LUA_CALLS_LINKED, {
		[LUA_CALL] = 32, [LUA_STACK] = 56, [LUA_STACK_END] = 48, [LUA_JUMP] = 88,
		[LUA_GLOBAL] = 24, [LUA_MAIN] = 200,
		[LUA_CALL_FUNCTION] = 0, [LUA_CALL_PC] = 40, [LUA_CALL_STATUS] = 66,
		[LUA_STATUS_C] = 2, [LUA_STATUS_SCRIPT] = 2, [LUA_STATUS_LOOP] = 8, [LUA_STATUS_BEGINS] = 8,
		[LUA_CLOSURE_PROTO] = 24,
		[LUA_PROTO_TYPE] = 9, [LUA_CODE] = 56, [LUA_CODE_COUNT] = 24, [LUA_LINES] = 72, [LUA_LINES_COUNT] = 28,
		[LUA_SOURCE] = 104, [LUA_LINE] = 40, [LUA_TEXT_SHORT] = 11, [LUA_TEXT_LONG] = 16 } },
	{ VERSION(5, 4, 3), VERSION(5, 4, 255), LUA_CALLS_LINKED, {
		[LUA_CALL] = 32, [LUA_STACK] = 48, [LUA_STACK_END] = 40, [LUA_JUMP] = 88,
		[LUA_GLOBAL] = 24, [LUA_HAS_PC] = 1, [LUA_MAIN] = 264,
		[LUA_CALL_FUNCTION] = 0, [LUA_CALL_PC] = 32, [LUA_CALL_STATUS] = 62,
		[LUA_STATUS_C] = 2, [LUA_STATUS_SCRIPT] = 0, [LUA_STATUS_LOOP] = 4, [LUA_STATUS_BEGINS] = 4,
		[LUA_CLOSURE_PROTO] = 24,
		[LUA_PROTO_TYPE] = 10, [LUA_CODE] = 64, [LUA_CODE_COUNT] = 24, [LUA_LINES] = 88, [LUA_LINES_COUNT] = 28,
		[LUA_MARKS] = 96, [LUA_MARKS_COUNT] = 40, [LUA_SOURCE] = 112, [LUA_LINE] = 44,
		[LUA_TEXT_SHORT] = 11, [LUA_TEXT_LONG] = 16 } },
	/* callstatus is at 60, of 32 bits: CIST_C, 0x8000, and CIST_FRESH, 0x10000, are told by the two bytes in its middle */
	{ VERSION(5, 5, 0), VERSION(5, 5, 255), LUA_CALLS_LINKED, {
		[LUA_CALL] = 32, [LUA_STACK] = 48, [LUA_STACK_END] = 40, [LUA_JUMP] = 88,
		[LUA_GLOBAL] = 24, [LUA_HAS_PC] = 1, [LUA_MAIN] = 1416, [LUA_MAIN_INSIDE] = 1,
		[LUA_CALL_FUNCTION] = 0, [LUA_CALL_PC] = 32, [LUA_CALL_STATUS] = 61,
		[LUA_STATUS_C] = 0x80, [LUA_STATUS_SCRIPT] = 0, [LUA_STATUS_LOOP] = 0x100, [LUA_STATUS_BEGINS] = 0x100,
		[LUA_CLOSURE_PROTO] = 24,
		[LUA_PROTO_TYPE] = 10, [LUA_CODE] = 64, [LUA_CODE_COUNT] = 24, [LUA_LINES] = 88, [LUA_LINES_COUNT] = 28,
		[LUA_MARKS] = 96, [LUA_MARKS_COUNT] = 40, [LUA_SOURCE] = 112, [LUA_LINE] = 44,
		[LUA_TEXT_SHORT] = 11, [LUA_TEXT_LONG] = 16, [LUA_TEXT_FAR] = 24 } },
};
/* clang-format on */

/* The version by the text that is in each file (lapi.c: lua_ident). 0: there is none. */
static uint32_t find_version(const struct elf_image *im)
{
	static const char *const starts[] = { "$LuaVersion: Lua ", "$Lua: Lua " };
	const uint8_t *bytes, *at = NULL;
	unsigned major, minor, micro;
	Elf64_Shdr section;
	char text[16];
	size_t len;

	if (!elf_image_find(im, ".rodata", &section))
		return 0;
	bytes = elf_image_bytes(im, &section, &len);
	for (size_t i = 0; bytes && !at && i < ARRAY_LEN(starts); i++) {
		at = memmem(bytes, len, starts[i], strlen(starts[i]));
		at = at ? at + strlen(starts[i]) : NULL;
	}
	if (!at)
		return 0;
	len -= (size_t)(at - bytes);
	len = len < sizeof(text) ? len : sizeof(text) - 1;
	memcpy(text, at, len);
	text[len] = '\0';
	return sscanf(text, "%2u.%2u.%3u", &major, &minor, &micro) == 3 ? VERSION(major, minor, micro & 0xff) : 0;
}

static const struct layout *find_layout(uint32_t version)
{
	for (size_t i = 0; i < ARRAY_LEN(layouts); i++)
		if (version >= layouts[i].least && version <= layouts[i].most)
			return &layouts[i];
	return NULL;
}

/* Finds a function that a file with @id has, exported or, in a program of its own, not. */
static bool find_symbol(const struct elf_image *im, const char *name, struct runtime_file *f, struct runtime_symbol *ret)
{
	if (f->way == RUNTIME_WAY_DYNSYM && !runtime_file_symbol(im, name, ret))
		return true;
	if (runtime_file_own_symbol(im, name, ret))
		return false;
	f->way = RUNTIME_WAY_SYMTAB;
	return true;
}

/* Completes @ret, whose loop is the code @code, at the places of data @from and behind. */
static void fill(struct runtime_file *ret, enum runtime_id id, const struct lua_code *code)
{
	ret->loop.start = code->start;
	ret->loop.end = code->end;
	ret->state.runtime = id;
	ret->state.data[0] = code->start;
	ret->state.data[1] = code->end;
	ret->state.thread.place = THREAD_STACK;
}

bool lua_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct runtime_symbol symbol, call, loop;
	const struct layout *l;
	struct lua_code code;

	ret->way = RUNTIME_WAY_DYNSYM;
	if (!find_symbol(im, "lua_newthread", ret, &symbol) ||
	    (!find_symbol(im, "lua_callk", ret, &call) && !find_symbol(im, "lua_call", ret, &call)))
		return false;
	ret->kind = RUNTIME_FILE_CHAIN;
	ret->id = RUNTIME_LUA;
	ret->version = find_version(im);
	l = find_layout(ret->version);
	if (!l)
		return true; /* of a version that is not known: without a way to its states */
	if (!runtime_file_own_symbol(im, "luaV_execute", &loop) && loop.size_bytes)
		code = (struct lua_code){ loop.addr, loop.addr + loop.size_bytes };
	else if (!lua_code_loop(im, call.addr, &code))
		return true;
	memcpy(ret->state.offset, l->offset, sizeof(l->offset));
	ret->state.style = l->style;
	fill(ret, RUNTIME_LUA, &code);
	return true;
}

bool lua_file_read_jit(const struct elf_image *im, struct runtime_file *ret)
{
	struct runtime_symbol symbol, call;
	struct lua_code code;

	ret->way = RUNTIME_WAY_DYNSYM;
	if (!find_symbol(im, "luaJIT_setmode", ret, &symbol) || !find_symbol(im, "lua_call", ret, &call))
		return false;
	ret->kind = RUNTIME_FILE_CHAIN;
	ret->id = RUNTIME_LUAJIT;
	ret->version = VERSION(2, 1, 0);
	if (!lua_code_vm(im, call.addr, &code))
		return true;
	ret->state.offset[LUAJIT_CURRENT] = 368;
	ret->state.offset[LUAJIT_TEXT_BYTES] = 20;
	fill(ret, RUNTIME_LUAJIT, &code);
	return true;
}
