/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling the kernel's caches with what a late walk needed, so that the next such stack is walked in the kernel; and with
 * the code of a file that ran in earlier lives, when the file is first met. Agent's thread.
 */
#ifndef HEARTH_AGENT_CACHE_FILL_H
#define HEARTH_AGENT_CACHE_FILL_H

#include <stdint.h>

#include "agent/address_space.h"
#include "agent/files.h"
#include "bpf/event.h"

struct cache_fill;
struct metrics;
struct sampler;

/* @files and @sampler are borrowed. 0 or -ENOMEM. */
int cache_fill_new(struct files *files, struct sampler *sampler, struct metrics *metrics, struct cache_fill **ret);
void cache_fill_free(struct cache_fill *c);

/* What follows is at @now_ns, of a place where a cache is believed to have what was put into it within @kept_ns; UINT64_MAX:
 * it has everything. */
void cache_fill_begin(struct cache_fill *c, uint64_t now_ns, uint64_t kept_ns);

/* @addr is in @m (NULL: in no mapping, told page by page). */
void cache_fill_mapping(struct cache_fill *c, struct address_space *as, uint64_t addr, const struct mapping *m,
			enum mapping_kind kind);

/* All mappings of a process seen for the first time: few entries, and its next sample finds them. */
void cache_fill_address_space(struct cache_fill *c, const struct address_space *as);

/* The block of code that @va is in. */
void cache_fill_block(struct cache_fill *c, const struct file *file, uint64_t va);

/* The blocks of code around @va: what runs for the first time soon runs into the next ones. */
void cache_fill_blocks(struct cache_fill *c, struct file *file, uint64_t va);

#endif
