/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hugetext MS mremap|mmap: moves a library's code into anonymous memory at the same addresses, so that huge pages may hold
 * it, as large programs do with theirs: by mremap, which the kernel tells nobody, or by mmap over it.
 */
#include "comings.h"

static chain_fn *enter;

FRAME unsigned long huge_call(unsigned long ms);
FRAME unsigned long huge_call(unsigned long ms)
{
	truth_sink += enter(ms) ^ ms;
	return truth_sink;
}

/* The executable mapping of the file whose name ends in @path. */
static void find(const char *path, char **start, size_t *len)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];

	*start = NULL;
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		char perms[5];

		if (sscanf(line, "%lx-%lx %4s", &from, &to, perms) == 3 && perms[2] == 'x' && strstr(line, path)) {
			*start = (char *)from;
			*len = to - from;
		}
	}
	must(*start != NULL, path);
	fclose(maps);
}

static void move_by_mremap(char *text, size_t len)
{
	char *copy = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(copy != MAP_FAILED, "mmap");
	madvise(copy, len, MADV_HUGEPAGE);
	memcpy(copy, text, len);
	must(mprotect(copy, len, PROT_READ | PROT_EXEC) == 0, "mprotect");
	must(mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, text) == text, "mremap");
}

static void move_by_mmap(char *text, size_t len)
{
	char *copy = malloc(len);

	memcpy(copy, text, len);
	must(mmap(text, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == text, "mmap");
	madvise(text, len, MADV_HUGEPAGE);
	memcpy(text, copy, len);
	must(mprotect(text, len, PROT_READ | PROT_EXEC) == 0, "mprotect");
	free(copy);
}

FRAME void run(const char *library, const char *comm, unsigned long ms, void (*move)(char *, size_t));
FRAME void run(const char *library, const char *comm, unsigned long ms, void (*move)(char *, size_t))
{
	void *handle = dlopen(library, RTLD_NOW);
	char *text;
	size_t len;

	must(handle != NULL, library);
	*(void **)&enter = dlsym(handle, "enter");
	name_me(comm);
	truth_sink += huge_call(200); /* known as what it was, at first */
	find(library + 1, &text, &len);
	move(text, len);
	truth_sink += huge_call(ms);
}

int main(int argc, char **argv)
{
	unsigned long ms = (unsigned long)atol(argv[1]);
	int is_mremap = argc > 2 && strcmp(argv[2], "mremap") == 0;

	tell("huge_mremap", "hugetext", "main run huge_call enter", "libr");
	tell("huge_mmap", "hugetext", "main run huge_call enter", "libh");
	truth_told();
	if (is_mremap)
		run("./libr.so", "huge_mremap", ms, move_by_mremap);
	else
		run("./libh.so", "huge_mmap", ms, move_by_mmap);
	return 0;
}
