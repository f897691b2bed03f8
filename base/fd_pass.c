/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel fills the room for control data as far as it goes, so it is told of no more than the descriptors that are asked
 * for: padding would have room for another. */
#include "base/fd_pass.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(FD_PASS_MOST * sizeof(int))];
};

/* sendmsg() and recvmsg() have one type for parts that they read and parts that they write. */
static struct msghdr message_of(const struct iovec *parts, size_t part_count)
{
	return (struct msghdr){ .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = part_count };
}

ssize_t fd_pass_send(int sock, const struct iovec *parts, size_t part_count, const int *fds, size_t fd_count, int flags)
{
	struct msghdr message = message_of(parts, part_count);
	union control control = { 0 };
	ssize_t len;

	if (fd_count > FD_PASS_MOST)
		return -EINVAL;
	if (fd_count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(*fds));
		control.align.cmsg_len = CMSG_LEN(fd_count * sizeof(*fds));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.align), fds, fd_count * sizeof(*fds));
	}
	while ((len = sendmsg(sock, &message, flags | MSG_NOSIGNAL)) < 0)
		if (errno != EINTR)
			return -errno;
	return len;
}

/* Copies the descriptors of @message to @fds, which has room for all that can have come. How many there are. */
static size_t take_fds(struct msghdr *message, int *fds)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(message);
	size_t bytes;

	if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
		return 0;
	bytes = head->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(head), bytes);
	return bytes / sizeof(*fds);
}

ssize_t fd_pass_receive(int sock, const struct iovec *parts, size_t part_count, int *fds, size_t fd_room, int flags)
{
	struct msghdr message = message_of(parts, part_count);
	union control control;
	size_t count;
	ssize_t len;

	if (fd_room > FD_PASS_MOST)
		return -EINVAL;
	for (size_t i = 0; i < fd_room; i++)
		fds[i] = -1;
	if (fd_room) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_LEN(fd_room * sizeof(*fds));
	}
	while ((len = recvmsg(sock, &message, flags | MSG_CMSG_CLOEXEC)) < 0)
		if (errno != EINTR)
			return -errno;
	count = take_fds(&message, fds);
	if (!(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return len;
	for (size_t i = 0; i < count; i++) {
		close(fds[i]);
		fds[i] = -1;
	}
	return message.msg_flags & MSG_CTRUNC && count < fd_room ? -EMFILE : -EBADMSG;
}
