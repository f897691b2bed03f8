/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that carry descriptors, over a unix socket that keeps the bounds of packets (SOCK_SEQPACKET, SOCK_DGRAM).
 * Stateless; any thread. */
#ifndef HEARTH_BASE_FD_PASS_H
#define HEARTH_BASE_FD_PASS_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { FD_PASS_MOST = 4 /* with one packet */ };

/*
 * Sends the bytes of @parts as one packet, with the @fd_count (FD_PASS_MOST at most; 0: none) descriptors of @fds, which
 * stay the caller's. @flags as sendmsg(2) has them; no signal comes when the other side has gone. Goes on after signals. The
 * number of bytes, or -errno.
 */
ssize_t fd_pass_send(int sock, const struct iovec *parts, size_t part_count, const int *fds, size_t fd_count, int flags);

/*
 * Receives one packet into @parts, and the descriptors that came with it into @fds, which has room for @fd_room
 * (FD_PASS_MOST at most): they are the caller's to close, also where the packet is empty, and are closed by exec. The rest
 * of
 * @fds becomes -1, on errors all of it. @flags as recvmsg(2) has them. Goes on after signals. The number of bytes, 0: the
 * other side has gone, or the packet is empty; -EBADMSG: there were more bytes or descriptors than there is room for, all of
 * which are gone; -EMFILE: so are these, as this process may not have so many; another -errno.
 */
ssize_t fd_pass_receive(int sock, const struct iovec *parts, size_t part_count, int *fds, size_t fd_room, int flags);

#endif
