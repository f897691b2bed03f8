/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side: finds the way to a file, checks that the opened file is the one that was meant, and knows the devices
 * that do not answer. The numbers of a mapping are opaque (overlay file systems show others in fstat), so where they differ
 * from the opened file's the kernel's own list of mappings decides. Agent's thread.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/files/guard.h"
#include "agent/files/open.h"
#include "agent/proc/mounts.h"
#include "agent/proc/proc_maps.h"
#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_root.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

enum {
	MAX_DEVICES = 64,
	DEVICE_SECONDS = 10,
	FIRST_REST_SECONDS = 10,
	LAST_REST_SECONDS = 3600,
};

struct device {
	uint32_t major, minor;
	bool is_used, is_local;
	uint64_t looked_ns;    /* when is_local was found out */
	uint64_t resting_ns;   /* the device did not answer: it is not asked before this time */
	uint32_t rest_seconds; /* how long the next rest is; 0: there was none yet */
};

struct file_opener {
	struct file_guard *guard;
	struct device devices[MAX_DEVICES];
	uint32_t next_device;
	uint64_t folders_resting_ns; /* a folder took too long: no folder is asked for before this time */
	struct wait_hook on_wait;
	struct metric *hanging;
};

int file_opener_new(struct metrics *metrics, struct file_opener **ret)
{
	struct file_opener *o = calloc(1, sizeof(*o));
	int error;

	if (!o)
		return -ENOMEM;
	error = file_guard_new(&o->guard);
	if (error) {
		free(o);
		return error;
	}
	o->hanging = metrics_counter(metrics, "hearth_file_systems_hanging_total", NULL,
				     "Times a file system did not answer when a mapped file was opened or read.");
	*ret = o;
	return 0;
}

void file_opener_free(struct file_opener *o)
{
	if (!o)
		return;
	file_guard_free(o->guard);
	free(o);
}

void file_opener_on_wait(struct file_opener *o, struct wait_hook hook)
{
	o->on_wait = hook;
}

/* --- devices --- */

static struct device *find_device(struct file_opener *o, const struct file_key *key)
{
	struct device *d = o->devices;

	for (; d < o->devices + MAX_DEVICES; d++)
		if (d->is_used && d->major == key->dev_major && d->minor == key->dev_minor)
			return d;
	d = &o->devices[o->next_device++ % MAX_DEVICES];
	*d = (struct device){ .major = key->dev_major, .minor = key->dev_minor, .is_used = true };
	return d;
}

static bool is_local(struct device *d, const struct file_key *key, uint32_t task)
{
	uint64_t now_ns = clock_mono_ns();

	/* The number of a device without a disk is another's as soon as it is unmounted. */
	if (!d->major || !d->looked_ns || now_ns - d->looked_ns > DEVICE_SECONDS * NSEC_PER_SEC) {
		d->looked_ns = now_ns;
		d->is_local = mounts_device_is_local(task, key->dev_major, key->dev_minor);
	}
	return d->is_local;
}

static void let_rest(struct file_opener *o, struct device *d, const char *path)
{
	d->rest_seconds = d->rest_seconds ? d->rest_seconds * 2 : FIRST_REST_SECONDS;
	if (d->rest_seconds > LAST_REST_SECONDS)
		d->rest_seconds = LAST_REST_SECONDS;
	d->resting_ns = clock_mono_ns() + d->rest_seconds * NSEC_PER_SEC;
	metric_add(o->hanging, 1);
	log_warn("%s: its file system does not answer; the code of its files is walked by frame pointers, and it is asked "
		 "again in %u s",
		 path, d->rest_seconds);
}

void file_opener_blame(struct file_opener *o, const struct file_key *key)
{
	struct device *d = find_device(o, key);

	if (!d->is_local)
		let_rest(o, d, "a mapped file");
}

bool file_opener_is_local(struct file_opener *o, const struct file_key *key, uint32_t task)
{
	return is_local(find_device(o, key), key, task);
}

