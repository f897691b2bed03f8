/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indexes of names (symbols/index/index.h) of a file that somebody else made, read in a process of its own: without
 * privileges, with bounded time and memory. A file that makes the reader crash, hang or swell costs that process.
 */
#ifndef HEARTH_BACKEND_NAMING_INDEX_MAKER_H
#define HEARTH_BACKEND_NAMING_INDEX_MAKER_H

#include <stdbool.h>
#include <stddef.h>

enum { INDEX_MAKER_IDS = 3 };

/*
 * Reads the ELF file @fd and writes what it knows to each of the empty files @outs: one index a build id of @ids (as
 * struct symbol_index_head has it), @count of them, at most INDEX_MAKER_IDS. Waits for it: a GB of debug information takes
 * some 10 s. 0; -ENOEXEC: no 64-bit ELF file; -E2BIG, -ENOMEM: its names are too many; -ETIMEDOUT: too much work;
 * -EPROTO: the reader died of it; -ECANCELED: *@abandon, which another thread may set, became true; -errno.
 */
int index_make(int fd, const char *const *ids, const int *outs, size_t count, const _Atomic bool *abandon);

#endif
