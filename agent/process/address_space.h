/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable mappings of a process. The id of an address space (asid) is a part of every key in the kernel's caches.
 * User space hands asids out, never reuses one, and takes a new one when an executable mapping replaced another, so no cache
 * ever needs clearing. A forked child shares its parent's address space until either changes it.
 */
#ifndef HEARTH_AGENT_PROCESS_ADDRESS_SPACE_H
#define HEARTH_AGENT_PROCESS_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/files/files.h"

struct mapping {
	uint64_t start, end;
	uint64_t bias;	   /* address - bias = ELF virtual address */
	struct file *file; /* a reference; NULL: anonymous (JIT) */
	bool is_foreign;   /* it is no ELF file, or no code of it as one: a runtime's own form of code may be there */
};

/* The code that a runtime makes in an address space: the first member of the state that its owner (agent/code/) keeps.
 * Address spaces that are copies of each other share it. */
struct as_code {
	uint32_t refs;
	void (*free)(struct as_code *code);
	/* The file that stands for the memory where such code is kept, and its offset at @start, if [@start, @end) is in one
	 * of these ranges; else NULL. */
	struct file *(*file_at)(const struct as_code *code, uint64_t start, uint64_t end, uint64_t *off_ret);
};

enum { REPLACED_KEPT = 8, NOT_CODE_KEPT = 16 };

struct address_space {
	uint32_t refs;
	uint32_t asid;
	struct mapping *maps; /* sorted, disjoint */
	uint32_t count, cap;
	/* Ranges that the kernel was told to be no code; the list is incomplete when there was no room for all. */
	struct {
		uint64_t start, end;
	} not_code[NOT_CODE_KEPT];
	uint32_t not_code_cnt;
	/* The latest ranges that were mapped over, and the asid that each change gave: rows of an older asid are stale
	 * there. */
	struct {
		uint64_t start, end;
		uint32_t asid;
	} replaced[REPLACED_KEPT];
	uint32_t replaced_cnt;
	uint64_t replaced_ns; /* when the last one was; 0: none was */
	struct as_code *code; /* a reference; NULL: no runtime makes code, as far as is known */
	/* The runtimes whose chain the kernel can collect (agent/process/chain_states.h). */
	uint32_t runtimes;
	bool chains_told; /* the kernel knows that for this asid and these mappings */
};

/* Returns an empty address space with an asid of its own and one reference; NULL without memory. */
struct address_space *address_space_new(void);
struct address_space *address_space_get(struct address_space *as);
void address_space_put(struct address_space *as);

/*
 * Maps [@start, @end) to @pgoff bytes into @file (NULL: anonymous). *@as is copied first when it is shared. Returns 1 when
 * the asid has changed, 0, or -ENOMEM.
 */
int address_space_map(struct address_space **as, uint64_t start, uint64_t end, uint64_t pgoff, struct file *file);

/* The file that memory without one at [@start, @end) belongs to, as a runtime keeps code there; NULL: none. */
struct file *address_space_code_file(const struct address_space *as, uint64_t start, uint64_t end, uint64_t *off_ret);

/* Takes over @code (a reference): mappings without a file where it has ranges get its files from now on. A shared address
 * space is copied first. Returns 1 (the asid has changed), or -ENOMEM. To be called again when @code has more ranges. */
int address_space_set_code(struct address_space **as, struct as_code *code);

/* Rows that the kernel may have kept under the asid are out of date: takes another one. */
void address_space_renew(struct address_space *as);

/* Would such a mapping replace something else? */
bool address_space_would_replace(const struct address_space *as, uint64_t start, uint64_t end, uint64_t pgoff,
				 const struct file *file);

/* Notes that the kernel is told that [@start, @end) is no code: a mapping there will take another asid. */
void address_space_note_not_code(struct address_space *as, uint64_t start, uint64_t end);

/* The mapping that holds @addr or NULL. */
const struct mapping *address_space_find(const struct address_space *as, uint64_t addr);

/* @m, one of @as; of generated code with the ones before and behind it that are of the same code, and with all that is
 * between them, which is no code: a runtime maps pieces, but keeps the range for itself. */
struct mapping address_space_run(const struct address_space *as, const struct mapping *m);

/* The mapping that covers most of the piece of 2^@shift bytes around @addr (the first of equals); NULL when none does. */
const struct mapping *address_space_owner(const struct address_space *as, uint64_t addr, unsigned shift);

static inline size_t address_space_memory_bytes(const struct address_space *as)
{
	return sizeof(*as) + as->cap * sizeof(*as->maps);
}

/* May a row that was found under @asid for @addr be out of date? */
bool address_space_is_stale(const struct address_space *as, uint32_t asid, uint64_t addr);

#endif
