/* SPDX-License-Identifier: Apache-2.0 */
/* Names of .NET's methods: what compilers make of lambdas, iterators, async methods and local functions is named after the
 * function that it stands in. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"

/* @types: from the outermost on, a blank between them. */
static void check(const char *namespace, const char *types, const char *method, const char *wanted)
{
	char text[DOTNET_MAX_NAME], copy[256], *rest = copy, *word;
	struct dotnet_text t = { 0 };

	snprintf(t.namespace, sizeof(t.namespace), "%s", namespace);
	snprintf(t.method, sizeof(t.method), "%s", method);
	snprintf(copy, sizeof(copy), "%s", types);
	while ((word = strsep(&rest, " ")))
		snprintf(t.types[t.depth++], sizeof(t.types[0]), "%s", word);
	dotnet_text_write(&t, text);
	assert_string_equal(text, wanted);
}

static const struct {
	const char *namespace, *types, *method, *wanted;
} names[] = {
	/* plain names stay */
	{ "System", "String", "Concat", "System.String.Concat" },
	{ "", "Program", "Main", "Program.Main" },
	{ "A.B", "Outer Inner<T>", ".ctor", "A.B.Outer.Inner<T>..ctor" },
	{ "", "<Module>", ".cctor", "<Module>..cctor" },
	{ "", "<PrivateImplementationDetails>", "ComputeStringHash", "<PrivateImplementationDetails>.ComputeStringHash" },
	/* state machines are their methods */
	{ "A", "Service <Load>d__5", "MoveNext", "A.Service.Load" },
	{ "A", "Service <Load>d__5<T>", "MoveNext", "A.Service.Load" },
	{ "A", "Service <Load>d__5", "System.IDisposable.Dispose", "A.Service.Load.System.IDisposable.Dispose" },
	{ "", "Calls <Later>c__async0", "MoveNext", "Calls.Later" },
	{ "", "Calls <Numbers>c__Iterator1", "MoveNext", "Calls.Numbers" },
	{ "", "P <>c <<Main>b__0_0>d", "MoveNext", "P.Main.(lambda)" },
	/* lambdas are in their methods */
	{ "A", "P <>c", "<Main>b__0_1", "A.P.Main.(lambda)" },
	{ "A", "P <>c__DisplayClass3_0", "<Run>b__0", "A.P.Run.(lambda)" },
	{ "", "P", "<Main>g__Local|0_1", "P.Main.Local" },
	{ "", "Calls", "<UseLambda>m__0", "Calls.UseLambda.(lambda)" },
	{ "", "Calls <UseClosure>c__AnonStorey0", "<>m__0", "Calls.UseClosure.(lambda)" },
	{ "", "P <>c", "<<Main>g__In|0_0>b__1", "P.Main.In.(lambda)" },
};

/* A function that stands in no type. */
static void a_function_is_its_name(void **state)
{
	struct dotnet_text t = { .method = "MoveNext" };
	char text[DOTNET_MAX_NAME];

	(void)state;
	dotnet_text_write(&t, text);
	assert_string_equal(text, "MoveNext");
}

static void methods_have_the_names_of_the_source(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		check(names[i].namespace, names[i].types, names[i].method, names[i].wanted);
}

static void odd_names_end(void **state)
{
	char name[DOTNET_MAX_PART], wanted[DOTNET_MAX_NAME];

	(void)state;
	check("", "", "", "");
	check("", "P", "<", "P.<");
	check("", "P", "<a", "P.<a");
	check("", "P", "a>", "P.a>");
	check("", "P", "<>", "P.<>");
	memset(name, '<', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(wanted, sizeof(wanted), "P.%s", name);
	check("", "P", name, wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_its_name),
		cmocka_unit_test(methods_have_the_names_of_the_source),
		cmocka_unit_test(odd_names_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
