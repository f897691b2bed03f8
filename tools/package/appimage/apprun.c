/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AppRun of hearth's AppImage: starts the hearth of the folder that it lies in. Words go to hearth as they are. A first word
 * that is the path of a file, which has a '/' or a '.' as no command of hearth's has, is shown on a page in the browser,
 * with what is behind it; without a word a desktop's own dialog asks for a file, and where there is none the help is
 * printed. Linked statically, as start.c.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MORE = 8 };

static bool is_path(const char *word)
{
	return strpbrk(word, "/.") && word[0] != '-' && !access(word, F_OK);
}

/* Asks by the dialog of @argv, whose first line of output is the path. True: it ran; the path is "" when nobody chose. */
static bool ask_by(char *const *argv, char path_ret[static PATH_MAX])
{
	size_t len = 0;
	int fds[2], status;
	ssize_t n;
	pid_t child;

	path_ret[0] = '\0';
	if (pipe(fds))
		return false;
	child = fork();
	if (!child) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	while (child > 0 && len < PATH_MAX - 1 && (n = read(fds[0], path_ret + len, PATH_MAX - 1 - len)) > 0)
		len += (size_t)n;
	close(fds[0]);
	path_ret[len] = '\0';
	path_ret[strcspn(path_ret, "\n")] = '\0';
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) != 127;
}

/* Asks for a capture where there is a desktop with a dialog for it. */
static bool ask(char path_ret[static PATH_MAX])
{
	static char title[] = "A capture to show on a page", folder[] = ".";
	static char zenity[] = "zenity", kdialog[] = "kdialog", select[] = "--file-selection", open[] = "--getopenfilename";
	static char zenity_title[] = "--title=A capture to show on a page", kdialog_title[] = "--title";
	char *const ways[][6] = { { zenity, select, zenity_title, NULL },
				  { kdialog, kdialog_title, title, open, folder, NULL } };
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

	if (!(x && x[0]) && !(wayland && wayland[0]))
		return false;
	return ask_by(ways[0], path_ret) || ask_by(ways[1], path_ret);
}

int main(int argc, char **argv)
{
	static char view[] = "view", open[] = "--open", address[] = "--http-address=127.0.0.1:0", help[] = "help",
		    end[] = "--";
	static char program[PATH_MAX + 32], path[PATH_MAX];
	const ssize_t len = readlink("/proc/self/exe", program, PATH_MAX - 1);
	char **args = calloc((size_t)argc + MORE, sizeof(*args)), *slash;
	int n = 0;

	slash = len > 0 ? strrchr(program, '/') : NULL;
	if (!slash || !args) {
		fputs("hearth: error: cannot find the folder of AppRun: is /proc mounted?\n", stderr);
		return 1;
	}
	strcpy(slash, "/usr/bin/hearth");
	args[n++] = argc ? argv[0] : program;
	if (argc > 1 && is_path(argv[1])) {
		args[n++] = view, args[n++] = open, args[n++] = address;
	} else if (argc < 2 && ask(path)) {
		if (!path[0])
			return 0;
		args[n++] = view, args[n++] = open, args[n++] = address, args[n++] = end, args[n++] = path;
	} else if (argc < 2) {
		args[n++] = help, args[n++] = view;
	}
	for (int i = 1; i < argc; i++)
		args[n++] = argv[i];
	execv(program, args);
	perror("hearth: error: cannot start the AppImage's hearth");
	return 1;
}
