/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds control groups. Version 2 has one tree, mounted at /sys/fs/cgroup, or at /sys/fs/cgroup/unified beside the trees of
 * version 1, for which agent/proc/cgroup_places.c is: the kernel's own helper (bpf_current_task_under_cgroup) does not look
 * at them.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/proc/cgroups.h"
#include "agent/proc/container_id.h"
#include "base/buf.h"
#include "base/cleanup.h"

enum { MAX_DEPTH = 16 };

/* The place is the fifth word of its line in mountinfo (proc(5)). */
int cgroup_find_mount(struct buf *out)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], place[2048];

	while (f && fgets(line, sizeof(line), f)) {
		const char *type = strstr(line, " - ");

		if (!type || strncmp(type, " - cgroup2 ", 11) || sscanf(line, "%*s %*s %*s %*s %2047s", place) != 1)
			continue;
		buf_puts(out, place);
		return out->failed ? -ENOMEM : 0;
	}
	return -EOPNOTSUPP;
}

static int find_mount(struct buf *out, struct agent_error *err)
{
	int error = cgroup_find_mount(out);

	if (error == -EOPNOTSUPP)
		snprintf(
			err->message, sizeof(err->message),
			"there is no such control group of version 1, and none of version 2 are mounted here; try: mount -t "
			"cgroup2 none /sys/fs/cgroup/unified");
	return error;
}

int cgroup_open(const char *path, struct agent_error *err)
{
	AUTO(buf_fini) struct buf mount = BUF_EMPTY;
	AUTO(buf_fini) struct buf full = BUF_EMPTY;
	AUTO_CLOSE int fd = -1;
	struct statfs fs;
	int error = find_mount(&mount, err);

	if (error)
		return error;
	if (strncmp(path, "/sys/fs/cgroup/", 15) && strncmp(path, buf_text(&mount), mount.len))
		buf_printf(&full, "%s/", buf_text(&mount));
	buf_puts(&full, path);
	fd = open(buf_text(&full), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		error = -errno;
		snprintf(err->message, sizeof(err->message), "there is no control group %s: %s", buf_text(&full),
			 strerror(-error));
		return error;
	}
	if (fstatfs(fd, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC) {
		snprintf(err->message, sizeof(err->message), "%s is no control group; those of version 2 stand below %s",
			 buf_text(&full), buf_text(&mount));
		return -EOPNOTSUPP;
	}
	return MOVE_FD(fd);
}

/* --- containers --- */

static bool is_hex(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return len;
}

/* The name of a container whose folder follows no runtime's rule: the folder's name, or NAME of PREFIX-NAME.scope. */
static bool loose_name(const char *name, char found[static CONTAINER_ID_BYTES])
{
	size_t len = strlen(name), suffix = strlen(".scope");
	const char *start = name, *dash;

	if (strstr(name, "conmon-"))
		return false;
	if (len > suffix && !strcmp(name + len - suffix, ".scope")) {
		len -= suffix;
		dash = memrchr(name, '-', len);
		start = dash ? dash + 1 : name;
		len -= (size_t)(start - name);
	}
	return snprintf(found, CONTAINER_ID_BYTES, "%.*s", (int)len, start) < CONTAINER_ID_BYTES;
}

bool cgroup_name_is_container(const char *parent, const char *name, const char *id, char found[static CONTAINER_ID_BYTES])
{
	size_t len;

	if (!container_id_of_folder(parent, name, found) && !loose_name(name, found))
		return false;
	len = strlen(found);
	/* The ids of runtimes are 64 hexadecimal digits (ECS: 32, a dash and a number); a name that people gave must be
	 * whole. */
	if (strlen(id) == len)
		return !memcmp(found, id, len);
	return len >= 32 && is_hex(found, 32) && strlen(id) < len && !memcmp(found, id, strlen(id));
}

struct search {
	const char *id;
	int fd; /* the container that was found */
	char found[CONTAINER_ID_BYTES];
	bool is_ambiguous;
};

static void take_container(struct search *s, int fd, const char *found)
{
	if (s->fd >= 0) {
		s->is_ambiguous |= strcmp(s->found, found) != 0;
		return;
	}
	snprintf(s->found, sizeof(s->found), "%s", found);
	s->fd = dup(fd);
}

/* Takes @fd, the folder @parent, over. Groups below a container's group belong to that container. */
static void search_folder(struct search *s, const char *parent, int fd, int depth)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *e;

	if (!dir) {
		close(fd);
		return;
	}
	while (depth < MAX_DEPTH && (e = readdir(dir))) {
		char found[CONTAINER_ID_BYTES];
		int below;

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		below = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0)
			continue;
		if (cgroup_name_is_container(parent, e->d_name, s->id, found)) {
			take_container(s, below, found);
			close(below);
		} else {
			search_folder(s, e->d_name, below, depth + 1);
		}
	}
	closedir(dir);
}

int cgroup_open_container_below(const char *root, const char *id, struct agent_error *err)
{
	struct search s = { .id = id, .fd = -1 };
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		snprintf(err->message, sizeof(err->message), "cannot read %s: %s", root, strerror(errno));
		return -errno;
	}
	search_folder(&s, "", fd, 0);
	if (s.is_ambiguous) {
		close(s.fd);
		snprintf(err->message, sizeof(err->message), "the ids of several containers begin with %s; give more of it",
			 id);
		return -EEXIST;
	}
	if (s.fd < 0) {
		snprintf(err->message, sizeof(err->message),
			 "there is no container %s running: no control group below %s is called so", id, root);
		return -ENOENT;
	}
	return s.fd;
}

int cgroup_open_container(const char *id, struct agent_error *err)
{
	AUTO(buf_fini) struct buf mount = BUF_EMPTY;
	int error = find_mount(&mount, err);

	return error ? error : cgroup_open_container_below(buf_text(&mount), id, err);
}
