/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of the kernel's code that tell in a stack why a thread does not run, or whose doing something is. Agent's thread.
 */
#ifndef HEARTH_AGENT_KERNEL_KERNEL_RANGES_H
#define HEARTH_AGENT_KERNEL_KERNEL_RANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* From @start on, below @end; both 0: not known. */
struct code_range {
	uint64_t start, end;
};

enum { IRQ_RANGES = 2 };

struct kernel_ranges {
	struct code_range scheduler; /* __sched in the kernel's sources: where threads go to sleep */
	struct code_range waking;    /* try_to_wake_up(), which ends sleeps */
	/* Where interrupts of devices, timers and other CPUs come in; exceptions and system calls do not. */
	struct code_range irqs[IRQ_RANGES];
};

static inline bool code_range_has(const struct code_range *range, uint64_t addr)
{
	return addr - range->start < range->end - range->start;
}

/* Does an interrupt come in at @addr? */
bool kernel_ranges_is_irq(const struct kernel_ranges *ranges, uint64_t addr);

/* Reads them from a list in the form of /proc/kallsyms. */
void kernel_ranges_read(FILE *list, struct kernel_ranges *ret);

/* Those of the running kernel, read once. */
const struct kernel_ranges *kernel_ranges(void);

#endif
