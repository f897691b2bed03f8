/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the kernel's caches with the entries that a late walk needed, so that the next such stack is walked in the kernel;
 * and with the code of a file that ran in earlier starts, when the file is first seen. Agent's thread.
 */
#ifndef HEARTH_AGENT_WALK_CACHE_FILL_H
#define HEARTH_AGENT_WALK_CACHE_FILL_H

#include <stdint.h>

#include "agent/process/address_space.h"
#include "agent/files/files.h"
#include "bpf/event.h"

struct cache_fill;
struct code_piece_range;
struct code_spaces;
struct metrics;
struct sampler;

/* @files, @code (may be NULL) and @sampler are borrowed. 0 or -ENOMEM. */
int cache_fill_new(struct files *files, struct code_spaces *code, struct sampler *sampler, struct metrics *metrics,
		   struct cache_fill **ret);
void cache_fill_free(struct cache_fill *c);

/* The calls that follow are at @now_ns. A cache is believed to have the entries that were put into it within @kept_ns;
 * UINT64_MAX: it has everything. */
void cache_fill_begin(struct cache_fill *c, uint64_t now_ns, uint64_t kept_ns);

/* @addr is in @m (NULL: in no mapping, told page by page). */
void cache_fill_mapping(struct cache_fill *c, struct address_space *as, uint64_t addr, const struct mapping *m,
			enum mapping_kind kind);

/* All mappings of a process that is seen for the first time, or under another asid: few entries for its next samples. */
void cache_fill_address_space(struct cache_fill *c, const struct address_space *as);

/* Puts in the block of code that @va is in. */
void cache_fill_block(struct cache_fill *c, const struct file *file, uint64_t va);

/* Puts in the blocks of a piece of generated code; at once if it is new. */
void cache_fill_piece(struct cache_fill *c, const struct file *file, const struct code_piece_range *piece);

/* Puts in the blocks of code around @va: code that runs for the first time soon reaches the next ones. */
void cache_fill_blocks(struct cache_fill *c, struct file *file, uint64_t va);

#endif
