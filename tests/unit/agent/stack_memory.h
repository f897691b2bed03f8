/* SPDX-License-Identifier: Apache-2.0 */
/* A stack in the test's own memory, for the walk's step (bpf/unwind.h). */
#ifndef HEARTH_TESTS_STACK_MEMORY_H
#define HEARTH_TESTS_STACK_MEMORY_H

#include <stdint.h>
#include <string.h>

#include "bpf/unwind.h"

struct unwind_memory {
	const void *data;
	uint64_t addr;
	uint64_t bytes;
	struct unwind_sched sched;
};

static __always_inline __u64 unwind_put_back(struct unwind_memory *memory, __u64 pc, __u64 cfa)
{
	(void)memory, (void)cfa;
	return pc;
}

static __always_inline __u64 unwind_code_mask(void)
{
	return CPU_HAS_LR ? (1ull << CPU_USER_BITS) - 1 : ~0ull; /* what is above is a signature */
}

static __always_inline int unwind_read(struct unwind_memory *memory, __u64 addr, __u64 *value)
{
	uint64_t off = addr - memory->addr;

	if (memory->bytes < 8 || off > memory->bytes - 8)
		return 1;
	memcpy(value, (const uint8_t *)memory->data + off, 8);
	return 0;
}

static __always_inline int unwind_read_sched(struct unwind_memory *memory, struct unwind_sched *sched)
{
	*sched = memory->sched;
	return !sched->pc;
}

#endif
