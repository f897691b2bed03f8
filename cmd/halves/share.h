/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the settings between the two halves: each gets the sinks that are its own. */
#ifndef HEARTH_CMD_HALVES_SHARE_H
#define HEARTH_CMD_HALVES_SHARE_H

#include <stdbool.h>

#include "cmd/options/config.h"

/* Each borrows all but its list of sinks from the settings that were divided. */
struct share {
	struct config agent;
	struct config backend; /* with its store, and without what it sends to; or with the pipelines */
	struct config senders; /* the same, the other way round */
};

/* Whether there is something that a backend is for: a network to listen on or to speak to, or a store (@keeps: the default
 * one) for what comes from there. */
bool share_needs_backend(const struct config *config, bool keeps);

/* Whether there is, and it cannot be done by another process: pipelines that write files and ask a network, too. */
bool share_needs_one_process(const struct config *config, bool keeps);

/* 0 or -ENOMEM. share_fini() either way. */
int share_divide(const struct config *config, struct share *ret);
/* Gives the senders what was changed in the backend's settings since, but for the sinks. */
void share_renew_senders(struct share *s);

void share_fini(struct share *s);

#endif
