/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mode of the terminal. The mode to restore is kept in statics, where exit handlers and signal handlers find it. Signals
 * that kill (a bug, abort, Ctrl-\) restore it first; those that end hearth orderly go through the loop.
 */
#include "cmd/terminal/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

static struct termios before;
static volatile sig_atomic_t is_taken;

static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT, SIGSYS };

bool terminal_has_keys(void)
{
	return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void terminal_restore(bool leave_screen)
{
	static const char leave[] = "\033[?7h\033[?25h\033[?1049l";

	if (leave_screen && write(STDOUT_FILENO, leave, sizeof(leave) - 1) < 0)
		errno = 0; /* nobody is there to see it */
	if (leave_screen)
		log_write_held();
	if (!is_taken)
		return;
	is_taken = 0;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void at_exit(void)
{
	terminal_restore(false);
}

static void die(int signo)
{
	terminal_restore(true);
	raise(signo); /* whose action is the default one again */
}

int terminal_enter(void)
{
	struct sigaction action = { .sa_handler = die, .sa_flags = SA_RESETHAND | SA_NODEFER };
	static bool is_prepared;
	struct termios raw;

	if (is_taken)
		return 0;
	if (tcgetattr(STDIN_FILENO, &before))
		return -errno;
	if (!is_prepared) {
		for (size_t i = 0; i < ARRAY_LEN(deadly); i++)
			sigaction(deadly[i], &action, NULL);
		atexit(at_exit);
		is_prepared = true;
	}
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* Ctrl-C and Ctrl-Z stay signals */
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	is_taken = 1;
	if (!tcsetattr(STDIN_FILENO, TCSANOW, &raw))
		return 0;
	is_taken = 0;
	return -errno;
}
