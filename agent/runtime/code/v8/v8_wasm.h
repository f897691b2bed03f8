/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that V8 made of WebAssembly. It is no object of the heap: it lies alone in memory of its own, with no head that tells
 * of it, but each function and wrapper begins on a border with the same instructions. One thread.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_V8_V8_WASM_H
#define HEARTH_AGENT_RUNTIME_CODE_V8_V8_WASM_H

#include <stdint.h>

#include "agent/runtime/code/code_memory.h"

struct v8_wasm {
	uint64_t start, end; /* of a function and what stands behind it, or of one jump without a frame */
	uint32_t frame;	     /* the type of the function's frames; 0: it is a jump */
};

/* Finds the code at @pc, which is no code of the heap. 0; -ENOENT: none is there; -EDQUOT. */
int v8_wasm_find(struct code_memory *m, uint64_t pc, struct v8_wasm *ret);

#endif
