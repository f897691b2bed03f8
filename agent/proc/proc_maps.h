/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/maps, line by line. */
#ifndef HEARTH_AGENT_PROC_PROC_MAPS_H
#define HEARTH_AGENT_PROC_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_map {
	uint64_t start, end, offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool executable;
	const char *path; /* within the line; "" for anonymous memory; may end in " (deleted)" */
	size_t path_len;
};

/* Reads one line (without its newline). 0 or -EBADMSG. */
int proc_maps_parse_line(const char *line, size_t len, struct proc_map *ret);

/* Calls @fn for each mapping of @pid, in address order; a line that cannot be read is skipped. 0, -ENOENT or -ESRCH (the
 * process is gone), -EBUSY (it lets nobody look, see
 * agent/proc/proc_reader.h), another -errno, or what @fn returned when not 0. */
int proc_maps_each(uint32_t pid, int (*fn)(void *arg, const struct proc_map *map), void *arg);

/* The path of the program that @task runs, as far as it fits, into @ret of @size bytes with a NUL behind it. The kernel
 * takes no lock for it that others hold for long, so the caller's thread reads it. Returns the length, or -errno; -ENOENT: a
 * thread of the kernel, or one that has ended. */
ssize_t proc_exe(uint32_t task, char *ret, size_t size);

/* The task through which to look at the memory of process @pid: the leader, or one of the other threads if the leader has
 * ended. /proc answers for any task. Returns @pid itself when there is none. */
uint32_t proc_maps_task(uint32_t pid);

/* Removes the " (deleted)" that the kernel puts behind the path of a file that is in no folder any more. */
void proc_path_strip(char *path);

#endif
