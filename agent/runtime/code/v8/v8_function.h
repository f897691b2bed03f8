/* SPDX-License-Identifier: Apache-2.0 */
/* Functions in V8's heap (SharedFunctionInfo, "shared"), as `node --cpu-prof` shows them. One thread. */
#ifndef HEARTH_AGENT_RUNTIME_CODE_V8_V8_FUNCTION_H
#define HEARTH_AGENT_RUNTIME_CODE_V8_V8_FUNCTION_H

#include "agent/runtime/code/v8/v8_object.h"

struct v8_function {
	uint64_t name;	 /* word of a string that is not empty; 0: it has none */
	uint64_t script; /* word of a Script; 0: not known */
	uint32_t start;	 /* position of its parameters; 0: not known, or the script's own code */
};

/* Reads the SharedFunctionInfo @word. 0; -EBADMSG: it is none; -EFAULT, -EDQUOT. */
int v8_function_read(struct v8_heap *h, uint64_t word, struct v8_function *ret);

/* The SharedFunctionInfo of the JSFunction @word. 0, or as above. */
int v8_function_of_closure(struct v8_heap *h, uint64_t word, uint64_t *ret);

/* The BytecodeArray of the SharedFunctionInfo @word, also where it has code that was compiled from it. 0, or as above. */
int v8_function_bytecode(struct v8_heap *h, uint64_t word, uint64_t *ret);

#endif
