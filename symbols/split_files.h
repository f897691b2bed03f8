/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .dwo files where the compiler left them: at the path that the program's skeletons tell, seen from a root folder, and
 * beside the program. One user at a time.
 */
#ifndef HEARTH_SYMBOLS_SPLIT_FILES_H
#define HEARTH_SYMBOLS_SPLIT_FILES_H

#include "symbols/source.h"

struct split_files {
	const char *root; /* in front of each absolute path: "" or a container's root. Borrowed, as the next */
	const char *near; /* the program's folder, where the path's last part is tried next; NULL: it is not */
};

/* An opener over @f, which must outlive it. Plain files alone are opened. */
struct symbol_opener split_files_opener(struct split_files *f);

#endif
