/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the step of bpf/unwind.h reads in user space: the copies of stacks that came with a sample. Defines the
 * step; for agent/walk/late_walk.c alone. */
#ifndef HEARTH_AGENT_WALK_LATE_MEMORY_H
#define HEARTH_AGENT_WALK_LATE_MEMORY_H

#include <string.h>

#include "agent/samples/reorder.h"
#include "bpf/arch.h"
#include "bpf/event.h"

struct unwind_memory {
	const struct pending_sample *sample;
};

#include "bpf/unwind.h"

static __always_inline int unwind_read(struct unwind_memory *memory, __u64 addr, __u64 *value)
{
	const struct stack_area *area = stack_area_find(memory->sample->areas, memory->sample->area_cnt, addr, 8);

	if (!area)
		return 1;
	memcpy(value, area->data + (addr - area->addr), 8);
	return 0;
}

static __always_inline int unwind_read_sched(struct unwind_memory *memory, struct unwind_sched *sched)
{
	*sched = memory->sample->regs->sched;
	return !sched->pc;
}

static __always_inline __u64 unwind_code_mask(void)
{
	return cpu_code_mask();
}

static __always_inline __u64 unwind_put_back(struct unwind_memory *memory, __u64 pc, __u64 cfa)
{
	return sample_put_back(memory->sample, pc, cfa);
}

#endif
