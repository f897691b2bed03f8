/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that were asked for, by groups of code: a late walk needs those of all its frames, also where the kernel has them. A
 * row takes 6 bytes here, as most functions save the same registers in the same places: each rule is kept once, for all
 * files. Bounded; of the groups that share places the one not used for longest goes. Agent's thread.
 */
#ifndef HEARTH_AGENT_ROWS_ROW_CACHE_H
#define HEARTH_AGENT_ROWS_ROW_CACHE_H

#include "agent/rows/rows.h"
#include "bpf/event.h"

/* The unit in which rows are asked for and kept: code that runs for the first time seldom stays within one block. */
enum { ROW_GROUP_BYTES = 4 * CODE_BLOCK_BYTES };

struct row_cache;

int row_cache_new(struct row_cache **ret);
void row_cache_free(struct row_cache *c);

/* Keeps @rows (sorted, disjoint, within the group) as those of the group of @addr, instead of what was known but where
 * stacks end. 0 or -ENOMEM. */
int row_cache_put(struct row_cache *c, uint32_t file, uint64_t addr, const struct row *rows, size_t count);

/* Is the group of @addr known? */
bool row_cache_has(struct row_cache *c, uint32_t file, uint64_t addr);

/* The row at @addr into *@ret; false: its group is not known, or has none there. */
bool row_cache_find(struct row_cache *c, uint32_t file, uint64_t addr, struct row *ret);

/* Puts the rows that touch the block of code of @addr, uncut, into @rows. Returns their number, at most CODE_BLOCK_BYTES. */
size_t row_cache_block(struct row_cache *c, uint32_t file, uint64_t addr, struct row *rows);

/* Gives the row at @addr, if there is one, the rule of @row; its range stays. 0 or -ENOMEM. */
int row_cache_learn(struct row_cache *c, uint32_t file, uint64_t addr, const struct row *row);

/* A return address right behind @addr is where stacks made by hand end, as long as the group of @addr is known. 0 or
 * -ENOMEM.
 */
int row_cache_end(struct row_cache *c, uint32_t file, uint64_t addr);

/* Notes that a stack had a frame at @addr. */
void row_cache_mark(struct row_cache *c, uint32_t file, uint64_t addr);

void row_cache_forget(struct row_cache *c, uint32_t file);

/* Bytes of memory held. */
size_t row_cache_memory_bytes(const struct row_cache *c);

/* --- the form that is kept on disk (agent/rows/row_store.h) --- */

struct row_place { /* from the group's start */
	uint16_t start, end;
	uint16_t rule; /* a number among the rules */
};

struct row_group {
	uint64_t group; /* address / ROW_GROUP_BYTES */
	uint32_t file;
	uint16_t place_cnt;
	uint16_t hot; /* a bit for each block where a stack had a frame */
	const struct row_place *places;
};

/* Walks all groups, from *@pos = 0 on. False at the end. The data that @ret leads to is valid until the cache changes. */
bool row_cache_next(const struct row_cache *c, size_t *pos, struct row_group *ret);

/* The rules, whose ranges say nothing. */
uint32_t row_cache_rule_count(const struct row_cache *c);
const struct row *row_cache_rule(const struct row_cache *c, uint32_t number);

#endif
