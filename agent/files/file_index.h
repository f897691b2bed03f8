/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a mapped file's names, as the file holds it; agent/names/indexes.h fills it. */
#ifndef HEARTH_AGENT_FILES_FILE_INDEX_H
#define HEARTH_AGENT_FILES_FILE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/index/cache.h"

enum file_index_state {
	FILE_INDEX_COMING, /* is made, or will be */
	FILE_INDEX_DONE,   /* there will be no other than there is */
};

/* The sources of a file's names; the file owns this. */
struct file_index {
	enum file_index_state state;
	struct symbol_cache_entry entry; /* its index is NULL: there is none (yet) */
	uint32_t version;		 /* changes with the index: names are asked again */
	uint64_t samples; /* samples whose innermost user frame is in the file; the file with most comes first */
	bool is_read;	  /* since its pages were given back */
	bool is_broken;	  /* set by code that asked it: the index is made anew */
	bool was_broken;  /* that was done once: not again */
	struct symbol_cache_key key;
};

/* Both accept NULL. Returns the bytes of memory held; adds the bytes that are mapped of the file on disk to *@mapped. */
void file_index_free(struct file_index *fi);
size_t file_index_memory_bytes(const struct file_index *fi, size_t *mapped);

#endif
