/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that read programs' files for the agent, and what of their work is kept in a folder. They are forked before
 * the agent has anything that they could inherit. Agent's thread.
 */
#ifndef HEARTH_AGENT_READERS_H
#define HEARTH_AGENT_READERS_H

#include "agent/agent.h"
#include "agent/files.h"
#include "agent/indexes.h"

struct elf_service;
struct file_opener;
struct loop;
struct metrics;

/* Zeroed before it is started. */
struct readers {
	struct elf_service *service;
	struct index_helper *index_helpers[LANES]; /* NULL: no names are wanted */
	struct file_opener *opener;
};

/* Takes a priority for this process and those, and forks them. 0; -errno with @err filled: to be stopped all the same. */
int readers_start(const struct agent_config *config, struct metrics *metrics, struct readers *r, struct agent_error *err);
void readers_stop(const struct readers *r);

/* The files and the indexes of their names, which own the readers from now on, also when it fails; @files_ret is the
 * caller's as soon as it is not NULL. 0 or -errno. */
int readers_hand_over(const struct readers *r, const struct agent_config *config, struct loop *loop, struct metrics *metrics,
		      struct files **files_ret, struct indexes **indexes_ret);

#endif
