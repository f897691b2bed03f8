/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user that the backend becomes: whom the store's folder belongs to, unless that is root; else the user "hearth", where
 * there is one; else one that is made up from the folder's path. Never nobody, whom the processes that parse files become.
 */
#ifndef HEARTH_CMD_HALVES_OWNER_H
#define HEARTH_CMD_HALVES_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct owner {
	bool is_decided;
	bool changes; /* false: the user that we are, as we may not become another, or need not */
	uid_t uid;
	gid_t gid;
};

/* Whether this process may become another user, and give files to one. */
bool owner_may_change(void);

/* The owner for a backend whose store is in @folder (NULL: it has none). */
struct owner owner_for(const char *folder);

/*
 * Makes the folder @path, mode 0700, where it is missing, and gives it to @owner with all that hearth has written there, if
 * it is root's and has nothing in it that hearth did not make; says so. A descriptor of it, the caller's to close, or
 * -errno: -EPERM: others keep things there.
 */
int owner_take_folder(const struct owner *owner, const char *path);

/* Becomes @owner for good, without any capability and without a way to get one. 0 or -errno. */
int owner_become(const struct owner *owner);

#endif
