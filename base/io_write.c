/* SPDX-License-Identifier: Apache-2.0 */
/* Writes all bytes, in as many calls as that takes. Apart from io.c, as buffers write to files (base/buf.c) and read none.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/io.h"

int io_write_all(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd writable = { .fd = fd, .events = POLLOUT };

			poll(&writable, 1, -1);
		} else if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (!n || errno != EINTR) {
			return n ? -errno : -EIO;
		}
	}
	return 0;
}
