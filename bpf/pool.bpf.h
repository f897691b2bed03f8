/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Taking a level of the pool (bpf/levels.bpf.h): for programs at functions of user space, which may be preempted. BPF
 * programs only; included after the helpers. */
#ifndef HEARTH_BPF_POOL_H
#define HEARTH_BPF_POOL_H

#include <stdbool.h>

#include "bpf/levels.bpf.h"

/*
 * Puts @owner at @place if 0 is there, in one instruction; what was there. That is r0 = cmpxchg(r1, r0, r2), which kernels
 * know since 5.12 (linux/bpf.h: BPF_STX | BPF_ATOMIC | BPF_DW, BPF_CMPXCHG). clang has it only together with 32-bit
 * arithmetic, of which the verifiers of some kernels know too little.
 */
static __always_inline __u64 take_place(__u64 *place, __u64 owner)
{
	__u64 before;

	asm volatile("r1 = %[place]\n"
		     "r2 = %[owner]\n"
		     "r0 = 0\n"
		     ".byte 0xdb, 0x21, 0x00, 0x00, 0xf1, 0x00, 0x00, 0x00\n"
		     "%[before] = r0"
		     : [before] "=r"(before)
		     : [place] "r"(place), [owner] "r"(owner)
		     : "r0", "r1", "r2", "memory");
	return before;
}

/* Takes a level of the pool, in one instruction that nothing comes between. False: none is free. */
static __always_inline bool pool_take(struct place *at)
{
	struct level_state *state;

	at->cpu = bpf_get_smp_processor_id();
	state = bpf_map_lookup_elem(&levels, &at->cpu);
	if (!state)
		return false;
	for (__u32 i = 0; i < POOL_LEVELS; i++) {
		if (i >= cfg_pool_levels || take_place(&state->owners[i], bpf_get_current_pid_tgid()))
			continue;
		at->level = cfg_levels - cfg_pool_levels + i;
		at->slot = at->cpu * cfg_levels + at->level;
		return true;
	}
	return false;
}

#endif
