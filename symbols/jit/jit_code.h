/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that a program makes while it runs: ranges of addresses, each from some moment on the code of one function. Of
 * overlapping ranges the later one has the addresses, since their memory was used again; the earlier one keeps the rest.
 * Replaced code is remembered for a while, so that a sample from before is named by what ran then. Filled from perf maps,
 * jitdumps and the kernel's records of its own generated code. Leaf module: returns errors, never logs. Not shared between
 * threads.
 */
#ifndef HEARTH_SYMBOLS_JIT_JIT_CODE_H
#define HEARTH_SYMBOLS_JIT_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All limits are bounds on what a hostile writer can make us hold; no JIT we know comes near them. */
enum {
	JIT_CODE_MAX_PIECES = 1 << 17,	/* ranges */
	JIT_CODE_MAX_BYTES = 14 << 20,	/* of memory */
	JIT_CODE_MAX_NAME_BYTES = 1024, /* longer ones are cut */
	JIT_CODE_MAX_FUNCTION_BYTES = 64 << 20,
	JIT_CODE_MAX_REPLACED = 1024, /* ranges remembered; of more the oldest are forgotten */
};

struct jit_code;

/* A row of a line table: from @offset bytes into the function on, code comes from @line of @file. */
struct jit_line {
	uint32_t offset;
	uint32_t line;
	const char *file;
	size_t file_len;
};

/* One function's code, as it is announced. */
struct jit_function {
	uint64_t start, end;
	uint64_t time_ns; /* CLOCK_MONOTONIC: since when; 0: since ever */
	const char *name; /* bytes of any kind; kept as UTF-8 without control characters */
	size_t name_len;
	const struct jit_line *lines; /* sorted by offset */
	uint32_t line_cnt;
};

/* Texts live until the next change. */
struct jit_answer {
	const char *name;
	size_t name_len;
	uint64_t start;	   /* of the function */
	uint64_t since_ns; /* when it was announced */
	const char *file;  /* file_len 0: not known */
	size_t file_len;
	uint32_t line; /* 0: not known */
};

struct jit_code *jit_code_new(void);
void jit_code_free(struct jit_code *c);

/* Copies @f. 0; -EINVAL: no sound range; -ENOSPC: a limit is reached; -ENOMEM. */
int jit_code_add(struct jit_code *c, const struct jit_function *f);

/* The @size bytes of code at @from are at @to from @time_ns on. Also -ENOENT: nothing is known at @from. */
int jit_code_move(struct jit_code *c, uint64_t from, uint64_t to, uint64_t size, uint64_t time_ns);

/* Marks [start, end) as nobody's from @time_ns on: jit_code_find says -ENODATA there. Errors as jit_code_add. */
int jit_code_remove(struct jit_code *c, uint64_t start, uint64_t end, uint64_t time_ns);

/* Finds the code that ran at @addr at the moment @time_ns (UINT64_MAX: the latest). Code that was announced only after it
 * ran has its first name. 0; -ENOENT: never heard of; -ENODATA: known to be nobody's, since @ret->since_ns. */
int jit_code_find(const struct jit_code *c, uint64_t addr, uint64_t time_ns, struct jit_answer *ret);

/* Is something remembered that was replaced? */
bool jit_code_has_replaced(const struct jit_code *c);

/* Forgets code that was replaced before @time_ns. */
void jit_code_forget(struct jit_code *c, uint64_t time_ns);

size_t jit_code_count(const struct jit_code *c);
size_t jit_code_memory_bytes(const struct jit_code *c);

#endif
