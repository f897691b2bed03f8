/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks containers up in the files of this host (enrich/local/sources.h), on a thread of its own, when somebody wants to
 * know of one. Finds go into the table. Any thread may ask.
 */
#ifndef HEARTH_ENRICH_LOCAL_LOCAL_H
#define HEARTH_ENRICH_LOCAL_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct known;
struct local;
struct metrics;

/* @root: below which the host's files are; NULL: the root of the host's first process, and our own. Starts a thread. */
int local_new(const char *root, struct known *known, struct metrics *metrics, struct local **ret);
void local_free(struct local *l);

/* Has the container looked up, unless that was in vain a moment ago. True: it is, and is worth a wait. */
bool local_want(struct local *l, const char *id);

/* Waits until all that was wanted is looked up, until @deadline_ns (CLOCK_MONOTONIC) at most. */
void local_wait(struct local *l, uint64_t deadline_ns);

/* Appends which of the sources there are here, and which cannot be read. */
void local_describe(const char *root, struct buf *text);

#endif
