/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A builder makes unwind rows out of one kind of knowledge about a file's code. The builders stand in one table in
 * agent/rows/rows.c and are asked in its order; the gaps that one leaves are offered to the next. Only the files behind
 * agent/rows/rows.h include this. Builders are leaf modules: they return errors and never log. Nothing in a file is trusted:
 * every offset and count is checked against the image.
 */
#ifndef HEARTH_AGENT_ROWS_ROW_BUILDER_H
#define HEARTH_AGENT_ROWS_ROW_BUILDER_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rows/row.h"

/* The file the rows are of. Lives longer than the builders' states. */
struct row_image {
	const uint8_t *data; /* the whole file, read-only; may be unmapped beyond its end */
	size_t len;
	Elf *elf;	      /* over the same bytes; borrowed */
	const uint8_t *debug; /* the file's separate debug file, or NULL; only while builders are opened */
	size_t debug_len;
	Elf *debug_elf; /* over those; NULL when there is none */
	/* Calls @fn with the functions of the file that tables of another kind than symbols tell, until it returns anything
	 * but 0, which this returns then; also -ENOMEM. NULL: there are none. */
	int (*functions)(const struct row_image *image, int (*fn)(void *arg, uint64_t addr, uint64_t size_bytes), void *arg);
	uint64_t entry;	    /* e_entry, 0 when there is none */
	uint64_t entry_gap; /* bytes from there on that no builder opened before covers, at most 256; 0 while none is open */
};

struct row_builder {
	const char *name;
	/* 0 with a state of its own in *@ret; -ENODATA when the file has nothing for it; -ENOMEM. */
	int (*open)(const struct row_image *image, void **ret);
	/*
	 * The rows that touch [@start, @end), cut at its borders, sorted, disjoint; code it knows nothing about gets none;
	 * a row of ROW_CFA_NONE says that no later builder's word is to be taken either. Same errors and bounds as
	 * rows_build; merging and padding are the caller's business.
	 */
	int (*build)(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret);
	/* The same without what takes long: there a row of ROW_CFA_UNASKED. NULL: nothing does. */
	int (*build_quickly)(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret);
	/* Works as row_eval. NULL: the rows say everything (there is no ROW_CFA_EXPR and no ROW_OTHER among them). */
	int (*eval)(void *state, uint64_t addr, const struct row_regs *in, row_read_fn read, void *arg,
		    struct row_regs *out);
	/* Gives back what questions took long to find, if none needed it since the last call. NULL: nothing is of that kind.
	 */
	void (*rest)(void *state);
	void (*close)(void *state);
	/* Is row_image.functions for what the builder knows of. NULL: it knows of none. */
	int (*functions)(const struct row_image *image, int (*fn)(void *arg, uint64_t addr, uint64_t size_bytes), void *arg);
};

/* Works as row_eval, by the rule of @row, which must say everything. */
int row_apply(const struct row *row, const struct row_regs *in, row_read_fn read, void *arg, struct row_regs *out);

/* The return address, which the frame of @out had in REG_RA, becomes its pc; what lr holds then nobody knows. Nothing to do
 * where REG_RA is the pc. */
void row_return(struct row_regs *out);

extern const struct row_builder rows_sigreturn;
extern const struct row_builder rows_plt; /* arm64 */
extern const struct row_builder rows_v8;  /* x86-64 */
extern const struct row_builder rows_eh_frame;
extern const struct row_builder rows_debug_frame;
extern const struct row_builder rows_go;
extern const struct row_builder rows_entry;
extern const struct row_builder rows_code;

/* Does an instruction that ends at address @addr of the file's code call? */
bool rows_code_has_call_before(const struct row_image *image, uint64_t addr);

/* Does the code that signal handlers return to begin at @addr? */
bool rows_sigreturn_is_at(const struct row_image *image, uint64_t addr);

#endif
