/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between places of a file, its own addresses and a process's, by the program headers of a struct file. */
#include <errno.h>

#include "agent/files/files.h"

int file_bias(const struct file *file, uint64_t start, uint64_t pgoff, uint64_t *bias_ret)
{
	for (uint32_t i = 0; i < file->info.segment_count; i++) {
		const struct elf_segment *s = &file->info.segments[i];

		if (pgoff >= (s->offset & ~4095ull) && pgoff < s->offset + s->size_bytes) {
			*bias_ret = start - pgoff + s->offset - s->vaddr;
			return 0;
		}
	}
	return -ENOENT;
}

int file_offset(const struct file *file, uint64_t vaddr, uint64_t *offset_ret)
{
	for (uint32_t i = 0; i < file->info.segment_count; i++) {
		const struct elf_segment *s = &file->info.segments[i];

		if (vaddr >= (s->vaddr & ~4095ull) && vaddr < s->vaddr + s->size_bytes) {
			*offset_ret = vaddr - s->vaddr + s->offset;
			return 0;
		}
	}
	return -ENOENT;
}
