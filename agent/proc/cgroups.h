/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups (version 2) by path and containers by id, as folders whose descriptors the kernel's filter takes. No state.
 */
#ifndef HEARTH_AGENT_PROC_CGROUPS_H
#define HEARTH_AGENT_PROC_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/proc/container_id.h"

struct agent_error;
struct buf;

/* Puts the place where version 2 is mounted behind @out. 0; -EOPNOTSUPP: it is mounted nowhere; -ENOMEM. */
int cgroup_find_mount(struct buf *out);

/*
 * Opens the control group @path below the mount of version 2; @path may begin with the mount's place. A descriptor; or
 * -ENOENT, -EOPNOTSUPP (there is no version 2, or the path is in a hierarchy of version 1), -errno, with @err filled.
 */
int cgroup_open(const char *path, struct agent_error *err);

/*
 * Opens the control group of the container @id, which may be the beginning of an id if no other container's id begins so. A
 * descriptor; or -ENOENT, -EEXIST (it is not the only one), -errno, with @err filled.
 */
int cgroup_open_container(const char *id, struct agent_error *err);

/* Does the same in the tree below @root (tests). */
int cgroup_open_container_below(const char *root, const char *id, struct agent_error *err);

/*
 * Does the folder @name in @parent belong to a container whose id begins with @id? Then @found gets the container's id.
 * Folders for the runtime itself (conmon) do not count. Beside the names that container_id_of_folder() knows, any folder
 * with the name @id or PREFIX-ID.scope counts: people name containers, too.
 */
bool cgroup_name_is_container(const char *parent, const char *name, const char *id, char found[static CONTAINER_ID_BYTES]);

#endif
