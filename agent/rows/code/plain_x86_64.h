/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain instructions of x86-64, nine in ten of what compilers make: those that move and calculate, jumps and calls to
 * places that they name.
 * They are told by their first bytes, in a tenth of the time that a whole decoder takes. Whatever is not surely one of them
 * (prefixes, vectors, whatever else writes rsp) is left to Zydis. Leaf module, no state.
 */
#ifndef HEARTH_AGENT_ROWS_CODE_PLAIN_X86_64_H
#define HEARTH_AGENT_ROWS_CODE_PLAIN_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plain_kind {
	PLAIN_NOTHING,	/* only flags, if anything, are written */
	PLAIN_WRITE,	/* @to has another value */
	PLAIN_MOVE,	/* all 64 bits of @from go to @to */
	PLAIN_LOAD,	/* 8 bytes of memory go to @to */
	PLAIN_ADDRESS,	/* the operand's address goes to @to */
	PLAIN_ADD,	/* @number is added to @to, all 64 bits of it */
	PLAIN_STORE,	/* @bytes of memory are written: with @from, or something else (-1) */
	PLAIN_MAY_JUMP, /* to the next instruction's address + @number */
	PLAIN_JUMP,
	PLAIN_CALL,
};

/* Registers by the processor's numbers, -1: there is none. */
struct plain {
	uint8_t length_bytes;
	enum plain_kind kind;
	int8_t to, from; /* never rsp */
	uint8_t bytes;
	bool has_memory, has_index;
	int8_t base;	      /* of the operand in memory */
	int32_t displacement; /* its distance from there */
	int64_t number;
};

/* Decodes the instruction at @code, of which @len_bytes can be read. False: it is not plain, or cut. */
bool plain_decode(const uint8_t *code, size_t len_bytes, struct plain *ret);

#endif
