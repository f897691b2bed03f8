/* SPDX-License-Identifier: Apache-2.0 */
/* The person behind sudo: recorded commands run as that user, and what is recorded belongs to that user. */
#ifndef HEARTH_CMD_SETUP_USER_H
#define HEARTH_CMD_SETUP_USER_H

#include <stdbool.h>
#include <sys/types.h>

struct user {
	uid_t uid;
	gid_t gid;
};

/* The user who called sudo, from SUDO_UID and SUDO_GID. False when we are not root, or root was not reached by sudo. */
bool user_invoking(struct user *ret);

/* The same, also when root has become another user since. */
bool user_behind_sudo(struct user *ret);

/* Turns this process into @user's for good: groups, ids, HOME, USER, LOGNAME. 0 or -errno. */
int user_become(const struct user *user);

/* Gives the file @path to @user when it lies in a folder that @user may write to; otherwise, and for links, leaves it. */
void user_give_file(const struct user *user, const char *path);

/* Has root work as the owner of @folder, where that may read the file @name in it, so that what a store's reader makes
 * beside it is not root's. *@was_ret: for user_end_as_owner(). The whole process; other threads must not care. */
void user_as_owner(const char *folder, const char *name, struct user *was_ret);
void user_end_as_owner(const struct user *was);

#endif
