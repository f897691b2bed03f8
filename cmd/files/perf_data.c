/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs `perf script` with its default fields and the pid, which is what proto/formats/perf_script_read.c reads; perf leaves
 * out what a recording does not have. perf's messages go to a file without a name; its last line is reported when perf
 * fails.
 */
#include "cmd/files/perf_data.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"

extern char **environ;

enum { MAX_SAID_BYTES = 4096 };

bool perf_data_is(const uint8_t *data, size_t len)
{
	return len >= 8 && !memcmp(data, "PERFILE2", 8); /* tools/perf/util/header.c */
}

static int start(const char *path, int output, int messages, pid_t *pid)
{
	const char *argv[] = { "perf", "script", "-i", path, "-F", "+pid", "--ns", NULL };
	posix_spawn_file_actions_t actions;
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return -err;
	err = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
	if (!err)
		err = posix_spawnp(pid, "perf", &actions, NULL, (char **)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

/* The last line that is not empty. */
static void tell_last_line(int messages, struct buf *error)
{
	char said[MAX_SAID_BYTES];
	ssize_t n = pread(messages, said, sizeof(said), 0);
	char *line;

	while (n > 0 && (said[n - 1] == '\n' || said[n - 1] == ' '))
		n--;
	line = n > 0 ? memrchr(said, '\n', (size_t)n) : NULL;
	line = line ? line + 1 : said;
	buf_append(error, line, n > 0 ? (size_t)(said + n - line) : 0);
}

int perf_data_read(const char *path, struct buf *out, struct buf *error)
{
	AUTO_CLOSE int messages = memfd_create("perf-messages", MFD_CLOEXEC), from = -1;
	int pipe_fds[2], status, err;
	pid_t pid;

	if (messages < 0 || pipe2(pipe_fds, O_CLOEXEC)) {
		err = -errno;
		buf_printf(error, "cannot run perf: %s", strerror(-err));
		return err;
	}
	from = pipe_fds[0];
	err = start(path, pipe_fds[1], messages, &pid);
	close(pipe_fds[1]);
	if (err) {
		buf_printf(error,
			   "%s is perf's data, which is read by way of 'perf script', and perf cannot be run: %s; install "
			   "it, or run 'perf script' where it was recorded and hand its output to hearth",
			   path, strerror(-err));
		return err;
	}
	err = io_read_all(from, SIZE_MAX, out);
	close(MOVE_FD(from)); /* perf ends, whatever it was doing */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (err) {
		buf_printf(error, "cannot read what perf script prints of %s: %s", path, strerror(-err));
	} else if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		err = -EBADMSG;
		buf_printf(error, "perf script cannot read %s: ", path);
		tell_last_line(messages, error);
	}
	return err;
}
