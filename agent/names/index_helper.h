/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of the process that makes indexes of names: one job at a time, each in a worker of its own that ends with
 * it. Nobody waits for the answer, which comes through the loop. The worker has no privileges, gets the processor time that
 * other programs leave, and has bounded time and memory, like the workers of agent/helper/elf_helper.h. Everything on the
 * loop's thread.
 */
#ifndef HEARTH_AGENT_NAMES_INDEX_HELPER_H
#define HEARTH_AGENT_NAMES_INDEX_HELPER_H

#include <stdbool.h>

#include "agent/helper/debug_files.h"
#include "agent/helper/elf_worker.h"
#include "agent/names/index_service.h"

struct debuginfod;
struct loop;
struct index_helper;

/* A job. It is borrowed, with everything it leads to, until the answer. */
struct index_job {
	struct debug_place place; /* the program; its debug files are looked for beside it */
	const char *id;		  /* the file's id, for the index's head */
	enum index_depth depth;
	bool is_first; /* nothing is named yet: if there is much to read, names out of tables will do for now */
	int fd;	       /* where the index goes: an empty file, the caller's */
};

struct index_answer {
	/* 0; an error of elf_service_is_hostile(); -ECHILD: there is no helper any more; or the file is not readable as ELF
	 * (-ENOEXEC) */
	int status;
	bool has_more;	 /* see is_first: the remaining names are another job */
	bool is_awaited; /* a server was asked for a file, and has not answered yet: */
	struct debug_need awaited;
	uint64_t dwarf_bytes; /* bytes that were read */
	struct index_made made;
};

typedef void (*index_answer_fn)(void *arg, const struct index_answer *answer);

/* The limits of workers: for first jobs, which many samples wait for, and for jobs with much to read. */
extern const struct elf_worker_kind index_first_kind, index_rest_kind;

/*
 * Forks the template of workers of @kind (@kind outlives it). To be called before there are threads, or descriptors that
 * must not be inherited. @is_in_process: there is no template, and index_helper_start makes the index itself. 0 or -errno.
 */
int index_helper_new(const struct elf_worker_kind *kind, bool is_in_process, struct index_helper **ret);
void index_helper_free(struct index_helper *h);

/* Answers go to @fn, from @loop. @servers (NULL: none; borrowed) are asked for debug files that this machine does not have.
 * 0 or -errno. */
int index_helper_watch(struct index_helper *h, struct loop *loop, struct debuginfod *servers, index_answer_fn fn, void *arg);

/* Starts one job; the one before must have had its answer. 0, or -errno: there will be no answer. */
int index_helper_start(struct index_helper *h, const struct index_job *job);

bool index_helper_is_busy(const struct index_helper *h);

/* From now on the helper's workers run before other programs, as far as we may set that: somebody waits. */
void index_helper_hurry(struct index_helper *h);

/* Waits at most @timeout_ms for a message, and takes it as the loop would. */
void index_helper_wait(struct index_helper *h, int timeout_ms);

#endif
