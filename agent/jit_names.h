/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that programs make while they run, from what they say of it themselves: perf maps (/tmp/perf-PID.map) and
 * jitdumps. Opened at a process's first stack with anonymous code and held, so that the names survive its exit; read at the
 * end of each interval, for a bounded time, off the sampling path. Agent's thread.
 */
#ifndef HEARTH_AGENT_JIT_NAMES_H
#define HEARTH_AGENT_JIT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/names.h"
#include "agent/processes.h"
#include "agent/traces.h"

struct jit_names;
struct metrics;

/* What bounds it all. Beyond these, code stays without a name and a counter says so. */
enum {
	JIT_NAMES_MAX_PROCESSES = 1024,
	JIT_NAMES_MAX_BYTES = 128 << 20, /* of memory, all processes together */
	JIT_NAMES_READ_MS = 100,	 /* of reading at the end of an interval; the rest is read at the next one's */
};

struct jit_name {
	struct frame_line line; /* strings live until the next jit_names_find or jit_names_update */
	bool is_v8;		/* JavaScript in V8, for certain */
};

int jit_names_new(struct files *files, struct metrics *metrics, struct jit_names **ret);
/* To be called when no process is left. */
void jit_names_free(struct jit_names *j);

/* @p ran anonymous code just now: opens what names it, if there is something. */
void jit_names_see(struct jit_names *j, struct process *p);

/* Reads what the processes of @t have announced since the last time. @on_wait (or NULL) is called now and then. */
void jit_names_update(struct jit_names *j, const struct traces *t, void (*on_wait)(void *arg), void *arg);

/* What @p ran at @addr at the moment @time_ns (UINT64_MAX: the latest). Returns whether that has a name. */
bool jit_names_find(struct jit_names *j, const struct process *p, uint64_t addr, uint64_t time_ns, struct jit_name *ret);

/* Has @p used memory of code again a moment ago, so that an address has several names? */
bool jit_names_vary(const struct process *p);

/* The interval of @t, which ended at @end_ns, has its names. */
void jit_names_settle(struct jit_names *j, const struct traces *t, uint64_t end_ns);

/* Bytes of memory that the names take. */
size_t jit_names_memory_bytes(const struct jit_names *j);

/* What a process keeps of it. */
struct jit;
void jit_free(struct jit *jit);

#endif
