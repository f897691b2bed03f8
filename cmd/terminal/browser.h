/* SPDX-License-Identifier: Apache-2.0 */
/* The user's web browser. */
#ifndef HEARTH_CMD_TERMINAL_BROWSER_H
#define HEARTH_CMD_TERMINAL_BROWSER_H

/* Opens @url in it, as the user who called sudo where there is one. Does not wait; says on the log why it cannot. */
void browser_open(const char *url);

#endif
