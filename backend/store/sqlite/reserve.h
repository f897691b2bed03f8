/* SPDX-License-Identifier: Apache-2.0 */
/* A full disk: the reserve, and reading where nothing can be written. The writer's thread, or the one that opens. */
#ifndef HEARTH_BACKEND_STORE_SQLITE_RESERVE_H
#define HEARTH_BACKEND_STORE_SQLITE_RESERVE_H

#include "backend/store/sqlite/db.h"

/* Finds s->reserve_bytes. */
void store_reserve_look(struct store_sqlite *s);

/* Makes the reserve where it is lacking, and where there is room: s->is_reserve_used says whether it is lacking still. */
void store_reserve_make(struct store_sqlite *s);

/* The bytes that must be free to make the reserve; 0 while there is one. */
uint64_t store_reserve_lacks(const struct store_sqlite *s);

/* Frees the reserve: false when there is none. */
bool store_reserve_free(struct store_sqlite *s);

/* Whether a store that is stuck looks as if it could be written now. */
bool store_may_be_written(const struct store_sqlite *s);

/* Opens the file as it is, with its log, for reading alone, while nobody writes: needs none of the files that SQLite makes.
 * 0 or -errno; *@ret is to be closed after either. */
int store_open_unshared(const struct store_sqlite *s, sqlite3 **ret);

#endif
