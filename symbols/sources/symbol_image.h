/* SPDX-License-Identifier: Apache-2.0 */
/* Files mapped whole, for the sources of names. A file that shrinks under a mapping kills its reader: read files that others
 * may change in a process that may die. */
#ifndef HEARTH_SYMBOLS_SOURCES_SYMBOL_IMAGE_H
#define HEARTH_SYMBOLS_SOURCES_SYMBOL_IMAGE_H

#include "symbols/code/source.h"

/* Maps the plain file @fd for reading; symbol_image_unmap gives it back. 0; -ENOEXEC: empty or not a plain file; -errno. */
int symbol_image_map(int fd, struct symbol_image *ret);
void symbol_image_unmap(struct symbol_image *image);

#endif
