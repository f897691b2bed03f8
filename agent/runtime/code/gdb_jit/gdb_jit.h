/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that a process registered for debuggers (GDB's manual, "JIT Compilation Interface"): a list of ELF files in the
 * process's memory, whose section headers say where the code stands. LLVM's compilers have it (PostgreSQL, Numba, Julia,
 * lli), and others that write such files. For the reader's own files. One thread.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_GDB_JIT_H
#define HEARTH_AGENT_RUNTIME_CODE_GDB_JIT_H

#include <elf.h>

#include "agent/runtime/code/code_reader.h"

enum {
	GDB_JIT_KNOWN = 1200,		   /* pieces of code that are remembered; others are looked for again */
	GDB_JIT_MAX_ENTRIES = 1 << 14,	   /* of the list */
	GDB_JIT_MAX_SECTIONS = 4096,	   /* of an ELF file */
	GDB_JIT_MAX_IMAGE_BYTES = 7 << 20, /* so that a request's budget is enough to read it twice */
	GDB_JIT_BLOCK_BYTES = 256 << 10,   /* larger code is told in such pieces */
};

/* struct jit_code_entry */
struct gdb_jit_entry {
	uint64_t next, prev, image, bytes;
};

/* An executable section of an entry's file. */
struct gdb_jit_code {
	uint64_t entry, image;
	uint64_t start, end;
	uint64_t header; /* address of the section's header */
	uint32_t bytes;	 /* of the file */
	uint32_t pad;
};

struct gdb_jit {
	uint64_t descriptor;	  /* address of the variable */
	uint32_t known_cnt, turn; /* the one that goes next when there are too many */
	struct gdb_jit_code known[GDB_JIT_KNOWN];
};

/* struct code_block's kind and own words. */
enum gdb_jit_kind {
	GDB_JIT_NONE, /* nothing is registered there: walked by frame pointers, like all such code */
	GDB_JIT_CODE,
};
enum { GDB_JIT_OWN_IMAGE, GDB_JIT_OWN_BYTES };

/* --- the list (gdb_jit_list.c) --- */

/* Reads the variable's first entry; *@ret 0: nothing is registered. 0; -ENOTSUP: it is no such variable; -EFAULT, -EDQUOT.
 */
int gdb_jit_first(struct code_memory *m, uint64_t descriptor, uint64_t *ret);

/* Looks for the variable in @bytes of the process's data at @addr, by where it leads: to an entry, and that to an ELF file.
 * 0; -EAGAIN: it is not there, or nothing is registered yet; -EFAULT, -EDQUOT. */
int gdb_jit_look(struct code_memory *m, uint64_t addr, uint64_t bytes, uint64_t *descriptor_ret);

/* Finds the code at @pc. 0; -ENOENT: none is registered there, and *@ret has start and end of the gap between others that
 * @pc is in; -EFAULT, -EDQUOT. */
int gdb_jit_find(struct gdb_jit *s, struct code_memory *m, uint64_t pc, struct gdb_jit_code *ret);

/* Calls @fn for all code that is registered, until it returns false. 0 or -errno. */
int gdb_jit_each(struct gdb_jit *s, struct code_memory *m, bool (*fn)(void *arg, const struct gdb_jit_code *code),
		 void *arg);

/* The entry at @addr. 0 or -errno. */
int gdb_jit_read_entry(struct code_memory *m, uint64_t addr, struct gdb_jit_entry *ret);

/* --- the files (gdb_jit_image.c) --- */

/* Section headers of the ELF file of @bytes at @addr. */
struct gdb_jit_sections {
	Elf64_Ehdr head;
	Elf64_Shdr *all; /* owned */
	uint32_t count;
};

/* 0; -EBADMSG: that is no ELF file of this machine; -ENOMEM, -EFAULT, -EDQUOT. */
int gdb_jit_sections_read(struct code_memory *m, uint64_t addr, uint64_t bytes, struct gdb_jit_sections *ret);
void gdb_jit_sections_free(struct gdb_jit_sections *s);

/* Is there code in section @sh, and where? */
bool gdb_jit_is_code(const Elf64_Shdr *sh);

/*
 * A copy of the file as a debugger needs it, of @bytes (to be freed; NULL without memory, or when it cannot be read):
 * tables of frames are those that were loaded, as those in the file were not relocated; debug sections are relocated.
 */
uint8_t *gdb_jit_image_read(struct code_memory *m, uint64_t addr, uint64_t bytes);

/* A piece of code between two borders of functions. */
struct gdb_jit_piece {
	uint64_t start, end;
	uint64_t name; /* address of the name of the function that it is of; 0: of none */
};

/* Finds the piece of @code that @pc is in, by the file's symbols. 0 or -errno. */
int gdb_jit_piece_find(struct code_memory *m, const struct gdb_jit_code *code, uint64_t pc, struct gdb_jit_piece *ret);

/* --- what the reader tells of a block (gdb_jit_names.c) --- */

int gdb_jit_names(void *state, struct code_memory *m, const struct code_block *b, struct block_names *n);

#endif
