/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a SQLite file: the default one. */
#ifndef HEARTH_BACKEND_STORE_SQLITE_SQLITE_H
#define HEARTH_BACKEND_STORE_SQLITE_SQLITE_H

#include "backend/store/store.h"

struct metrics;

/* Opens or makes the default store. 0 or -errno with @err filled: -EBUSY: another process writes it; -EPROTO: it is of a
 * newer hearth, or of one too old. A damaged file is moved aside (said in the log) and a new one begun. */
int store_sqlite_open(const struct store_config *config, struct metrics *metrics, struct store **ret,
		      struct store_error *err);

/* From now on paths are opened as they are given, not as they are from the root of the file system: for folders that are
 * known by a descriptor (base/handed.h). Called once, before a store is opened. 0 or -errno. */
int store_sqlite_keep_paths(void);

/* Reads everything that is in @s, a SQLite store, and calls @fn for each problem found. 0, -errno, or what @fn returned. */
int store_sqlite_verify(struct store *s, int (*fn)(void *arg, const char *problem), void *arg);

#endif
