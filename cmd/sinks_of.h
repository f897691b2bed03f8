/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks that the options name: --print, --collector URL, --store FOLDER, --sink NAME[=VALUE]. */
#ifndef HEARTH_CMD_SINKS_OF_H
#define HEARTH_CMD_SINKS_OF_H

#include <stdbool.h>

struct buf;
struct config;
struct metrics;
struct sink;
struct store;

/* Whether the options name any. */
bool sinks_are_named(const struct config *config);

/* Whether one of them writes to standard output. */
bool sinks_use_stdout(const struct config *config);

/*
 * Makes them and hands the caller one sink to free: the only one, or a fan-out over all, also over a single one whose
 * writing could hold its producer up. Their names are appended to @names, with ", " between. 0; -EINVAL (wrong usage) or
 * another -errno, with
 * @error filled. *@store_ret, NULL before, is the store among them: the caller closes it after the sink, also after an
 * error. Starts threads: signals that the caller handles are blocked before.
 */
int sinks_of(const struct config *config, struct metrics *metrics, struct sink **ret, struct store **store_ret,
	     struct buf *names, struct buf *error);

/* Why sink_file_new() failed, in words. */
const char *file_sink_error(int err);

#endif
