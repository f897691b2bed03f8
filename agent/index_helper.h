/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of the process that makes indexes of names: one job at a time, each in a worker of its own that ends with
 * it, and never waited for: its answers come through the loop. The worker has no privileges, only what the processor has
 * left, and bounded time and memory, as agent/elf_helper.h says of another kind. Everything on the loop's thread.
 */
#ifndef HEARTH_AGENT_INDEX_HELPER_H
#define HEARTH_AGENT_INDEX_HELPER_H

#include <stdbool.h>

#include "agent/debug_files.h"
#include "agent/elf_worker.h"
#include "agent/index_service.h"

struct loop;
struct index_helper;

/* Borrowed, with what it leads to, until the last answer. */
struct index_job {
	struct debug_place place; /* the program; its debug files are looked for beside it */
	const char *id;		  /* for the index's head */
	enum index_depth depth;
	int quick_fd; /* where names out of tables go first when there is much to read for the rest */
	int fd;	      /* where the index goes. Both are empty files, the caller's */
};

struct index_answer {
	/* 0; an error of elf_service_is_hostile(); -ECHILD: there is no helper any more; or what the file is not (-ENOEXEC)
	 */
	int status;
	bool is_last;	      /* else the index in quick_fd stands, and the worker goes on */
	uint64_t dwarf_bytes; /* that were read */
	struct index_made made;
};

typedef void (*index_answer_fn)(void *arg, const struct index_answer *answer);

/* What its workers may take. Tests have others. */
extern const struct elf_worker_kind index_worker_kind;

/*
 * Forks the template of workers of @kind, which outlives it: to be called before there are threads, or descriptors that
 * matter. @is_in_process: there is none, and index_helper_start makes the index itself. 0 or -errno.
 */
int index_helper_new(const struct elf_worker_kind *kind, bool is_in_process, struct index_helper **ret);
void index_helper_free(struct index_helper *h);

/* Answers go to @fn, from @loop. 0 or -errno. */
int index_helper_watch(struct index_helper *h, struct loop *loop, index_answer_fn fn, void *arg);

/* One job at a time: not while one has not had its last answer. 0 or -errno: there will be no answer. */
int index_helper_start(struct index_helper *h, const struct index_job *job);

bool index_helper_is_busy(const struct index_helper *h);

/* Waits at most @timeout_ms for something to come, and takes it as the loop would. */
void index_helper_wait(struct index_helper *h, int timeout_ms);

#endif
