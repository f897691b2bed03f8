/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that tell more about images in processes' memory than the memory does, as a .NET image's PDB with its lines. A
 * reader cannot open files: what it misses it notes as a need, which goes to the agent with the answer, and the agent brings
 * the file, or that there is none (CODE_OP_FILE of agent/helper/code_service.h). Files are known by the number of the
 * process's memory and the image's address; of all that were brought the coldest go, and are needed again. Nothing of them
 * is believed: they are others' files, and may be changed or cut off meanwhile. A file that an image has in itself,
 * packed, is kept here unpacked, as if it had been brought.
 *
 * The worker's thread.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_CODE_FILES_H
#define HEARTH_AGENT_RUNTIME_CODE_CODE_FILES_H

#include <stdint.h>

#include "agent/runtime/code/code_memory.h"

enum {
	CODE_FILES = 1024,    /* answers that are kept; those that there is no file, too */
	CODE_FILES_OPEN = 32, /* of them with a file: below a worker's limit of descriptors (MAX_FILES of elf_worker.c) */
	CODE_FILES_BYTES = 16 << 20, /* of all that is kept unpacked */
	CODE_NEED_ID = 20,
	CODE_NEED_NAME = 236,
};

/* The file that belongs to the image at @base. */
struct code_need {
	uint64_t base; /* 0: nothing is needed */
	uint8_t id[CODE_NEED_ID];
	char name[CODE_NEED_NAME]; /* without a folder */
};

struct code_file {
	uint64_t base, used;
	uint32_t number;
	int fd;			 /* owned; -1: there is none */
	struct code_bytes bytes; /* owned; the file, if it is kept unpacked: then there is no fd */
};

struct code_files {
	uint32_t number;       /* of the memory that is read now */
	struct code_need need; /* of this request: the first that was missed */
	uint64_t clock;
	uint32_t count, open_cnt;
	size_t kept_bytes;
	struct code_file files[CODE_FILES];
};

/* The memory @number is read from now on; nothing is needed yet. */
void code_files_begin(struct code_files *f, uint32_t number);

/* Takes @fd (borrowed; -1: there is none) for the image at @base of the memory that is read. 0 or -errno. */
int code_files_put(struct code_files *f, uint64_t base, int fd);

/* Is something known of the file of the image at @base of the memory that is read, or that there is none? */
bool code_files_has(struct code_files *f, uint64_t base);

/* Keeps the @len bytes at @data (malloc()'s, taken over in any case) as the file of the image at @base. 0; -E2BIG: more than
 * CODE_FILES_BYTES. */
int code_files_keep(struct code_files *f, uint64_t base, uint8_t *data, size_t len);

void code_files_forget(struct code_files *f, uint32_t number);
void code_files_fini(struct code_files *f);

/* Makes *@ret of the file that @need is about: memory whose addresses are offsets in the file, with a budget of its own, but
 * no more time than @m has. Only one file is read at a time. 0; -EAGAIN: the file was not brought yet, and now it is needed;
 * -ENOENT: there is none, or none can be brought. */
int code_files_find(const struct code_memory *m, const struct code_need *need, struct code_memory *ret);

/* Is @need one that an honest worker has? */
bool code_need_is_sound(const struct code_need *need);

#endif
