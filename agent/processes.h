/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes as the side band and /proc tell them: identity, name, executable, address space. The state is that of the
 * moment whose records were last applied, because records and samples are applied in the order of their times.
 */
#ifndef HEARTH_AGENT_PROCESSES_H
#define HEARTH_AGENT_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/address_space.h"
#include "agent/process_facts.h"
#include "agent/side_band.h"
#include "bpf/event.h"
#include "proto/profiles.h"

struct process {
	uint32_t refs;
	uint32_t pid;
	uint32_t own_pid;	    /* in its own pid namespace, as a sample said; 0: that is the host's */
	bool is_known;		    /* the kernel's procs map holds it (identity below) */
	bool has_exited;	    /* its leader's exit was seen */
	bool expects_exec_id;	    /* not known yet, but exec_id must be what it will be: the kernel counts execs */
	uint64_t start_boottime_ns; /* as a missing sample said */
	uint64_t exec_id;
	struct address_space *as;
	char comm[COMM_BYTES];
	char *exe_path;		     /* NULL: not known yet */
	struct process_facts *facts; /* a reference; NULL: nothing is known */
	bool has_own_facts;	     /* @facts were read for it, or it was gone before; else they are those of its parent */
	struct jit *jit;   /* what names the code it makes (agent/jit_names.h); NULL: it was not met in such code */
	struct file *dump; /* its jitdump, a reference; NULL: it announced none */
};

struct processes;
struct sampler;

int processes_new(struct files *files, struct processes **ret);
void processes_free(struct processes *ps);

/* Reads every process of /proc that is not known yet. 0 or -errno. */
int processes_scan(struct processes *ps);

/*
 * The process @pid, read from /proc if it is not known; NULL only for want of memory. Not a reference.
 */
struct process *processes_find(struct processes *ps, uint32_t pid);

/* The process @pid if it is known. Not a reference. */
struct process *processes_peek(struct processes *ps, uint32_t pid);

/* Forgets what is known of @pid and reads it from /proc as a new process. NULL for want of memory. */
struct process *processes_renew(struct processes *ps, uint32_t pid);

/* What people call it: the executable's base name, or where that is not known the comm. Lives as long as @p. */
struct str process_name(const struct process *p);

struct process *process_get(struct process *p);
void process_put(struct process *p);

/* Applies one record. *@changed_ret is the process whose asid is another now (the kernel's entry must follow), or NULL. */
int processes_apply(struct processes *ps, const struct side_band_record *record, struct process **changed_ret);

/*
 * Tells the kernel which address space @p has now, if it knows @p. It is not told for a second after a mapping replaced
 * another: who opens and closes libraries does it again, and until a replacement is heard of the kernel would walk by what
 * was there before. Samples it does not know the process of are walked late, exactly.
 */
void process_publish(struct process *p, struct sampler *sampler);

/* Reads the mappings of @p again, because of an address that no mapping holds. What is known stays: /proc speaks of now, and
 * the sample may be older than what replaced a mapping since. 1 when the asid changed, 0, -errno. */
int process_reread(struct processes *ps, struct process *p);

/* Reads all processes again: records were lost. @fn is called for each whose asid changed. */
void processes_reread_all(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg);

/* Forgets processes that have exited and are gone from /proc; now and then also those whose exit we did not hear of. @fn is
 * called for each first. */
void processes_expire(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg);

/* Bytes of memory held; of what processes share each has its part. */
size_t processes_memory_bytes(const struct processes *ps);

uint32_t processes_count(const struct processes *ps);

#endif
