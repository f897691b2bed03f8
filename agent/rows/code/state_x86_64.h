/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of x86-64 by the processor's numbers, and what a test asks of state_x86_64.c. */
#ifndef HEARTH_AGENT_ROWS_CODE_STATE_X86_64_H
#define HEARTH_AGENT_ROWS_CODE_STATE_X86_64_H

#include "agent/rows/code/state.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, NO_REG = -1 };

/* Does what code_state_step() does, whether the instruction is plain or not. */
int state_step_by_zydis(const uint8_t *code, size_t len_bytes, uint64_t addr, struct code_state *state,
			struct code_step *step);

#endif
