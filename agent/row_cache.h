/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that were asked for, by groups of code: a late walk needs those of all its frames, also where the kernel has them. A
 * row takes 6 bytes here, as most functions save the same registers in the same places: the rules of a group are kept once.
 * Bounded; a group that needs the place of another takes it. Agent's thread.
 */
#ifndef HEARTH_AGENT_ROW_CACHE_H
#define HEARTH_AGENT_ROW_CACHE_H

#include "agent/rows.h"
#include "bpf/event.h"

/* What rows are asked for and kept by: code that runs for the first time seldom stays within one block. */
enum { ROW_GROUP_BYTES = 16 * CODE_BLOCK_BYTES };

struct row_cache;

int row_cache_new(struct row_cache **ret);
void row_cache_free(struct row_cache *c);

/* Keeps @rows (sorted, disjoint, within the group) as those of the group of @addr, instead of what was known. 0 or -ENOMEM.
 */
int row_cache_put(struct row_cache *c, uint32_t file, uint64_t addr, const struct row *rows, size_t count);

/* Is the group of @addr known? */
bool row_cache_has(const struct row_cache *c, uint32_t file, uint64_t addr);

/* The row at @addr into *@ret; false: its group is not known, or has none there. */
bool row_cache_find(const struct row_cache *c, uint32_t file, uint64_t addr, struct row *ret);

/* The rows that touch the block of code of @addr, whole, into @rows. Their number, at most CODE_BLOCK_BYTES. */
size_t row_cache_block(const struct row_cache *c, uint32_t file, uint64_t addr, struct row *rows);

/* The row at @addr, if there is one, says from now on what @row does; its range stays. 0 or -ENOMEM. */
int row_cache_learn(struct row_cache *c, uint32_t file, uint64_t addr, const struct row *row);

void row_cache_forget(struct row_cache *c, uint32_t file);

#endif
