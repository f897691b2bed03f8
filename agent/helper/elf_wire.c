/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages in packets. A packet carries at most PACKET_BYTES, well below what a socket takes at once by default, so a body
 * is a train of packets and the sender waits while the receiver is behind. No state; any thread with its own socket.
 */
#include <errno.h>

#include "agent/helper/elf_wire.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd_pass.h"

enum { PACKET_BYTES = 64 << 10 };

/* What @error of a packet means: 0 to try again, or the error for the caller. */
static int failed(ssize_t error, elf_wire_wait_fn wait, void *arg)
{
	if (error == -EAGAIN)
		return wait && wait(arg) ? 0 : -ETIMEDOUT;
	return error == -ECONNRESET ? -EPIPE : error == -EBADMSG ? -EPROTO : (int)error;
}

static int send_packet(int sock, const struct iovec *parts, int fd, elf_wire_wait_fn wait, void *arg)
{
	for (;;) {
		ssize_t len = fd_pass_send(sock, parts, 2, &fd, fd >= 0, 0);
		int error = len < 0 ? failed(len, wait, arg) : 0;

		if (len >= 0 || error)
			return error;
	}
}

int elf_wire_send(int sock, const struct elf_wire *head, const void *body, int fd, elf_wire_wait_fn wait, void *arg)
{
	struct iovec parts[2] = { { (void *)(uintptr_t)head, sizeof(*head) } };
	size_t sent = 0, left;
	int error;

	do {
		left = head->body_bytes - sent;
		if (left) {
			parts[1].iov_base = (uint8_t *)(uintptr_t)body + sent;
			parts[1].iov_len = left < PACKET_BYTES ? left : PACKET_BYTES;
		}
		error = send_packet(sock, parts, fd, wait, arg);
		if (error)
			return error;
		sent += parts[1].iov_len;
		parts[0].iov_len = 0; /* the other packets have only body */
		fd = -1;
	} while (sent < head->body_bytes);
	return 0;
}

/* The length of one packet (0: the other side has gone, or sent an empty one), or an error. Room for a descriptor: @fd_ret,
 * unless that is NULL. */
static ssize_t receive_packet(int sock, const struct iovec *parts, size_t part_count, int *fd_ret, elf_wire_wait_fn wait,
			      void *arg)
{
	for (;;) {
		ssize_t len = fd_pass_receive(sock, parts, part_count, fd_ret, fd_ret != NULL, 0);
		int error = len < 0 ? failed(len, wait, arg) : 0;

		if (len >= 0 || error)
			return error ? error : len;
	}
}

/* The packets after the first. */
static int receive_rest(int sock, uint64_t bytes, struct buf *body, elf_wire_wait_fn wait, void *arg)
{
	while (body->len < bytes) {
		size_t left = bytes - body->len;
		struct iovec part;
		ssize_t len;

		if (wait && !wait(arg)) /* so a sender of single bytes runs out of time, too */
			return -ETIMEDOUT;
		if (buf_reserve(body, left))
			return -ENOMEM;
		part = (struct iovec){ body->data + body->len, left };
		len = receive_packet(sock, &part, 1, NULL, wait, arg);
		if (len <= 0)
			return len ? (int)len : -EPIPE;
		body->len += (size_t)len;
	}
	return 0;
}

int elf_wire_receive(int sock, struct elf_wire *head, struct buf *body, int *fd_ret, elf_wire_wait_fn wait, void *arg)
{
	struct iovec parts[2] = { { head, sizeof(*head) } };
	ssize_t len;
	int error;

	*fd_ret = -1;
	buf_reset(body);
	if (buf_reserve(body, PACKET_BYTES))
		return -ENOMEM;
	parts[1] = (struct iovec){ body->data, PACKET_BYTES };
	len = receive_packet(sock, parts, 2, fd_ret, wait, arg);
	if (len < 0)
		return (int)len;
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
