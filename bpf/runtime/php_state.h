/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of PHP for bpf/runtime/php.bpf.c, and the parts of its objects: shared by the program and by agent/runtime/,
 * which fills the state and reads the objects. The thread state is where executor_globals.current_execute_data is. In builds
 * with threads (ZTS) it leads to the thread's memory, and chain_state.global is the address of executor_globals_offset, a
 * variable that says where in that memory executor_globals is.
 */
#ifndef HEARTH_BPF_RUNTIME_PHP_STATE_H
#define HEARTH_BPF_RUNTIME_PHP_STATE_H

/* chain_state.offset */
enum php_offset {
	PHP_THREAD_BEFORE_EXCEPTION, /* executor_globals.opline_before_exception, behind current_execute_data */
	PHP_FUNCTION_OPCODES,	     /* zend_op_array; below PHP_HEAD_BYTES, as are the next three */
	PHP_FUNCTION_LAST,	     /* how many opcodes it has */
	PHP_FUNCTION_FILE,
	PHP_FUNCTION_LINE,	   /* its first */
	PHP_GENERATOR_FRAME,	   /* zend_generator.execute_data */
	PHP_GENERATOR_CHILDREN,	   /* .node.children */
	PHP_GENERATOR_CHILD,	   /* .node.child.single */
	PHP_GENERATOR_PLACEHOLDER, /* .execute_fake */
	PHP_CLOSURE_BIT,      /* numbers of bits of zend_function's flags: ZEND_ACC_CLOSURE: a copy, one in each object */
	PHP_FAKE_CLOSURE_BIT, /* ZEND_ACC_FAKE_CLOSURE: a copy of one that is no closure in the source */
	PHP_TRAMPOLINE_BIT,   /* ZEND_ACC_CALL_VIA_TRAMPOLINE: a stand-in for __call, remade for each call */
	PHP_THREAD_CURRENT,   /* executor_globals.current_execute_data, with threads */
};

/* The same in all versions from 7.3 to 8.5 (Zend/zend_compile.h, zend_types.h, zend.h). */
enum {
	PHP_FRAME_BYTES = 56, /* as many bytes of zend_execute_data are read */
	PHP_FRAME_OPLINE = 0,
	PHP_FRAME_RESULT = 16, /* return_value; a generator's frame has the generator there */
	PHP_FRAME_FUNCTION = 24,
	PHP_FRAME_THIS = 32,
	PHP_FRAME_CALL = 40, /* This.u1.type_info: a type in the low byte, ZEND_CALL_* above */
	PHP_FRAME_PREVIOUS = 48,

	PHP_OP_BYTES = 32,
	PHP_OP_LINE = 24,
	PHP_OP_HANDLE_EXCEPTION = 149, /* ZEND_HANDLE_EXCEPTION, the byte behind the line */

	PHP_HEAD_BYTES = 184,	      /* of zend_function: all that is looked at ... */
	PHP_HEAD_INTERNAL_BYTES = 64, /* ... and of an internal one, which is shorter */
	PHP_FUNCTION_TYPE = 0,
	PHP_FUNCTION_FLAGS = 4,
	PHP_FUNCTION_NAME = 8,
	PHP_FUNCTION_CLASS = 16,

	PHP_CLASS_NAME = 8,
	PHP_STRING_HEAD = 24, /* its characters follow */
	PHP_HASHED_BYTES = 63,

	PHP_TYPE_MASK = 15, /* of a string's type word, or of a value's */
	PHP_TYPE_STRING = 6,
	PHP_TYPE_OBJECT = 8,
};

/* zend_function.type */
enum { PHP_INTERNAL_FUNCTION = 1, PHP_USER_FUNCTION = 2, PHP_EVAL_CODE = 4 };

enum {
	PHP_CALL_TOP = 1 << 17,	      /* the frame is the outermost one of its execute_ex() */
	PHP_CALL_GENERATOR = 1 << 24, /* the frame is of a generator */
	PHP_IS_IMMUTABLE = 1 << 7, /* ZEND_ACC_IMMUTABLE: it is in opcache's memory; in 7.3 no function of a script has it */
};

/* The parts of an object record; its address is the function's, that of a closure is its opcodes'. */
enum { PHP_PART_HEAD, PHP_PART_NAME, PHP_PART_CLASS, PHP_PART_FILE };

#endif
