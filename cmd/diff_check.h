/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of `hearth diff --fail-above`. No state. */
#ifndef HEARTH_CMD_DIFF_CHECK_H
#define HEARTH_CMD_DIFF_CHECK_H

#include <stdint.h>

struct buf;
struct diff_result;

/*
 * Says in @out why the check fails: what grew by more than @limit (a part of 1 of what A is) and out of its noise, heaviest
 * first; at most @max_rows of them. Returns how many there are; nothing is appended when there is none.
 */
uint32_t diff_check(const struct diff_result *r, double limit, uint32_t max_rows, struct buf *out);

#endif
