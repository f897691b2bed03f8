/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel half as the agent sees it: loads the BPF programs, opens a sampling event on each CPU, reads the rings, writes
 * the caches. Only its files, agent/kernel/sampler*.c and agent/kind/, know the skeleton. Agent's thread.
 */
#ifndef HEARTH_AGENT_KERNEL_SAMPLER_H
#define HEARTH_AGENT_KERNEL_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/kernel/perf_event.h"
#include "bpf/event.h"

struct alloc_set;
struct cpu_event;
struct probe_set;
struct sampled;
struct sampled_kind;
struct sampler;

/* The operations that take samples of a kind (agent/kind/). One that is NULL has nothing to do. */
struct sampled_ops {
	uint32_t levels; /* of programs that may interrupt those of other kinds (bpf/levels.bpf.h) */
	bool has_own_programs;
	/* How many samples a second and CPU to make room for. NULL: nobody knows. */
	unsigned (*expected_hz)(const struct sampled *what);
	/* Sets the program's type and options, between open and load. May be NULL. */
	void (*configure)(struct sampler *s, const struct sampled_kind *k);
	/* Loads programs of its own, when the sampler's are loaded. Where the kind can be done without, an error is told
	 * once, and it has no samples then; else -errno with @err filled. */
	int (*load)(struct sampler *s, const struct sampled_kind *k, struct agent_error *err);
	/* Opens the event that runs the program on @e's CPU, turned off. 0 or -errno. May be NULL. */
	int (*add_cpu)(struct sampler *s, struct sampled_kind *k, struct cpu_event *e);
	/* Turns the event on or off; @e->since_ns says whether that was done. */
	void (*enable_cpu)(struct sampler *s, struct sampled_kind *k, struct cpu_event *e, bool on);
	/* Does the same for all CPUs at once, before enable_cpu(). 0 or -errno. May be NULL. */
	int (*enable)(struct sampler *s, struct sampled_kind *k, bool on);
	/* See sampler_not_sampled(). */
	uint64_t (*not_sampled)(struct sampler *s, struct sampled_kind *k);
};

/* An event to sample, and how often. */
struct sampled {
	const struct sampled_ops *ops;
	struct perf_event_attr attr;
	const struct probe_set *probes; /* of probes; borrowed */
	struct alloc_set *allocs;	/* of malloc; borrowed */
	unsigned freq_hz;		/* samples a second and CPU ... */
	uint64_t period; /* ... or, when not 0, events from sample to sample; nanoseconds where the event is time */
};

/* Raises this process's limits of locked memory and of open files, as far as it may. */
void sampler_raise_limits(void);

/* Opens and loads the programs; nothing is sampled yet. The kinds are the @count of @kinds, MAX_KINDS at most (borrowed).
 * Pids are those of the pid namespace @pid_ns (its inode number; 0: the first one). 0 or -errno with @err filled. */
int sampler_new(const struct agent_config *config, const struct sampled *const *kinds, uint32_t count, uint32_t pid_ns,
		struct sampler **ret, struct agent_error *err);
void sampler_free(struct sampler *s);

/* Opens the event on @cpu, and enables it at once when sampling has started. 0, -EEXIST, -ENODEV (offline), -errno. */
int sampler_add_cpu(struct sampler *s, uint32_t cpu);
void sampler_remove_cpu(struct sampler *s, uint32_t cpu);

/* The process @parent has made @child; @pid has become another program, has mapped code of the file @path as its root has
 * it, has ended. Where allocations of @parent are sampled, those of @child are from now on, too, of whichever allocator. */
void sampler_process_began(struct sampler *s, uint32_t parent, uint32_t child);
void sampler_process_changed(struct sampler *s, uint32_t pid);
void sampler_process_mapped(struct sampler *s, uint32_t pid, const char *path);
void sampler_process_ended(struct sampler *s, uint32_t pid);

/* Enables or disables all events. 0 or -errno. */
int sampler_enable(struct sampler *s, bool on);

/* A descriptor that is readable when the kernel thinks the rings should be read. */
int sampler_fd(const struct sampler *s);

