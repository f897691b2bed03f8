/* SPDX-License-Identifier: Apache-2.0 */
/* Group commit: acks are completed once the file that their data was written to is on disk, many with one fsync. */
#ifndef HEARTH_SINKS_COMMIT_H
#define HEARTH_SINKS_COMMIT_H

#include "proto/sink.h"

struct commit;

/* @fd is borrowed; a descriptor that cannot be synced (a pipe, /dev/null) counts as written. The thread starts with the
 * first ack. NULL without memory. */
struct commit *commit_new(int fd);

/* Completes @ack after an fsync that begins after this call: at once when the disk is idle, else with the next. 0, or -errno
 * and the ack is not taken. */
int commit_add(struct commit *c, struct ack *ack);

/* Completes what is pending, and frees. Accepts NULL. */
void commit_free(struct commit *c);

#endif
