/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/proc/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/proc/proc_root.h"
#include "base/cleanup.h"

/* Types whose files are opened without asking anybody outside this machine. An overlay counts as the file system that it
 * mostly lies over. */
static bool is_local_type(const char *type)
{
	static const char *const local[] = { "ext2",	 "ext3",    "ext4",	 "xfs",	     "btrfs",	"f2fs",
					     "bcachefs", "zfs",	    "vfat",	 "exfat",    "ntfs3",	"udf",
					     "erofs",	 "iso9660", "squashfs",	 "tmpfs",    "proc",	"sysfs",
					     "ramfs",	 "rootfs",  "hugetlbfs", "devtmpfs", "overlay", "virtiofs" };

	for (size_t i = 0; i < ARRAY_LEN(local); i++)
		if (!strcmp(type, local[i]))
			return true;
	return false;
}

/* Is field number @index of a line of mountinfo @text? Fields end with a blank. */
static bool has_field(const char *line, int index, const char *text)
{
	for (; index; index--) {
		line = strchr(line, ' ');
		if (!line)
			return false;
		line++;
	}
	return !strncmp(line, text, strlen(text)) && line[strlen(text)] == ' ';
}

/* Does the line name a local file system? Its type stands behind a dash. */
static bool line_is_local(char *line)
{
	char *dash = strstr(line, " - "), *end;

	if (!dash)
		return false;
	dash += 3;
	end = strchr(dash, ' ');
	if (end)
		*end = '\0';
	return is_local_type(dash);
}

/* Is there a local file system among those that @task sees, whose field number @index is @text? -ENOENT: none is of that
 * text; -ESRCH: there is no such task. */
static int find_local(const char *task, int index, const char *text)
{
	AUTO_FREE char *line = NULL;
	AUTO_FCLOSE FILE *f = NULL;
	char path[PROC_ROOT_MAX_BYTES + 32];
	int found;
	size_t cap = 0;

	snprintf(path, sizeof(path), "%s/%s/mountinfo", proc_root(), task);
	f = fopen(path, "re");
	found = f ? -ENOENT : -ESRCH;
	while (f && found <= 0 && getline(&line, &cap, f) > 0)
		if (has_field(line, index, text))
			found = line_is_local(line);
	return found;
}

bool mounts_device_is_local(uint32_t task, uint32_t major, uint32_t minor)
{
	enum { DEVICE_FIELD = 2 };
	char number[32], name[16];
	int found;

	snprintf(number, sizeof(number), "%" PRIu32 ":%" PRIu32, major, minor);
	snprintf(name, sizeof(name), "%" PRIu32, task);
	found = find_local(name, DEVICE_FIELD, number);
	if (found == -ESRCH)
		found = find_local("self", DEVICE_FIELD, number);
	return found > 0;
}

/* Whoever has changed its root sees no mount but those below, so others are asked for the one that the root is in. No two
 * mounts have one number. */
bool mounts_folder_is_local(uint32_t task, int fd)
{
	enum { ID_FIELD = 0 };
	char number[32], name[16];
	struct statx st;
	int found = -ENOENT;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) || !(st.stx_mask & STATX_MNT_ID))
		return false;
	snprintf(number, sizeof(number), "%" PRIu64, (uint64_t)st.stx_mnt_id);
	snprintf(name, sizeof(name), "%" PRIu32, task);
	for (int i = 0; i < 3 && found < 0; i++)
		found = find_local(i == 0 ? name : i == 1 ? "self" : "1", ID_FIELD, number);
	return found > 0;
}
