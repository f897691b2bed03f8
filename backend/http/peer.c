/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel is asked for the socket whose addresses are ours the other way round (sock_diag(7), one socket by its four
 * numbers, which needs no privilege); where it cannot be asked so, /proc/net/tcp and tcp6 are searched.
 */
#include "backend/http/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Both ends of a connection. */
struct ends {
	union address ours, theirs;
};

static int ends_of(int fd, struct ends *e)
{
	socklen_t ours = sizeof(e->ours), theirs = sizeof(e->theirs);

	if (getsockname(fd, &e->ours.any, &ours) || getpeername(fd, &e->theirs.any, &theirs))
		return -errno;
	return e->ours.any.sa_family == AF_INET || e->ours.any.sa_family == AF_INET6 ? 0 : -EAFNOSUPPORT;
}

static void put_address(const union address *a, uint32_t *words_ret, uint16_t *port_ret)
{
	if (a->any.sa_family == AF_INET) {
		memcpy(words_ret, &a->v4.sin_addr, sizeof(a->v4.sin_addr));
		*port_ret = a->v4.sin_port;
	} else {
		memcpy(words_ret, &a->v6.sin6_addr, sizeof(a->v6.sin6_addr));
		*port_ret = a->v6.sin6_port;
	}
}

/* --- by sock_diag --- */

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

static int ask_kernel(const struct ends *e, uint32_t *uid_ret)
{
	AUTO_CLOSE int sock = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct question q = {
		.head = { .nlmsg_len = sizeof(q), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		.body = { .sdiag_family = (uint8_t)e->ours.any.sa_family,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_states = UINT32_MAX,
			  .id = { .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
	};
	const struct timeval patience = { .tv_sec = 1 };
	_Alignas(struct nlmsghdr) char answer[1024];
	const struct nlmsghdr *head = (const void *)answer;
	struct inet_diag_msg found;
	ssize_t n;

	put_address(&e->theirs, q.body.id.idiag_src, &q.body.id.idiag_sport);
	put_address(&e->ours, q.body.id.idiag_dst, &q.body.id.idiag_dport);
	if (sock < 0 || setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    send(sock, &q, sizeof(q), 0) != (ssize_t)sizeof(q))
		return -EOPNOTSUPP;
	n = recv(sock, answer, sizeof(answer), 0);
	if (n < (ssize_t)(sizeof(*head) + sizeof(found)) || head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -EOPNOTSUPP;
	memcpy(&found, answer + NLMSG_HDRLEN, sizeof(found));
	*uid_ret = found.idiag_uid;
	return found.idiag_inode ? 0 : -ENOENT; /* without an inode nobody has it open, and its user is not known */
}

/* --- by /proc --- */

/* "0100007F:1F90", as a table has an end: words of the machine's byte order. */
static void write_end(const union address *a, char *out, size_t size)
{
	uint32_t words[4] = { 0 };
	uint16_t port;
	size_t at = 0;

	put_address(a, words, &port);
	for (int i = 0; i < (a->any.sa_family == AF_INET ? 1 : 4); i++)
		at += (size_t)snprintf(out + at, size - at, "%08" PRIX32, words[i]);
	snprintf(out + at, size - at, ":%04X", ntohs(port));
}

static int search_table(const struct ends *e, uint32_t *uid_ret)
{
	AUTO_FCLOSE FILE *table = fopen(e->ours.any.sa_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "re");
	char wanted[2][48], local[48], remote[48], line[512];
	unsigned uid;
	unsigned long inode;

	if (!table)
		return -errno;
	write_end(&e->theirs, wanted[0], sizeof(wanted[0]));
	write_end(&e->ours, wanted[1], sizeof(wanted[1]));
	while (fgets(line, sizeof(line), table)) {
		if (sscanf(line, " %*[^:]: %47s %47s %*s %*s %*s %*s %u %*u %lu", local, remote, &uid, &inode) != 4 ||
		    strcmp(local, wanted[0]) != 0 || strcmp(remote, wanted[1]) != 0 || !inode)
			continue;
		*uid_ret = uid;
		return 0;
	}
	return -ENOENT;
}

int peer_uid(int fd, uint32_t *uid_ret)
{
	struct ends e;
	int err = ends_of(fd, &e);

	if (err)
		return err;
	err = ask_kernel(&e, uid_ret);
	return err == -EOPNOTSUPP ? search_table(&e, uid_ret) : err;
}

static bool is_among(const uint32_t *uids, size_t count, uint32_t uid)
{
	for (size_t i = 0; i < count; i++)
		if (uids[i] == uid)
			return true;
	return false;
}

bool peer_is_allowed(const struct peer_users *users, uint32_t uid)
{
	return users->all || peer_reads_addresses(users, uid) || is_among(users->uids, users->count, uid);
}

bool peer_reads_addresses(const struct peer_users *users, uint32_t uid)
{
	return !uid || uid == geteuid() || is_among(users->uids, users->readers, uid);
}
