/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the agent, and the message of an agent that cannot start. Everything inside the agent may include this. */
#ifndef HEARTH_AGENT_CONFIG_H
#define HEARTH_AGENT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Says whether functions are named, and how well. */
enum symbols_wanted {
	SYMBOLS_FULL,	/* with inlined calls, files and lines */
	SYMBOLS_TABLES, /* names out of tables of symbols */
	SYMBOLS_OFF,
};

/* Selects the samples. Filters of different kinds must all let a sample pass; one matching value of a kind is enough, and a
 * kind without values is off. Everything is borrowed. */
struct agent_filter {
	const uint32_t *pids; /* these processes (and their later children) ... */
	size_t pid_count;
	bool follow_pids_only; /* filter by pid even when @pids is empty: agent_add_pid() will add some */
	bool no_inherit;       /* children of @pids are not followed */
	const uint32_t *tids;  /* ... and these threads */
	size_t tid_count;
	const uint32_t *cpus;
	size_t cpu_count;
	const uint32_t *uids;
	size_t uid_count;
	const char *const *cgroups; /* control groups of version 2, with the groups below them */
	size_t cgroup_count;
	const char *const *containers; /* ids, or their beginnings; one kind with @cgroups */
	size_t container_count;
	const char *const *comms; /* shell patterns for names of threads, or of their processes */
	size_t comm_count;
	uint64_t min_age_ns; /* name of a process */
	bool idle;	     /* idle CPUs too */
	bool no_kernel;	     /* no kernel frames and no kernel threads */
	bool kernel_only;    /* only time in the kernel */
};

/* agent_config.off_cpu_ns */
#define OFF_CPU_USUAL UINT64_MAX

struct session_kinds;
struct debuginfod;
struct readers;

struct agent_config {
	unsigned freq_hz; /* samples per second and CPU; 0: as many as the kernel allows, AGENT_MAX_FREQ at most */
	uint64_t period; /* events from sample to sample, instead of @freq_hz when not 0; nanoseconds where the event is time
			  */
	const char *event; /* cpu-clock, task-clock, cycles, instructions, ... as perf names them; NULL: cpu-clock, or none
			    * where there are probes */
	const char *const *probes; /* uprobe:FILE:FUNCTION and its like (agent/probe/) */
	size_t probe_count;
	/* Time off the CPUs is sampled as well: one sample for so much of it, longer waits alone (bpf/draw.h); 0: it is
	 * not; OFF_CPU_USUAL: the time between two samples on a CPU. */
	uint64_t off_cpu_ns;
	uint64_t memory_bytes;	/* where memory is first touched is sampled as well, once each so many bytes; 0: it is not */
	uint64_t malloc_bytes;	/* allocations of the processes of @filter are sampled, once each so many bytes; 0: they are
				   not */
	bool malloc_of_command; /* and of one that agent_config_add_malloc() will name */
	bool heap;		/* the heaps of Go programs are read as well */
	bool heap_at_end;	/* what of them is in use is told once, at the end, not in each report */
	bool wakers;		/* who ended each wait, too; with off_cpu_ns */
	struct session_kinds *kinds; /* of these, found by agent_config_settle() */
	struct agent_filter filter;
	uint64_t report_interval_ns;
	double report_jitter; /* 0.2: each interval is drawn from +-20 % */
	/*
	 * Attributes of each process's resource, beside those that hearth finds: variables of its environment; and, for
	 * processes that do not say otherwise, a list in the form of OTEL_RESOURCE_ATTRIBUTES and a service's name. NULL:
	 * none.
	 */
	const char *const *env_vars;
	size_t env_var_count;
	const char *resource_attributes, *service_name;
	unsigned stack_chunks;	 /* 4 KB chunks of stack a missing sample may carry; 64 when 0 */
	size_t ring_bytes;	 /* a ring buffer; chosen by the number of CPUs when 0 */
	unsigned map_scale;	 /* how many times the caches are doubled, 0 to 8 */
	unsigned bpf_log_level;	 /* the verifier's log: 0 none, 1 brief, 2 all */
	bool error_frames;	 /* a frame at the root of each truncated stack says why */
	bool interpreter_frames; /* an interpreter's own functions stay between frames of scripts */
	uint32_t runtimes_off;	 /* RUNTIME_BIT of each runtime that is not wanted (agent/runtime/choice.h) */
	bool no_version_check;	 /* start although the kernel is older than all that were tried */
	bool unsafe_kernel;	 /* start although the kernel has the copy_from_user_nofault bug */
	enum symbols_wanted symbols;
	const char *symbol_cache;    /* folder of indexes of names; NULL: the default one */
	uint64_t symbol_cache_bytes; /* bytes that the indexes may take */
	struct debuginfod *servers;  /* asked for debug files, the agent's to free; NULL: those of DEBUGINFOD_URLS */
	struct readers *readers;     /* forked by agent_prepare(); NULL: agent_new() does so */
	bool no_helper;		     /* read other programs' files in this process */
	bool no_bpf_loop;	     /* use the tail-call form of the walk also where bpf_loop exists (tests) */
};

/* Says in a person's words why starting failed; one or two sentences, no newline. */
struct agent_error {
	char message[512];
};

enum { AGENT_MAX_FREQ = 10000 };

#endif
