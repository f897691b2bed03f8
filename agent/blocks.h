/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as builders give them, into the blocks the kernel holds. */
#ifndef HEARTH_AGENT_BLOCKS_H
#define HEARTH_AGENT_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/rows.h"
#include "bpf/event.h"

/* @row packed as of @start (the offset inside its block). What the kernel cannot evaluate becomes RULE_USER. */
uint64_t row_pack(const struct row *row, uint16_t start);

/*
 * The parts of block number @block (CODE_BLOCK_BYTES of ELF address space) of @file from the @count rows that touch it,
 * sorted. Returns their number, 1..MAX_BLOCK_PARTS; @parts has room for so many. Addresses without a row get RULE_NONE.
 */
uint32_t blocks_pack(uint32_t file, uint64_t block, const struct row *rows, size_t count, struct unwind_block *parts);

#endif
