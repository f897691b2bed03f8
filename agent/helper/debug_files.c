/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the places of symbols/find/debug_places.h below the root of the program's process, which may be a hostile
 * container's, and below ours. Below ours only those that do not depend on the program's path, which is not one of ours. A
 * process may mount file systems that never answer: no path below its root leads into a mount. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "agent/helper/debug_files.h"
#include "agent/proc/mounts.h"
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

/* How a process's root folder is to ours. A file system that may not answer is not asked. */
enum kinship { SAME, OF_ONE_DEVICE, STRANGE };

static enum kinship compare(int ours, int theirs)
{
	const int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
	struct statx x, y;

	if (statx(ours, "", flags, STATX_INO, &x) || statx(theirs, "", flags, STATX_INO, &y) ||
	    x.stx_dev_major != y.stx_dev_major || x.stx_dev_minor != y.stx_dev_minor)
		return STRANGE;
	return x.stx_ino == y.stx_ino ? SAME : OF_ONE_DEVICE;
}

/*
 * Opens the root @which: ours, which stands for the process's own if that is the same folder, or process @pid is gone; or
 * the process's, *@is_theirs, where it may have mounted what it likes. -ENOENT: ours was tried already as the process's;
 * -EREMOTE: the process's is on a file system that may not answer.
 */
static int open_root(uint8_t which, uint32_t pid, bool *is_theirs)
{
	AUTO_CLOSE int ours = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), theirs = proc_open_folder(pid, "root");
	enum kinship kinship = theirs < 0 ? SAME : compare(ours, theirs);

	*is_theirs = which == PROCESS_ROOT && kinship != SAME;
	if (ours < 0)
		return -errno;
	if (*is_theirs)
		return kinship == OF_ONE_DEVICE || mounts_folder_is_local(pid, theirs) ? MOVE_FD(theirs) : -EREMOTE;
	return which == PROCESS_ROOT || kinship != SAME ? MOVE_FD(ours) : -ENOENT;
}

int debug_file_open(const struct debug_place *place, const struct debug_need *need, unsigned index)
{
	AUTO_CLOSE int root = -1;
	char path[PATH_MAX];
	bool is_theirs;
	unsigned at = 0;
	int error;

	while (at < DEBUG_FILE_PLACES && (places[at].kind != need->kind || index--))
		at++;
	if (at == DEBUG_FILE_PLACES)
		return -ERANGE;
	error = debug_place_path(need, place->path, NULL, places[at].place, path, sizeof(path));
	if (error)
		return error == -ERANGE ? -ENOENT : error;
	root = open_root(places[at].root, place->pid, &is_theirs);
	return root < 0 ? root : debug_place_open(root, path, place->fd, is_theirs);
}
