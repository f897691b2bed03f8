/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What depends on the CPU, for both halves: one header a CPU, of the same names. What only user space needs to know of it
 * stands in agent/cpu.h.
 */
#ifndef HEARTH_BPF_ARCH_H
#define HEARTH_BPF_ARCH_H

#include "bpf/arch_x86_64.h"

#endif
