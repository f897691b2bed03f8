/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF files that processes map. A file is (device, inode, generation) as the kernel's records name it: opaque, never
 * compared with fstat (overlay file systems differ). A file is opened when it is first seen and held, so that deleted and
 * containerised files keep their rows and names. File ids are never reused: the kernel's caches are keyed by them.
 */
#ifndef HEARTH_AGENT_FILES_FILES_H
#define HEARTH_AGENT_FILES_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/helper/elf_service.h"
#include "agent/files/open.h"
#include "bpf/event.h"

struct code_range_state;
struct file_index;
struct metrics;
struct row_store;
struct symbol_cache_key;

enum file_state {
	FILE_READABLE,	 /* open, an ELF file we understand */
	FILE_NO_ROWS,	 /* the same, but the file has no call frame tables */
	FILE_UNREADABLE, /* could not be opened, or is no file we understand */
	FILE_HOSTILE,	 /* reading its tables crashed, hung or took too much memory (elf_service_is_hostile): not asked for
			    rows again */
};

struct file {
	uint32_t id;	    /* from 1 */
	uint32_t rows_id;   /* the number under which its rows are kept; the same file has the same one after a restart */
	uint32_t refs;	    /* mappings that lead here */
	int fd;		    /* -1: none */
	uint32_t tried_pid; /* the process through which opening it was tried last, and when */
	uint64_t tried_ns;
	enum file_state state;
	bool is_unread;	      /* opened, but nothing is read yet */
	bool is_filled_ahead; /* the kernel was told which of its code ran in earlier starts */
	bool is_unnameable;   /* reading its names did harm, or nothing of it can be read at all: not read for names again */
	struct file_key key;
	char *path;		       /* as the process saw it, without the kernel's " (deleted)" */
	uint64_t used_ns;	       /* when a mapping or a sample last needed it */
	uint64_t size_bytes, mtime_ns; /* when it was opened */
	uint64_t believed_ns;	       /* when they were last found unchanged */
	struct elf_info info;
	uint32_t pid;		       /* the process last seen to map it: debug files are looked for in its root */
	int debug_fd;		       /* the separate debug file, once its reader took it; -1: none */
	uint8_t tried[DEBUG_NEED_MAX]; /* debug files: the next place to look (debug_file_open) */
	struct file_index
		*index; /* index of its names, once a sample has a frame in it (agent/names/indexes.h); NULL: none yet */
	struct code_range_state
		*code;	   /* the file stands for memory where a runtime keeps code (agent/code/); NULL: it is one */
	struct file *next; /* same (device, inode), another generation or content */
};

struct files;

/* Takes @service and @opener over, also when it fails. */
int files_new(struct elf_service *service, struct file_opener *opener, struct metrics *metrics, struct files **ret);
void files_free(struct files *f);

/* Keeps rows from life to life in @store, which is taken over. */
void files_keep_rows(struct files *f, struct row_store *store);

/* Writes the rows learned since the last time, if there are enough of them. 0 or -errno. */
int files_save_rows(struct files *f);

/* From now on files_rows never returns -EAGAIN. */
void files_always_wait(struct files *f);

/* @hook (copied) runs now and then while a call below waits for a file to be read. It must call nothing here but files_open.
 */
void files_on_wait(struct files *f, struct wait_hook hook);

/* Does what files_see does, but reads nothing from the file yet. For a file whose process may be gone soon, and from inside
 * the function of files_on_wait. */
struct file *files_open(struct files *f, const struct file_key *key, const char *path, const struct file_place *at);

/*
 * The file behind the mapping at @at; NULL without memory. @path is the kernel's. Opens the file when it is new, see
 * file_open().
 */
struct file *files_see(struct files *f, const struct file_key *key, const char *path, const struct file_place *at);

/* An id that no other file gets. */
uint32_t files_take_id(struct files *f);

/* Makes a file that stands for @bytes of a process's memory, called @path, with an @id of files_take_id(). It is in no
 * table: the caller frees it when it has no references. NULL without memory. */
struct file *memory_file_new(uint32_t id, const char *path, uint64_t bytes);
void memory_file_free(struct file *file); /* accepts NULL */

struct file *file_get(struct file *file);
void file_put(struct file *file);

/* Closes and forgets files that no mapping leads to and nothing needed for @idle_ns. */
void files_expire(struct files *f, uint64_t now_ns, uint64_t idle_ns);

/* Puts the row at ELF address @addr into *@row; its group of code is asked for when it is not known. 0; 1: no rule there;
 * -ENOENT when the file has no tables, -EAGAIN while its reader takes long (ask again later), or -errno. */
int files_row(struct files *f, struct file *file, uint64_t addr, struct row *row);

/* Puts the rows that touch the block of code of @addr, uncut, into @rows, as far as they were asked for. Returns their
 * number, at most CODE_BLOCK_BYTES. */
size_t files_block(struct files *f, const struct file *file, uint64_t addr, struct row *rows);

/* The blocks of code where stacks had frames in earlier starts (row_store_hot). */
void files_hot(struct files *f, const struct file *file, uint32_t max,
	       void (*fn)(void *arg, uint64_t addr, const struct row *rows, size_t count), void *arg);

/* Notes that a stack had a frame at @addr. */
void files_mark(struct files *f, const struct file *file, uint64_t addr);

/* Gives the row at @addr the rule of @row from now on. */
void files_learn(struct files *f, const struct file *file, uint64_t addr, const struct row *row);

/* Notes that stacks made by hand end at a return address right behind @addr. */
void files_end(struct files *f, const struct file *file, uint64_t addr);

/* Makes a request about @file; see elf_service_call. A file that did harm is marked, counted and logged once; later requests
 * about it return -ENOENT. */
int files_call(struct files *f, struct file *file, enum elf_op op, uint64_t addr, const void *payload, size_t payload_bytes,
	       struct buf *reply);

/* A descriptor of the file @key that is mapped at @at, as file_open(), but -EREMOTE if its file system might make us wait.
 */
int files_open_mapped(struct files *f, const struct file_key *key, const char *path, const struct file_place *at);

/* See file_opener_folder() and file_opener_is_local(). */
int files_open_folder(struct files *f, uint32_t pid, const char *name);
bool files_is_local(struct files *f, const struct file *file, uint32_t task);

/* Reading the names of @file did harm (elf_service_is_hostile): marks, counts and logs that. @has_more: there is another,
 * safer way to its names. */
void files_blame_names(struct files *f, struct file *file, int status, bool has_more);

/* Does @file hold these @len bytes at @offset? */
bool files_hold(struct files *f, struct file *file, uint64_t offset, const void *bytes, size_t len);

/* The memory that files take. */
struct files_memory {
	size_t files_bytes; /* the table, and the facts about the indexes of names */
	size_t rows_bytes;  /* unwind rows */
	size_t mapped_rows_bytes, mapped_indexes_bytes;
};

void files_memory(const struct files *f, struct files_memory *ret);

/* The key by which @file, which is open and readable, is known on disk. */
void file_cache_key(const struct file *file, struct symbol_cache_key *ret);

/* Are the size of @file and the time of its last change still those of when it was opened? If it cannot be told they are. */
bool file_is_as_it_was(const struct file *file);

/* Address minus ELF virtual address for a mapping of @file at @start from @pgoff bytes into it. 0 or -ENOENT. */
int file_bias(const struct file *file, uint64_t start, uint64_t pgoff, uint64_t *bias_ret);

/* The offset in @file of the ELF virtual address @vaddr. 0 or -ENOENT. */
int file_offset(const struct file *file, uint64_t vaddr, uint64_t *offset_ret);

#endif
