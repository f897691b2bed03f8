/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whose perf map a file is, and opens it. A map is in a folder where anybody may put files, under a name that
 * anybody can guess, so it is believed only where nobody else can have meant it: a plain file under one name that the
 * process or root owns and that was written while the process lived. Pids are used again, so a map may be of a process that
 * had this pid before; one that this process only appends to begins with the other's names. Nothing is read here.
 */
#ifndef HEARTH_AGENT_RUNTIME_PERF_MAP_FILES_H
#define HEARTH_AGENT_RUNTIME_PERF_MAP_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* A process as the names of its own files have it. */
struct jit_identity {
	uint32_t pid;	   /* within its innermost pid namespace: what getpid() tells it */
	uint32_t uid;	   /* its effective user */
	uint32_t task_pid; /* by which /proc has it; 0: not known */
	uint64_t start_unix_ns, start_mono_ns;
};

/* Reads it from /proc. @start_boottime_ns: what the kernel said of the process that is meant, 0: unknown. 0; -ESRCH: it is
 * gone, or another has its pid now; -errno. */
int perf_map_identity_read(uint32_t pid, uint64_t start_boottime_ns, struct jit_identity *ret);

/*
 * Opens "perf-@pid.map" in @folder (O_PATH, on a local file system) if it is @who's. A descriptor for reading; -ENOENT; or
 * why the file is not believed: -EINVAL (no plain file: a link, a pipe, ...), -EMLINK (it has a second name), -EACCES
 * (another owner), -ESTALE (older than the process), -EEXIST (begun before the process, which appends to it); another
 * -errno.
 */
int perf_map_file_open(int folder, uint32_t pid, const struct jit_identity *who);

/* Is @path named as a jitdump, "jit-PID.dump"? */
bool perf_map_dump_is_named(const char *path);

#endif
