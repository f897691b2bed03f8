/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up the agent from the options of a command. */
#ifndef HEARTH_CMD_SETUP_AGENT_SETUP_H
#define HEARTH_CMD_SETUP_AGENT_SETUP_H

#include "agent/agent.h"

struct config;

struct agent_setup {
	struct agent_config agent; /* borrows from what stands below and from the struct config */
	uint32_t *cpus, *uids;
	const char **probes;
};

/* 0; -EINVAL: wrong usage, said; -ENOMEM. agent_setup_fini() either way. */
int agent_setup_init(struct agent_setup *setup, const struct config *config);
void agent_setup_fini(struct agent_setup *setup);

#endif
