/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why a recording may have ended without a sample. */
#ifndef HEARTH_CMD_SETUP_NO_SAMPLES_H
#define HEARTH_CMD_SETUP_NO_SAMPLES_H

#include <stdint.h>

struct buf;
struct child;
struct config;

/*
 * Appends one sentence that says why there may be no sample, and what to change. @command: what was recorded, or one that
 * was never forked. @lasted_ns: from the start of the recording to its end, --delay included.
 */
void no_samples_explain(const struct config *config, const struct child *command, uint64_t lasted_ns, struct buf *out);

#endif
