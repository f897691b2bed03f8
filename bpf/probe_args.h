/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the arguments of a probe are, as user space tells the program that takes its samples (bpf/probe.bpf.c). */
#ifndef HEARTH_BPF_PROBE_ARGS_H
#define HEARTH_BPF_PROBE_ARGS_H

#include "bpf/event.h"

enum probe_arg_kind { PROBE_ARG_CONSTANT, PROBE_ARG_REGISTER, PROBE_ARG_MEMORY };

/* The place of an argument. Registers are places in struct pt_regs. */
struct probe_arg {
	__u8 kind;  /* enum probe_arg_kind */
	__s8 bytes; /* of the value: 1, 2, 4, 8; less than 0: it has a sign */
	__u16 reg;
	__u16 index; /* added to the address, shifted by scale; PROBE_NO_REGISTER */
	__u8 scale;
	__u8 pad;
	__s64 value; /* the constant, or how far behind the register the memory is */
};

/* probe_arguments: probe -> the arguments that go with its samples. */
struct probe_args {
	__u32 count;
	__u32 pad;
	struct probe_arg list[PROBE_ARGS];
};

_Static_assert(sizeof(struct probe_args) == 8 + 16 * PROBE_ARGS, "struct probe_args has a fixed size");

#endif
