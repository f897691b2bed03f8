/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the further files that the names of a file are read from: its separate debug file, what dwz moved out of that, its
 * .dwp. The search reads what the files themselves say, asks for one after another, and believes those that fit; the opener
 * that is asked (symbols/find/debug_places.h), maybe another process, knows where they are and how to open them. Leaf
 * module: returns errors, never logs.
 */
#ifndef HEARTH_SYMBOLS_FIND_DEBUG_SEARCH_H
#define HEARTH_SYMBOLS_FIND_DEBUG_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/code/source.h"

/* Each is asked for at most once, in this order. */
enum debug_need_kind {
	DEBUG_NEED_BUILD_ID,	  /* the separate debug file by the file's build id */
	DEBUG_NEED_LINK,	  /* the same by the name in .gnu_debuglink */
	DEBUG_NEED_SERVED,	  /* for names: the same by its build id from a server (symbols/find/debuginfod.h) */
	DEBUG_NEED_COMMON,	  /* for names: what dwz moved out of the debug file (.gnu_debugaltlink) */
	DEBUG_NEED_COMMON_SERVED, /* for names: the same by its build id from a server */
	DEBUG_NEED_PACKAGE,	  /* for names: the .dwp file */
	DEBUG_NEED_MAX,
};

enum { DEBUG_NAME_BYTES = 256 };

struct debug_need {
	uint32_t kind;		     /* enum debug_need_kind */
	char name[DEBUG_NAME_BYTES]; /* a build id in hex; the link's file name; the path below the folder .dwz; "" */
};

/* Is it a need there is, with a name that leads out of no folder? For needs that come from another process. */
bool debug_need_is_sound(const struct debug_need *need);

struct debug_search {
	struct symbol_files files; /* what was believed so far; the program is the caller's, the others the search's */
	uint32_t wanted;	   /* bits of enum debug_need_kind that were not answered yet */
	bool is_for_names;
	bool has_looked_further;
	uint64_t max_crc_bytes;
	char build_id[65]; /* of the program, hex; "" when it has none */
	char link[DEBUG_NAME_BYTES];
	uint32_t link_crc;
	char common[DEBUG_NAME_BYTES];
	char common_id[65];
};

/*
 * Reads what the ELF file @fd, mapped as @program, says. One that has its tables itself (.debug_info for names, else
 * .debug_frame) wants no debug file. A file above @max_crc_bytes is not believed by its checksum, which takes time; such a
 * one has a build id. Never fails.
 */
void debug_search_start(struct debug_search *s, int fd, const struct symbol_image *program, bool is_for_names,
			uint64_t max_crc_bytes);

/* The next question; false: there is none, s->files is complete. */
bool debug_search_next(struct debug_search *s, struct debug_need *ret);

/*
 * The answer to @kind: an open file (borrowed), or -1 when there is none. 0: it is the one, or there is none; -ENOENT: it is
 * another file, or nobody asked; -ENOMEM or what mapping said.
 */
int debug_search_take(struct debug_search *s, enum debug_need_kind kind, int fd);

/* Gives the mappings of further files back. */
void debug_search_fini(struct debug_search *s);

#endif
