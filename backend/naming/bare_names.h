/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for frames that came as bare addresses, as the OpenTelemetry profiler sends them: out of files that were sent here
 * (POST /api/v1/symbols), or that are found (backend/naming/local_files.h). Their indexes stay in the store's folder, one a
 * build id, and name what comes later, too. Belongs to the thread that asks the store.
 */
#ifndef HEARTH_BACKEND_NAMING_BARE_NAMES_H
#define HEARTH_BACKEND_NAMING_BARE_NAMES_H

#include <stdint.h>

#include "backend/store/store.h"
#include "base/intern.h"

struct bare_names;

/* @store is borrowed; @folder is what its status tells, NULL: indexes are not kept. 0 or -errno. */
int bare_names_new(struct store *store, const char *folder, struct bare_names **ret);
void bare_names_free(struct bare_names *b); /* accepts NULL */

enum { BARE_NAMES_TOLD = 200 };

/* The names that were given: chains of calls at one address, the function and then the calls inlined there, from the outside
 * in, each with a NUL behind it. Only the first BARE_NAMES_TOLD chains are kept. */
struct bare_names_told {
	struct intern *chains;
	uint64_t addresses[BARE_NAMES_TOLD]; /* by chain */
	uint64_t more;			     /* addresses of chains that are left out */
};

struct bare_names_taken {
	struct bare_names_told *told; /* the caller's, with an empty table, to be filled in; NULL: not asked for */
	char build_id[129];	      /* the linker's, else Go's, else htlhash */
	uint64_t functions;	      /* how many functions have names in the file */
	uint64_t named;		      /* addresses in the store that have a name of it now */
};

/*
 * Reads the ELF file @fd, in another process (backend/naming/index_maker.h), and names all frames of its build ids: those of
 * before get the new names, those that come later when bare_names_update() is called. 0; -ENODATA: there are no names in it;
 * what index_make() returns; -errno of the store or the folder.
 */
int bare_names_take(struct bare_names *b, int fd, struct bare_names_taken *ret);

/* Names what came since the last call, as far as there are indexes; for the others files will be looked for. Looks
 * at most once a second. 0 or -errno. */
int bare_names_update(struct bare_names *b);

/* The time at which there is a file to look for (CLOCK_MONOTONIC); UINT64_MAX: none. */
uint64_t bare_names_search_ns(const struct bare_names *b);

/* Looks for one file, and takes it. 0; -ENOENT: there was none, or not yet; as bare_names_take(). */
int bare_names_search(struct bare_names *b, struct bare_names_taken *ret);

/* From any thread: the file that is being read is given up, -ECANCELED, and so are those to come until bare_names_resume().
 * One that was looked for is read again later. */
void bare_names_abandon(struct bare_names *b);
void bare_names_resume(struct bare_names *b);

#endif
