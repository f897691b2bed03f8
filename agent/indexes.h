/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indexes of the names of mapped files (symbols/symbol_index.h): opened from the folder on disk when a sample first meets
 * the file, else made in the background (agent/index_helper.h), those first that most samples wait for, and kept there.
 * Nothing here waits but indexes_wait. Agent's thread.
 */
#ifndef HEARTH_AGENT_INDEXES_H
#define HEARTH_AGENT_INDEXES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/files.h"
#include "agent/index_helper.h"
#include "symbols/symbol_cache.h"

struct debuginfod;
struct indexes;
struct loop;
struct metrics;

enum file_index_state {
	FILE_INDEX_COMING, /* is made, or will be */
	FILE_INDEX_DONE,   /* there will be no other than there is */
};

/* What a file's names come from; the file owns it. */
struct file_index {
	enum file_index_state state;
	struct symbol_cache_entry entry; /* its index is NULL: none (yet) */
	uint32_t version;		 /* another one each time that changes: names are asked again */
	uint64_t samples;		 /* whose innermost user frame is in the file: who has most comes first */
	bool is_read;			 /* since its pages were given back */
	bool is_broken;			 /* said by who asked it: it is made anew */
	bool was_broken;		 /* that happened: not again */
	struct symbol_cache_key key;
};

/* First jobs, and the rest of those that have much to read. */
enum { LANE_FIRST, LANE_REST, LANES };

/* Takes @helpers, a helper a lane (NULL: no names are wanted), @cache (NULL: nothing is kept) and @servers (NULL: there are
 * none) over, also when it fails. */
int indexes_new(enum symbols_wanted wanted, struct index_helper *const helpers[static LANES], struct symbol_cache *cache,
		struct debuginfod *servers, struct files *files, struct loop *loop, struct metrics *metrics,
		struct indexes **ret);
void indexes_free(struct indexes *x);

/* A sample's frame is in @file. */
void indexes_meet(struct indexes *x, struct file *file);

/* @fn is called each time a file is done. */
void indexes_on_done(struct indexes *x, void (*fn)(void *arg), void *arg);

/* Names of @file may come yet. */
static inline bool file_names_are_coming(const struct file *file)
{
	return file->index && file->index->state == FILE_INDEX_COMING;
}

/* How many files wait for theirs. */
uint32_t indexes_coming(const struct indexes *x);

/* Waits at most @timeout_ms for a job under way, which is in a hurry from now on. */
void indexes_wait(struct indexes *x, int timeout_ms);

/* Says at the end which files' names were not ready in time, if any; to who wants to know more, also what was done. */
void indexes_tell(const struct indexes *x);

/* Both accept NULL. The bytes of memory held, to which *@mapped are added that are mapped of the file on disk. */
void file_index_free(struct file_index *fi);
size_t file_index_memory_bytes(const struct file_index *fi, size_t *mapped);

#endif
