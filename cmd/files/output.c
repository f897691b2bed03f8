/* SPDX-License-Identifier: Apache-2.0 */
/* Writes data to standard output: whole texts, unbuffered. */
#include "cmd/files/output.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/log.h"
#include "cmd/options/command.h"

struct output_size output_size(void)
{
	struct winsize size = { 0 };

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size); /* an output that is no terminal leaves zeros */
	return (struct output_size){ .columns = size.ws_col, .rows = size.ws_row };
}

int output_write(const struct buf *text)
{
	int err;

	if (text->failed) {
		log_error("cannot put the output together: %s", strerror(ENOMEM));
		return STATUS_FAILED;
	}
	err = io_write_all(STDOUT_FILENO, text->data, text->len);
	if (err && err != -EPIPE) {
		log_error("cannot write to standard output: %s", strerror(-err));
		return STATUS_FAILED;
	}
	return STATUS_DONE;
}
