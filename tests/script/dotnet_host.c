/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnet_host FOLDER PROGRAM [ARGUMENT...]
 *
 * Runs the .NET program PROGRAM (an absolute path) with the runtime in FOLDER, that of an application which brings its own:
 * libcoreclr.so and the library's images. By the runtime's interface for hosts (coreclrhost.h).
 */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int initialize_fn(const char *, const char *, int, const char **, const char **, void **, unsigned *);
typedef int execute_fn(void *, unsigned, int, const char **, const char *, unsigned *);

/* The images that the runtime may load, with colons between them. */
static char *images(const char *folder, const char *program)
{
	char pattern[4096], *all;
	size_t bytes = strlen(program) + 1;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/*.dll", folder);
	if (glob(pattern, 0, NULL, &found))
		return NULL;
	for (size_t i = 0; i < found.gl_pathc; i++)
		bytes += strlen(found.gl_pathv[i]) + 1;
	all = calloc(1, bytes);
	for (size_t i = 0; all && i < found.gl_pathc; i++)
		strcat(strcat(all, found.gl_pathv[i]), ":");
	return all ? strcat(all, program) : NULL;
}

int main(int argc, char **argv)
{
	const char *names[] = { "TRUSTED_PLATFORM_ASSEMBLIES", "NATIVE_DLL_SEARCH_DIRECTORIES",
				"System.Globalization.Invariant" },
		   *values[3];
	union {
		void *symbol;
		initialize_fn *initialize;
		execute_fn *execute;
	} initialize, execute;
	unsigned domain, status = 0;
	void *library, *host;
	char path[4096], folder[4096];

	if (argc < 3)
		return 2;
	snprintf(path, sizeof(path), "%s/libcoreclr.so", argv[1]);
	(void)dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL); /* which a library of 3.1 uses and does not name */
	library = dlopen(path, RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 77;
	}
	initialize.symbol = dlsym(library, "coreclr_initialize");
	execute.symbol = dlsym(library, "coreclr_execute_assembly");
	values[0] = images(argv[1], argv[2]);
	snprintf(folder, sizeof(folder), "%s/", argv[1]); /* names are put behind it as they are */
	values[1] = folder;
	values[2] = "true";
	if (!initialize.symbol || !execute.symbol || !values[0] ||
	    initialize.initialize(argv[0], "hearth", 3, names, values, &host, &domain))
		return 77;
	if (execute.execute(host, domain, argc - 3, (const char **)argv + 3, argv[2], &status))
		return 1;
	return (int)status;
}
