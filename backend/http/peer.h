/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a connection from this machine, and whether they may see what it runs. No state. */
#ifndef HEARTH_BACKEND_HTTP_PEER_H
#define HEARTH_BACKEND_HTTP_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The user who owns the other end of the TCP connection @fd, when that is on this machine: 0; -ENOENT: it has no other end
 * here (any more); -errno. */
int peer_uid(int fd, uint32_t *uid_ret);

/* Users who may look, beside root and ourselves. */
struct peer_users {
	const uint32_t *uids;
	size_t count;
	size_t readers; /* the first ones may read addresses of memory as well, as root may */
	bool all;	/* everybody on this machine may look */
};

bool peer_is_allowed(const struct peer_users *users, uint32_t uid);

/* Whether @uid may read where the kernel and other users' programs are in memory, as far as the store tells. */
bool peer_reads_addresses(const struct peer_users *users, uint32_t uid);

#endif
