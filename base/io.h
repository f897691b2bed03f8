/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes all bytes where read(2) and write(2) may do a part, or nothing because of a signal. Stateless. */
#ifndef HEARTH_BASE_IO_H
#define HEARTH_BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* Writes @len bytes and waits where the descriptor does not block. 0 or -errno; then a part may have been written. */
int io_write_all(int fd, const void *data, size_t len);

/* Appends the bytes of @fd up to its end to @out. 0; -EFBIG: there are more than @max_bytes, and @out has the first of them;
 * -ENOMEM or another -errno: @out has the bytes that were read before. */
int io_read_all(int fd, size_t max_bytes, struct buf *out);

/* The same for the file @path. */
int io_read_file(const char *path, size_t max_bytes, struct buf *out);

/* Reads @len bytes at @offset. 0; -EIO: the file ends before; -errno. */
int io_pread_all(int fd, void *dst, size_t len, uint64_t offset);

/*
 * Reads the beginning of the file @path, which is relative to @folder_fd (AT_FDCWD: the working directory), as a text: it
 * puts at most @size - 1 bytes and a NUL into @text. Returns how many bytes, or -errno.
 */
ssize_t io_read_text(int folder_fd, const char *path, char *text, size_t size);

/* Opens a regular file for reading, without waiting for other kinds of files. A descriptor or -errno; -EINVAL: not a regular
 * file. */
int io_open_regular(const char *path);

#endif
