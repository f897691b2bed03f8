/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program may interrupt another on its CPU: a thread is interrupted by a timer, and that by an NMI. So what belongs to one
 * run of a program alone (scratch, caches, counters, numbers of records) is there once for each CPU and level. A program
 * takes the lowest level that is free, and gives it back when it ends. One that interrupts ends before the one that it
 * interrupted goes on, so a plain counter will do. Where all programs of a session exclude each other there is one level,
 * and nothing of this is left in the program. BPF programs only; included after the helpers.
 */
#ifndef HEARTH_BPF_LEVELS_H
#define HEARTH_BPF_LEVELS_H

#include <stdbool.h>

#include "bpf/event.h"

const volatile __u32 cfg_levels = 1; /* MAX_LEVELS at most */

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
	if (at->level >= cfg_levels)
		return false;
	state->taken = at->level + 1;
	at->slot = at->cpu * cfg_levels + at->level;
	return true;
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
	if (state && state->taken && state->taken <= cfg_levels)
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
	if (state)
		state->taken = at->level;
}

#endif
