/* SPDX-License-Identifier: Apache-2.0 */
/* How the version of CPython is told by a file: by its variable, by functions that came with it, by a constant. */
#include "tests/unit/agent/runtime/file/made_file.h"

#include <unistd.h>

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(strcpy(folder, "/tmp/test_python_file.XXXXXX")) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

#define RUNTIME "char _PyRuntime[4096] = { 1 };\n"
#define TYPE	"char PyCode_Type[8] = { 1 };\n"
#define NEW(f)	"void " f "(void) {}\n"
#define ALL_NEWS(rest) \
	NEW("PyOS_FSPath") NEW("PyContext_New") NEW("PyCode_NewWithPosOnlyArgs") NEW("PyType_FromModuleAndSpec") rest

static void test_version(void **state)
{
	static const struct {
		const char *source;
		bool is_python;
		uint32_t version;
	} cases[] = {
		{ RUNTIME "unsigned long Py_Version = 0x030b04f0;\n", true, 0x030b04 },
		{ RUNTIME "const unsigned long Py_Version = 0x030c01f0;\n" ALL_NEWS(""), true, 0x030c01 },
		/* the variable's value is not in the file */
		{ RUNTIME "unsigned long Py_Version;\n" ALL_NEWS(NEW("PyIter_Send")), true, 0x030a00 },
		{ RUNTIME ALL_NEWS(""), true, 0x030900 },
		{ RUNTIME NEW("PyOS_FSPath") NEW("PyContext_New"), true, 0x030700 },
		{ TYPE NEW("PyOS_FSPath"), true, 0x030600 },
		{ TYPE, false, 0 },
		{ NEW("PyOS_FSPath"), false, 0 },
		{ RUNTIME "const unsigned long some = 0x030b07f0;\n", true, 0x030b07 },
		{ RUNTIME "const unsigned long some[2] = { 0x030b07f0, 0x030b07f0 };\n", true, 0x030b07 },
		{ RUNTIME "const unsigned long some[2] = { 0x030b07f0, 0x030b06f0 };\n", true, 0 },
		{ RUNTIME "const unsigned long some = 0x030d07f0;\n", true, 0 },
		{ RUNTIME "const unsigned long some = 0x030b07b1;\n", true, 0 }, /* a beta */
	};
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/libpython.so", folder);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct runtime_file f;

		if (!make_file(path, cases[i].source, "-shared -fPIC"))
			skip();
		f = read_file(path);
		if ((f.kind == RUNTIME_FILE_CHAIN && f.id == RUNTIME_PYTHON) != cases[i].is_python ||
		    (cases[i].is_python && f.version != cases[i].version))
			fail_msg("case %zu: %x", i, f.version);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_version) };

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
