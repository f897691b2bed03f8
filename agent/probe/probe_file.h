/* SPDX-License-Identifier: Apache-2.0 */
/* The file that users mean by a path, or by the bare name of a program or a library. No state. */
#ifndef HEARTH_AGENT_PROBE_PROBE_FILE_H
#define HEARTH_AGENT_PROBE_PROBE_FILE_H

#include <limits.h>

struct agent_error;

/*
 * A word with a slash is a path, also one into a container (/proc/PID/root/...). Else a program is looked for in PATH, and a
 * library, also without its suffix (libc, libssl.so), where the dynamic linker looks: in the folders of /etc/ld.so.conf.d
 * and its own. 0; -ENOENT, -errno with @err filled.
 */
int probe_file_find(const char *word, char path[static PATH_MAX], struct agent_error *err);

#endif
