/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows on disk: the rows that were asked of files, by the files' identity (symbol_cache_key). So the next start need not ask
 * again, and knows before the first sample which code of a file runs. One build of hearth has one store for all files:
 * another build may make other rows. A checksum guards against accidents; the folder is believed as indexes of names are.
 * Leaf module: returns errors, never logs. Agent's thread.
 */
#ifndef HEARTH_AGENT_ROWS_ROW_STORE_H
#define HEARTH_AGENT_ROWS_ROW_STORE_H

#include "agent/rows/row_cache.h"

struct row_store;

/* @dir_fd: the folder, which only this user and root write to; duplicated. -1: nothing is on disk. 0 or -ENOMEM. */
int row_store_new(int dir_fd, struct row_store **ret);
void row_store_free(struct row_store *s);

/* The number by which the row cache knows the file called @name: the same each time. 0: there are too many. */
uint32_t row_store_number(struct row_store *s, const char *name);

/* Gives back the pages that reading took. Accepts NULL. */
void row_store_rest(const struct row_store *s);

/* Brings the group of @addr of the file @number into @cache. 0; -ENOENT: it is not kept; -ENOMEM. */
int row_store_load(struct row_store *s, uint32_t number, uint64_t addr, struct row_cache *cache);

/* Calls @fn with each block of code of the file @number where stacks had frames in earlier starts, @max at most: an address
 * in it, and the rows that touch it. */
void row_store_hot(struct row_store *s, uint32_t number, uint32_t max,
		   void (*fn)(void *arg, uint64_t addr, const struct row *rows, size_t count), void *arg);

/* Bytes of memory held, and of the file that is mapped. Accept NULL. */
size_t row_store_memory_bytes(const struct row_store *s);
size_t row_store_mapped_bytes(const struct row_store *s);

/* Writes the rows in @cache and those kept before, the latter as far as there is room. 0 or -errno. */
int row_store_save(struct row_store *s, struct row_cache *cache);

#endif
