/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anything that a worker that is not to be trusted may send: the input is packets (a length in two bytes, the top bits
 * of which say how many descriptors come along, then so many bytes). A message that is received is whole, and no
 * descriptor stays behind.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/helper/elf_wire.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd_pass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FDS = 3 };

static void send_packet(int sock, const uint8_t *data, size_t len, size_t fds)
{
	static const int inputs[MAX_FDS] = { 0 }; /* standard input */
	const struct iovec part = { (void *)(uintptr_t)data, len };

	(void)fd_pass_send(sock, &part, 1, inputs, fds, MSG_DONTWAIT);
}

/* A bit for each of the first descriptors that is open. */
static uint64_t open_files(void)
{
	uint64_t open = 0;

	for (int fd = 0; fd < 24; fd++)
		open |= (uint64_t)(fcntl(fd, F_GETFD) >= 0) << fd;
	return open;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf body = BUF_EMPTY;
	struct elf_wire head;
	uint64_t before = open_files();
	int pair[2], fd, error = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		abort();
	while (size > 2) {
		size_t len = data[0] | (size_t)(data[1] & 63) << 8;

		len = len < size - 2 ? len : size - 2;
		send_packet(pair[0], data + 2, len, data[1] >> 6);
		data += 2 + len;
		size -= 2 + len;
	}
	close(pair[0]);
	while (!error) {
		error = elf_wire_receive(pair[1], &head, &body, &fd, NULL, NULL);
		if (!error && (body.len != head.body_bytes || head.body_bytes > ELF_WIRE_MAX_BYTES))
			abort();
		if (error && fd >= 0)
			abort();
		if (fd >= 0)
			close(fd);
	}
	close(pair[1]);
	if (open_files() != before)
		abort();
	buf_fini(&body);
	return 0;
}
