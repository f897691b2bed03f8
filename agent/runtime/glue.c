/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "agent/runtime/glue.h"
#include "bpf/event.h"

/* Names; one '*' stands for anything. Seen between script frames of CPython 3.7 to 3.13 (libpython with symbols),
 * and in the sources of Objects/call.c, Python/ceval.c, Python/pythonrun.c, Modules/main.c. */
static const char *const python[] = {
	/* the loop and the ways into it */
	"_PyEval_EvalFrame*",
	"PyEval_EvalFrame*",
	"_PyEval_Vector",
	"PyEval_EvalCode*",
	"_PyEval_EvalCode*",
	"_PyJIT*",
	"_TAIL_CALL_*",
	"fast_function",
	"function_code_fastcall",
	"call_function",
	"do_call_core",
	"trace_call_function",
	/* calls */
	"_PyFunction_*",
	"_PyObject_Call*",
	"PyObject_Call*",
	"_PyObject_FastCall*",
	"PyObject_Vectorcall*",
	"_PyObject_Vectorcall*",
	"_PyObject_MakeTpCall*",
	"_PyObject_CallMethod*",
	"PyVectorcall_*",
	"_PyVectorcall_*",
	"_PyStack_*",
	"method_vectorcall*",
	"method_call",
	"object_vacall",
	"vectorcall_method",
	"vectorcall_maybe",
	"vectorcall_unbound",
	"callmethod*",
	"call_method",
	"call_unbound*",
	"_PyMethodDef_RawFastCall*",
	"_PyMethodDescr_*",
	"_PyMethodDescr_Vectorcall",
	"_PyCFunction_*",
	"PyCFunction_Call",
	"cfunction_call*",
	"cfunction_vectorcall*",
	"slot_tp_*",
	"slot_nb_*",
	"slot_sq_*",
	"slot_mp_*",
	"slot_am_*",
	"lookup_maybe_method",
	/* generators */
	"gen_send_ex*",
	"gen_iternext",
	"gen_send",
	"_gen_throw",
	"PyGen_*",
	"_PyGen_*",
	"coro_wrapper_*",
	/* from main() to the first frame */
	"run_mod",
	"run_eval_code_obj",
	"pyrun_file",
	"pyrun_simple_file",
	"_PyRun_*",
	"PyRun_*",
	"pymain_*",
	"Py_RunMain",
	"Py_BytesMain",
	"Py_Main",
	"_Py_UnixMain",
	"builtin_exec",
	"builtin_exec_impl",
	NULL,
};

/* Seen around script frames of PHP 7.4, 8.2 and 8.4 (Debian), and in the sources of Zend/zend_execute_API.c, zend_API.c,
 * zend_interfaces.c, zend_generators.c, zend_fibers.c, main/main.c, sapi/. Functions of C that scripts call have a frame
 * each, so their own names (zif_, zim_) would stand there twice. */
static const char *const php[] = {
	"execute_ex",
	"zif_*",
	"zim_*",
	/* calls */
	"zend_call_function",
	"zend_call_known_*",
	"zend_call_method*",
	"_call_user_function_*",
	"zend_fcall_info_call*",
	"zend_call_via_*",
	"execute_internal",
	/* generators, fibers, iterators */
	"zend_generator_resume*",
	"zend_generator_get_next_*",
	"zend_generator_delegate*",
	"zend_generator_iterator_*",
	"zend_fiber_execute",
	"zend_fiber_resume*",
	"zend_fiber_switch_*",
	"zend_fiber_trampoline",
	"zend_user_it_*",
	"spl_iterator_apply",
	/* the end of an object */
	"zend_objects_store_del",
	"zend_objects_destroy_object",
	"rc_dtor_func",
	"zend_objects_store_call_destructors",
	/* from main() to the first frame */
	"zend_execute",
	"zend_execute_script*",
	"php_execute_script*",
	"php_execute_simple_script",
	"do_cli",
	NULL,
};

/* Seen between frames of Perl 5.36 (Debian's, which exports only some), and in its sources: run.c, perl.c, pp_hot.c,
 * pp_ctl.c, mg.c, gv.c. */
