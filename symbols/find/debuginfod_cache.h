/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache that all clients of debuginfod servers on a machine share: FOLDER/BUILDID/debuginfo; an empty file says that no
 * server had it a while ago. Nothing in memory.
 */
#ifndef HEARTH_SYMBOLS_FIND_DEBUGINFOD_CACHE_H
#define HEARTH_SYMBOLS_FIND_DEBUGINFOD_CACHE_H

/* Opens the folder that the environment tells, makes it where it is missing. A descriptor; -ENOENT: it tells none;
 * -EPERM: the folder is somebody else's; -errno. */
int debuginfod_cache_open(void);

/* The debug file of @build_id: a descriptor for reading; -ENOENT: known to be missing; -ENODATA: not known; -errno. */
int debuginfod_cache_find(int folder, const char *build_id);

/* A new file for @build_id, to be written; its name goes to @name. A descriptor or -errno. */
enum { DEBUGINFOD_NAME_BYTES = 128 };
int debuginfod_cache_create(int folder, const char *build_id, char name[DEBUGINFOD_NAME_BYTES]);

/* Makes the file @name the one that debuginfod_cache_find gives, or drops it. 0 or -errno. */
int debuginfod_cache_keep(int folder, const char *build_id, const char *name);
void debuginfod_cache_drop(int folder, const char *build_id, const char *name);

/* Remembers that no server has the file of @build_id. */
void debuginfod_cache_miss(int folder, const char *build_id);

/* The seconds for which such a miss counts. */
long debuginfod_cache_miss_s(int folder);

/* Removes what nobody has read for a week, once a day. */
void debuginfod_cache_clean(int folder);

#endif
