/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes of an address space whose frames are linked in the heap, as the kernel's programs need them (bpf/runtime/):
 * found by the files that are mapped, which say what they are (agent/runtime/file/). Agent's thread.
 */
#ifndef HEARTH_AGENT_PROCESS_CHAIN_STATES_H
#define HEARTH_AGENT_PROCESS_CHAIN_STATES_H

#include "agent/process/address_space.h"

struct sampler;

/* Why the chains of a runtime cannot be read. X(name, text) */
#define CHAIN_TROUBLES(X) \
	X(NONE, "")       \
	X(LAYOUT, "this version is not known") X(LIBC, "its C library is not known, by which its threads are found")

#define CHAIN_TROUBLE_NAME(name, text) CHAIN_TROUBLE_##name,
#define CHAIN_TROUBLE_TEXT(name, text) text,
enum chain_trouble { CHAIN_TROUBLES(CHAIN_TROUBLE_NAME) };

/* Puts the state of the runtime of @m's file, which is of kind RUNTIME_FILE_CHAIN, into *@ret, at bias 0 and without asid,
 * or tells why it has none in @as. */
enum chain_trouble chain_state_of(const struct address_space *as, const struct mapping *m, struct chain_state *ret);

/* Tells the kernel how the runtimes of @as look, unless it knows that for these mappings; of those that are in the program
 * itself, which is the file @exe_path (or NULL), also for other processes that run it. Returns the runtimes that it can
 * collect chains of (proc_value.runtimes). */
uint32_t chain_states_tell(struct address_space *as, const char *exe_path, struct sampler *sampler);

/* How the runtime @id looks in @as, by the file that the kernel was told of; NULL: it has no such runtime. */
const struct chain_state *chain_layout(const struct address_space *as, uint32_t id);

#endif
