/* SPDX-License-Identifier: Apache-2.0 */
/* The store that the options name: --store DIR and what it may keep. */
#ifndef HEARTH_CMD_STORE_OF_H
#define HEARTH_CMD_STORE_OF_H

#include <stdbool.h>

struct buf;
struct config;
struct metrics;
struct store;

/* systemd's STATE_DIRECTORY where it is set, /var/lib/hearth as root, below the XDG state folder otherwise: appended to
 * @out. -ENOENT: HOME is not set. */
int store_default_folder(struct buf *out);

/* Whether @place is no folder but an address, clickhouse+http(s)://... */
bool store_is_clickhouse(const char *place);

/* Opens the store in @place (NULL: the default folder). The caller closes it. 0, or -errno with @error filled. */
int store_of(const struct config *config, const char *place, bool read_only, struct metrics *metrics, struct store **ret,
	     struct buf *error);

#endif
