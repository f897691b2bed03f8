/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of indexes (symbols/index/index.h) on disk, a file a build id. Several processes may use one folder at once:
 * a file comes to be under another name and is renamed when it is whole; what is mapped stays readable when it is removed.
 * Nothing is believed that others could have written, and what is broken or of another version is removed. Leaf module:
 * returns errors, never logs. Not shared between threads.
 */
#ifndef HEARTH_SYMBOLS_INDEX_CACHE_H
#define HEARTH_SYMBOLS_INDEX_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/index/index.h"
#include "symbols/kept_file.h"

struct buf;
struct build_ids;
struct symbol_cache;

/* Appends the folder to use when none is named: /var/cache/hearth/symbols as root, else hearth/symbols in XDG_CACHE_HOME or
 * in .cache in HOME. 0; -ENOENT: the user has no such place; -ENOMEM. */
int symbol_cache_default_folder(struct buf *out);

/*
 * Opens @folder, which is created where it is not there, its parents with it. @max_bytes: what its files may take together;
 * beyond it the least recently used go first. 0; -EPERM: others than this user and root may write there, or it is another
 * one's; -ENOTDIR: it is no folder (also a symbolic link); -errno, -ENOMEM.
 */
int symbol_cache_open(const char *folder, uint64_t max_bytes, struct symbol_cache **ret);
void symbol_cache_close(struct symbol_cache *c);

/* The folder, borrowed: what else is kept there has names that no index has, and nobody else removes it. */
int symbol_cache_folder(const struct symbol_cache *c);

enum { SYMBOL_CACHE_KEY_BYTES = SYMBOL_INDEX_ID_BYTES + 32 };

/* The key of a file in the cache. */
struct symbol_cache_key {
	char build_id[SYMBOL_INDEX_ID_BYTES + 1]; /* for struct symbol_index_head */
	char name[SYMBOL_CACHE_KEY_BYTES];	  /* of the file in the folder */
};

/*
 * The key of a file with these @ids that belongs to @owner: the linker's build id, else a hash of Go's, else the hash over
 * head and tail. The hash over head and tail is also part of the file's name: a program and what strip made of it have the
 * same build id, as have programs that differ in their symbols' names alone. The maker of a file chooses its build id, so a
 * user's file has a key of its own and cannot give names to root's.
 */
void symbol_cache_key(const struct build_ids *ids, uid_t owner, struct symbol_cache_key *ret);

/* An index with the file that it is in. */
struct symbol_cache_entry {
	struct symbol_index *index;
	struct kept_file file;
};

/* 0; -ENOENT: there is none, none that can be believed any more, or none of this version; -errno, -ENOMEM. */
int symbol_cache_find(struct symbol_cache *c, const struct symbol_cache_key *key, struct symbol_cache_entry *ret);

/* Accepts one that is empty, and leaves it so. */
void symbol_cache_entry_close(struct symbol_cache_entry *e);

/* Bytes of memory held beside the file. */
size_t symbol_cache_entry_memory_bytes(const struct symbol_cache_entry *e);

/* Keeps the @len_bytes of an index, in the place of one there may be. 0; -EFBIG: more than the whole folder may take;
 * -errno. */
int symbol_cache_add(struct symbol_cache *c, const struct symbol_cache_key *key, const void *data, size_t len_bytes);

/* An empty file without a name in the folder, the caller's to close: for an index that another process writes, which then
 * need not be copied. -errno; -EOPNOTSUPP: the file system has no such files. */
int symbol_cache_file(struct symbol_cache *c);

/* Does symbol_cache_add for the content of @fd, which is from symbol_cache_file and which nobody writes to any more. */
int symbol_cache_adopt(struct symbol_cache *c, const struct symbol_cache_key *key, int fd);

/* Removes an index that turned out to be broken (-EBADMSG), or is to be made anew. 0, also when there is none; -errno. */
int symbol_cache_remove(struct symbol_cache *c, const struct symbol_cache_key *key);

struct symbol_cache_pruned {
	uint64_t files, bytes;		 /* that are there now */
	uint64_t removed, removed_bytes; /* of any kind */
	uint64_t broken;		 /* of those removed: not of this version, or damaged */
};

/* Looks at every file as a whole, removes those that would not be used, and others until @max_bytes are kept. 0, -errno. */
int symbol_cache_prune(struct symbol_cache *c, struct symbol_cache_pruned *ret);

#endif
