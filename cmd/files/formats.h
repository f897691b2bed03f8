/* SPDX-License-Identifier: Apache-2.0 */
/* Captures written into files, by the table of formats (proto/formats/formats.h). */
#ifndef HEARTH_CMD_FILES_FORMATS_H
#define HEARTH_CMD_FILES_FORMATS_H

#include "proto/formats/formats.h"

/*
 * Writes @p in @format to @path ("-": standard output), under a name of its own until it is whole; tells on the log what
 * went wrong. @left_out (may be NULL) names what the format cannot say. 0 or -errno.
 */
int format_write_file(const struct profiles *p, const struct format *format, const char *path, struct buf *left_out);

/* The same of the capture @input ("-": standard input), its names made anew; in parts where capture and format allow. */
int format_convert(const char *input, const struct format *format, const char *output, struct buf *left_out);

/* Replaces the file @path, or the target of a link @path, by @data as a whole, owned by the invoking user; writes into a
 * device or a FIFO. 0 or -errno. */
int format_replace_file(const char *path, const struct buf *data);

#endif
