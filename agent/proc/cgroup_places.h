/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups and containers for the kernel's filter, of version 2 or of version 1. No state. */
#ifndef HEARTH_AGENT_PROC_CGROUP_PLACES_H
#define HEARTH_AGENT_PROC_CGROUP_PLACES_H

#include "bpf/event.h"

struct agent_error;

struct cgroup_place {
	int fd;		    /* descriptor of a group of version 2; -1: the group is ... */
	struct v1_group v1; /* ... this one */
};

/*
 * Finds the group @path: below the mount of version 2, else below a tree of version 1 that has a controller. @path may begin
 * with the mount's place. 0; or -ENOENT, -EOPNOTSUPP (its tree has no controller), -errno, with @err filled.
 */
int cgroup_place_find(const char *path, struct cgroup_place *ret, struct agent_error *err);

/* Finds the group of the container @id by the rules of cgroup_open_container(), in the trees in the same order. */
int cgroup_place_find_container(const char *id, struct cgroup_place *ret, struct agent_error *err);

void cgroup_place_fini(struct cgroup_place *place);

#endif
