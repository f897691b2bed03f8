/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the container of a process by the path of its control group. No state. */
#ifndef HEARTH_AGENT_PROC_CONTAINER_ID_H
#define HEARTH_AGENT_PROC_CONTAINER_ID_H

#include <stdbool.h>
#include <stddef.h>

enum { CONTAINER_ID_BYTES = 128 }; /* with the NUL; a longer one is no id */

/*
 * The id of the innermost container on @path, a control group's path of @len bytes below its mount, as /proc/PID/cgroup
 * tells it. A container that people named has that name as its id (systemd-nspawn, LXC, runc); others have the runtime's id
 * of 64 digits (ECS: 32 and a number). False: the path is in no container.
 */
bool container_id_of_path(const char *path, size_t len, char id_ret[static CONTAINER_ID_BYTES]);

/* The same for the whole text of /proc/PID/cgroup: the first line that tells counts, of either version (cgroups(7)). */
bool container_id_of_cgroups(const char *text, size_t len, char id_ret[static CONTAINER_ID_BYTES]);

/* The same for one folder, called @name in @parent ("" for none). */
bool container_id_of_folder(const char *parent, const char *name, char id_ret[static CONTAINER_ID_BYTES]);

#endif
