/* SPDX-License-Identifier: Apache-2.0 */
/* The formats that captures are written in: one table, by the ends of files' names and by the names of --format. */
#ifndef HEARTH_CMD_FORMATS_H
#define HEARTH_CMD_FORMATS_H

#include "proto/profiles.h"

struct buf;
struct tree;

struct format {
	const char *name;	 /* as in --format */
	const char *suffixes[3]; /* ends of names of such files, NULL-terminated */
	bool is_capture;	 /* OTLP as it is recorded: nothing to convert */
	bool is_binary;
	/* Of a format that needs the whole capture. The others read it in parts, into a tree or, where that is NULL too,
	 * into pprof's tables. See format_write(). */
	int (*write)(const struct profiles *p, struct buf *out, struct buf *left_out);
	int (*from_tree)(struct tree *t, struct buf *out);
};

/* By a file's name: the longest of the suffixes that fit; or by its own. NULL: none. */
const struct format *format_by_path(const char *path);
const struct format *format_by_name(const char *name);

/* All suffixes, for a message: ".otlp, .pb.gz, ...". */
void format_list_suffixes(struct buf *out);

/* Appends @p in @format to @out; what the format cannot say is told in words in @left_out. 0 or -errno. */
int format_write(const struct profiles *p, const struct format *format, struct buf *out, struct buf *left_out);

/*
 * Writes @p in @format to @path ("-": standard output), under a name of its own until it is whole; tells on the log what
 * went wrong. What the format cannot say is told in @left_out (may be NULL). 0 or -errno.
 */
int format_write_file(const struct profiles *p, const struct format *format, const char *path, struct buf *left_out);

/* The same of the capture @input ("-": standard input), its names made anew; in parts where capture and format allow. */
int format_convert(const char *input, const struct format *format, const char *output, struct buf *left_out);

/* @data becomes the file @path, or what a link @path names, as a whole, which belongs to the invoking user; a device or a
 * FIFO is written to. 0 or -errno. */
int format_replace_file(const char *path, const struct buf *data);

#endif
