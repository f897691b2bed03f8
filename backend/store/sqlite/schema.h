/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a store: opened, brought to this version, replaced. The writer's thread, or the one that opens. */
#ifndef HEARTH_BACKEND_STORE_SQLITE_SCHEMA_H
#define HEARTH_BACKEND_STORE_SQLITE_SCHEMA_H

#include "backend/store/sqlite/db.h"

enum { STORE_SCHEMA_VERSION = 5 };

/* Opens what config names: makes the folder, takes the lock, makes or migrates the schema. 0 or -errno with @err filled. */
int store_files_open(struct store_sqlite *s, struct store_error *err);
void store_files_close(struct store_sqlite *s);

/* Moves the damaged file aside and opens a new one for both connections; nothing of the old ones may be in use. */
int store_files_replace(struct store_sqlite *s, struct store_error *err);

/* Opens a store anew that store_files_open() found stuck: it may be writable now. Returns as store_files_open(); nothing of
 * the connections may be in use. */
int store_files_reopen(struct store_sqlite *s, struct store_error *err);

#endif
