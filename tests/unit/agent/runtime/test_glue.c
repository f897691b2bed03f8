/* SPDX-License-Identifier: Apache-2.0 */
/* Names of an interpreter's functions that frames of scripts stand for, and of those that do something themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/glue.h"
#include "base/cleanup.h"
#include "bpf/event.h"

static void test_python(void **state)
{
	static const char *const glue[] = {
		"_PyEval_EvalFrameDefault",
		"_PyEval_EvalFrameDefault.cold",
		"_PyEval_Vector",
		"PyEval_EvalCode",
		"PyEval_EvalCodeEx",
		"_PyEval_EvalCodeWithName",
		"_PyFunction_Vectorcall",
		"_PyObject_MakeTpCall",
		"_PyObject_Call.isra.0",
		"PyObject_CallMethod",
		"PyVectorcall_Call",
		"method_vectorcall",
		"method_vectorcall_NOARGS",
		"slot_tp_call",
		"slot_nb_add",
		"gen_send_ex2",
		"gen_iternext",
		"run_mod",
		"pymain_run_python",
		"Py_BytesMain",
		"Py_RunMain",
		"builtin_exec",
		"cfunction_vectorcall_FASTCALL",
	};
	static const char *const own[] = {
		"list_sort",	  "list_sort_impl",
		"builtin_sorted", "builtin_exec_impl2",
		"PyDict_GetItem", "gc_collect_main",
		"memcpy",	  "gen_iternex",
		"gen_iternextt",  "run_modx",
		"xrun_mod",	  "PyEval_Eval",
		"_PyEval_",	  "Py_RunMai",
		"main",		  "*",
		"map_next",	  "",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(glue); i++)
		if (!glue_is(RUNTIME_PYTHON, glue[i], strlen(glue[i])))
			fail_msg("%s is glue", glue[i]);
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (glue_is(RUNTIME_PYTHON, own[i], strlen(own[i])))
			fail_msg("%s is no glue", own[i]);
}

/* Names are not terminated, and runtimes are not believed. */
static void test_edges(void **state)
{
	(void)state;
	assert_true(glue_is(RUNTIME_PYTHON, "run_modulo", 7));
	assert_false(glue_is(RUNTIME_PYTHON, "run_mod", 6));
	assert_false(glue_is(RUNTIME_PYTHON, NULL, 0));
	assert_false(glue_is(RUNTIME_ID_MAX, "run_mod", 7));
	assert_false(glue_is(UINT32_MAX, "run_mod", 7));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_python),
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
