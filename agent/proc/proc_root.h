/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of /proc, and the pid namespace that it shows. A mount of /proc shows the pids of one namespace to every reader:
 * in a container the container's own, on the host all. The host's /proc shows all also if it is mounted in a container.
 * Every pid that hearth gets from the kernel, shows, or is given is one of that namespace; processes without a pid there are
 * outside.
 */
#ifndef HEARTH_AGENT_PROC_PROC_ROOT_H
#define HEARTH_AGENT_PROC_PROC_ROOT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"

enum {
	PROC_ROOT_MAX_BYTES = 256,
	PROC_PATH_BYTES = PROC_ROOT_MAX_BYTES + 96,
};

/* Reads from @path (copied) from now on; NULL: from /proc, the default. To be called before there are threads. 0 or
 * -ENAMETOOLONG. */
int proc_root_set(const char *path);

/* The place in use, such as "/proc". */
const char *proc_root(void);

/* Makes the path of the file @name of process (or thread) @pid, "/proc/1/maps"; or of the folder /proc/1 when @name is "".
 * Returns @path. */
const char *proc_path(char path[static PROC_PATH_BYTES], uint32_t pid, const char *name);

struct pid_space {
	uint32_t ns;  /* inode number of the pid namespace that is shown; 0: the first one, which has all processes */
	bool is_ours; /* we are in it: the kernel and we use these pids with each other */
};

/* Finds the pid namespace that is shown. 0; -errno with the reason in @err: no /proc, or one that does not have this
 * process. */
int proc_root_space(struct pid_space *ret, struct agent_error *err);

/* Is the namespace that proc_root_space() found last the one that we are in, and also the first one, which has all
 * processes? */
bool proc_root_is_ours(void);
bool proc_root_is_whole(void);

/* The pid in that namespace of @pid, a child of ours. 0 or -errno. */
int proc_root_pid(uint32_t pid, uint32_t *ret);

/* How many pids the "NSpid:" line of @status, the text of /proc/PID/status, has: one for each namespace from the shown one
 * on. 1 when there is no such line: the kernel has no namespaces. */
unsigned proc_status_levels(const char *status);

#endif
