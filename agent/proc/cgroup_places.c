/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 1 has a tree for each controller, or for several, mounted with their names as options; trees with a name instead
 * (name=systemd) have none. The kernel's filter finds a task's group in a tree by one of its controllers, whose numbers
 * differ from kernel to kernel: BTF has them.
 */
#include "agent/proc/cgroup_places.h"

#include <bpf/btf.h>
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
#include "base/cleanup.h"

/* The fields of a line of mountinfo (proc(5)). */
struct tree {
	char place[1024];
	char options[512]; /* options of its super block; controllers are among them */
};

static bool next_tree(FILE *f, struct tree *t)
{
	char line[4096];

	while (fgets(line, sizeof(line), f)) {
		const char *type = strstr(line, " - cgroup ");

		if (type && sscanf(line, "%*s %*s %*s %*s %1023s", t->place) == 1 &&
		    sscanf(type, " - cgroup %*s %511s", t->options) == 1)
			return true;
	}
	return false;
}

/* The number of the first controller among @options. -1: none. */
static int find_controller(char *options)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int32_t type = btf ? btf__find_by_name_kind(btf, "cgroup_subsys_id", BTF_KIND_ENUM) : -1;
	const struct btf_type *t = type > 0 ? btf__type_by_id(btf, (uint32_t)type) : NULL;
	int found = -1;

	for (char *option; t && found < 0 && (option = strsep(&options, ","));) {
		char name[64];

		snprintf(name, sizeof(name), "%s_cgrp_id", strcmp(option, "blkio") ? option : "io");
		for (int i = 0; i < btf_vlen(t) && found < 0; i++)
			if (!strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off), name))
				found = btf_enum(t)[i].val;
	}
	btf__free(btf);
	return found;
}

/* Describes the group in @tree whose folder is @fd (taken over). */
static int take_v1(int fd, struct tree *tree, struct cgroup_place *ret, struct agent_error *err)
{
	AUTO_CLOSE int own = fd;
	struct stat st;
	int controller;

	if (fstat(own, &st))
		return -errno;
	controller = find_controller(tree->options);
	if (controller < 0) {
		snprintf(err->message, sizeof(err->message),
			 "the control groups below %.300s have no controller, and the kernel's filter cannot look at them; "
			 "name "
			 "the group in the tree of one (memory, cpu, pids, ...) or of version 2",
			 tree->place);
		return -EOPNOTSUPP;
	}
	*ret = (struct cgroup_place){ .fd = -1, .v1 = { .id = st.st_ino, .controller = (uint32_t)controller } };
	return 0;
}

static int open_v1(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0)
		return -errno;
	return fstatfs(fd, &fs) || fs.f_type != CGROUP_SUPER_MAGIC ? -ENOENT : MOVE_FD(fd);
}

/* Does what cgroup_open() does, in @tree. A descriptor or -ENOENT. */
static int open_in_tree(const struct tree *tree, const char *path)
{
	size_t len = strlen(tree->place);
	AUTO_FREE char *full = NULL;
	int fd;

	if (!strncmp(path, tree->place, len) && (!path[len] || path[len] == '/'))
		return open_v1(path);
	if (!strncmp(path, "/sys/fs/cgroup/", 15) || asprintf(&full, "%s/%s", tree->place, path) < 0)
		return -ENOENT;
	fd = open_v1(full);
	return fd;
}

/* @error is version 2's; it is returned if no tree has the group. */
static int find_v1(const char *name, bool is_container, int error, struct cgroup_place *ret, struct agent_error *err)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/self/mountinfo", "re");
	struct agent_error ignored;
	struct tree tree;

	while (f && next_tree(f, &tree)) {
		int fd = is_container ? cgroup_open_container_below(tree.place, name, &ignored) : open_in_tree(&tree, name);

		if (fd >= 0) {
			error = take_v1(fd, &tree, ret, err);
			if (!error)
				return 0;
		} else if (fd == -EEXIST) {
			*err = ignored;
			return fd;
		}
	}
	return error;
}

int cgroup_place_find(const char *path, struct cgroup_place *ret, struct agent_error *err)
{
	int fd = cgroup_open(path, err);

	*ret = (struct cgroup_place){ .fd = fd };
	return fd >= 0 ? 0 : find_v1(path, false, fd, ret, err);
}

int cgroup_place_find_container(const char *id, struct cgroup_place *ret, struct agent_error *err)
{
	int fd = cgroup_open_container(id, err);

	*ret = (struct cgroup_place){ .fd = fd };
	return fd >= 0 || fd == -EEXIST ? (fd < 0 ? fd : 0) : find_v1(id, true, fd, ret, err);
}

void cgroup_place_fini(struct cgroup_place *place)
{
	if (place->fd >= 0)
		close(place->fd);
	place->fd = -1;
}
