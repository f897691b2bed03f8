/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that listen or look after a store, and are started as root, do so as the store's owner, without capabilities:
 * what they read is not from root, and what they write belongs to whom the rest of the store belongs to. Before threads
 * start.
 */
#ifndef HEARTH_CMD_HALVES_AS_OWNER_H
#define HEARTH_CMD_HALVES_AS_OWNER_H

struct config;

/* For `hearth serve`, and where nothing is sampled: takes what @config names, its ports and files with secrets first, which
 * stay readable and renewed.
 * @config then has the names by which they are found. Where sinks write files it stays root, with what that takes alone.
 * Does nothing where this is not root. 0 or -errno, said. */
int as_owner_serve(struct config *config);

/* For `hearth store`: becomes the owner of the store that @config names, where it is in a folder that is there. */
int as_owner_store(struct config *config);

#endif
