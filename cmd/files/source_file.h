/* SPDX-License-Identifier: Apache-2.0 */
/* Source files, of which listings show lines (`hearth report --format lines`). No state. */
#ifndef HEARTH_CMD_FILES_SOURCE_FILE_H
#define HEARTH_CMD_FILES_SOURCE_FILE_H

#include <stdbool.h>

struct buf;

/* Appends the content of the regular file @path, of 16 MiB at most. False: it cannot be read, or there is no memory. */
bool source_file_read(const char *path, struct buf *out);

#endif
