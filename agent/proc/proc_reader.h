/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in /proc that lead into a process's memory, read without ever waiting for that process. The memory may be of a file
 * whose server does not answer, the lock of its mappings may be held by somebody who waits for such a server, and while it
 * executes a program the kernel lets nobody open them. So small processes read and open these files for the agent. One that
 * does not answer in time is killed and another takes its place; the process that it was to look at rests for 1 s, 2 s, ...
 * 10 minutes and is not looked at meanwhile. Agent's thread.
 *
 * Where proc_reader_start() was not called, everything is read in the caller's thread.
 */
#ifndef HEARTH_AGENT_PROC_PROC_READER_H
#define HEARTH_AGENT_PROC_PROC_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/wait_hook.h"

struct metrics;

enum { PROC_SYSCALL_BYTES = 256 };

/* Forks the processes. To be called before there are threads, or descriptors that must not be inherited. 0 or -errno. */
int proc_reader_start(struct metrics *metrics);

/* Ends the processes; accepts that they were never started. */
void proc_reader_stop(void);

/* @hook (copied) runs now and then while a process does not answer. It may read with proc_read_at_once(), nothing else. */
void proc_reader_on_wait(struct wait_hook hook);

/*
 * Reads @bytes (fewer where the file ends) at @offset of /proc/@task/@name into @ret, whose content it replaces. @pid is the
 * process of @task, which rests when there is no answer. 0; -EBUSY: no answer, or none a moment ago; another -errno.
 */
int proc_read(uint32_t pid, uint32_t task, const char *name, uint64_t offset, size_t bytes, struct buf *ret);

/* The same for who cannot have the hook run, and waits for a shorter time. */
int proc_read_at_once(uint32_t pid, uint32_t task, const char *name, uint64_t offset, size_t bytes, struct buf *ret);

/* Reads @bytes of memory at @addr, and after that the text of /proc/@task/syscall into @syscall; "": it cannot be read; "?":
 * not on this kernel. */
int proc_read_stack(uint32_t pid, uint32_t task, uint64_t addr, size_t bytes, struct buf *ret,
		    char syscall[static PROC_SYSCALL_BYTES]);

/*
 * The path of the link /proc/@task/@name, as far as it fits, into @ret of @size bytes (at least 2) with a NUL behind it.
 * Returns the length, or -errno as above. @at_once: as proc_read_at_once().
 */
ssize_t proc_read_link(uint32_t pid, uint32_t task, const char *name, bool at_once, char *ret, size_t size);

/* The beginning of /proc/@task/@name as text with a NUL behind it. Returns the length, or -errno as above. */
ssize_t proc_read_text(uint32_t pid, uint32_t task, const char *name, char *ret, size_t size);

/* A descriptor of the regular file /proc/@task/@name (of one that a link in /proc leads to), or -errno as above. */
int proc_open(uint32_t pid, uint32_t task, const char *name);

/* The same of a folder (O_PATH), such as a process's "root". */
int proc_open_folder(uint32_t pid, const char *name);

#endif
