/* SPDX-License-Identifier: Apache-2.0 */
/* No fsync: what a crash of the machine leaves half written fails the checksums that each kind of file has. */
#include "symbols/kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

bool kept_file_is_ours(const struct stat *st)
{
	return (st->st_uid == geteuid() || st->st_uid == 0) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* The plain file @fd, of which @st tells. */
static int map(int fd, const struct stat *st, struct kept_file *ret)
{
	if (!S_ISREG(st->st_mode) || st->st_size <= 0)
		return -EBADMSG;
	ret->data = mmap(NULL, (size_t)st->st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (ret->data == MAP_FAILED) {
		ret->data = NULL;
		return -errno;
	}
	ret->len_bytes = (size_t)st->st_size;
	ret->used = st->st_atim;
	return 0;
}

int kept_file_map_fd(int fd, struct kept_file *ret)
{
	struct stat st;

	*ret = (struct kept_file){ 0 };
	return fstat(fd, &st) ? -errno : map(fd, &st, ret);
}

int kept_file_map(int dir_fd, const char *name, struct kept_file *ret)
{
	AUTO_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	*ret = (struct kept_file){ 0 };
	if (fd < 0)
		return errno == ELOOP ? -EBADMSG : -errno;
	if (fstat(fd, &st))
		return -errno;
	return kept_file_is_ours(&st) ? map(fd, &st, ret) : -EBADMSG;
}

void kept_file_unmap(struct kept_file *f)
{
	if (f->data)
		munmap(f->data, f->len_bytes);
	*f = (struct kept_file){ 0 };
}

void kept_file_rest(const struct kept_file *f)
{
	if (f->data)
		(void)madvise(f->data, f->len_bytes, MADV_DONTNEED);
}

int kept_file_new_name(char dst[static KEPT_FILE_NEW_BYTES])
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	snprintf(dst, KEPT_FILE_NEW_BYTES, KEPT_FILE_NEW "%016" PRIx64, random);
	return 0;
}

int kept_file_replace(int dir_fd, const char *name, const void *data, size_t len_bytes)
{
	char new_name[KEPT_FILE_NEW_BYTES];
	int fd, error = kept_file_new_name(new_name);

	if (error)
		return error;
	fd = openat(dir_fd, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	error = io_write_all(fd, data, len_bytes);
	if (close(fd) && !error)
		error = -errno;
	if (!error && renameat(dir_fd, new_name, dir_fd, name))
		error = -errno;
	if (error)
		unlinkat(dir_fd, new_name, 0);
	return error;
}
