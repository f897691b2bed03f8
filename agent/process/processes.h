/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes, as known from the side band and /proc: identity, name, executable, address space. The state is that of the
 * moment whose records were last applied, because records and samples are applied in the order of their times.
 */
#ifndef HEARTH_AGENT_PROCESS_PROCESSES_H
#define HEARTH_AGENT_PROCESS_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/objects/objects.h"
#include "agent/process/address_space.h"
#include "agent/process/process_facts.h"
#include "agent/kernel/side_band.h"
#include "base/allowance.h"
#include "base/map.h"
#include "bpf/event.h"
#include "proto/profiles.h"

/* State of a process, kept for a runtime (agent/runtime/runtime.h), which embeds this as its first member. */
struct process_slot {
	void (*free)(struct process_slot *slot);
};

enum { PROCESS_SLOTS = 12 }; /* runtimes at most */

struct process {
	uint32_t refs;
	uint32_t pid;
	uint32_t own_pid;      /* pid in its own pid namespace, by a sample; 0: that namespace is the host's */
	bool is_known;	       /* the kernel's procs map holds it (identity below) */
	bool is_met;	       /* was sampled since processes_reread_met() */
	bool context_is_fresh; /* @context was looked at for this report */
	bool is_outside;       /* stands for all processes without a pid in our /proc; @pid is 0 */
	bool has_exited;       /* its leader has exited */
	bool is_restless;      /* its mappings are not known (restless.h) */
	bool expects_exec_id;  /* the kernel's map lacks it; exec_id must then be as counted here: the kernel counts execs */
	uint64_t start_boottime_ns; /* from a sample that missed */
	uint64_t exec_id;
	struct address_space *as;
	struct {
		uint64_t round;
		size_t bytes;
	} stacks;		  /* that it had in an interval (agent/samples/traces.c) */
	struct allowance reading; /* of its mappings, again and again */
	struct {
		uint64_t since_ns; /* the beginning of a second; 0: none came */
		uint32_t count, before;
	} maps; /* records of mappings in that second, and in the one before */
	char comm[COMM_BYTES];
	char *exe_path;		     /* NULL: not known yet */
	struct process_facts *facts; /* a reference; NULL: nothing is known */
	bool has_own_facts;	     /* @facts were read for it, or it was gone before; else they are its parent's */
	struct map objects;	     /* address and checksum -> struct object *, a reference: functions of scripts */
	struct process_slot *slots[PROCESS_SLOTS]; /* owned; by the runtime's place in its table. NULL: none */
	struct process_slot *context;		   /* owned; what it published about itself (agent/context/). NULL: none */
};

struct processes;
struct sampler;

int processes_new(struct files *files, struct processes **ret);
void processes_free(struct processes *ps);

/* Has @fn called for each mapping of a file as code that /proc or a record shows: @file (borrowed), called @path in the maps
 * of @task. */
void processes_on_map(struct processes *ps,
		      void (*fn)(void *arg, struct process *p, struct file *file, const char *path, uint32_t task),
		      void *arg);

/* Reads all processes of /proc that are not known yet. 0 or -errno. */
int processes_scan(struct processes *ps);

/* Calls @fn for each process that is known. */
void processes_each(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg);

/* Tells the kernel of the runtimes of all known processes, so that the first samples have their frames where the program is
 * enough to find them (chain_states_tell). */
void processes_tell_chains(struct processes *ps, struct sampler *sampler);

/*
 * The process @pid, read from /proc if it is not known; NULL only without memory. This is not a reference.
 */
struct process *processes_find(struct processes *ps, uint32_t pid);

/* Is the process @pid, or what is left of it, in /proc? */
bool process_is_in_proc(uint32_t pid);

/* Has @p ended, with all of its threads? A leader that exits alone leaves its process in /proc. */
static inline bool process_has_ended(const struct process *p)
{
	return p->has_exited && !process_is_in_proc(p->pid);
}

/* The process @pid if it is known. This is not a reference. */
struct process *processes_peek(struct processes *ps, uint32_t pid);

/* Forgets the process @pid and reads it from /proc as a new process. NULL without memory. */
struct process *processes_renew(struct processes *ps, uint32_t pid);

/* The process that stands for all those that our /proc does not have: nothing is known about them. NULL without memory. This
 * is not a reference. */
struct process *processes_outside(struct processes *ps);

/* The name for people: the executable's base name, or the comm if that is not known. The text is valid as long as @p. */
struct str process_name(const struct process *p);

struct process *process_get(struct process *p);
void process_put(struct process *p);

/* Applies one record. *@changed_ret is the process whose asid has changed (the kernel's entry must follow), or NULL. */
int processes_apply(struct processes *ps, const struct side_band_record *record, struct process **changed_ret);

/*
 * Tells the kernel which address space @p has now, if it knows @p. The kernel is not told for a second after a mapping
 * replaced another: programs that open and close libraries do it again, and until we hear of a replacement the kernel walks
 * by the old mapping. Samples of a process that the kernel does not know are walked late, exactly.
 */
void process_publish(struct process *p, struct sampler *sampler);

/* Reads the mappings of @p again, because of an address that no mapping holds. Known mappings stay: /proc shows the present,
 * and the sample may be older than a mapping's replacement. Not more often than base/allowance.h allows. 1 when the asid
 * changed, 0, -errno. */
int process_reread(struct processes *ps, struct process *p);

/* Reads all processes again: records were lost. @fn is called for each whose asid changed. */
void processes_reread_all(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg);

/* Does the same for processes that are marked as met, and removes the marks: no records tell what these processes do. */
void processes_reread_met(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg);

/* Forgets processes that have exited and are gone from /proc; now and then also processes whose exit no record showed. @fn
 * is called for each first. */
void processes_expire(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg);

/* Bytes of memory held; memory that processes share is divided among them. */
size_t processes_memory_bytes(const struct processes *ps);

uint32_t processes_count(const struct processes *ps);

#endif
