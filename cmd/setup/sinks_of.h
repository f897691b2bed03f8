/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks that the options name: --print, --collector URL, --store FOLDER, --sink NAME[=VALUE]; or a file of pipelines. */
#ifndef HEARTH_CMD_SETUP_SINKS_OF_H
#define HEARTH_CMD_SETUP_SINKS_OF_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct config;
struct metrics;
struct sink;
struct store;

/* Whether the options name any. */
bool sinks_are_named(const struct config *config);

/* Whether the sink that @spec, NAME[=VALUE], describes is a store, or sends over a network. */
bool sinks_is_store(const char *spec);
bool sinks_is_sender(const char *spec);

/* Appends the names of all that the options name to @names, as sinks_of() does, and makes none. */
void sinks_name(const struct config *config, struct buf *names);

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

/* Makes the sink that @spec, NAME[=VALUE], describes, with @config's other settings; as sinks_of(). *@is_slow: its consume()
 * may wait. */
int sinks_make(const struct config *config, const char *spec, struct metrics *metrics, struct sink **ret,
	       struct store **store_ret, bool *is_slow, struct buf *names, struct buf *error);

/* Whether --sink has a type that is named by the first @len bytes of @name. */
bool sinks_has_type(const char *name, size_t len);

/* Appends all types as the help of --sink has them: "print, null, file=PATH (...), ..." */
void sinks_print_help(struct buf *out);

/* Whether the options name a store and nothing else. */
bool sinks_are_a_store(const struct config *config);

#endif
