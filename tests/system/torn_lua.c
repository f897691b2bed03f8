/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes itself off as Lua 5.4: it has the symbols by which that is known, and a state with three calls, of the main chunk
 * of torn.lua, of a function on line 6 and of one on line 100 + the way's number, while it runs in a loop of that name. In
 * all but the first way something makes no sense. usage: torn_lua [SECONDS of a way]
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum way { WHOLE, RING, CLOSURE, JUMP, MAIN, LINES, SOURCE, STACK, WAYS };
enum { CALLS = 4 };

const char lua_ident[] = "$LuaVersion: Lua 5.4.4  Copyright (C) 1994-2022 Lua.org, PUC-Rio $";

static struct {
	uint8_t state[256], other[256], global[512], calls[CALLS][64], closures[CALLS][32], protos[CALLS][128], text[64];
	uint64_t values[CALLS][2];
	uint32_t code[8];
	int8_t lines[8];
} vm;

static void put(uint8_t *at, size_t offset, uint64_t value, size_t bytes)
{
	memcpy(at + offset, &value, bytes);
}

#define POINTER(at, offset, to) put(at, offset, (uintptr_t)(to), 8)

/* Offsets as agent/runtime/file/lua_file.c has them. */
static void make(enum way way, const void *jump)
{
	memset(&vm, 0, sizeof(vm));
	put(vm.state, 8, 8, 1);
	POINTER(vm.state, 24, vm.global);
	POINTER(vm.state, 32, vm.calls[CALLS - 1]);
	POINTER(vm.state, 40, vm.values + CALLS);
	POINTER(vm.state, 48, vm.values);
	POINTER(vm.state, 88, way == JUMP ? vm.lines : jump);
	memcpy(vm.other, vm.state, sizeof(vm.other));
	POINTER(vm.other, 24, vm.code);
	POINTER(vm.global, 264, way == MAIN ? vm.other : vm.state);
	put(vm.text, 8, 4, 1);
	put(vm.text, 11, 9, 1);
	memcpy(vm.text + 24, "@torn.lua", 9);
	put(vm.calls[0], 62, 2, 2);
	for (int i = 1; i < CALLS; i++) {
		POINTER(vm.calls[i], 0, vm.values + i);
		POINTER(vm.calls[i], 16, vm.calls[i - 1]);
		POINTER(vm.calls[i], 32, vm.code + 2);
		put(vm.calls[i], 62, i == 1 ? 4 : 0, 2);
		vm.values[i][0] = (uintptr_t)vm.closures[i];
		put(vm.closures[i], 8, 6, 1);
		POINTER(vm.closures[i], 24, vm.protos[i]);
		put(vm.protos[i], 8, 10, 1);
		put(vm.protos[i], 24, 8, 4);
		put(vm.protos[i], 28, 8, 4);
		put(vm.protos[i], 44, i == 1 ? 0 : i == 2 ? 6 : 100 + way, 4);
		POINTER(vm.protos[i], 64, vm.code);
		POINTER(vm.protos[i], 88, vm.lines);
		POINTER(vm.protos[i], 112, vm.text);
	}
	if (way == RING)
		POINTER(vm.calls[1], 16, vm.calls[3]);
	if (way == CLOSURE)
		put(vm.closures[2], 8, 5, 1);
	if (way == LINES) {
		put(vm.protos[3], 28, INT32_MAX, 4);
		put(vm.protos[3], 40, INT32_MAX, 4);
	}
	if (way == SOURCE)
		POINTER(vm.protos[3], 112, 8);
	if (way == STACK)
		POINTER(vm.calls[2], 0, vm.text);
}

/* The state is in a register that functions leave as it is. */
__attribute__((noinline)) void luaV_execute(void *state, double seconds)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
	register void *held __asm__("rbx") = state;

	while (clock() < end)
		for (int i = 0; i < 1000; i++)
			__asm__ volatile("" : "+r"(held));
}

void *lua_newthread(void *state)
{
	return state;
}

__attribute__((noinline)) void lua_callk(void *state, double seconds)
{
	luaV_execute(state, seconds);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.2;
	void *volatile jump[4] = { 0 };

	for (int i = 0; i <= WAYS; i++) { /* the first way once more, when it is surely known what this program is */
		make((enum way)(i % WAYS), (const void *)jump);
		lua_callk(vm.state, seconds);
	}
	return jump[0] != NULL;
}
