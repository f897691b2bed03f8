/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the hearth of a bundle, wherever the bundle lies, with the C library that is in it: FOLDER/lib/ld.so
 * FOLDER/lib/hearth. Linked statically, so that it runs where there is no such library. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char folder[PATH_MAX], loader[PATH_MAX + 16], lib[PATH_MAX + 16], program[PATH_MAX + 16];
	ssize_t len = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	char **args = calloc((size_t)argc + 8, sizeof(*args));
	int n = 0;

	for (int i = 0; i < 2 && len > 0; i++) { /* FOLDER/bin/hearth */
		char *slash = strrchr(folder, '/');

		if (slash)
			*slash = '\0';
	}
	if (len <= 0 || !args) {
		fputs("hearth: error: cannot find the folder of the bundle: is /proc mounted?\n", stderr);
		return 1;
	}
	snprintf(loader, sizeof(loader), "%s/lib/ld.so", folder);
	snprintf(lib, sizeof(lib), "%s/lib", folder);
	snprintf(program, sizeof(program), "%s/lib/hearth", folder);
	args[n++] = loader;
	args[n++] = "--library-path";
	args[n++] = lib;
	args[n++] = "--argv0";
	args[n++] = argc ? argv[0] : "hearth";
	args[n++] = program;
	for (int i = 1; i < argc; i++)
		args[n++] = argv[i];
	execv(loader, args);
	perror("hearth: error: cannot start the bundle's hearth");
	return 1;
}