static const char *const perl[] = {
	"Perl_runops_standard",
	"Perl_runops_debug",
	"perl_run",
	"S_run_body",
	"Perl_pp_entersub",
	"Perl_call_sv",
	"Perl_call_method",
	"Perl_call_pv",
	"Perl_call_argv",
	"Perl_call_list",
	"Perl_eval_sv",
	"Perl_eval_pv",
	"S_docatch",
	"Perl_pp_entertry",
	"Perl_pp_entereval",
	"Perl_pp_require",
	"Perl_magic_methcall",
	"S_magic_methcall1",
	"S_sortcv",
	"S_sortcv_stacked",
	"Perl_amagic_call",
	"Perl_try_amagic_un",
	"Perl_try_amagic_bin",
	NULL,
};

/* Seen between frames of Ruby 2.5 to 4.0 (builds with symbols), and in the sources: vm.c, vm_insnhelper.c, vm_eval.c,
 * vm_args.c, eval.c, thread.c, proc.c, cont.c. Methods that are written in C have a frame each; their functions stay. */
static const char *const ruby[] = {
	/* the loop and what it calls to go on */
	"rb_vm_exec",
	"vm_exec",
	"vm_exec_core",
	"vm_exec_loop",
	"vm_exec_handle_exception",
	"jit_exec*",
	"mjit_exec*",
	"rb_yjit_*",
	"vm_sendish*",
	"vm_call_*",
	"vm_call0*",
	"rb_vm_call*",
	"vm_invokesuper*",
	"vm_invokeblock*",
	"rb_vm_invokesuper",
	"rb_vm_invokeblock",
	"rb_vm_send",
	"rb_vm_opt_send*",
	"ractor_safe_call_cfunc_*",
	"call_cfunc_*",
	"vm_cfp_consistent_p",
	"rb_vm_opt_cfunc_p",
	"vm_opt_*",
	"opt_*",
	/* calls of methods and blocks from C */
	"rb_call",
	"rb_call0",
	"rb_funcall*",
	"rb_funcallv*",
	"rb_check_funcall*",
	"check_funcall*",
	"rb_vm_call0",
	"rb_ec_call*",
	"send_internal*",
	"rb_f_send",
	"rb_f_public_send",
	"rb_obj_call_init*",
	"rb_class_new_instance*",
	"rb_yield*",
	"vm_yield*",
	"rb_block_call*",
	"rb_lambda_call",
	"rb_iterate*",
	"iterate_method",
	"invoke_block*",
	"invoke_iseq_block*",
	"invoke_bmethod",
	"vm_callee_setup_block*",
	"rb_vm_invoke_proc*",
	"rb_vm_invoke_bmethod",
	"vm_invoke_*",
	"rb_proc_call*",
	"proc_call",
	"rb_method_call*",
	"method_call",
	"call_method_data*",
	"rb_ensure",
	"rb_protect",
	"rb_rescue*",
	"rb_vrescue*",
	"rb_catch*",
	"vm_catch*",
	"catch_i",
	"rb_f_catch",
	"yield_under",
	"eval_under",
	"eval_string_*",
	"eval_make_iseq",
	"rb_f_eval",
	"specific_eval",
	"rb_obj_instance_eval",
	"rb_obj_instance_exec",
	"rb_mod_module_eval",
	"rb_mod_module_exec",
	/* from main() or a thread's start to the first frame */
	"rb_main",
	"ruby_run_node",
	"ruby_exec_node",
	"rb_ec_exec_node",
	"ruby_exec_internal",
	"rb_iseq_eval*",
	"rb_load_internal*",
	"load_iseq_eval",
	"require_internal",
	"rb_require_internal*",
	"rb_require_string*",
	"rb_f_require*",
	"rb_f_load",
	"thread_start_func_*",
	"thread_do_start*",
	"thread_start_func*",
	"nt_start",
	"co_start",
	"call_thread_start_func_2",
	"rb_fiber_start",
	"fiber_entry",
	NULL,
};

/* Seen between frames of Lua 5.1 to 5.5 (builds with symbols), and in the sources: ldo.c, lvm.c, ltm.c, lapi.c, lcorolib.c,
 * lua.c. Functions that scripts call by name (luaB_pcall, str_gsub) stay. */
