/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowded SECONDS: the code of one library mapped 4,000 times, each with a page between, and called here and there: most
 * samples are the first in their mapping.
 */
#include <elf.h>

#include "comings.h"

enum { COPIES = 4000 };
static chain_fn *enter;

FRAME unsigned long crowded_call(unsigned long ms);
FRAME unsigned long crowded_call(unsigned long ms)
{
	truth_sink += enter(ms) ^ ms;
	return truth_sink;
}

/* Its code needs its data (one variable), so all segments are mapped, as a loader does. */
static char *load(int fd, const Elf64_Ehdr *eh, const Elf64_Phdr *ph, char *base)
{
	for (int i = 0; i < eh->e_phnum; i++) {
		size_t slack = ph[i].p_vaddr & 4095;
		int prot = PROT_READ | (ph[i].p_flags & PF_X ? PROT_EXEC : 0) | (ph[i].p_flags & PF_W ? PROT_WRITE : 0);

		if (ph[i].p_type == PT_LOAD)
			must(mmap(base + ph[i].p_vaddr - slack, ph[i].p_filesz + slack, prot, MAP_PRIVATE | MAP_FIXED, fd,
				  (off_t)(ph[i].p_offset - slack)) != MAP_FAILED,
			     "mmap");
	}
	return base;
}

int main(int argc, char **argv)
{
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);
	int fd = open("./libw.so", O_RDONLY | O_CLOEXEC);
	size_t step = 64 * 1024, offset;
	char *space = mmap(NULL, COPIES * step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *handle = dlopen("./libw.so", RTLD_NOW);
	const Elf64_Ehdr *eh = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	unsigned random = 1;
	Dl_info info;

	must(fd >= 0 && space != MAP_FAILED && handle != NULL && eh != MAP_FAILED, "libw.so");
	must(dladdr(dlsym(handle, "enter"), &info) != 0, "dladdr");
	offset = (size_t)((char *)dlsym(handle, "enter") - (char *)info.dli_fbase);
	for (int i = 0; i < COPIES; i++)
		load(fd, eh, (const void *)((const char *)eh + eh->e_phoff), space + (size_t)i * step);
	tell("crowded", "crowded", "main crowded_call enter", "libw");
	truth_told();
	while (now_seconds(CLOCK_MONOTONIC) < end) {
		*(void **)&enter = space + (size_t)(rand_r(&random) % COPIES) * step + offset;
		truth_sink += crowded_call(3);
	}
	return 0;
}
