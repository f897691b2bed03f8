/* SPDX-License-Identifier: Apache-2.0 */
/* Which file systems that a process has mounted answer without asking anybody outside of the kernel: by
 * proc_pid_mountinfo(5). No state. */
#ifndef HEARTH_AGENT_PROC_MOUNTS_H
#define HEARTH_AGENT_PROC_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

/* Has @task, or this process if @task is gone, mounted a file system of the device @major:@minor that is local? */
bool mounts_device_is_local(uint32_t task, uint32_t major, uint32_t minor);

/* Is the folder @fd (also O_PATH), in which @task may have mounted others, on a local file system? Nobody is asked for it
 * who may not answer. */
bool mounts_folder_is_local(uint32_t task, int fd);

#endif
