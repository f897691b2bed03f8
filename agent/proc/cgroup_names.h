/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the pod and the systemd unit of a process by the paths of its control groups. No state. */
#ifndef HEARTH_AGENT_PROC_CGROUP_NAMES_H
#define HEARTH_AGENT_PROC_CGROUP_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum { POD_UID_BYTES = 64, UNIT_NAME_BYTES = 256 }; /* with the NUL */

/*
 * The uid of the pod, out of the whole text of /proc/PID/cgroup: the kubelet's folder podUID below kubepods, or
 * ...-podUID.slice with systemd, where `_` stands for `-`. Of a pod that the kubelet has from a file it is that file's hash.
 * False: it is in no pod.
 */
bool cgroup_names_pod_uid(const char *text, size_t len, char uid_ret[static POD_UID_BYTES]);

/* The innermost unit, NAME.service or NAME.scope. False: there is none. */
bool cgroup_names_unit(const char *text, size_t len, char unit_ret[static UNIT_NAME_BYTES]);

#endif
