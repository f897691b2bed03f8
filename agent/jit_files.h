/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose perf map a file is, and how it is opened. It lies in a folder where anybody may put files, under a name anybody can
 * guess, so it is believed only where nobody else can have meant it: a plain file under one name that the process or root
 * owns and that was written while the process lived. Nothing is read here.
 */
#ifndef HEARTH_AGENT_JIT_FILES_H
#define HEARTH_AGENT_JIT_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* A process as its own files name it. */
struct jit_identity {
	uint32_t pid; /* within its innermost pid namespace: what getpid() tells it */
	uint32_t uid; /* its effective user */
	uint64_t start_unix_ns;
};

/* Reads it from /proc. @start_boottime_ns: what the kernel said of the process that is meant, 0: unknown. 0; -ESRCH: it is
 * gone, or another has its pid now; -errno. */
int jit_identity_read(uint32_t pid, uint64_t start_boottime_ns, struct jit_identity *ret);

/*
 * Opens "perf-@pid.map" in @folder (O_PATH, on a local file system) if it is @who's. A descriptor for reading; -ENOENT; why
 * it is not believed: -EINVAL (no plain file: a link, a pipe, ...), -EMLINK (it has a second name), -EACCES (another
 * owner), -ESTALE (older than the process); another -errno.
 */
int jit_map_open(int folder, uint32_t pid, const struct jit_identity *who);

/* Is it the name of a jitdump, "jit-PID.dump"? */
bool jit_dump_is_named(const char *path);

#endif
