/* SPDX-License-Identifier: Apache-2.0 */
/* The page on a capture that was just made. */
#ifndef HEARTH_CMD_VIEW_H
#define HEARTH_CMD_VIEW_H

/* Shows @path as 'hearth view --open' does, as the user who called sudo, until that ends. Logs why it cannot. */
void view_recorded(const char *path);

#endif
