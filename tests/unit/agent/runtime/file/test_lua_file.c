/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts that a file tells of Lua and LuaJIT: files that gcc makes, with functions that call each other as Lua's do, and
 * those that are installed. LUA_FILES='FILE ...' prints what those files tell.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/runtime/lua_state.h"
#include "bpf/runtime/luajit_state.h"
#include "tests/unit/agent/runtime/file/made_file.h"

#ifdef __x86_64__
/* What is looked at of Lua: the way from lua_call() to the loop, which is the largest function, or, of LuaJIT, to the middle
 * of one large piece. */
static const char source[] =
	"#define API __attribute__((visibility(\"default\")))\n"
	"#define OWN __attribute__((noinline, visibility(\"hidden\")))\n"
	"API const char lua_ident[] = \"$LuaVersion: Lua \" VERSION \"  Copyright (C) 1994-2022 Lua.org, PUC-Rio $\";\n"
	"#ifdef JIT\n"
	"asm(\".text\\n.type vm, @function\\nvm: .cfi_startproc\\n.skip 9000, 0x90\\nvm_call: .skip 3000, 0x90\\nret\\n"
	".cfi_endproc\\n\");\n"
	"OWN void vm_call(void *state);\n"
	"API void lua_call(void *state) { *(long *)state += 1; vm_call(state); *(long *)state -= 1; }\n"
	"API int luaJIT_setmode(void *state) { return state != 0; }\n"
	"#else\n"
	"OWN long loop(long n) {\n"
	"#define STEP n = n * 3 + (n >> 2) ^ __COUNTER__ * 0x1234567;\n"
	"#define STEPS STEP STEP STEP STEP STEP STEP STEP STEP\n"
	"#define MORE STEPS STEPS STEPS STEPS STEPS STEPS STEPS STEPS\n"
	"	MORE MORE MORE MORE MORE MORE\n"
	"	return n;\n"
	"}\n"
	"OWN long call(long n) { return n > 5 ? loop(n) + 1 : n; }\n"
	"API void lua_callk(long *state) { *state = call(*state); }\n"
	"#endif\n"
	"API void *lua_newthread(void *state) { return state; }\n"
	"#ifdef PROGRAM\n"
	"int main(int argc, char **argv) { long state = argc; lua_callk(&state); return lua_newthread(argv) == 0; }\n"
	"#endif\n";

static void test_made(void **state)
{
	static const struct {
		const char *options;
		uint32_t id, version, way;
	} cases[] = {
		{ "-fPIC -shared -s '-DVERSION=\"5.4.4\"'", RUNTIME_LUA, 0x050404, RUNTIME_WAY_DYNSYM },
		{ "-fPIC -shared -s '-DVERSION=\"5.3.6\"'", RUNTIME_LUA, 0x050306, RUNTIME_WAY_DYNSYM },
		{ "-DPROGRAM -rdynamic -s '-DVERSION=\"5.2.4\"'", RUNTIME_LUA, 0x050204, RUNTIME_WAY_DYNSYM },
		{ "-DPROGRAM '-DVERSION=\"5.4.8\"'", RUNTIME_LUA, 0x050408, RUNTIME_WAY_SYMTAB },
		{ "-fPIC -shared -s '-DVERSION=\"5.5.1\"'", RUNTIME_LUA, 0x050501, RUNTIME_WAY_DYNSYM },
		{ "-fPIC -shared -s -DJIT '-DVERSION=\"5.1.4\"'", RUNTIME_LUAJIT, 0x020100, RUNTIME_WAY_DYNSYM },
	};
	char path[] = "/tmp/lua_file.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct runtime_file f;

		if (!make_file(path, source, cases[i].options))
			break;
		f = read_file(path);
		assert_int_equal(f.kind, RUNTIME_FILE_CHAIN);
		assert_int_equal(f.id, cases[i].id);
		assert_int_equal(f.version, cases[i].version);
		assert_int_equal(f.way, cases[i].way);
		assert_true(runtime_file_has_threads(&f));
		assert_int_equal(f.state.thread.place, THREAD_STACK);
		assert_int_equal(f.state.runtime, cases[i].id);
		assert_int_equal(f.state.data[LUA_LOOP], f.loop.start);
		assert_int_equal(f.state.data[LUA_LOOP_END], f.loop.end);
		assert_true(f.loop.end - f.loop.start > 4000 && f.loop.end - f.loop.start < 13000);
		/* the program reads calls in words of 32 bits, and others in words of 64 */
		assert_true(f.state.offset[LUA_CALL_STATUS] % 4 <= 2);
		assert_int_equal(f.state.offset[LUA_CALL_PC] % 8, 0);
		assert_int_equal(f.id == RUNTIME_LUA && f.state.offset[LUA_MAIN_INSIDE], f.version >= 0x050500);
	}
	unlink(path);
}