static const char *const lua[] = {
	/* the loop and what it calls to go on */
	"luaV_execute",
	"luaV_finishOp",
	"luaV_finishget",
	"luaV_finishset",
	"luaV_gettable",
	"luaV_settable",
	"luaV_equalobj",
	"luaV_equalval",
	"luaV_lessthan",
	"luaV_lessequal",
	"luaV_concat",
	"luaV_arith",
	"luaT_callTM*",
	"luaT_call*",
	"luaT_try*",
	"callTM*",
	"call_binTM",
	"call_orderTM",
	"luaD_call*",
	"luaD_rawcall",
	"luaD_precall",
	"luaD_pretailcall",
	"luaD_rawrunprotected",
	"luaD_pcall",
	"luaD_throw",
	"luaG_errormsg",
	"precallC",
	"ccall",
	"f_call",
	/* calls from C */
	"lua_call",
	"lua_callk",
	"lua_cpcall",
	"lua_pcall",
	"lua_pcallk",
	"lua_resume",
	"f_Ccall",
	"resume",
	"unroll",
	"finishCcall",
	"auxresume",
	/* from main() to the first frame */
	"docall",
	"dochunk",
	"dofile",
	"dolibrary",
	"handle_script",
	"pmain",
	NULL,
};

/* Seen between frames of LuaJIT 2.1, and in the sources: vm_x64.dasc, lj_api.c, lj_dispatch.c, luajit.c. */
static const char *const luajit[] = {
	"lj_vm_*",    "lj_BC_*", "lj_ff_*", "lj_cont_*", "lj_meta_*", "lua_call",      "lua_cpcall", "lua_pcall",
	"lua_resume", "docall",	 "dochunk", "dofile",	 "dolibrary", "handle_script", "pmain",	     NULL,
};

static const char *const *const names[RUNTIME_ID_MAX] = {
	[RUNTIME_PYTHON] = python, [RUNTIME_PHP] = php, [RUNTIME_PERL] = perl,
	[RUNTIME_RUBY] = ruby,	   [RUNTIME_LUA] = lua, [RUNTIME_LUAJIT] = luajit,
};

/*
 * Parts of V8 (node 16 to 26) that run for the function of the script in whose frame, or for whose call, they are: code of
 * bytecodes, ways into functions and out to C++, what an operator or an access to a property does. Functions that scripts
 * call by name (Builtins_ArrayMap) stay, and so does the entry of the interpreter, where it stands for a function that is
 * not known.
 */
static const char *const v8[] = {
	"Builtins_*Handler",
	"Builtins_JSEntry*",
	"Builtins_JSConstructEntry*",
	"Builtins_JSRunMicrotasksEntry",
	"Builtins_CEntry_*",
	"Builtins_Call_*",
	"Builtins_CallFunction*",
	"Builtins_CallBoundFunction*",
	"Builtins_CallProxy",
	"Builtins_CallVarargs",
	"Builtins_CallForwardVarargs",
	"Builtins_CallWith*",
	"Builtins_CallApi*",
	"Builtins_HandleApiCall*",
	"Builtins_AdaptorWith*",
	"Builtins_ArgumentsAdaptorTrampoline",
	"Builtins_Construct*",
	"Builtins_JSConstructStub*",
	"Builtins_JSBuiltinsConstructStub",
	"Builtins_InterpreterPush*",
	"Builtins_InterpreterEnterAt*",
	"Builtins_InterpreterOnStackReplacement*",
	"Builtins_Baseline*",
	"Builtins_CompileLazy*",
	"Builtins_ResumeGenerator*",
	"Builtins_SuspendGenerator*",
	"Builtins_FastNew*",
	"Builtins_RecordWrite*",
	"Builtins_*_Baseline",
	"Builtins_*Baseline",
	"Builtins_*_WithFeedback",
	"Builtins_*IC",
	"Builtins_*ICTrampoline",
	"Builtins_*IC_Megamorphic",
	"Builtins_*IC_NoFeedback",
	"Builtins_*ICTrampoline_Megamorphic",
	NULL,
};

static const char *const *const code_names[CODE_ID_MAX] = { [CODE_V8] = v8 };

static bool matches(const char *pattern, const char *name, size_t len)
{
	const char *star = strchr(pattern, '*');
	size_t before = star ? (size_t)(star - pattern) : strlen(pattern), behind = star ? strlen(star + 1) : 0;

	if (!star)
		return len == before && !memcmp(name, pattern, len);
	return len >= before + behind && !memcmp(name, pattern, before) && !memcmp(name + len - behind, star + 1, behind);
}

static bool is_among(const char *const *at, const char *name, size_t len)
{
	for (; at && *at; at++)
		if (matches(*at, name, len))
			return true;
	return false;
}

bool glue_is(uint32_t id, const char *name, size_t len)
{
	return is_among(id < RUNTIME_ID_MAX ? names[id] : NULL, name, len);
}

bool glue_is_of_code(uint32_t id, const char *name, size_t len)
{
	return is_among(id < CODE_ID_MAX ? code_names[id] : NULL, name, len);
}
