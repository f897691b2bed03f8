/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of what threads wait for. A file's is that of the process's descriptor, if that still has the file whose number
 * the kernel half has seen; else nobody knows it any more. Looked up as soon as a sample is applied, once for as long as an
 * interval lasts, and not more often than a budget allows. Agent's thread.
 */
#ifndef HEARTH_AGENT_PROC_WAIT_TARGETS_H
#define HEARTH_AGENT_PROC_WAIT_TARGETS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

struct metrics;
struct wait_targets;

enum { WAIT_TARGET_BYTES = 256 };

int wait_targets_new(struct metrics *metrics, struct wait_targets **ret);
void wait_targets_free(struct wait_targets *w);

/* A new interval begins: forgets all names, and the budget is whole again. */
void wait_targets_begin(struct wait_targets *w);

/* Names what a thread of process @pid (0: one outside of /proc) waits for: "/var/lib/db", "pipe:[123]", "tcp
 * 10.0.0.1:5432" (where a client connected to), "tcp :80 client 10.0.0.7", "unix /run/x.sock", "futex 0x7f0012345678". ""
 * where nothing is known. Valid until the next call. */
const char *wait_targets_name(struct wait_targets *w, uint32_t pid, const struct wait_target *target);

size_t wait_targets_memory_bytes(const struct wait_targets *w);

#endif
