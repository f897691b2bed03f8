/* SPDX-License-Identifier: Apache-2.0 */
/* The process that opens files for the agent, one child a file, and the socket to it. */
#ifndef HEARTH_AGENT_FILES_GUARD_H
#define HEARTH_AGENT_FILES_GUARD_H

#include "base/wait_hook.h"

struct file_guard;

/* Forks that process. 0 or -errno. */
int file_guard_new(struct file_guard **ret);
void file_guard_free(struct file_guard *g);

/* Has @path opened as io_open_regular() does. -ETIMEDOUT when that takes longer than 1 s; -ECHILD when the process has
 * gone. @hook (or NULL) runs now and then meanwhile. */
int file_guard_open(struct file_guard *g, const char *path, const struct wait_hook *hook);

/*
 * Has a folder opened (O_PATH), so that the files in it can be opened without waiting. "ROOT//FOLDER" is FOLDER as processes
 * with the root folder ROOT see it; neither ".." nor a link leads out of ROOT. -EREMOTE when the folder is on no local file
 * system; else as file_guard_open.
 */
int file_guard_open_folder(struct file_guard *g, const char *path, const struct wait_hook *hook);

#endif
