/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for (ELF file, virtual address) and for kernel addresses. A file's answers come in batches: its tables are read once
 * for all addresses, so that nothing of them stays in memory between batches. Leaf module: returns errors, never logs. Not
 * shared between threads.
 */
#ifndef HEARTH_SYMBOLS_SYMBOLS_H
#define HEARTH_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/demangle.h"

struct buf;

/* One question and its answer. */
struct symbol_query {
	uint64_t addr;	   /* ELF virtual address; for return addresses the caller has subtracted 1 */
	uint64_t sym_addr; /* out: start of the function; only with name_len > 0 */
	uint32_t name_off; /* out: where in @names the demangled name starts */
	uint32_t name_len; /* out: 0: no source names it */
	uint32_t raw_off;  /* out: the name as in the file (mangled); raw_len 0 when it equals the name */
	uint32_t raw_len;
};

/*
 * Names @queries out of the ELF file @fd, by all sources but DWARF (symbols/code/source.h; symbols/sources/symbol_table.h
 * has the order among symbols). An address outside every symbol's size gets no name; of inlined code the function around it
 * is named. Text goes to @names, which is appended to. The order of @queries is kept. 0; -ENOEXEC (no 64-bit ELF file),
 * -ENOMEM.
 */
int symbols_resolve_elf(int fd, struct symbol_query *queries, size_t count, struct buf *names);

/* --- kernel --- */
struct kallsyms;

/* Reads @path (/proc/kallsyms when NULL). -EPERM when all addresses are hidden (kptr_restrict), -errno, -ENOMEM. */
int kallsyms_new(const char *path, struct kallsyms **ret);
void kallsyms_free(struct kallsyms *k);

/*
 * The text symbol at or below @addr; 0, or -ENOENT. Strings live as long as @k. @module_ret is "" for the kernel itself
 * ("bpf" for BPF programs). At one address the order is: global before weak before local, then the one with fewer leading
 * underscores, then the shorter, then the one that is listed first. The list has no sizes: a function reaches to the next
 * symbol; the last one of a module's text to the module's data, and where that lies elsewhere no further than 4 KB.
 */
int kallsyms_find(const struct kallsyms *k, uint64_t addr, const char **name_ret, const char **module_ret,
		  uint64_t *start_ret);

/* Appends the parts of @text, the content of /proc/modules, that change when a module comes or goes: name, size, state and
 * address of each. */
void kallsyms_modules(const char *text, struct buf *out);

/* Appends the notes with the build ids of the modules of @text, as kallsyms_modules() makes it, that @folder (/sys/module)
 * has: a module of the same size may have come to the place of another. */
void kallsyms_module_ids(const char *text, const char *folder, struct buf *out);

/* Bytes of memory held, without a file that is mapped. */
size_t kallsyms_memory_bytes(const struct kallsyms *k);

/* Bytes of the file that is mapped. */
size_t kallsyms_mapped_bytes(const struct kallsyms *k);

enum { KALLSYMS_KEY_BYTES = 16 };

/*
 * Keeps the list in the file @name of the folder @dir_fd, under @key, which is to tell one boot with its modules from all
 * others. BPF programs and pages for probes are left out: they come and go. 0 or -errno.
 */
int kallsyms_keep(const struct kallsyms *k, int dir_fd, const char *name, const char key[static KALLSYMS_KEY_BYTES]);

/* The list that was kept under @key. 0; -ENOENT; -ESTALE: under another key, or by another hearth; -EBADMSG: it is broken,
 * or not to be believed; -errno, -ENOMEM. */
int kallsyms_kept(int dir_fd, const char *name, const char key[static KALLSYMS_KEY_BYTES], struct kallsyms **ret);

/* Gives the memory back that questions to a kept list took. */
void kallsyms_rest(const struct kallsyms *k);

/* --- build ids --- */
struct build_ids {
	char gnu[65];	  /* lower-case hex, "" when there is none */
	char go[128];	  /* text of the Go build id, "" when there is none */
	char htlhash[33]; /* of every file: see OTel semantic conventions, process.executable.build_id.htlhash */
};

/* 0 or -errno; also for files that are no ELF (htlhash alone). */
int build_ids_read(int fd, struct build_ids *ret);

enum { BUILD_ID_CHARS = 41 }; /* 20 bytes in hex, and the NUL */

/* The GNU build id among @len bytes of notes (elf(5)) in memory. False: there is none, or they are cut before it. */
bool build_id_of_notes(const uint8_t *notes, size_t len, char out[static BUILD_ID_CHARS]);

#endif
