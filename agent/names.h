/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of frames, kept from interval to interval: each (file, address) is asked once. Off the sampling path: called for the
 * whole interval at its end, one batch a file.
 */
#ifndef HEARTH_AGENT_NAMES_H
#define HEARTH_AGENT_NAMES_H

#include <stdint.h>

#include "agent/traces.h"
#include "proto/profiles.h"

struct metrics;
struct names;

/* A name; empty strings where there is none. They live until the next names_update. */
struct frame_name {
	struct str name;	/* for people */
	struct str system_name; /* as in the file */
	struct str module;	/* kernel frames: the module, or "" */
};

int names_new(struct files *files, struct metrics *metrics, struct names **ret);
void names_free(struct names *n);

/* Looks up what is not known yet of the frames of @t. What fails stays without a name. 0 or -ENOMEM. */
int names_update(struct names *n, const struct traces *t);

/* The name of a frame after names_update. */
struct frame_name names_find(const struct names *n, const struct trace_frame *frame);

#endif
