/* SPDX-License-Identifier: Apache-2.0 */
/* Shell patterns for names of threads, made into the automaton that the kernel's filter runs (bpf/event.h). No state. */
#ifndef HEARTH_AGENT_KERNEL_COMM_PATTERN_H
#define HEARTH_AGENT_KERNEL_COMM_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/event.h"

/*
 * Fills @ret for names that match any of @patterns: '*', '?', '[a-z]', '[!a-z]', '\' before a character takes it literally.
 * The kernel keeps 15 characters of a name; a pattern without '*' that is longer is cut there too. 0; -EINVAL with
 * *@which_ret set when that pattern is empty or needs more than 15 characters; -E2BIG when they have more than 64 states
 * together (an item each and one more).
 */
int comm_patterns_compile(const char *const *patterns, size_t count, struct comm_automaton *ret, size_t *which_ret);

/* Matches a name in the way the kernel does (tests). */
bool comm_automaton_matches(const struct comm_automaton *a, const char *comm);

#endif
