/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memfd MS LIBRARY PROGRAM: a library without a file in any folder, opened through /proc/self/fd, and a program
 * without one, executed through its descriptor.
 */
#include "comings.h"

static chain_fn *enter;

FRAME unsigned long memfd_call(unsigned long ms);
FRAME unsigned long memfd_call(unsigned long ms)
{
	truth_sink += enter(ms) ^ ms;
	return truth_sink;
}

static int copy_of(const char *path, const char *name)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create(name, MFD_CLOEXEC);
	char bytes[65536];
	ssize_t n;

	must(from >= 0 && to >= 0, path);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		must(write(to, bytes, (size_t)n) == n, "write");
	close(from);
	return to;
}

int main(int argc, char **argv)
{
	char path[64], *arguments[] = { "in_memory", argv[1], NULL }, *environment[] = { NULL };
	int library = copy_of(argv[2], "library"), program = copy_of(argv[3], "program");
	void *handle;

	(void)argc;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", library);
	handle = dlopen(path, RTLD_NOW);
	must(handle != NULL, dlerror());
	*(void **)&enter = dlsym(handle, "enter");
	tell("memfd_dlopen", "memfd", "main memfd_call enter", "libm");
	truth_told();
	name_me("memfd_dlopen");
	truth_sink += memfd_call((unsigned long)atol(argv[1]));
	fexecve(program, arguments, environment);
	return 1;
}
