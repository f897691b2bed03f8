/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the places of separate debug files and opens them. Nothing is read here. Leaf module, no state. */
#ifndef HEARTH_SYMBOLS_FIND_DEBUG_PLACES_H
#define HEARTH_SYMBOLS_FIND_DEBUG_PLACES_H

#include "symbols/find/debug_search.h"

/*
 * The path, below some root, of place number @index of those where @need may be: of the program at @program, whose debug
 * file was found at @debug (NULL: none, or nobody knows where; both absolute, below that root). 0; -ERANGE: there are no
 * more places; -EINVAL: the need is not sound, or a path is not absolute; -ENAMETOOLONG.
 */
int debug_place_path(const struct debug_need *need, const char *program, const char *debug, unsigned index, char *dst,
		     size_t bytes);

/*
 * Opens the plain file @path below the folder @root_fd, which nothing leads out of, if it is another file than @program_fd
 * and the owner of that could read it, too. With @in_one_mount nothing leads into another mount than that of @root_fd,
 * either
 * (-EXDEV). A descriptor for reading, the caller's to close, or -errno.
 */
int debug_place_open(int root_fd, const char *path, int program_fd, bool in_one_mount);

#endif
