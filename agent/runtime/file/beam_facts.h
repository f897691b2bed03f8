/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that the emulator of Erlang tells of itself (struct code_facts), and where a scheduler's thread has its process
 * (struct chain_state's offset). No state. */
#ifndef HEARTH_AGENT_RUNTIME_FILE_BEAM_FACTS_H
#define HEARTH_AGENT_RUNTIME_FILE_BEAM_FACTS_H

/* X(name, exported variable): ELF addresses of it. */
#define BEAM_FACTS(X)                           \
	X(ATOM_TABLE, "erts_atom_table")        \
	X(ACTIVE_CODE, "the_active_code_index") \
	X(NORMAL_EXIT, "beam_normal_exit")      \
	X(FRAME_LAYOUT, "erts_frame_layout")

/* Behind these: the range of the file's variables. Or 0: the variable that points to the JIT's object, in which the
 * addresses of the code that all modules share are, and the variable with their names. */
#define X(name, variable) BEAM_FACT_##name,
enum beam_fact {
	BEAM_FACTS(X) BEAM_FACT_DATA_START,
	BEAM_FACT_DATA_END,
	BEAM_FACT_SHARED,
	BEAM_FACT_SHARED_NAMES,
	BEAM_FACT_MAX
};
#undef X

#endif
