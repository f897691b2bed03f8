/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's static tracepoints by perf's names, SYSTEM:EVENT, through tracefs. No state. */
#ifndef HEARTH_AGENT_KERNEL_TRACEPOINTS_H
#define HEARTH_AGENT_KERNEL_TRACEPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_error;

/* Could @text be the name of a tracepoint? */
bool tracepoint_is_name(const char *text);

/*
 * The number of the tracepoint @text, which perf_event_open(2) takes as config. tracefs is read where it is mounted, else
 * mounted for this process alone. 0; -ENOENT, -EACCES, -EPERM, -errno with @err filled, which offers similar names.
 */
int tracepoint_find(const char *text, uint64_t *id_ret, struct agent_error *err);

/* Checks whether tracefs can be read. 0 or -errno. */
int tracepoints_check(void);

/* Appends " (did you mean ...?)" to @out when there is a tracepoint whose event, without its system, is @event. */
void tracepoint_suggest(const char *event, char *out, size_t size);

/* The first two functions, for the folder @events_fd, which has a folder for each system (tests). */
int tracepoint_find_in(int events_fd, const char *text, uint64_t *id_ret, struct agent_error *err);
void tracepoint_suggest_in(int events_fd, const char *event, char *out, size_t size);

#endif
