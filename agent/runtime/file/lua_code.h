/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in the code of Lua and LuaJIT that have no symbols in a stripped file: found by what is called from functions that
 * programs call. For x86-64; on arm64 nothing is found. No state.
 */
#ifndef HEARTH_AGENT_RUNTIME_FILE_LUA_CODE_H
#define HEARTH_AGENT_RUNTIME_FILE_LUA_CODE_H

#include <stdbool.h>
#include <stdint.h>

struct elf_image;

struct lua_code {
	uint64_t start, end;
};

/* Lua's loop, luaV_execute(): the largest function that the one at @call, lua_call(), reaches by a few calls. False: not
 * found. */
bool lua_code_loop(const struct elf_image *im, uint64_t call, struct lua_code *ret);

/* LuaJIT's virtual machine: the piece of code that the function at @call enters in its middle. False: not found. */
bool lua_code_vm(const struct elf_image *im, uint64_t call, struct lua_code *ret);

#endif
