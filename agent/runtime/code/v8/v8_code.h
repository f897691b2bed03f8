/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that V8 made. The instructions stand behind a head in memory for code, the stream, which points to the object that
 * describes it, Code; until V8 10 both are one object. Code on a stack does not move, so it is found from an address in it.
 * One thread.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_V8_V8_CODE_H
#define HEARTH_AGENT_RUNTIME_CODE_V8_V8_CODE_H

#include "agent/runtime/code/v8/v8_object.h"

enum v8_code_kind {
	V8_CODE_OTHER, /* no function of a script: stubs, wrappers, ... */
	V8_CODE_REGEXP,
	V8_CODE_BASELINE,
	V8_CODE_OPTIMIZED,    /* Maglev's or TurboFan's */
	V8_CODE_WASM,	      /* see v8_wasm.h; no object of the heap */
	V8_CODE_WASM_WRAPPER, /* between a function of WebAssembly and one of JavaScript or C++; in the heap or not */
	V8_CODE_WASM_JUMP,    /* of a table */
};

struct v8_code {
	uint64_t stream;      /* address of the head */
	uint64_t word;	      /* of the Code */
	uint64_t start, size; /* of the instructions */
	enum v8_code_kind kind;
	uint64_t deopt;	    /* optimized: deoptimization data; baseline: the BytecodeArray */
	uint64_t positions; /* optimized: positions; baseline: offsets of bytecode */
};

/* Finds the code at @pc. *@stream_map is the word with which streams begin, one in each process; 0: not known yet. 0;
 * -ENOENT: none is there, and @ret is the code before it, or as it was; -EFAULT, -EDQUOT. */
int v8_code_find(struct v8_heap *h, uint64_t pc, uint64_t *stream_map, struct v8_code *ret);

/* The code that the SharedFunctionInfo @shared has (baseline code). 0; -EBADMSG: it has none; -EFAULT, -EDQUOT. */
int v8_code_of_function(struct v8_heap *h, uint64_t shared, struct v8_code *ret);

#endif
