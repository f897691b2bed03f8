/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/maps, line by line. */
#ifndef HEARTH_AGENT_PROC_PROC_MAPS_H
#define HEARTH_AGENT_PROC_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* The task through which to look at the memory of process @pid: the leader, or one of the other threads if the leader has
 * ended. /proc answers for any task. The path of the program that it runs is put into @exe of @size bytes (at least 2), as
 * far as it fits; NULL: it is not asked for. Returns @pid itself, and "", when there is none: a thread of the kernel, or the
 * process has ended. */
uint32_t proc_maps_task(uint32_t pid, char *exe, size_t size);

/* Removes the " (deleted)" that the kernel puts behind the path of a file that is in no folder any more. */
void proc_path_strip(char *path);

#endif
