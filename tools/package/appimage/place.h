/* SPDX-License-Identifier: Apache-2.0 */
/* Where copies of images are kept: a folder that is this user's alone, on a way to it that nobody else can bend. One thread.
 */
#ifndef HEARTH_APPIMAGE_PLACE_H
#define HEARTH_APPIMAGE_PLACE_H

#include <limits.h>
#include <stddef.h>

enum { PLACES = 4 };

/* Opens the @number'th folder in which copies could be kept, 0 to PLACES - 1, and makes it where it is missing: below
 * $XDG_CACHE_HOME, $HOME/.cache, $TMPDIR, /tmp. Its path goes into @path_ret, without links. Returns a descriptor that the
 * caller closes; -1: it will not do, and @why_ret says why; or it is not named at all, and @why_ret is "". */
int place_open(int number, char path_ret[static PATH_MAX], char *why_ret, size_t why_size);

#endif
