/* SPDX-License-Identifier: Apache-2.0 */
/* Data on standard output: whole texts, unbuffered. */
#include "cmd/output.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "cmd/cmd.h"

struct output_size output_size(void)
{
	struct winsize size = { 0 };

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size); /* what is no terminal leaves zeros */
	return (struct output_size){ .columns = size.ws_col, .rows = size.ws_row };
}

int output_write(const struct buf *text)
{
	size_t done = 0;

	if (text->failed) {
		log_error("cannot put the output together: %s", strerror(ENOMEM));
		return STATUS_FAILED;
	}
	while (done < text->len) {
		ssize_t n = write(STDOUT_FILENO, text->data + done, text->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EPIPE)
			return STATUS_DONE;
		if (n < 0) {
			log_error("cannot write to standard output: %s", strerror(errno));
			return STATUS_FAILED;
		}
		done += (size_t)n;
	}
	return STATUS_DONE;
}
