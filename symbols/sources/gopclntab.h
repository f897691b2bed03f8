/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table that Go's linker puts into every program and that its runtime walks stacks with: functions, their lines, and how
 * far the stack pointer stands below the return address at each instruction. It survives stripping. Go 1.18 and newer,
 * x86-64 and arm64. Leaf module: no allocation, no state; the table borrows the image. Every offset is checked when it is
 * used.
 */
#ifndef HEARTH_SYMBOLS_SOURCES_GOPCLNTAB_H
#define HEARTH_SYMBOLS_SOURCES_GOPCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gopclntab {
	const void *image; /* the file */
	size_t image_len;
	uint64_t addr;	     /* ELF address of the table's header */
	const uint8_t *data; /* from the table's header to the end of what the file loads around it */
	size_t len;
	const uint8_t *code; /* the executable segment */
	size_t code_len;
	uint64_t code_addr;
	uint64_t text;					 /* what the table's code offsets count from */
	uint64_t names, units, files, values, functions; /* parts of the table, offsets in @data */
	uint32_t function_count;
	uint8_t quantum;	/* bytes that instructions are a multiple of */
	bool has_start_line;	/* 1.20 and newer: one more field a function */
	const uint8_t *inlined; /* what functions' offsets of inlined calls count from; NULL: not looked for, or not found */
	size_t inlined_len;
};

/* Flags of a function: what the runtime's own walk needs to know. */
enum gopclntab_flags {
	GOPCLNTAB_TOP_FRAME = 1, /* outermost function of a stack */
	GOPCLNTAB_SP_WRITE = 2,	 /* sets the stack pointer to something else: the values do not tell where it stands */
};

struct gopclntab_function {
	uint64_t entry, end; /* ELF addresses; the end is the next one's entry */
	const char *name;
	size_t name_len;
	uint32_t sp_values, file_values, line_values; /* for gopclntab_values_init; 0: there are none */
	uint32_t unit;
	uint32_t start_line; /* 0: unknown */
	uint32_t
		inlined_values; /* for gopclntab_values_init: numbers of inlined calls, -1 outside them; 0: there are none */
	uint32_t inlined;	/* offset of the first of these calls */
	uint8_t flags;
};

/* A call that the compiler replaced by the function's code. */
struct gopclntab_inlined {
	const char *name; /* of the function called */
	size_t name_len;
	uint32_t start_line; /* of that function; 0: unknown */
	uint64_t call_addr;  /* ELF address of an instruction of the caller at the place of the call: its file, line and
			      * inlined call are the caller's */
};

/* Values over a function's code. */
struct gopclntab_values {
	const uint8_t *at, *stop;
	uint64_t pc;
	int32_t value;
	bool has_begun;
	uint8_t quantum;
};

/* Finds the table of the ELF file @image, which must outlive @ret. 0; -ENODATA: no table, or one we cannot read. */
int gopclntab_open(const void *image, size_t len_bytes, struct gopclntab *ret);

/* Function number @index of function_count, by rising address. 0, or -EBADMSG when the table is broken there. */
int gopclntab_function(const struct gopclntab *t, uint32_t index, struct gopclntab_function *ret);

/* Looks for where inlined calls are described, which the runtime's module data tells. 0, or -ENODATA. */
int gopclntab_open_inlined(struct gopclntab *t);

/* Inlined call number @index of @f. 0; -EBADMSG: the table is broken there; -ENODATA: calls were not found. */
int gopclntab_inlined(const struct gopclntab *t, const struct gopclntab_function *f, uint32_t index,
		      struct gopclntab_inlined *ret);

/* The number of the function that covers ELF address @addr. 0 or -ENOENT. */
int gopclntab_find(const struct gopclntab *t, uint64_t addr, uint32_t *index_ret);

void gopclntab_values_init(const struct gopclntab *t, const struct gopclntab_function *f, uint32_t values,
			   struct gopclntab_values *it);
/* The next range with one value; sorted, without gaps from the function's entry on. False at the end. */
bool gopclntab_values_next(struct gopclntab_values *it, uint64_t *start_ret, uint64_t *end_ret, int32_t *value_ret);

/* The path of file number @file (a value of file_values) of @f; NULL: there is none. A NUL stands behind it. */
const char *gopclntab_path(const struct gopclntab *t, const struct gopclntab_function *f, int32_t file, size_t *len_ret);

/* The source place of the instruction at @addr; for inlined code the place in the inlined function. The file's name ends in
 * a NUL behind its @len_ret bytes. 0 or -ENOENT. */
int gopclntab_line(const struct gopclntab *t, const struct gopclntab_function *f, uint64_t addr, const char **file_ret,
		   size_t *len_ret, int32_t *line_ret);

/* The code at ELF address @addr, NULL when fewer than @len bytes of the executable segment follow. */
const uint8_t *gopclntab_code(const struct gopclntab *t, uint64_t addr, size_t len);

#endif
