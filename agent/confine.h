/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives up what sampling does not need, in two steps: first what needs more privileges than the agent keeps, then the
 * privileges and the system calls. Both before any thread is started: capabilities are a thread's own.
 */
#ifndef HEARTH_AGENT_CONFINE_H
#define HEARTH_AGENT_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/config.h"

struct metrics;

/* Looks at the kernel, raises limits, and forks the processes that read files. @config then has them, for agent_new(), or
 * agent_config_fini(). 0 or -errno with @err filled. */
int agent_prepare(struct agent_config *config, struct metrics *metrics, struct agent_error *err);

/* The process does more than to sample. */
struct agent_duties {
	bool writes_files; /* also into users' folders */
	bool has_network;  /* asks debug servers itself */
	pid_t command;	   /* passes signals on to this process; 0: none */
};

/* 0 or -errno. Counts in @metrics what is refused. */
int agent_confine(const struct agent_config *config, const struct agent_duties *duties, struct metrics *metrics);

#endif
