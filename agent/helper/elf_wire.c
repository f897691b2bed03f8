/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages in packets. A packet carries at most PACKET_BYTES, well below what a socket takes at once by default, so a body
 * is a train of packets and the sender waits while the receiver is behind. No state; any thread with its own socket.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/helper/elf_wire.h"
#include "base/buf.h"
#include "base/cleanup.h"

enum { PACKET_BYTES = 64 << 10 };

union control { /* room for one descriptor; the padding has room for a second, which no honest sender sends */
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* The error of sendmsg or recvmsg: 0 to try again, or the error for the caller. */
static int failed(elf_wire_wait_fn wait, void *arg)
{
	if (errno == EINTR)
		return 0;
	if (errno == EAGAIN)
		return wait && wait(arg) ? 0 : -ETIMEDOUT;
	return errno == ECONNRESET ? -EPIPE : -errno;
}

static int send_packet(int sock, struct msghdr *msg, elf_wire_wait_fn wait, void *arg)
{
	int error;

	while (sendmsg(sock, msg, MSG_NOSIGNAL) < 0) {
		error = failed(wait, arg);
		if (error)
			return error;
	}
	return 0;
}

int elf_wire_send(int sock, const struct elf_wire *head, const void *body, int fd, elf_wire_wait_fn wait, void *arg)
{
	struct iovec parts[2] = { { (void *)(uintptr_t)head, sizeof(*head) } };
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 1 };
	union control control = { 0 };
	size_t sent = 0, left;
	int error;

	if (fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.align = (struct cmsghdr){ CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	}
	do {
		left = head->body_bytes - sent;
		if (left) {
			parts[1].iov_base = (uint8_t *)(uintptr_t)body + sent;
			parts[1].iov_len = left < PACKET_BYTES ? left : PACKET_BYTES;
			msg.msg_iovlen = 2;
		}
		error = send_packet(sock, &msg, wait, arg);
		if (error)
			return error;
		sent += parts[1].iov_len;
		parts[0].iov_len = 0; /* the other packets have only body */
		msg.msg_controllen = 0;
	} while (sent < head->body_bytes);
	return 0;
}

/* The length of one packet (0: the other side has gone, or sent an empty one), or an error. */
static ssize_t receive_packet(int sock, struct msghdr *msg, elf_wire_wait_fn wait, void *arg)
{
	ssize_t len;
	int error;

	while ((len = recvmsg(sock, msg, MSG_CMSG_CLOEXEC)) < 0) {
		error = failed(wait, arg);
		if (error)
			return error;
	}
	return len;
}

/* The descriptor that came with @msg; others are closed. */
static int fd_of(struct msghdr *msg)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		return -1;
	for (size_t at = 0; CMSG_LEN(at + sizeof(fd)) <= cmsg->cmsg_len; at += sizeof(fd)) {
		if (fd >= 0)
			close(fd);
		memcpy(&fd, CMSG_DATA(cmsg) + at, sizeof(fd));
	}
	return fd;
}

/* The packets after the first. */
static int receive_rest(int sock, uint64_t bytes, struct buf *body, elf_wire_wait_fn wait, void *arg)
{
	while (body->len < bytes) {
		size_t left = bytes - body->len;
		struct iovec part;
		struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
		ssize_t len;

		if (wait && !wait(arg)) /* so a sender of single bytes runs out of time, too */
			return -ETIMEDOUT;
		if (buf_reserve(body, left))
			return -ENOMEM;
		part = (struct iovec){ body->data + body->len, left };
		len = receive_packet(sock, &msg, wait, arg);
		if (len <= 0)
			return len ? (int)len : -EPIPE;
		body->len += (size_t)len;
	}
	return 0;
}

int elf_wire_receive(int sock, struct elf_wire *head, struct buf *body, int *fd_ret, elf_wire_wait_fn wait, void *arg)
{
	union control control;
	struct iovec parts[2] = { { head, sizeof(*head) } };
	struct msghdr msg = {
		.msg_iov = parts, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t len;
	int error;

	*fd_ret = -1;
	buf_reset(body);
	if (buf_reserve(body, PACKET_BYTES))
		return -ENOMEM;
	parts[1] = (struct iovec){ body->data, PACKET_BYTES };
	len = receive_packet(sock, &msg, wait, arg);
	if (len < 0)
		return (int)len;
	*fd_ret = fd_of(&msg);
	if (!len) {
		error = -EPIPE;
	} else if ((size_t)len < sizeof(*head) || head->body_bytes > ELF_WIRE_MAX_BYTES ||
		   (size_t)len - sizeof(*head) > head->body_bytes) {
		error = -EPROTO;
	} else {
		body->len = (size_t)len - sizeof(*head);
		error = receive_rest(sock, head->body_bytes, body, wait, arg);
	}
	if (error && *fd_ret >= 0)
		close(MOVE_FD(*fd_ret));
	return error;
}
