/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind rows: for each address of a file's code, how to find the caller's registers. rows_build gives the rules as
 * plain numbers for as many addresses as they can express; row_eval applies the exact rule at one address, whatever it is.
 * Addresses are ELF virtual addresses. Leaf module: returns errors, never logs. A source is not shared between threads.
 */
#ifndef HEARTH_AGENT_ROWS_ROWS_H
#define HEARTH_AGENT_ROWS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rows/row.h"

struct row_source;

/* The tables of an ELF file, mapped into memory; @fd may be closed afterwards. Several kinds of table (.eh_frame,
 * .debug_frame; agent/rows/row_builder.h) fill each other's gaps. 0; -ENOEXEC (no ELF file for this CPU), -ENODATA (no
 * tables), -ENOMEM, or what mapping said. */
int row_source_new(int fd, struct row_source **ret);

/* The same, with what the separate debug file of @fd has; the @len_bytes of that file at @debug (NULL: there is none) are
 * needed for this call alone. */
int row_source_new_debug(int fd, const void *debug, size_t len_bytes, struct row_source **ret);

/* The same for an image in memory (the vDSO), which is borrowed. */
int row_source_new_memory(const void *image, size_t len_bytes, struct row_source **ret);

void row_source_free(struct row_source *src);

/* Gives the memory back that reading the file took; what is read again comes from the file. */
void row_source_rest(const struct row_source *src);

/* Gives back what was found in the file for questions, if none needed it since the last call: it is searched for anew then.
 */
void row_source_forget(struct row_source *src);

/*
 * The rows of [start, end), cut at its borders, sorted, equal neighbours merged. Code without a rule has no row (or
 * ROW_CFA_NONE), but a gap of less than 16 bytes (padding) belongs to the row before it. 0; -ENOSPC when there are more than
 * @max rows (the first @max stand). A range of n bytes never has more than n rows.
 */
int rows_build(struct row_source *src, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret);

/*
 * The same for the sake of @addr: where only the instructions could tell, the rows are ROW_CFA_UNASKED (in the kernel's
 * caches a miss) unless @addr is there. To look at the instructions takes long in a large file, and nearly all that no table
 * covers never runs.
 */
int rows_build_at(struct row_source *src, uint64_t addr, uint64_t start, uint64_t end, struct row *rows, size_t max,
		  size_t *count_ret);

/*
 * From the registers @in of the frame whose code address is @addr (ELF virtual address; for a return address the caller has
 * subtracted 1) to those of its caller, by the exact rule. 0; 1 at the outermost frame; -ENOENT (no rule), -EFAULT (memory
 * not readable), -ENODATA (needs a register that is not known), -ENOTSUP (an operation we do not know or a malformed
 * expression), -ENOMEM. @out is complete only after 0; it must not be @in.
 */
int row_eval(struct row_source *src, uint64_t addr, const struct row_regs *in, row_read_fn read, void *arg,
	     struct row_regs *out);

/* Does a call end at @addr, or the code for a handler's return begin there, so that @addr can be the return address that a
 * row with is_guess led to? */
bool row_is_return_address(const struct row_source *src, uint64_t addr);

#endif
