/* SPDX-License-Identifier: Apache-2.0 */
/* A file with the interface for debuggers is recognised by its exported symbols, and by those for debuggers alone. */
#include <unistd.h>

#include "agent/runtime/file/gdb_jit_facts.h"
#include "tests/unit/agent/runtime/file/made_file.h"

static const char source[] = "struct descriptor { unsigned version, action; void *relevant, *first; };"
			     "struct descriptor __jit_debug_descriptor __attribute__((visibility(VISIBILITY))) = { 1 };";

/* What the readers tell of the source, made with gcc's @options. */
static void check(const char *options, enum runtime_way way)
{
	struct runtime_file file = read_source(source, options);

	assert_int_equal(file.kind, RUNTIME_FILE_CODE);
	assert_int_equal(file.code.id, CODE_GDB_JIT);
	assert_int_equal(file.way, way);
	assert_true(file.code.fact[GDB_JIT_FACT_DESCRIPTOR] > 0);
	assert_true(runtime_file_is_sound(&file));
}

static void test_exported(void **state)
{
	(void)state;
	check("-shared -fPIC -s '-DVISIBILITY=\"default\"'", RUNTIME_WAY_DYNSYM);
}

static void test_hidden(void **state)
{
	(void)state;
	check("-shared -fPIC '-DVISIBILITY=\"hidden\"'", RUNTIME_WAY_SYMTAB);
}

static void test_none(void **state)
{
	(void)state;
	assert_int_equal(read_source(source, "-shared -fPIC -s '-DVISIBILITY=\"hidden\"'").kind, RUNTIME_FILE_NONE);
}

/* QEMU's emulators of programs: static and stripped, told by the name of the code that they register. */
static void test_qemu(void **state)
{
	static const char qemu[] = "struct descriptor { unsigned version, action; void *relevant, *first; };"
				   "static struct descriptor d = { 1 }; const char *volatile name = \"code_gen_buffer\";"
				   "int main(void) { return d.version + *name + (d.first != &d); }";
	char path[] = "/tmp/gdb_jit_file.XXXXXX";
	struct runtime_file file = { 0 };
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	if (!make_file(path, qemu, "-static -s"))
		skip();
	file = read_file(path);
	assert_int_equal(file.kind, RUNTIME_FILE_CODE);
	assert_int_equal(file.code.id, CODE_GDB_JIT);
	assert_int_equal(file.way, RUNTIME_WAY_CONTENT);
	assert_int_equal(file.code.fact[GDB_JIT_FACT_DESCRIPTOR], 0);
	assert_true(file.code.fact[GDB_JIT_FACT_DATA] && file.code.fact[GDB_JIT_FACT_DATA_BYTES] >= 24);
	assert_true(runtime_file_is_sound(&file));
	assert_true(make_file(path, qemu, "-static")); /* with symbols, none of which is the variable */
	assert_int_equal(read_file(path).kind, RUNTIME_FILE_NONE);
	assert_true(make_file(path, qemu, "-s")); /* a program with libraries */
	assert_int_equal(read_file(path).kind, RUNTIME_FILE_NONE);
	assert_true(make_file(path, "int main(void) { return 0; }", "-static -s"));
	assert_int_equal(read_file(path).kind, RUNTIME_FILE_NONE);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exported),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_qemu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
