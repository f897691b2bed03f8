/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearth's walk of a stop: as the kernel does it (kernel.c), and where that misses, as late unwinding does it, which tells
 * the kernel what it lacked. Now and then a walk that did not miss goes through late unwinding too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/walk/late_walk.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "tests/judge/judge.h"

enum { LATE_EVERY = 8 }; /* walks that go through late unwinding whatever the kernel found */

struct hearth {
	pid_t pid;
	struct memory *memory;
	struct metrics *metrics;
	struct files *files;
	struct processes *processes;
	struct process *process;
	struct late *late;
	struct pending *pending;
	uint64_t walks;
	struct chain *chain; /* being filled */
};

static const char *const end_names[] = {
#define X(name, text, has_stack) [END_##name] = text,
	WALK_ENDS(X)
#undef X
};

struct hearth *hearth_new(pid_t pid, struct memory *m)
{
	struct hearth *h = calloc(1, sizeof(*h));
	struct elf_service *service;
	struct file_opener *opener;

	if (!h)
		return NULL;
	kernel_reset();
	h->pid = pid;
	h->memory = m;
	h->metrics = metrics_new();
	if (!h->metrics || elf_service_new(&service) || file_opener_new(h->metrics, &opener) ||
	    files_new(service, opener, h->metrics, &h->files) || processes_new(h->files, &h->processes) ||
	    late_new(h->processes, h->files, NULL, NULL, h->metrics, &h->late) || pending_new(1, &h->pending))
		abort(); /* no memory: nothing to be done in a test */
	h->process = processes_find(h->processes, (uint32_t)pid);
	return h;
}

void hearth_free(struct hearth *h)
{
	if (!h)
		return;
	pending_free(h->pending);
	late_free(h->late);
	processes_free(h->processes);
	files_free(h->files);
	metrics_free(h->metrics);
	free(h);
}

void hearth_reread(struct hearth *h)
{
	(void)process_reread(h->processes, h->process);
}

uint64_t hearth_mismatches(const struct hearth *h)
{
	return metrics_counter(h->metrics, "hearth_late_mismatches_total", NULL, "")->value;
}

const char *hearth_module(const struct hearth *h, uint64_t addr)
{
	const struct mapping *m = address_space_find(h->process->as, addr);
	const char *slash = m && m->file && m->file->path ? strrchr(m->file->path, '/') : NULL;

	return slash ? slash + 1 : m && m->file && m->file->path ? m->file->path : m ? "[anonymous]" : "?";
}

static void on_record(void *arg, const struct record *record)
{
	struct hearth *h = arg;

	if (pending_add(h->pending, record))
		abort();
}

/* hearth has a signal's trampoline as exact, since nobody called it; the others have it as a return address. */
static void call_trampolines(struct chain *chain)
{
	/* Two exact ones at the beginning: a stop in the trampoline itself, unless what it interrupted follows. */
	bool is_behind_one = chain->count > 1 && chain->pcs[1] & FRAME_EXACT &&
			     !(chain->count > 2 && chain->pcs[2] & FRAME_EXACT);

	for (uint32_t i = 1; i < chain->count; i++) {
		bool is_exact = chain->pcs[i] & FRAME_EXACT;

		if (is_exact && !is_behind_one)
			chain->pcs[i] &= ~FRAME_EXACT;
		is_behind_one = is_exact && !is_behind_one;
	}
}

static bool on_sample(void *arg, const struct pending_sample *sample)
{
	struct hearth *h = arg;
	struct chain *chain = h->chain;
	const struct late_result *result = sample->regs ? late_walk(h->late, h->process, sample) : NULL;

	chain->count = result ? result->count : sample->user_cnt;
	chain->end = end_names[result ? result->end : sample->record->end];
	memcpy(chain->pcs, result ? result->frames : sample->user, chain->count * sizeof(*chain->pcs));
	call_trampolines(chain);
	return false;
}

void hearth_walk(struct hearth *h, struct kernel_thread *thread, struct chain *chain)
{
	static const struct pending_ops ops = { .sample = on_sample };

	h->chain = chain;
	thread->asid = h->process->as->asid;
	kernel_sample(h->memory, thread, ++h->walks % LATE_EVERY == 0, on_record, h);
	pending_release(h->pending, UINT64_MAX, &ops, h);
}
