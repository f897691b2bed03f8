/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sections of a sample for facts of its program that enrichers want (agent/process/process_facts.c). Only BPF programs
 * include this, after the helpers.
 */
#ifndef HEARTH_BPF_PROGRAM_H
#define HEARTH_BPF_PROGRAM_H

#include "bpf/kernel.h"
#include "bpf/maps.bpf.h"

/*
 * Puts the control group and the environment of a program that user space may not know yet behind @words: it may have ended
 * when user space looks. A sample that has no room for its stack has none for the environment. Many samples may be taken
 * before user space knows the program: each CPU sends the environment with the first of them, and knows it by its
 * place and the thread group.
 */
static __always_inline __u32 close_program(struct cpu_state *state, struct scratch *scratch, __u32 words)
{
	struct task_struct *task = current_task();
	struct mm_struct *mm = cfg_task_btf ? task->mm : BPF_CORE_READ(task, mm);
	__u64 start = BPF_CORE_READ(mm, env_start), bytes = BPF_CORE_READ(mm, env_end) - start, at;
	__u64 program = start ^ (__u64)scratch->sample.pid << 32;

	if (bpf_core_field_exists(task->cgroups)) {
		scratch->words[word_index(words++)] = SECTION(SECTION_CGROUP, 8);
		scratch->words[word_index(words++)] = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	}
	at = masked(words + 1, SCRATCH_WORDS - 1);
	if (!start || bytes > MAX_ENVIRONMENT_BYTES || scratch->sample.flags & SAMPLE_LIMITED ||
	    state->told_program == program)
		return words;
	bytes = masked(bytes, 2 * MAX_ENVIRONMENT_BYTES - 1);
	if (bytes > MAX_ENVIRONMENT_BYTES || at > SCRATCH_WORDS - MAX_ENVIRONMENT_BYTES / 8 - 1 ||
	    bpf_probe_read_user(&scratch->words[at], bytes, (void *)start))
		return words;
	state->told_program = program;
	state->chunk_tokens_ns += (bytes + STACK_CHUNK_BYTES - 1) / STACK_CHUNK_BYTES * cfg_chunk_cost_ns;
	scratch->words[word_index(words)] = SECTION(SECTION_ENVIRONMENT, bytes);
	return words + 1 + (bytes + 7) / 8;
}

__noinline __u32 close_program_alone(struct cpu_state *state, struct scratch *scratch, __u32 words)
{
	return state && scratch ? close_program(state, scratch, words) : words;
}

#endif
