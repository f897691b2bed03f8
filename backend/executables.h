/* SPDX-License-Identifier: Apache-2.0 */
/* The executables that selected stacks have frames of: what the stores answer executables() with. */
#ifndef HEARTH_BACKEND_EXECUTABLES_H
#define HEARTH_BACKEND_EXECUTABLES_H

#include "backend/store.h"

/* What a store says of a frame: path, build_id and id_kind of its executable, named_frames 1 when it has a function; path
 * NULL when it is of none. Its strings live until the next one is asked for, but id_kind stays. 0 or -errno. */
typedef int (*executable_of_frame_fn)(struct store *s, uint32_t frame, struct store_executable *ret);

/* Sums the selected stacks of @s and calls @fn for each executable, the one with most events first. 0, -ENOMEM, what the
 * store said, or what @fn returned. */
int executables_count(struct store *s, const struct store_selection *sel, executable_of_frame_fn of_frame,
		      int (*fn)(void *arg, const struct store_executable *e), void *arg);

#endif
