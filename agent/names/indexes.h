/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indexes of the names of mapped files (symbols/index/index.h): opened from the folder on disk when the first sample has a
 * frame in the file, else made in the background (agent/names/index_helper.h) and kept there. Files that most samples wait
 * for come first. Nothing here waits but indexes_wait. Agent's thread.
 */
#ifndef HEARTH_AGENT_NAMES_INDEXES_H
#define HEARTH_AGENT_NAMES_INDEXES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/files/file_index.h"
#include "agent/files/files.h"
#include "agent/names/index_helper.h"
#include "symbols/index/cache.h"

struct debuginfod;
struct indexes;
struct loop;
struct metrics;

/* One lane for first jobs, one for the remaining part of jobs that have much to read. */
enum { LANE_FIRST, LANE_REST, LANES };

/* Takes @helpers, a helper a lane (NULL: no names are wanted), @cache (NULL: nothing is kept) and @servers (NULL: there are
 * none) over, also when it fails. */
int indexes_new(enum symbols_wanted wanted, struct index_helper *const helpers[static LANES], struct symbol_cache *cache,
		struct debuginfod *servers, struct files *files, struct loop *loop, struct metrics *metrics,
		struct indexes **ret);
void indexes_free(struct indexes *x);

/* The folder where indexes are kept, borrowed; -1: there is none. */
int indexes_folder(const struct indexes *x);

/* Notes that a sample's frame is in @file. */
void indexes_meet(struct indexes *x, struct file *file);

/* @fn is called each time a file is done. */
void indexes_on_done(struct indexes *x, void (*fn)(void *arg), void *arg);

/* May names of @file still come? */
static inline bool file_names_are_coming(const struct file *file)
{
	return file->index && file->index->state == FILE_INDEX_COMING;
}

/* How many files wait for their names. */
uint32_t indexes_coming(const struct indexes *x);

/* Waits at most @timeout_ms for a job under way, which is in a hurry from now on. */
void indexes_wait(struct indexes *x, int timeout_ms);

/* Logs at the end which files' names were not ready in time, if any; at the debug level also what was done. */
void indexes_tell(const struct indexes *x);

#endif
