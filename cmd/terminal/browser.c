/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs xdg-open in a process and a session of its own, so that Ctrl-C here does not reach the browser. The parent of
 * xdg-open ends at once: nobody waits for it and nothing is left behind.
 */
#include "cmd/terminal/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/setup/user.h"

enum { FAILED = 127 };

/* Runs in the child. A browser's own messages are no business of this terminal. */
static void become_browser(const char *url)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct user user;
	sigset_t none;

	if (setsid() < 0 || fork() != 0)
		_exit(0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (user_invoking(&user) && user_become(&user))
		_exit(FAILED);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execlp("xdg-open", "xdg-open", url, (char *)NULL);
	_exit(FAILED);
}

static bool is_installed(void)
{
	const char *path = getenv("PATH");
	char file[4096];

	for (size_t len; path && *path; path += len + (path[len] == ':')) {
		len = strcspn(path, ":");
		if (snprintf(file, sizeof(file), "%.*s/xdg-open", (int)len, path) < (int)sizeof(file) && !access(file, X_OK))
			return true;
	}
	return false;
}

void browser_open(const char *url)
{
	pid_t child;

	if (!is_installed()) {
		log_warn("cannot open a browser: there is no xdg-open (package xdg-utils); open the address yourself");
		return;
	}
	child = fork();
	if (child == 0)
		become_browser(url);
	if (child < 0)
		log_warn("cannot open a browser: %s", strerror(errno));
	else
		waitpid(child, NULL, 0);
}
