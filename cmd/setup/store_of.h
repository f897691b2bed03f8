/* SPDX-License-Identifier: Apache-2.0 */
/* The store that the options name: --store DIR and what it may keep. */
#ifndef HEARTH_CMD_SETUP_STORE_OF_H
#define HEARTH_CMD_SETUP_STORE_OF_H

#include <stdbool.h>
#include <stddef.h>

#include "sinks/sink_type.h"

struct buf;
struct config;
struct metrics;
struct profiles;
struct store;

/* The settings of sinks, as make() of a sink that is a store gets them. */
struct store_settings {
	struct sink_settings base;
	const struct config *config;
	struct store **store; /* the one that is made */
};

/* systemd's STATE_DIRECTORY where it is set, /var/lib/hearth as root, below the XDG state folder otherwise: appended to
 * @out. -ENOENT: HOME is not set. */
int store_default_folder(struct buf *out);

/* Whether @place is no folder but an address, clickhouse+http(s)://... */
bool store_is_clickhouse(const char *place);

/* Opens the store in @place (NULL: the default folder). The caller closes it. 0, or -errno with @error filled. */
int store_of(const struct config *config, const char *place, bool read_only, struct metrics *metrics, struct store **ret,
	     struct buf *error);

/* Whether @path is the folder of a store, as --store makes one. */
bool store_is_folder(const char *path);

/* Opens the store in @folder for reading, whatever the options are. Otherwise like store_of(). */
int store_of_folder(const char *folder, struct metrics *metrics, struct store **ret, struct buf *error);

/* All that is in @store as one, of which the caller gets one reference; *@bytes_ret (unless NULL): how many bytes it was as
 * OTLP. 0; -ENODATA: it is empty; -errno. */
int store_load(struct store *store, struct profiles **ret, size_t *bytes_ret);

#endif
