/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that a file with the interface for debuggers of JIT compilers tells (GDB's manual, "JIT Compilation Interface").
 * No state. */
#ifndef HEARTH_AGENT_RUNTIME_FILE_GDB_JIT_FACTS_H
#define HEARTH_AGENT_RUNTIME_FILE_GDB_JIT_FACTS_H

enum gdb_jit_fact {
	GDB_JIT_FACT_DESCRIPTOR, /* the variable __jit_debug_descriptor; 0: it is somewhere in the data */
	GDB_JIT_FACT_DATA,	 /* the section .data */
	GDB_JIT_FACT_DATA_BYTES,
	GDB_JIT_FACT_MAX
};

enum { GDB_JIT_MAX_DATA_BYTES = 4 << 20 }; /* of a section that is looked through */

#endif
