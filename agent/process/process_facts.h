/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about a process that /proc has and no record of the kernel, as enrichers tell them (agent/process/enrich.h). They
 * are read once for each program, when its first sample arrives and not when that is applied: the process may be gone by
 * then. Agent's thread.
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
	uint64_t read_ns;	      /* CLOCK_MONOTONIC, before it was read */
	bool is_whole;		      /* all files could be read */
	struct attributes attributes; /* from all enrichers */
};

/* Identifies a program of a process, by the values in its samples. */
struct program_id {
	uint32_t pid;
	uint64_t start_boottime_ns;
	uint64_t exec_id;
};

struct metrics;
struct facts_reader;

/* @variables (borrowed) are told as process.environment_variable.NAME. */
int facts_reader_new(const char *const *variables, size_t count, struct metrics *metrics, struct facts_reader **ret);
void facts_reader_free(struct facts_reader *r);

/* Reads the facts for a sample of @id that arrived, if they are not read yet. For a sample without an identity (taken while
 * the process ended) all of @id but the pid is 0. */
void facts_reader_meet(struct facts_reader *r, const struct program_id *id);

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
