/* SPDX-License-Identifier: Apache-2.0 */
/* Takes from a process what the backend does not need: system calls (seccomp), files and connections (Landlock, where the
 * kernel has it). */
#ifndef HEARTH_CMD_HALVES_CONFINE_H
#define HEARTH_CMD_HALVES_CONFINE_H

#include <stddef.h>

/* Landlock's system calls, the same on all architectures. */
enum { LANDLOCK_CREATE_RULESET = 444, LANDLOCK_ADD_RULE = 445, LANDLOCK_RESTRICT_SELF = 446 };

struct tcp_ports;

/* Allows writes below the @count folders @writable alone, reads of these, of the system's files and below @readable (paths,
 * NULL-terminated; may be NULL), no execution, and, from version 4 of Landlock (Linux 6.7), TCP connections to @ports alone.
 * The kernel's version; -ENOSYS: it has none; -errno. */
int confine_by_landlock(const int *writable, size_t count, const char *const *readable, const struct tcp_ports *ports);

/* Lets only those system calls pass that receiving, storing, sending and answering take; others fail with EPERM. Both need
 * no-new-privileges and count for threads that start later. 0 or -errno. */
int confine_calls(void);

#endif
