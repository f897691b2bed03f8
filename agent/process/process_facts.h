/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about a process, as enrichers tell them (agent/process/enrich.h). They are found once for each program, when its
 * first sample arrives and not when that is applied: in the sample, and in /proc if that does not have them all, as the
 * process may be gone soon. Agent's thread.
 */
#ifndef HEARTH_AGENT_PROCESS_PROCESS_FACTS_H
#define HEARTH_AGENT_PROCESS_PROCESS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/process/attributes.h"

/* The facts about one program, unchanging and reference counted: children get them from their parents. */
struct process_facts {
	uint32_t refs;
	uint64_t read_ns;	      /* CLOCK_MONOTONIC, before the environment was read */
	bool is_whole;		      /* all sources could be read */
	struct attributes attributes; /* from all enrichers */
};

/* Identifies a program of a process, by the values in its samples. */
struct program_id {
	uint32_t pid;
	uint64_t start_boottime_ns;
	uint64_t exec_id;
};

/* The facts of a program that its sample has; borrowed. */
struct program_told {
	uint64_t time_ns;	 /* of the sample */
	uint64_t cgroup;	 /* id of the control group of version 2; 0: not told */
	const char *environment; /* NULL: not told */
	size_t environment_bytes;
};

struct metrics;
struct facts_reader;

/* @variables (borrowed) are told as process.environment_variable.NAME. @groups (copied): where control groups of version 2
 * are mounted, "": nowhere. */
int facts_reader_new(const char *const *variables, size_t count, const char *groups, struct metrics *metrics,
		     struct facts_reader **ret);
void facts_reader_free(struct facts_reader *r);

/* Finds the facts for a sample of @id that arrived, if they are not found yet; reads from /proc what is not in @told. For a
 * sample without an identity (taken while the process ended) all of @id but the pid is 0. */
void facts_reader_meet(struct facts_reader *r, const struct program_id *id, const struct program_told *told);

/*
 * Hands out the facts that were read for @id, once: a reference. NULL: nothing was read, or the process was gone too soon.
 */
struct process_facts *facts_reader_take(struct facts_reader *r, const struct program_id *id);

/* The facts that were taken turned out to be another program's: counts the process as gone. */
void facts_reader_count_mistaken(struct facts_reader *r);

/* Forgets facts that were not taken since the call before this one: their samples were lost. */
void facts_reader_settle(struct facts_reader *r);

struct process_facts *process_facts_get(struct process_facts *f);
void process_facts_put(struct process_facts *f);

size_t process_facts_memory_bytes(const struct process_facts *f);

#endif
