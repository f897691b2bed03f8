/* SPDX-License-Identifier: Apache-2.0 */
/* A file with .NET's runtime is recognised by the table of its variables, which older ones do not export, and by its
 * version. */
#include <unistd.h>

#include "agent/runtime/file/dotnet_facts.h"
#include "tests/unit/agent/runtime/file/made_file.h"

static const char source[] = "char version[] = VERSION; __attribute__((visibility(TABLE))) int g_dacTable[8];"
			     "__attribute__((visibility(START))) int coreclr_initialize(void) { return g_dacTable[1]; }"
			     "__attribute__((visibility(\"default\"))) int other(void) { return coreclr_initialize(); }";

/* What the readers tell of a library with the text of @version, and the table and the function that starts the runtime seen
 * so. */
static struct runtime_file made(const char *version, const char *table, const char *start, const char *more)
{
	char options[256];

	(void)snprintf(options, sizeof(options),
		       "-shared -fPIC %s '-DVERSION=\"@(#)Version %s @Commit: 1\"' '-DTABLE=\"%s\"' '-DSTART=\"%s\"'", more,
		       version, table, start);
	return read_source(source, options);
}

static void is_dotnet(const struct runtime_file *file, enum runtime_way way, uint32_t version)
{
	assert_int_equal(file->kind, RUNTIME_FILE_CODE);
	assert_int_equal(file->code.id, CODE_DOTNET);
	assert_int_equal(file->way, way);
	assert_int_equal(file->version, version);
	assert_int_equal(file->code.version, version);
	assert_true(file->code.fact[DOTNET_FACT_VARIABLES] > 0);
	assert_true(runtime_file_is_sound(file));
}

static void an_exported_table(void **state)
{
	struct runtime_file file = made("9.0.124.61010", "default", "default", "-s");

	(void)state;
	is_dotnet(&file, RUNTIME_WAY_DYNSYM, 9 << 16);
	file = made("10.0.926", "default", "hidden", "-s"); /* a program with all of it in one file */
	is_dotnet(&file, RUNTIME_WAY_DYNSYM, 10 << 16);
}

static void a_table_of_its_own(void **state)
{
	struct runtime_file file = made("4.700.22.30802", "hidden", "default", "");

	(void)state;
	is_dotnet(&file, RUNTIME_WAY_SYMTAB, 3 << 16); /* 3.0 and 3.1 write that */
	file = made("5.0.220", "hidden", "default", "");
	is_dotnet(&file, RUNTIME_WAY_SYMTAB, 5 << 16);
}

static void what_is_none(void **state)
{
	(void)state;
	assert_int_equal(made("4.700.22.30802", "hidden", "default", "-s").kind, RUNTIME_FILE_NONE);
	assert_int_equal(made("4.700.22.30802", "hidden", "hidden", "").kind, RUNTIME_FILE_NONE);
	assert_int_equal(made("4.6.30411.01", "hidden", "default", "").kind, RUNTIME_FILE_NONE); /* .NET Core 2.1 */
	assert_int_equal(made("x", "hidden", "default", "").kind, RUNTIME_FILE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exported_table),
		cmocka_unit_test(a_table_of_its_own),
		cmocka_unit_test(what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