int file_opener_folder(struct file_opener *o, uint32_t pid, const char *name)
{
	uint64_t now_ns = clock_mono_ns();
	char root[PROC_PATH_BYTES], path[PROC_PATH_BYTES + 32];
	int fd;

	if (now_ns < o->folders_resting_ns)
		return -EBUSY;
	if (snprintf(path, sizeof(path), "%s//%s", pid ? proc_path(root, pid, "root") : "/proc/self/root", name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = file_guard_open_folder(o->guard, path, &o->on_wait);
	if (fd != -ETIMEDOUT)
		return fd;
	metric_add(o->hanging, 1);
	o->folders_resting_ns = now_ns + FIRST_REST_SECONDS * NSEC_PER_SEC;
	return -EBUSY;
}

static int open_guarded(struct file_opener *o, struct device *d, const char *path)
{
	int fd;

	if (clock_mono_ns() < d->resting_ns)
		return -EBUSY;
	fd = file_guard_open(o->guard, path, &o->on_wait);
	if (fd == -ETIMEDOUT && !d->is_local) /* else the machine is busy */
		let_rest(o, d, path);
	if (fd == -ETIMEDOUT)
		return -EBUSY;
	if (fd >= 0)
		d->rest_seconds = 0;
	return fd;
}

/* --- is it the file? --- */

struct lookup {
	const struct file_key *key;
	uint64_t start;
};

static int is_mapped_there(void *arg, const struct proc_map *map)
{
	const struct lookup *l = arg;

	if (map->start < l->start)
		return 0;
	return map->start == l->start && map->inode == l->key->inode && map->dev_major == l->key->dev_major &&
	       map->dev_minor == l->key->dev_minor;
}

/* @task: the process that had the file mapped at @start when it was opened through that mapping; 0: opened by a path. A file
 * system elsewhere is asked nothing, as it might not answer: not even the generation, which is an ioctl. */
static bool is_the_file(int fd, const struct device *d, const struct file_key *key, uint32_t task, uint64_t start)
{
	struct lookup lookup = { key, start };
	unsigned int generation;
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st))
		return false;
	if (st.stx_ino != key->inode)
		return task && proc_maps_each(task, is_mapped_there, &lookup) == 1;
	/* An inode number may be used again when its file is gone. */
	return task || !key->has_generation || !d->is_local || ioctl(fd, FS_IOC_GETVERSION, &generation) ||
	       generation == key->generation;
}

static int if_the_file(int fd, const struct device *d, const struct file_key *key, uint32_t task, uint64_t start)
{
	if (fd < 0 || is_the_file(fd, d, key, task, start))
		return fd;
	close(fd);
	return -ESTALE;
}

/* --- ways to it --- */

/* A copy of our own vDSO, which every 64-bit process shares. */
static int open_vdso(void)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	AUTO_CLOSE int fd = -1;
	const Elf64_Ehdr *eh = (const void *)image;
	size_t len;

	if (!image)
		return -ENOENT;
	/* The section headers stand last in the image. */
	len = eh->e_shoff + (size_t)eh->e_shentsize * eh->e_shnum;
	fd = memfd_create("hearth-vdso", MFD_CLOEXEC);
	if (fd < 0 || write(fd, image, len) != (ssize_t)len)
		return -errno;
	return MOVE_FD(fd);
}

static int open_by_mapping(struct file_opener *o, struct device *d, const struct file_key *key, uint32_t task,
			   const struct file_place *at)
{
	char path[PROC_PATH_BYTES], name[64];
	int fd;

	snprintf(name, sizeof(name), "map_files/%llx-%llx", (unsigned long long)at->start, (unsigned long long)at->end);
	proc_path(path, task, name);
	fd = is_local(d, key, task) ? proc_open(at->pid, task, name) : open_guarded(o, d, path);
	return if_the_file(fd, d, key, task, at->start);
}

static int open_by_path(struct file_opener *o, struct device *d, const struct file_key *key, const char *path, uint32_t pid)
{
	char root[PROC_PATH_BYTES], whole[PATH_MAX];

	if (snprintf(whole, sizeof(whole), "%s%s", pid ? proc_path(root, pid, "root") : "", path) >= (int)sizeof(whole))
		return -ENAMETOOLONG;
	return if_the_file(open_guarded(o, d, whole), d, key, 0, 0);
}

int file_open(struct file_opener *o, const struct file_key *key, const char *path, const struct file_place *at)
{
	struct device *d;
	int fd;

	if (!strcmp(path, "[vdso]"))
		return open_vdso();
	if (path[0] != '/')
		return -ENOENT;
	d = find_device(o, key);
	fd = open_by_mapping(o, d, key, at->tid, at);
	if (fd == -ENOENT && at->tid != at->pid)
		fd = open_by_mapping(o, d, key, at->pid, at);
	if (fd < 0 && fd != -EBUSY)
		fd = open_by_path(o, d, key, path, at->pid);
	if (fd < 0 && fd != -EBUSY)
		fd = open_by_path(o, d, key, path, 0);
	return fd;
}
