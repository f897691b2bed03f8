/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a probe's arguments are: by the rules of calls (System V ABI, AMD64 supplement, 3.2.3; Procedure Call Standard for
 * the Arm 64-bit Architecture, 6.8), or as a note of USDT says. Registers are named by their place in the kernel's struct
 * pt_regs. No state.
 */
#ifndef HEARTH_AGENT_PROBE_PROBE_ARGS_H
#define HEARTH_AGENT_PROBE_PROBE_ARGS_H

#include "agent/probe/probe.h"

/* Argument @number of a function as it begins, or PROBE_ARG_RETURN as it returns. 0, or -ENOENT: it is in no register. */
int probe_arg_of_call(uint32_t number, struct probe_arg *ret);

/* Argument @number of @arguments, such as "-4@%edi 8@-12(%rbp) 8@$5". 0; -ENOENT: there are not so many; -ENOTSUP: it is no
 * number, or stands at an address of the program's own. */
int probe_arg_of_note(const char *arguments, uint32_t number, struct probe_arg *ret);

/* The place in struct pt_regs of the register called so, @len characters long, which may be a part of it; -ENOENT: none. Of
 * this machine's CPU. */
int probe_register(const char *name, size_t len);

#endif
