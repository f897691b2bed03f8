/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program may interrupt another on its CPU: a thread is interrupted by a timer, and that by an NMI. So what belongs to one
 * run of a program alone (scratch, caches, counters, numbers of records) is there once for each CPU and level. A program
 * takes the lowest level that is free, and gives it back when it ends. One that interrupts ends before the one that it
 * interrupted goes on, so a plain counter will do. Where all programs of a session exclude each other there is one level,
 * and nothing of this is left in the program. BPF programs only; included after the helpers.
 *
 * Programs on user space's functions are others: since 6.0 the kernel lets another thread have the CPU in the middle of
 * one, and that may run one, too, and give the CPU back before it ends. So their levels are a pool: each has its owner, the
 * thread that took it, which finds it again by that. A program in an interrupt sees no pool.
 */
#ifndef HEARTH_BPF_LEVELS_H
#define HEARTH_BPF_LEVELS_H

#include <stdbool.h>

#include "bpf/event.h"

const volatile __u32 cfg_levels = 1;	   /* MAX_LEVELS at most */
const volatile __u32 cfg_pool_levels = 0;  /* the last so many of these are the pool */
const volatile bool cfg_preempted = false; /* the programs of this object take theirs from it */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* one for each CPU */
	__type(key, __u32);
	__type(value, struct level_state);
} levels SEC(".maps");

/* The place of a program's run: @slot is its index in the maps that have an element for each CPU and level. */
struct place {
	__u32 cpu, level, slot;
};

/* Takes a level. False: none is free. */
static __always_inline bool level_take(struct place *at)
{
	struct level_state *state;

	at->slot = at->cpu = bpf_get_smp_processor_id();
	at->level = 0;
	if (cfg_levels == 1)
		return true;
	state = bpf_map_lookup_elem(&levels, &at->cpu);
	if (!state)
		return false;
	at->level = state->taken;
	if (at->level >= cfg_levels - cfg_pool_levels)
		return false;
	state->taken = at->level + 1;
	at->slot = at->cpu * cfg_levels + at->level;
	return true;
}

/* Finds the level of the pool that this thread has taken. The lowest where it has none, which does not happen. */
static __always_inline __u32 pool_find(const struct level_state *state)
{
	__u32 level = cfg_levels - cfg_pool_levels;

	for (__u32 i = 1; i < POOL_LEVELS; i++)
		if (i < cfg_pool_levels && state->owners[i] == bpf_get_current_pid_tgid())
			level = cfg_levels - cfg_pool_levels + i;
	return level;
}

/* Finds the level that an earlier program of the same run, which called this one, has taken. */
static __always_inline void level_find(struct place *at)
{
	struct level_state *state;

	at->slot = at->cpu = bpf_get_smp_processor_id();
	at->level = 0;
	if (cfg_levels == 1)
		return;
	state = bpf_map_lookup_elem(&levels, &at->cpu);
	if (state && cfg_preempted)
		at->level = pool_find(state);
	else if (state && state->taken && state->taken <= cfg_levels)
		at->level = state->taken - 1;
	at->slot = at->cpu * cfg_levels + at->level;
}

/* Counts a sample of @kind as lost for want of a level. */
static __always_inline void level_refuse(const struct place *at, __u32 kind, __u64 value)
{
	struct level_state *state = bpf_map_lookup_elem(&levels, &at->cpu);

	if (!state)
		return;
	state->refused[kind & (MAX_KINDS - 1)]++;
	state->refused_value[kind & (MAX_KINDS - 1)] += value;
}

static __always_inline void level_give(const struct place *at)
{
	struct level_state *state;

	if (cfg_levels == 1)
		return;
	state = bpf_map_lookup_elem(&levels, &at->cpu);
	if (state && cfg_preempted)
		state->owners[(at->level - (cfg_levels - cfg_pool_levels)) & (POOL_LEVELS - 1)] = 0;
	else if (state)
		state->taken = at->level;
}

#endif
