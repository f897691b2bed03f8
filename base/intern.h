/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte sequences to dense indices: the first distinct sequence is 0, the next 1, ... Equal bytes get the same index.
 * Strings, stacks (arrays of indices), locations and resources are all interned by this one table: the key is their bytes,
 * so padding must be zero. Keys are copied. Not shared between threads.
 */
#ifndef HEARTH_BASE_INTERN_H
#define HEARTH_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern;

/* Returns NULL without memory. */
struct intern *intern_new(void);
void intern_free(struct intern *t);

/* Returns 1 when @key was new, 0 when the table had it already, -ENOMEM; *@index_ret is its index (untouched on error). @key
 * must not point into the table itself. */
int intern_add(struct intern *t, const void *key, size_t len_bytes, uint32_t *index_ret);

/* Does the table have @key? Then *@index_ret is its index. */
bool intern_find(const struct intern *t, const void *key, size_t len_bytes, uint32_t *index_ret);

/* The bytes of @index (valid until the next intern_add or intern_reset), *@len_ret their count (may be NULL). @index must be
 * < intern_count(). Sequences are 8-byte aligned. */
const void *intern_get(const struct intern *t, uint32_t index, size_t *len_ret);

uint32_t intern_count(const struct intern *t);

/* Bytes of memory held. */
size_t intern_memory_bytes(const struct intern *t);

/* Forgets all entries, keeps the memory. */
void intern_reset(struct intern *t);

/* Forgets all entries and gives back the memory that an empty table does not need. */
void intern_shrink(struct intern *t);

#endif
