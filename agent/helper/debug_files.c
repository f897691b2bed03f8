/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the places of symbols/find/debug_places.h below the root of the program's process, which may be a hostile
 * container's, and below ours. Below ours only those that do not depend on the program's path, which is not one of ours. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "agent/helper/debug_files.h"
#include "agent/proc/proc_reader.h"
#include "base/cleanup.h"
#include "symbols/find/debug_places.h"

enum { PROCESS_ROOT, OUR_ROOT };

static const struct {
	uint8_t kind, root, place;
} places[DEBUG_FILE_PLACES] = {
	{ DEBUG_NEED_BUILD_ID, PROCESS_ROOT, 0 }, { DEBUG_NEED_BUILD_ID, OUR_ROOT, 0 },
	{ DEBUG_NEED_LINK, PROCESS_ROOT, 0 },	  { DEBUG_NEED_LINK, PROCESS_ROOT, 1 },
	{ DEBUG_NEED_LINK, PROCESS_ROOT, 2 },	  { DEBUG_NEED_LINK, OUR_ROOT, 2 },
	{ DEBUG_NEED_COMMON, PROCESS_ROOT, 0 },	  { DEBUG_NEED_COMMON, OUR_ROOT, 0 },
	{ DEBUG_NEED_PACKAGE, PROCESS_ROOT, 0 },
};

/* Opens the root of process @pid, or ours when the process is gone; -ENOENT if ours was tried already as the process's. */
static int open_root(uint8_t root, uint32_t pid)
{
	AUTO_CLOSE int ours = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), theirs = -1;
	struct stat a, b;

	theirs = proc_open_folder(pid, "root");
	if (root == PROCESS_ROOT && theirs >= 0)
		return MOVE_FD(theirs);
	if (root == PROCESS_ROOT)
		return ours < 0 ? -errno : MOVE_FD(ours);
	if (ours < 0 || theirs < 0 || fstat(ours, &a) || fstat(theirs, &b) || (a.st_dev == b.st_dev && a.st_ino == b.st_ino))
		return -ENOENT;
	return MOVE_FD(ours);
}

int debug_file_open(const struct debug_place *place, const struct debug_need *need, unsigned index)
{
	AUTO_CLOSE int root = -1;
	char path[PATH_MAX];
	unsigned at = 0;
	int error;

	while (at < DEBUG_FILE_PLACES && (places[at].kind != need->kind || index--))
		at++;
	if (at == DEBUG_FILE_PLACES)
		return -ERANGE;
	error = debug_place_path(need, place->path, NULL, places[at].place, path, sizeof(path));
	if (error)
		return error == -ERANGE ? -ENOENT : error;
	root = open_root(places[at].root, place->pid);
	return root < 0 ? root : debug_place_open(root, path, place->fd);
}
