/* SPDX-License-Identifier: Apache-2.0 */
/* The fact that a file with the interface for debuggers of JIT compilers tells (GDB's manual, "JIT Compilation Interface").
 * No state. */
#ifndef HEARTH_AGENT_RUNTIME_FILE_GDB_JIT_FACTS_H
#define HEARTH_AGENT_RUNTIME_FILE_GDB_JIT_FACTS_H

/* The variable __jit_debug_descriptor. */
enum gdb_jit_fact { GDB_JIT_FACT_DESCRIPTOR, GDB_JIT_FACT_MAX };

#endif
