/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files with symbols that this machine has, or a server of $DEBUGINFOD_URLS, by the linker's build id: the folders .build-id
 * below /usr/lib/debug and /usr/lib. Leaf module: returns errors, never logs. Not shared between threads.
 */
#ifndef HEARTH_BACKEND_NAMING_LOCAL_FILES_H
#define HEARTH_BACKEND_NAMING_LOCAL_FILES_H

struct local_files;

/* NULL when out of memory. */
struct local_files *local_files_new(void);
void local_files_free(struct local_files *f); /* accepts NULL; up to a second */

/* The file with @build_id, hexadecimal: a descriptor for reading, the caller's to close. -ENOENT: there is none;
 * -EINPROGRESS: a server is asked, look again later; -EINVAL: no such build id. */
int local_files_open(struct local_files *f, const char *build_id);

#endif
