/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal while a screen is drawn on it: keys come one by one and are not echoed. However the process ends, but by
 * SIGKILL, the terminal is as before. One at a time. Main thread.
 */
#ifndef HEARTH_CMD_TERMINAL_TERMINAL_H
#define HEARTH_CMD_TERMINAL_TERMINAL_H

#include <stdbool.h>

/* Are keys to be had: is standard input a terminal, and ours (not that of a job in the background)? */
bool terminal_has_keys(void);

/* Takes standard input over. 0 or -errno. */
int terminal_enter(void);

/* Gives it back as it was; also leaves the alternate screen when @leave_screen. Safe in signal handlers, and again and
 * again. */
void terminal_restore(bool leave_screen);

#endif
