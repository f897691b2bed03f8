/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a finished struct code_names, for the file that writes it down (symbols/index/write.c). */
#ifndef HEARTH_SYMBOLS_CODE_NAMES_PARTS_H
#define HEARTH_SYMBOLS_CODE_NAMES_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "symbols/code/names.h"
#include "symbols/code/steps.h"

struct code_node {
	uint32_t parent; /* a smaller index, or CODE_NONE */
	uint32_t function;
	uint32_t call_file;
	uint32_t call_line;
	uint16_t call_column; /* 0 also for what does not fit */
	uint8_t depth;	      /* of parents */
	uint8_t source;	      /* enum code_source */
};

struct code_row {
	uint64_t addr;
	uint32_t file; /* CODE_NONE: the end of its sequence */
	uint32_t line;
	uint32_t column;
} __attribute__((packed, aligned(4)));

struct code_names_parts {
	const struct code_steps *functions; /* values are nodes */
	const struct code_steps *lines;	    /* values are rows */
	const struct code_node *nodes;
	const struct code_row *rows;
	uint32_t node_count, function_count, file_count;
};

struct code_names_parts code_names_parts(const struct code_names *c);

/* A copy of @node with another parent and function; CODE_NONE: as code_names_node. */
uint32_t code_names_copy(struct code_names *c, uint32_t node, uint32_t parent, uint32_t function);

/* The line on which the source says that @function begins; 0: unknown. */
uint32_t code_names_decl_line(const struct code_names *c, uint32_t function);

#endif
