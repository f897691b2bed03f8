/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/files/source_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

enum { MAX_SOURCE_BYTES = 16 << 20 };

bool source_file_read(const char *path, struct buf *out)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > MAX_SOURCE_BYTES)
		return false;
	return !io_read_all(fd, MAX_SOURCE_BYTES, out);
}
