/* SPDX-License-Identifier: Apache-2.0 */
/* Files that stand for memory where a process keeps code: one segment, nothing to open, rows of their own (agent/code/). */
#include <stdlib.h>
#include <string.h>

#include "agent/files/files.h"

struct file *memory_file_new(uint32_t id, const char *path, uint64_t bytes)
{
	struct file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->path = strdup(path);
	file->fd = file->debug_fd = -1;
	file->id = id;
	file->state = FILE_READABLE;
	file->is_unnameable = true;
	file->info.segment_count = 1;
	file->info.segments[0].size_bytes = bytes;
	if (file->path)
		return file;
	free(file);
	return NULL;
}

void memory_file_free(struct file *file)
{
	if (!file)
		return;
	free(file->path);
	free(file);
}