/* Hands out every record of the rings (borrowed during the call). */
int sampler_drain(struct sampler *s, void (*fn)(void *arg, const struct record *record), void *arg);

/* To be called at the end of an interval: rings that have long held little become smaller at the next sampler_drain(). */
void sampler_rings_settle(struct sampler *s);

/* Looks whether another program notes spans by thread, as OpenTelemetry's eBPF instrumentation does: samples have them from
 * now on, or no longer. To be called before sampling starts, and at the end of an interval. Says what changes. */
void sampler_look_for_spans(struct sampler *s);

/* Hands out a sample of each thread that is off its CPU for long, with what has passed of that: records with SAMPLE_ASLEEP
 * (borrowed during the call). 0 or -errno. */
int sampler_tell_asleep(struct sampler *s, void (*fn)(void *arg, const struct record *record), void *arg);

/* How many threads are not followed while they are off their CPUs because there was no room. */
uint64_t sampler_threads_refused(const struct sampler *s);

/* How many records made no sense and were not handed out. */
uint64_t sampler_malformed(const struct sampler *s);

/* Sums over CPUs, and over kinds. */
void sampler_counters(const struct sampler *s, uint64_t counters[COUNTER_MAX]);

/* A number of samples, and the sum of their values where their kind has any. */
struct sample_sum {
	uint64_t samples, value;
};

/* What the kernel half counts of one kind (sums over CPUs). */
struct kind_counts {
	struct sample_sum taken;
	struct sample_sum lost[KERNEL_LOSS_MAX]; /* of these */
};

void sampler_kind_counters(const struct sampler *s, uint32_t kind, struct kind_counts *ret);

/* An estimate of the samples that time and frequency imply up to now and the kernel never gave, without those of idle CPUs,
 * which nobody asked for. For a tracepoint, the samples of events that the kernel left out. */
uint64_t sampler_not_sampled(struct sampler *s);

/* The caches. Each returns 0 or -errno; sequence numbers are filled in here. */
int sampler_set_proc(struct sampler *s, struct proc_value *value);
int sampler_forget_proc(struct sampler *s, uint32_t pid);
int sampler_set_mapping(struct sampler *s, struct mapping_value *value);
int sampler_set_block(struct sampler *s, struct unwind_block *block);
/* Takes block number @block of @file out, all parts of it. */
void sampler_forget_block(struct sampler *s, uint32_t file, uint32_t block);
/* Says which words go with frames of class number @number (1 to CAPTURE_CLASSES - 1). */
int sampler_set_capture(struct sampler *s, uint32_t number, const struct capture_class *what);
/* Loads the runtime's programs first, when they are not loaded yet; an error of that is logged once. -EOPNOTSUPP: the
 * runtime is not wanted (agent_config.runtimes_off). One that makes code (CHAIN_OF_CODE) has no programs. */
int sampler_set_chain(struct sampler *s, struct chain_state *state);
int sampler_set_program(struct sampler *s, const struct program_key *key, const struct program_value *value);
/* Could the programs of runtime @id, below RUNTIME_ID_MAX, not be loaded? */
bool sampler_chain_failed(const struct sampler *s, uint32_t id);

/*
 * The pid filter. Entries of followed children leave by themselves (on_free_task): the pid may be the next child's already.
 */
int sampler_filter_add(struct sampler *s, uint32_t pid);
void sampler_filter_remove(struct sampler *s, uint32_t pid);
/* Is @pid chosen by it, or a child that is followed? */
bool sampler_filter_has(const struct sampler *s, uint32_t pid);

/* Kernel memory of all the sampler's maps, as the kernel counts it. */
uint64_t sampler_map_bytes(const struct sampler *s);

/* The form of the walk: "bpf_loop" or "tail calls". */
const char *sampler_form(const struct sampler *s);
uint32_t sampler_rings(const struct sampler *s);
uint64_t sampler_rings_bytes(const struct sampler *s); /* of all together */
uint32_t sampler_cpus(const struct sampler *s);

#endif
