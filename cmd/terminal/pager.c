/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pager is a child that reads a pipe. While it runs, Ctrl-C is its business; whether the reader left before the end does
 * not matter.
 */
#include "cmd/terminal/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/files/output.h"

static const char *pager_command(void)
{
	const char *command = getenv("HEARTH_PAGER");

	if (!command)
		command = getenv("PAGER");
	return command ? command : "less";
}

/* The lines of @text that the terminal has no room for. Lines were cut to its width. */
static bool is_longer(const struct buf *text)
{
	uint32_t rows = output_size().rows;
	size_t lines = 0;

	if (!rows)
		return false;
	for (size_t i = 0; i < text->len; i++)
		lines += text->data[i] == '\n';
	return lines >= rows;
}

_Noreturn static void run_child(const char *command, int in)
{
	signal(SIGPIPE, SIG_DFL);
	setenv("LESS", "FRX", 0); /* as git has it: end at once when it fits, show colours, leave the text standing */
	setenv("LESSCHARSET", "utf-8", 0);
	if (dup2(in, STDIN_FILENO) >= 0)
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(STATUS_NOT_FOUND);
}

int pager_write(const struct buf *text, bool direct)
{
	const char *command = pager_command();
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	int fds[2], status = 0;
	pid_t child;

	if (direct || text->failed || !command[0] || !strcmp(command, "cat") || !is_longer(text))
		return output_write(text);
	if (pipe2(fds, O_CLOEXEC))
		return output_write(text);
	child = fork();
	if (child == 0)
		run_child(command, fds[0]);
	close(fds[0]);
	if (child < 0) {
		close(fds[1]);
		return output_write(text);
	}
	sigaction(SIGINT, &ignore, &before);
	(void)io_write_all(fds[1], text->data, text->len); /* the reader may have seen enough */
	close(fds[1]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &before, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NOT_FOUND)
		return output_write(text); /* there is no such pager */
	return STATUS_DONE;
}
