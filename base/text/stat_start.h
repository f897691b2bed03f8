/* SPDX-License-Identifier: Apache-2.0 */
/* The line of /proc/PID/stat (proc_pid_stat(5)). Stateless. */
#ifndef HEARTH_BASE_TEXT_STAT_START_H
#define HEARTH_BASE_TEXT_STAT_START_H

#include <stdint.h>

/* When the process or thread of the line @text started, in ticks since boot, of which sysconf(_SC_CLK_TCK) are a second. 0;
 * -EBADMSG: it is no such line, or is cut before that; then *@ticks_ret is untouched. */
int stat_start_ticks(const char *text, uint64_t *ticks_ret);

#endif
