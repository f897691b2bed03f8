/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc tells of a process that no record of the kernel does: its container, and what its environment says of the
 * service it is. Read once a program, when its first sample arrives and not when that is applied: it may be gone by then.
 * Agent's thread.
 */
#ifndef HEARTH_AGENT_PROCESS_FACTS_H
#define HEARTH_AGENT_PROCESS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/attributes.h"

/* What was read of one program, unchanging and reference counted: children have it from their parents. */
struct process_facts {
	uint32_t refs;
	uint64_t read_ns; /* CLOCK_MONOTONIC, before it was read */
	bool is_whole;	  /* both files could be read */
	/* container.id, and of the environment: service.name, what OTEL_RESOURCE_ATTRIBUTES has, and the variables chosen.
	 */
	struct attributes attributes;
};

/* Which program of a process: as samples tell it. */
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

/* A sample of @id arrived, whose facts are not known to be read. Of a sample that does not tell (taken while the process
 * ended) all but the pid is 0. */
void facts_reader_meet(struct facts_reader *r, const struct program_id *id);

/* What was read when @id was met: a reference; NULL: it was not met, or gone too soon. It is told once. */
struct process_facts *facts_reader_take(struct facts_reader *r, const struct program_id *id);

/* What was taken turned out to be another program's: counted as gone. */
void facts_reader_count_mistaken(struct facts_reader *r);

/* What was not taken since the call before this one is forgotten: its samples were lost. */
void facts_reader_settle(struct facts_reader *r);

struct process_facts *process_facts_get(struct process_facts *f);
void process_facts_put(struct process_facts *f);

size_t process_facts_memory_bytes(const struct process_facts *f);

/* Adds to @a what the environment @text, NAME=VALUE with a NUL behind each, says: of the service, and of @variables. 0 or
 * -ENOMEM. */
int process_facts_of_environment(const char *text, size_t len, const char *const *variables, size_t count,
				 struct attributes *a);

#endif
