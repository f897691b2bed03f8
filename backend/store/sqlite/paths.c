/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite turns every path into one from the root of the file system, through each link. A folder that was handed over by
 * descriptor is /proc/self/fd/N/..., which leads there though its parents may be closed to us; resolved, it would not. So
 * SQLite gets its own ways to the file system again, which differ in that one function alone, below the same names.
 */
#include <errno.h>
#include <string.h>

#include <sqlite3.h>

#include "backend/store/sqlite/sqlite.h"

static int keep_path(sqlite3_vfs *vfs, const char *path, int size, char *out)
{
	size_t len = strlen(path);

	(void)vfs;
	if (len >= (size_t)size)
		return SQLITE_CANTOPEN;
	memcpy(out, path, len + 1);
	return SQLITE_OK;
}

int store_sqlite_keep_paths(void)
{
	static const char *const names[] = { "unix", "unix-none" };
	static sqlite3_vfs ours[2];

	for (int i = 0; i < 2; i++) {
		const sqlite3_vfs *its = sqlite3_vfs_find(names[i]);

		if (!its)
			return -ENOSYS;
		ours[i] = *its;
		ours[i].pNext = NULL;
		ours[i].xFullPathname = keep_path;
	}
	for (int i = 0; i < 2; i++)
		if (sqlite3_vfs_register(&ours[i], i == 0) != SQLITE_OK)
			return -ENOMEM;
	return 0;
}
