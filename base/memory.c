/* SPDX-License-Identifier: Apache-2.0 */
/* glibc's mallopt(3), mallinfo2(3) and malloc_trim(3), which speak of all of the process's arenas. */
#include "base/memory.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/metrics.h"

enum {
	LARGE_BYTES = 128 << 10,
	MUCH_BYTES = 1 << 20, /* trimming less is not worth the page faults that follow */
};

void memory_map_large(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

void memory_give_back(void)
{
	if (mallinfo2().fordblks > MUCH_BYTES)
		(void)malloc_trim(0);
}

/* Anonymous memory that is resident; 0 when it is not known. */
static size_t anonymous_bytes(void)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/self/statm", "re");
	unsigned long resident, shared;

	if (!f || fscanf(f, "%*u %lu %lu", &resident, &shared) != 2 || shared > resident)
		return 0;
	return (resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}

void memory_give_back_above(size_t bytes)
{
	const struct mallinfo2 info = mallinfo2();

	if (anonymous_bytes() > info.uordblks + info.hblkhd + bytes)
		(void)malloc_trim(0);
}

int memory_zeros_reach(struct memory_zeros *z, size_t bytes)
{
	void *at;

	if (bytes <= z->bytes)
		return 0;
	at = z->bytes ? mremap(z->at, z->bytes, bytes, MREMAP_MAYMOVE)
		      : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -ENOMEM;
	*z = (struct memory_zeros){ at, bytes };
	return 0;
}

void memory_zeros_fini(struct memory_zeros *z)
{
	if (z->bytes)
		(void)munmap(z->at, z->bytes);
	*z = (struct memory_zeros){ 0 };
}

void memory_leave_constants(const void *at, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = ((uintptr_t)at + page - 1) & -page,
		  end = ((uintptr_t)at + bytes) & -page;

	if (start < end)
		(void)madvise((void *)start, end - start, MADV_DONTNEED);
}

static void tell(struct metrics *metrics, const char *name, const char *key, const char *value, const char *help,
		 size_t bytes)
{
	AUTO(buf_fini) struct buf labels = BUF_EMPTY;

	if (!metrics)
		return;
	metrics_label(&labels, key, value, strlen(value));
	metric_set(metrics_gauge(metrics, name, buf_text(&labels), help), bytes);
}

void memory_tell(struct metrics *metrics, const char *part, size_t bytes)
{
	tell(metrics, "hearth_memory_bytes", "part", part, "Memory that a part of hearth holds.", bytes);
}

void memory_tell_mapped(struct metrics *metrics, const char *what, size_t bytes)
{
	tell(metrics, "hearth_mapped_bytes", "what", what, "Files and rings that are mapped, resident or not.", bytes);
}

/* Lines of proc_pid_status(5); in kB. */
static void tell_resident(struct metrics *metrics)
{
	static const struct {
		const char *name, *kind;
	} kinds[] = { { "RssAnon:", "anonymous" }, { "RssFile:", "file" }, { "RssShmem:", "shared" } };
	AUTO_FCLOSE FILE *f = fopen("/proc/self/status", "re");
	unsigned long long kb;
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
			size_t len = strlen(kinds[i].name);

			if (!strncmp(line, kinds[i].name, len) && sscanf(line + len, "%llu", &kb) == 1)
				tell(metrics, "hearth_resident_bytes", "kind", kinds[i].kind,
				     "Resident memory, by what is behind its pages.", kb << 10);
		}
	}
}

void memory_tell_process(struct metrics *metrics)
{
	static const char help[] = "Memory of the C library's allocator: in use, kept after it was freed, and mapped for "
				   "large blocks.";
	struct mallinfo2 info = mallinfo2();

	tell_resident(metrics);
	tell(metrics, "hearth_heap_bytes", "state", "used", help, info.uordblks);
	tell(metrics, "hearth_heap_bytes", "state", "free", help, info.fordblks);
	tell(metrics, "hearth_heap_bytes", "state", "mapped", help, info.hblkhd);
}
