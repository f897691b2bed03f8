/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that read programs' files for the agent, and the folder that keeps results of their work. They are forked
 * before the agent has anything that they could inherit. Agent's thread.
 */
#ifndef HEARTH_AGENT_READERS_H
#define HEARTH_AGENT_READERS_H

#include <stdbool.h>

#include "agent/config.h"
#include "agent/files/files.h"
#include "agent/names/indexes.h"

struct elf_service;
struct file_opener;
struct loop;
struct metrics;

/* To be zeroed before it is started. */
struct readers {
	struct elf_service *service;
	struct elf_service *code; /* reads other processes' memory (agent/helper/code_service.h); the caller's to take */
	struct index_helper *index_helpers[LANES]; /* NULL: no names are wanted */
	struct file_opener *opener;
	bool has_proc_reader; /* agent/proc/proc_reader.h was started */
};

/* Takes a priority for this process and the readers, and forks these. 0; -errno with @err filled: they must be stopped all
 * the same. */
int readers_start(const struct agent_config *config, struct metrics *metrics, struct readers *r, struct agent_error *err);
void readers_stop(const struct readers *r);

/* Moves what @from has to @ret. */
void readers_take(struct readers *from, struct readers *ret);

/* Makes the files and the indexes of their names, which own the readers from now on, also on failure; @files_ret is the
 * caller's as soon as it is not NULL. 0 or -errno. */
int readers_hand_over(const struct readers *r, const struct agent_config *config, struct loop *loop, struct metrics *metrics,
		      struct files **files_ret, struct indexes **indexes_ret);

#endif
