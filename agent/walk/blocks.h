/* SPDX-License-Identifier: Apache-2.0 */
/* Packs rows, as builders give them, into the blocks that the kernel holds. */
#ifndef HEARTH_AGENT_WALK_BLOCKS_H
#define HEARTH_AGENT_WALK_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/rows/rows.h"
#include "bpf/event.h"

/* Packs @row as of @start (the offset inside its block). A rule that the kernel cannot evaluate becomes RULE_USER. */
uint64_t block_pack_row(const struct row *row, uint16_t start);

/*
 * Makes the parts of block number @block (CODE_BLOCK_BYTES of ELF address space) of @file from the @count rows that touch
 * it, sorted. Returns their number, 1..MAX_BLOCK_PARTS; @parts has room for so many. Addresses without a row get RULE_NONE.
 */
uint32_t blocks_pack(uint32_t file, uint64_t block, const struct row *rows, size_t count, struct unwind_block *parts);

#endif
