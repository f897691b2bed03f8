/* SPDX-License-Identifier: Apache-2.0 */
/* Reads all bytes, in as many calls as that takes. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { LEAST_READ_BYTES = 16 << 10 };

int io_read_all(int fd, size_t max_bytes, struct buf *out)
{
	for (;;) {
		ssize_t n;

		if (buf_reserve(out, LEAST_READ_BYTES))
			return -ENOMEM;
		n = read(fd, out->data + out->len, buf_room(out));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		if ((size_t)n > max_bytes) {
			out->len += max_bytes;
			return -EFBIG;
		}
		out->len += (size_t)n;
		max_bytes -= (size_t)n;
	}
}

int io_read_file(const char *path, size_t max_bytes, struct buf *out)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : io_read_all(fd, max_bytes, out);
}

int io_pread_all(int fd, void *dst, size_t len, uint64_t offset)
{
	for (size_t have = 0; have < len;) {
		ssize_t n = pread(fd, (char *)dst + have, len - have, (off_t)(offset + have));

		if (!n || (n < 0 && errno != EINTR))
			return n ? -errno : -EIO;
		have += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

ssize_t io_read_text(int folder_fd, const char *path, char *text, size_t size)
{
	AUTO_CLOSE int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (n && len < size - 1) {
		n = read(fd, text + len, size - 1 - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	}
	text[len] = '\0';
	return (ssize_t)len;
}

int io_open_regular(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -EINVAL;
	return MOVE_FD(fd);
}
