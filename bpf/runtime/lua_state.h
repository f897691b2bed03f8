/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of Lua for bpf/runtime/lua.bpf.c, and the parts of its objects: shared by the program and by agent/runtime/,
 * which fills the state and reads the objects.
 */
#ifndef HEARTH_BPF_RUNTIME_LUA_STATE_H
#define HEARTH_BPF_RUNTIME_LUA_STATE_H

#include "bpf/event.h"

/* chain_state.data */
enum lua_data {
	LUA_LOOP,     /* address of the loop's code, luaV_execute() ... */
	LUA_LOOP_END, /* ... and of its end */
};

/* chain_state.style: where calls are, and how one that began a loop is told. */
enum lua_style {
	LUA_CALLS_LINKED, /* each has the address of its caller's, and flags */
	LUA_CALLS_ARRAY,  /* 5.1: an array, callers below, without flags */
};

/* chain_state.offset */
enum lua_offset {
	/* struct lua_State */
	LUA_CALL,	/* ci: the innermost call */
	LUA_FIRST_CALL, /* LUA_CALLS_ARRAY: base_ci, the array; else unused */
	LUA_STACK,	/* stack: its values */
	LUA_STACK_END,	/* stack_last */
	LUA_JUMP,	/* errorJmp: where an error jumps to, on the native stack */
	LUA_GLOBAL,	/* l_G */
	LUA_CURRENT_PC, /* LUA_CALLS_ARRAY: savedpc of the innermost call; else unused */
	LUA_HAS_PC,	/* not 0: the loop keeps the place of the innermost call in a register */
	/* global_State */
	LUA_MAIN,	 /* mainthread: the main state's address ... */
	LUA_MAIN_INSIDE, /* not 0: the main state itself is there (5.5) */
	/* CallInfo */
	LUA_CALL_FUNCTION, /* func: address of the value that is called */
	LUA_CALL_PC,	   /* savedpc: behind the instruction that runs */
	LUA_CALL_STATUS,   /* callstatus, 16 bits (5.5: the middle ones of 32); LUA_CALLS_ARRAY: unused */
	LUA_STATUS_C,	   /* status & this == the next: a call of a function of a script */
	LUA_STATUS_SCRIPT,
	LUA_STATUS_LOOP, /* status & this == the next: a call of the loop began with it */
	LUA_STATUS_BEGINS,
	/* LClosure */
	LUA_CLOSURE_PROTO,
	/* Proto */
	LUA_PROTO_TYPE, /* the tag that it has */
	LUA_CODE,	/* code */
	LUA_CODE_COUNT, /* sizecode */
	LUA_LINES,	/* lineinfo */
	LUA_LINES_COUNT,
	LUA_MARKS, /* 5.4, 5.5: abslineinfo; else 0 */
	LUA_MARKS_COUNT,
	LUA_SOURCE,
	LUA_LINE, /* linedefined; lastlinedefined is behind it */
	/* TString: its tag says which of the two has its length */
	LUA_TEXT_SHORT, /* of a byte; 0: there is none */
	LUA_TEXT_LONG,
	LUA_TEXT_FAR, /* where a long one has the address of its characters; 0: these are in it (LUA_TEXT) */
	LUA_OFFSETS,
};

/* Equal in all versions of agent/runtime/file/lua_file.c; measured with them. */
enum {
	LUA_TAG = 8, /* CommonHeader.tt */
	LUA_TAG_THREAD = 8,
	LUA_TAG_CLOSURE = 6,
	LUA_TAG_TEXT_SHORT = 4,
	LUA_CLOSURE_IS_C = 10, /* 5.1: closures of C have the same tag */
	LUA_CALL_PREVIOUS = 16,
	LUA_CALL_BYTES = 72,	   /* what is read of one */
	LUA_CALL_ARRAY_BYTES = 40, /* sizeof(CallInfo) in 5.1 */
	LUA_PROTO_BYTES = 128,	   /* what is read of one */
	LUA_TEXT = 24,		   /* of TString: its characters */
	/* 5.1: instructions, of which the low six bits are the operator (lopcodes.h) */
	LUA_OP_MASK = 63,
	LUA_OP_CALL = 28,
	LUA_OP_TAILCALL = 29,
};

/*
 * The parts of an object record. The text is where the code is from, as luaL_loadbuffer() was told: @FILE, =NAME, or the
 * code itself. The lines of instructions are 32-bit numbers; since 5.4 differences to the line before, a byte each, and
 * marks, pairs of 32-bit numbers, where these do not fit. Two parts, as a part has less than 4 KB.
 */
enum { LUA_PART_SOURCE, LUA_PART_LINES, LUA_PART_MORE, LUA_PART_MARKS };
enum { LUA_SOURCE_BYTES = 511, LUA_LINES_BYTES = 4092, LUA_LINES_MAX = 4095, LUA_MARKS_MAX = 1023 };
/* What is left for more lines in an object's OBJECT_DATA_BYTES, in whole instructions. */
enum { LUA_MORE_BYTES = 3584, LUA_MORE_BESIDE_MARKS = 2560 };
_Static_assert(LUA_SOURCE_BYTES + LUA_LINES_BYTES + LUA_MORE_BYTES < OBJECT_DATA_BYTES &&
		       LUA_SOURCE_BYTES + LUA_LINES_BYTES + LUA_MORE_BESIDE_MARKS + LUA_MARKS_MAX < OBJECT_DATA_BYTES,
	       "a record's length has no more bits");

/* part_state */
enum {
	LUA_HAS_LINE,  /* of LUA_PART_SOURCE: where the function is defined; 0: it is the file's own code */
	LUA_HAS_COUNT, /* of LUA_PART_LINES: how many instructions there are */
	LUA_HAS_CODE,  /* of LUA_PART_MORE: the low half of the code's address */
};

#endif
