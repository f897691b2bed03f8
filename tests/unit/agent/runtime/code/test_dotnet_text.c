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

static void plain_names_stay(void **state)
{
	(void)state;
	check("System", "String", "Concat", "System.String.Concat");
	check("", "Program", "Main", "Program.Main");
	check("A.B", "Outer Inner<T>", ".ctor", "A.B.Outer.Inner<T>..ctor");
	check("", "<Module>", ".cctor", "<Module>..cctor");
	check("", "<PrivateImplementationDetails>", "ComputeStringHash", "<PrivateImplementationDetails>.ComputeStringHash");
}

/* What stands in no type. */
static void a_function_is_its_name(void **state)
{
	struct dotnet_text t = { .method = "MoveNext" };
	char text[DOTNET_MAX_NAME];

	(void)state;
	dotnet_text_write(&t, text);
	assert_string_equal(text, "MoveNext");
}

static void state_machines_are_their_methods(void **state)
{
	(void)state;
	check("A", "Service <Load>d__5", "MoveNext", "A.Service.Load");
	check("A", "Service <Load>d__5<T>", "MoveNext", "A.Service.Load");
	check("A", "Service <Load>d__5", "System.IDisposable.Dispose", "A.Service.Load.System.IDisposable.Dispose");
	check("", "Calls <Later>c__async0", "MoveNext", "Calls.Later");
	check("", "Calls <Numbers>c__Iterator1", "MoveNext", "Calls.Numbers");
	check("", "P <>c <<Main>b__0_0>d", "MoveNext", "P.Main.(lambda)");
}

static void lambdas_are_in_their_methods(void **state)
{
	(void)state;
	check("A", "P <>c", "<Main>b__0_1", "A.P.Main.(lambda)");
	check("A", "P <>c__DisplayClass3_0", "<Run>b__0", "A.P.Run.(lambda)");
	check("", "P", "<Main>g__Local|0_1", "P.Main.Local");
	check("", "Calls", "<UseLambda>m__0", "Calls.UseLambda.(lambda)");
	check("", "Calls <UseClosure>c__AnonStorey0", "<>m__0", "Calls.UseClosure.(lambda)");
	check("", "P <>c", "<<Main>g__In|0_0>b__1", "P.Main.In.(lambda)");
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
		cmocka_unit_test(plain_names_stay),
		cmocka_unit_test(a_function_is_its_name),
		cmocka_unit_test(state_machines_are_their_methods),
		cmocka_unit_test(lambdas_are_in_their_methods),
		cmocka_unit_test(odd_names_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
