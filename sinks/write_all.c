/* SPDX-License-Identifier: Apache-2.0 */
/* Writing all of something. Stateless. */
#include "sinks/write_all.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

int write_all(int fd, const uint8_t *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EAGAIN) {
			struct pollfd writable = { .fd = fd, .events = POLLOUT };

			poll(&writable, 1, -1);
		} else if (n < 0 && errno != EINTR) {
			return -errno;
		} else if (n > 0) {
			data += n;
			len -= n;
		}
	}
	return 0;
}
