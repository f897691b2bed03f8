/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel/kernel_ranges.h"
#include "agent/proc/proc_reader.h"
#include "agent/walk/wait_stacks.h"
#include "base/map.h"
#include "base/metrics.h"

enum {
	FEW_BYTES = 16 << 10, /* the walk of most stacks of threads that wait needs no more */
	MOST_BYTES = 256 << 10,
	KEPT_BYTES = 4 << 20,  /* of all kept stacks; others are walked again each time */
	INTERRUPT_FRAMES = 24, /* an interrupt has no more, with the programs and trampolines that came with it */
};

struct wait_stacks {
	uint32_t turn;
	struct map kept; /* tid -> struct wait_stack *, owned */
	size_t kept_bytes;
	struct buf memory;
	struct metric *gone, *read;
};

int wait_stacks_new(struct metrics *metrics, struct wait_stacks **ret)
{
	struct wait_stacks *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->read = metrics_counter(metrics, "hearth_asleep_stacks_read_total", NULL,
				  "Stacks of threads asleep that were read from their memory.");
	w->gone = metrics_counter(
		metrics, "hearth_asleep_threads_gone_on_total", NULL,
		"Threads that woke while their stacks were read: of these only the innermost frame is told.");
	*ret = w;
	return 0;
}

static void *drop(void *arg, void *value)
{
	struct wait_stacks *w = arg;
	struct wait_stack *stack = value;

	w->kept_bytes -= sizeof(*stack) + stack->count * sizeof(*stack->frames);
	free(stack);
	return NULL;
}

void wait_stacks_free(struct wait_stacks *w)
{
	if (!w)
		return;
	map_sweep(&w->kept, drop, w);
	map_fini(&w->kept);
	buf_fini(&w->memory);
	free(w);
}

size_t wait_stacks_memory_bytes(const struct wait_stacks *w)
{
	return sizeof(*w) + map_memory_bytes(&w->kept) + w->kept_bytes + w->memory.cap;
}

/* --- kernel stacks --- */

static void trim_wait(struct pending_sample *s)
{
	const struct code_range *scheduler = &kernel_ranges()->scheduler;
	uint32_t most = s->kernel_cnt < INTERRUPT_FRAMES ? s->kernel_cnt : INTERRUPT_FRAMES, i = 0;

	while (i < most && !code_range_has(scheduler, s->kernel[i]))
		i++;
	if (i == most && !scheduler->end)
		return;
	/* A thread that has never run did not go to sleep either: only where it begins is its own. */
	if (i == most)
		i = s->kernel_cnt;
	while (i < s->kernel_cnt && code_range_has(scheduler, s->kernel[i]))
		i++;
	if (i && i == s->kernel_cnt)
		i--;
	if (i) {
		s->kernel += i;
		s->kernel_cnt -= i;
	}
}

/* The place behind the first frame where an interrupt came in; 0: there is none. */
static uint32_t find_interrupt(const struct pending_sample *s)
{
	for (uint32_t i = 0; i < s->kernel_cnt; i++)
		if (kernel_ranges_is_irq(kernel_ranges(), s->kernel[i] - 1))
			return i + 1;
	return 0;
}

static void trim_waker(struct pending_sample *s)
{
	const struct code_range *waking = &kernel_ranges()->waking;
	uint32_t ours;

	s->is_irq = s->record->flags & SAMPLE_IRQ;
	ours = s->is_irq ? 0 : find_interrupt(s);
	for (uint32_t i = ours; i < s->kernel_cnt && i < ours + INTERRUPT_FRAMES; i++)
		if (code_range_has(waking, s->kernel[i] - 1))
			ours = i;
	s->kernel += ours;
	s->kernel_cnt -= ours;
}

void wait_stacks_mend(struct pending_sample *s)
{
	if (s->wakes)
		trim_waker(s);
	else if (!(s->record->flags & SAMPLE_ASLEEP))
		trim_wait(s);
	else if (s->record->end != END_USER_RULE)
		s->regs = NULL;
}

/* --- stacks that are kept --- */

static void *drop_old(void *arg, void *value)
{
	struct wait_stacks *w = arg;
	struct wait_stack *stack = value;

	return stack->turn == w->turn ? stack : drop(arg, value);
}

void wait_stacks_begin(struct wait_stacks *w)
{
	map_sweep(&w->kept, drop_old, w);
	w->turn++;
}

const struct wait_stack *wait_stacks_find(struct wait_stacks *w, const struct pending_sample *s, uint32_t asid)
{
	struct wait_stack *stack = map_get(&w->kept, s->record->tid);

	if (!stack || stack->since_ns != s->wait->since_ns || stack->asid != asid)
		return NULL;
	stack->turn = w->turn;
	return stack;
}

void wait_stacks_keep(struct wait_stacks *w, const struct pending_sample *s, uint32_t asid, const uint64_t *frames,
		      uint32_t count, enum walk_end end)
{
	struct wait_stack *before = map_del(&w->kept, s->record->tid), *stack;
	size_t bytes = sizeof(*stack) + count * sizeof(*frames);

	if (before)
		(void)drop(w, before);
	stack = w->kept_bytes + bytes > KEPT_BYTES ? NULL : malloc(bytes);
	if (!stack || map_put(&w->kept, s->record->tid, stack)) {
		free(stack);
		return;
	}
	*stack = (struct wait_stack){
		.since_ns = s->wait->since_ns, .asid = asid, .turn = w->turn, .end = end, .count = count
	};
	memcpy(stack->frames, frames, count * sizeof(*frames));
	w->kept_bytes += bytes;
}

/* --- stacks in memory --- */

/* Does the thread sleep where @regs say? The text of /proc/TID/syscall ends with its sp and pc, or says "running". */
static bool sleeps_there(char *text, const struct sample_regs *regs)
{
	char *pc = strrchr(text, ' '), *sp;

	if (!strcmp(text, "?")) /* a kernel that does not tell: it is believed */
		return true;
	if (!pc)
		return false;
	*pc++ = '\0';
	sp = strrchr(text, ' ');
	return sp && strtoull(sp, NULL, 16) == regs->regs[REG_SP] && strtoull(pc, NULL, 16) == regs->regs[REG_PC];
}

bool wait_stacks_read(struct wait_stacks *w, const struct pending_sample *from, bool more, struct asleep_sample *ret)
{
	uint64_t addr = from->regs->regs[REG_SP] - RED_ZONE_BYTES;
	size_t wanted = more ? MOST_BYTES : FEW_BYTES, n;
	char syscall[PROC_SYSCALL_BYTES];
	int error;

	ret->sample = *from;
	ret->record = *from->record;
	ret->sample.record = &ret->record;
	ret->record.flags |= SAMPLE_LIMITED; /* the walk learns nothing from what is not there */
	error = proc_read_stack(from->record->pid, from->record->tid, addr, wanted, &w->memory, syscall);
	if (error == -EBUSY || error == -ECHILD || error == -ENOMEM) /* not read; counted there */
		return false;
	metric_add(w->read, 1);
	if (!sleeps_there(syscall, from->regs)) {
		metric_add(w->gone, 1);
		return false;
	}
	n = w->memory.len;
	ret->area = (struct stack_area){ addr, n, w->memory.data };
	ret->sample.areas = &ret->area;
	ret->sample.area_cnt = n > 0;
	ret->record.flags = from->record->flags | (n == wanted ? SAMPLE_CUT : 0);
	return true;
}
