/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime knows the names of code that a program makes while it runs, or of a script that it interprets. Each is a const
 * struct in the table RUNTIMES; all others ask through agent/runtime/runtimes.h. Agent's thread.
 */
#ifndef HEARTH_AGENT_RUNTIME_RUNTIME_H
#define HEARTH_AGENT_RUNTIME_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/names/names.h"
#include "agent/process/processes.h"
#include "agent/samples/traces.h"

struct metrics;

/* The name of a frame in such code. */
struct runtime_name {
	struct frame_line line; /* strings live until the next find() or update() */
	const char *type;	/* profile.frame.type, static; NULL: that of the frame's kind */
};

/* The things that a runtime is made from. */
struct runtime_context {
	struct files *files;	 /* borrowed */
	struct metrics *metrics; /* borrowed */
	uint32_t slot;		 /* the runtime's place in process.slots, which it alone fills */
};

/* The first argument of all operations is the object that create() made. */
struct runtime {
	uint32_t id;		 /* its number in agent/runtime/choice.h, by which users choose it */
	const char *memory_name; /* name of its memory in the metrics */

	/* 0 or -ENOMEM. */
	int (*create)(const struct runtime_context *context, void **ret);
	/* Called when no process is left. */
	void (*destroy)(void *runtime);

	/* @p has mapped @file as code, which its /proc/@task/maps calls @path. */
	void (*map)(void *runtime, struct process *p, struct file *file, const char *path, uint32_t task);
	/* A sample of @p has a frame of NAMER_RUNTIME. */
	void (*see)(void *runtime, struct process *p);

	/* An interval ends: reads the names that the processes of @t have by now, for a bounded time. Runs @hook (or
	 * NULL) now and then. */
	void (*update)(void *runtime, const struct traces *t, const struct wait_hook *hook);
	/* Finds the code that @p ran at @addr at the time @time_ns (CLOCK_MONOTONIC; UINT64_MAX: the latest). Returns
	 * whether it has a name. */
	bool (*find)(void *runtime, const struct process *p, uint64_t addr, uint64_t time_ns, struct runtime_name *ret);
	/* Has an address of @p had several names of late? */
	bool (*varies)(void *runtime, const struct process *p);
	/* The interval of @t, which ended at @end_ns (CLOCK_MONOTONIC), has its names. */
	void (*settle)(void *runtime, const struct traces *t, uint64_t end_ns);

	size_t (*memory_bytes)(const void *runtime);
};

/* All runtimes. The first that has a name for an address wins. */
#define RUNTIMES(RUNTIME) \
	RUNTIME(runtime_perf_map) /* perf maps and jitdumps, by which programs name their code themselves */

#define RUNTIME_DECLARED(name) extern const struct runtime name;
RUNTIMES(RUNTIME_DECLARED)
#undef RUNTIME_DECLARED

#endif