/* It is Lua, but of a version whose layout is not known: its state has no way to it. */
static void test_unknown(void **state)
{
	static const char *const versions[] = { "5.0.3", "5.3.1", "5.4.2", "5.9.0", "x" };
	char path[] = "/tmp/lua_file.XXXXXX", options[64];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		struct runtime_file f;

		(void)snprintf(options, sizeof(options), "-fPIC -shared '-DVERSION=\"%s\"'", versions[i]);
		if (!make_file(path, source, options))
			break;
		f = read_file(path);
		assert_int_equal(f.kind, RUNTIME_FILE_CHAIN);
		assert_int_equal(f.id, RUNTIME_LUA);
		assert_false(runtime_file_has_threads(&f));
	}
	unlink(path);
}
#endif

static void print(const char *path)
{
	struct runtime_file f = read_file(path);

	printf("%s: kind %u id %u version %x way %u loop %jx..%jx thread %u\n", path, f.kind, f.id, f.version, f.way,
	       (uintmax_t)f.loop.start, (uintmax_t)f.loop.end, f.state.thread.place);
}

/* Lua and LuaJIT as they are installed: the version that the file's name has. */
static void test_installed(void **state)
{
	static const struct {
		const char *path;
		uint32_t id, version;
	} cases[] = {
		{ "/usr/bin/lua5.1", RUNTIME_LUA, 0x0501 },
		{ "/usr/bin/lua5.2", RUNTIME_LUA, 0x0502 },
		{ "/usr/bin/lua5.3", RUNTIME_LUA, 0x0503 },
		{ "/usr/bin/lua5.4", RUNTIME_LUA, 0x0504 },
		{ "/usr/bin/lua5.5", RUNTIME_LUA, 0x0505 },
		{ "/usr/bin/luajit", RUNTIME_LUAJIT, 0x0201 },
		{ "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2", RUNTIME_LUAJIT, 0x0201 },
		{ "/usr/lib/x86_64-linux-gnu/liblua5.4.so.0", RUNTIME_LUA, 0x0504 },
	};
	const char *files = getenv("LUA_FILES");

	(void)state;
	for (char *list = files ? strdup(files) : NULL, *at = list ? strtok(list, " ") : NULL; at; at = strtok(NULL, " "))
		print(at);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct runtime_file f;

		if (access(cases[i].path, R_OK))
			continue;
		f = read_file(cases[i].path);
		if (cases[i].id == RUNTIME_LUAJIT && f.kind == RUNTIME_FILE_NONE)
			continue; /* a program that has LuaJIT in a library */
		assert_int_equal(f.kind, RUNTIME_FILE_CHAIN);
		assert_int_equal(f.id, cases[i].id);
		assert_int_equal(f.version >> 8, cases[i].version);
#ifdef __x86_64__
		assert_true(runtime_file_has_threads(&f));
		assert_true(f.loop.end - f.loop.start > 4000 && f.loop.end - f.loop.start < 100000);
#endif
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(test_made),
		cmocka_unit_test(test_unknown),
#endif
		cmocka_unit_test(test_installed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
