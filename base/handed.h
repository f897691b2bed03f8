/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Things that were opened before this process gave up its privileges, and are reached by descriptor since then. A path that
 * was handed over is used by its name below /proc/self/fd; messages show the name that users gave it. The list is filled by
 * one thread before others start, and only read after that.
 */
#ifndef HEARTH_BASE_HANDED_H
#define HEARTH_BASE_HANDED_H

#include <stddef.h>

/* Enters that descriptor @fd stands for @shown, which is borrowed for ever; 0 or -errno. The path to use in its place is
 * written to @path_ret, and lives as long. */
int handed_add(int fd, const char *shown, const char **path_ret);

/* The path to use for what the user calls @shown: @shown itself where it was not handed over. */
const char *handed_path(const char *shown);

/* A descriptor of the caller's own for what was handed over as @shown, with the rights that it was opened with,
 * close-on-exec; -1: it was not. */
int handed_open(const char *shown);

/* The name that the user gave to @path; @path itself where it was not handed over. */
const char *handed_name(const char *path);

/* Puts the names that users gave into the text of @len bytes in @line, which has room for @size; returns the length then. */
size_t handed_rewrite(char *line, size_t len, size_t size);

/* Enters that @fd, a bound socket of @port, listens on @address (borrowed for ever). 0 or -errno. */
int handed_add_socket(int fd, const char *address, unsigned port);

/* The socket entered for @address, once; -1: none. */
int handed_take_socket(const char *address, unsigned *port_ret);

#endif
