/* SPDX-License-Identifier: Apache-2.0 */
/* Which container a process is in, as the path of its control group tells. No state. */
#ifndef HEARTH_AGENT_CONTAINER_ID_H
#define HEARTH_AGENT_CONTAINER_ID_H

#include <stdbool.h>
#include <stddef.h>

enum { CONTAINER_ID_BYTES = 128 }; /* with the NUL; a longer one is no id */

/*
 * The id of the innermost container on @path, a control group's path of @len bytes below its mount, as /proc/PID/cgroup
 * tells it. What people named is the name they gave (systemd-nspawn, LXC, runc), all else the runtime's id of 64 digits
 * (ECS: 32 and a number). False: it is in none.
 */
bool container_id_of_path(const char *path, size_t len, char id_ret[static CONTAINER_ID_BYTES]);

/* The same of the whole of /proc/PID/cgroup: the first line that tells, of whichever version (cgroups(7)). */
bool container_id_of_cgroups(const char *text, size_t len, char id_ret[static CONTAINER_ID_BYTES]);

/* The same of one folder, called @name in @parent ("" for none). */
bool container_id_of_folder(const char *parent, const char *name, char id_ret[static CONTAINER_ID_BYTES]);

#endif
