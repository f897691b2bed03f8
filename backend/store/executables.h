/* SPDX-License-Identifier: Apache-2.0 */
/* The executables that selected stacks have frames of: what the stores answer executables() with. */
#ifndef HEARTH_BACKEND_STORE_EXECUTABLES_H
#define HEARTH_BACKEND_STORE_EXECUTABLES_H

#include "backend/store/store_read.h"

/* Reads the executable of a frame: path, build_id, id_kind and process, and named_frames 1 when the frame has a function.
 * path is NULL when it has no executable: of the rest only named_frames counts then. The strings are valid until the next
 * call, but id_kind stays. 0 or -errno. */
typedef int (*executable_of_frame_fn)(struct store *s, uint32_t frame, struct store_executable *ret);

/* Sums the selected stacks of @s and calls @fn for each executable, the one with most events first, and last for frames of
 * none, path NULL, where there are any. 0, -ENOMEM, an error of the store, or what @fn returned. */
int executables_count(struct store *s, const struct store_selection *sel, executable_of_frame_fn of_frame,
		      int (*fn)(void *arg, const struct store_executable *e), void *arg);

#endif
