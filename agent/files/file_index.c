/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/files/file_index.h"

#include <stdlib.h>

void file_index_free(struct file_index *fi)
{
	if (fi)
		symbol_cache_entry_close(&fi->entry);
	free(fi);
}

size_t file_index_memory_bytes(const struct file_index *fi, size_t *mapped)
{
	if (!fi)
		return 0;
	*mapped += fi->entry.file.len_bytes;
	return sizeof(*fi) + symbol_cache_entry_memory_bytes(&fi->entry);
}
