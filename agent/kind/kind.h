/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kind of profile: the meaning of a sample, and the way to make the kernel take it. Each kind is one const struct in the
 * table KINDS. A session has a list of kinds; samples carry their place in it. Agent's thread.
 */
#ifndef HEARTH_AGENT_KIND_KIND_H
#define HEARTH_AGENT_KIND_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/kernel/sampler.h"
#include "proto/profiles_builder.h"

struct agent_config;
struct agent_error;
struct buf;
struct session_kind;

enum { DRAW_USUAL_NS = 50000000 }; /* --off-cpu without a time, where there is no frequency */

enum { KIND_UNKNOWN_HZ = 1000 }; /* samples a second to make room for, where nobody knows how often an event comes */

struct kind {
	/* Does the event of @attr belong to this kind? */
	bool (*has)(const struct perf_event_attr *attr);
	/* Fills in the frequency and the period if the configuration leaves them open. */
	void (*settle)(struct sampled *what);
	/* Fills *@spec with types, units and period of the kind's profiles. */
	void (*describe)(const struct session_kind *k, struct builder_profile_spec *spec);
	/* "20 Hz": how often samples are taken. NULL: the kind before says it. */
	void (*print)(const struct session_kind *k, struct buf *out);
	struct sampled_ops events; /* the operations that turn it on */
};

/* All kinds. The first that an event belongs to takes it. */
#define KINDS(KIND)                                                                                       \
	KIND(kind_tracepoint)	 /* a sample each so-many-th time that the kernel passes a tracepoint */  \
	KIND(kind_cpu)		 /* time on a CPU by a timer, and other perf events, by their counters */ \
	KIND(kind_off_cpu)	 /* time until a thread is woken, off_cpu */                              \
	KIND(kind_runnable)	 /* time from then on until it has a CPU */                               \
	KIND(kind_waker)	 /* sleeps by who ended them, waker */                                    \
	KIND(kind_contention)	 /* how often threads waited for locks, contentions */                    \
	KIND(kind_probe)	 /* calls of functions, events */                                         \
	KIND(kind_memory)	 /* memory where it is first touched, memory */                           \
	KIND(kind_malloc)	 /* allocations of one process, malloc */                                 \
	KIND(kind_alloc_objects) /* heaps of Go programs; the four follow each other */                   \
	KIND(kind_alloc_space)                                                                            \
	KIND(kind_inuse_objects)                                                                          \
	KIND(kind_inuse_space)

#define KIND_DECLARED(name) extern const struct kind name;
KINDS(KIND_DECLARED)
#undef KIND_DECLARED

/* A kind as a session has it. */
struct session_kind {
	const struct kind *kind;
	const char *event; /* the event by perf's name; borrowed */
	struct sampled what;
};

struct session_kinds {
	struct session_kind list[MAX_KINDS];
	uint32_t count;
	struct probe_set *probes; /* owned; NULL: there are none */
	struct alloc_set *allocs; /* the same */
};

/* Finds the kinds that @config asks for: the kind of its event, which stays borrowed, those of waits, of memory and
 * heaps, and of probes.
 * 0, or -errno with @err filled. kinds_fini() either way. */
int kinds_choose(const struct agent_config *config, struct session_kinds *ret, struct agent_error *err);
void kinds_fini(struct session_kinds *kinds);

/* For kinds that no event of perf's is of, which kinds_choose() adds: their has. */
bool kind_has_no_event(const struct perf_event_attr *attr);

/* For kinds whose period is settled by who adds them. */
void kind_settle_nothing(struct sampled *what);

/* "20 Hz" or "a sample each event", as the kinds of perf events print themselves. */
void kind_print_event(const struct session_kind *k, struct buf *out);

/* "20 Hz", "a sample each event", ... of each kind, comma separated. */
void kinds_print(const struct session_kinds *kinds, struct buf *out);

/* Tells the programs of calls and tracepoints whether a CPU is sampled: kinds whose events have no descriptor of a CPU. */
void kind_enable_cpu(struct sampler *s, struct sampled_kind *k, struct cpu_event *e, bool on);

#endif
