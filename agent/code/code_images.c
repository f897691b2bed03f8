/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files beside the images that a runtime mapped: a .NET image's PDB stands in its folder. The helper says the name; where
 * the image is not mapped from a file of its own (a program in one file, an image that was loaded from bytes) that folder is
 * the one of the runtime's file. Nothing is read here, and no file system is waited for: only files in the folder of a local
 * one are opened, if the owner of the image could read them, too (symbols/find/debug_places.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/code/code_state.h"
#include "agent/helper/debug_files.h"
#include "agent/proc/proc_maps.h"
#include "base/cleanup.h"

/* The mapping that an image begins with. */
struct image {
	uint64_t base;
	struct file_key key;
	struct file_place place;
	char *path; /* owned; NULL: it is of no file */
};

static void image_fini(struct image *im)
{
	free(im->path);
}

static int find_mapping(void *arg, const struct proc_map *map)
{
	enum { FOUND = 1 };
	struct image *im = arg;

	if (im->base < map->start || im->base >= map->end)
		return 0;
	im->place.start = map->start;
	im->place.end = map->end;
	im->key = (struct file_key){ .dev_major = map->dev_major, .dev_minor = map->dev_minor, .inode = map->inode };
	if (map->inode && map->path[0] == '/' && (im->path = strndup(map->path, map->path_len)))
		proc_path_strip(im->path);
	return FOUND;
}

/* The candidate for @need: an open file, or -errno. */
static int open_beside(struct code_process *cp, const struct code_need *need)
{
	AUTO(image_fini) struct image im = { .base = need->base, .place = { .pid = cp->pid, .tid = cp->pid } };
	AUTO_CLOSE int own = -1;
	struct debug_need file = { .kind = DEBUG_NEED_LINK };
	struct debug_place place = { .pid = cp->pid };
	int found = proc_maps_each(cp->pid, find_mapping, &im);

	if (found <= 0)
		return found ? found : -ENOENT;
	if (im.path) {
		own = files_open_mapped(cp->all->files, &im.key, im.path, &im.place);
		place.path = im.path;
		place.fd = own;
	} else {
		place.path = cp->runtime->path;
		place.fd = cp->runtime->fd;
	}
	if (place.fd < 0 || place.path[0] != '/')
		return -ENOENT;
	memcpy(file.name, need->name, sizeof(need->name));
	return debug_file_open(&place, &file, 0);
}

static bool give(struct code_process *cp, uint64_t base, int fd)
{
	const struct elf_request request = { .op = ELF_OP_CODE, .file = cp->number };
	struct code_request what = code_request_of(cp, CODE_OP_FILE);
	AUTO(buf_fini) struct buf nothing = BUF_EMPTY;

	what.addr = base;
	return !elf_service_call(cp->all->service, &request, fd, &what, sizeof(what), &nothing);
}

bool code_bring(struct code_process *cp, const struct code_need *need)
{
	static char is_absent;
	AUTO_CLOSE int fd = -1;

	if (!cp->brings_nothing && !map_get(&cp->absent, need->base) && cp->absent.count < CODE_ABSENT)
		fd = open_beside(cp, need);
	if (fd < 0 && cp->absent.count < CODE_ABSENT)
		(void)map_put(&cp->absent, need->base, &is_absent);
	cp->has_brought |= fd >= 0;
	return give(cp, need->base, fd < 0 ? -1 : fd) && fd >= 0;
}
