/* SPDX-License-Identifier: Apache-2.0 */
/* libsquashfuse reads the image. Files are compared and written in the order that the image has them. */
#include "image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

/* The library knows five ways to pack. Images are packed by zstd; the others' libraries are not linked, and one of them has
 * a licence that asks for more than the others. */
#define NOT_LINKED(name)   \
	int name(void);    \
	int name(void)     \
	{                  \
		return -1; \
	}
NOT_LINKED(LZ4_decompress_safe)
NOT_LINKED(lzma_stream_buffer_decode)
NOT_LINKED(lzo1x_decompress_safe)
NOT_LINKED(uncompress)

/* --- the file --- */

/* Where the ELF file at the start of @fd ends: its section headers are the last that there is of it. 0: it is none. */
static uint64_t end_of_elf(int fd)
{
	Elf64_Ehdr head;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	return head.e_shoff + (uint64_t)head.e_shentsize * head.e_shnum;
}

/* Finds the end of the squashfs and its name. -EBADMSG: it is not what was packed. */
static int name_it(struct image *image)
{
	static const size_t tail_len = sizeof(HASH_MARK) - 1 + HASH_DIGITS + 1;
	const size_t all = image->offset + image->len;
	char *bytes = mmap(NULL, all, PROT_READ, MAP_PRIVATE, image->fd, 0);
	const char *tail = bytes + all - tail_len;
	int err = 0;

	if (bytes == MAP_FAILED)
		return -errno;
	if (image->len > tail_len && !memcmp(tail, HASH_MARK, strlen(HASH_MARK))) {
		image->len -= tail_len;
		hash_text(bytes + image->offset, image->len, image->name);
		err = memcmp(tail + strlen(HASH_MARK), image->name, HASH_DIGITS) ? -EBADMSG : 0;
	} else {
		hash_text(bytes + image->offset, image->len, image->name);
	}
	munmap(bytes, all);
	return err;
}

int image_open(struct image *image)
{
	struct stat stat;
	int err;

	*image = (struct image){ .fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC) };
	if (image->fd < 0 || fstat(image->fd, &stat))
		return -errno;
	image->offset = end_of_elf(image->fd);
	if (!image->offset || image->offset >= (uint64_t)stat.st_size)
		return -ENOEXEC;
	image->len = (uint64_t)stat.st_size - image->offset;
	err = name_it(image);
	if (err)
		return err;
	switch (sqfs_init(&image->fs, image->fd, image->offset)) {
	case SQFS_OK:
		image->is_open = true;
		break;
	case SQFS_ERR:
		return -EBADMSG;
	default:
		return -ENOEXEC;
	}
	if (sqfs_compression(&image->fs) != ZSTD_COMPRESSION)
		return -ENOEXEC;
	return image->fs.sb.bytes_used > image->len ? -EBADMSG : 0;
}

void image_close(struct image *image)
{
	if (image->is_open) /* where it cannot be opened the library has cleaned up */
		sqfs_destroy(&image->fs);
	if (image->fd >= 0)
		close(image->fd);
}

/* --- each file --- */

typedef int visit_fn(struct image *image, void *arg, const char *path, sqfs_inode *inode);

/* Calls @fn for each file and folder, folders before what is in them, until it returns something else than 0. */
static int each(struct image *image, visit_fn *fn, void *arg)
{
	sqfs_traverse walk;
	sqfs_inode inode;
	sqfs_err bad = SQFS_OK;
	int err = 0;

	if (sqfs_traverse_open(&walk, &image->fs, sqfs_inode_root(&image->fs)))
		return -EBADMSG;
	while (!err && sqfs_traverse_next(&walk, &bad)) {
		if (walk.dir_end)
			continue;
		if (sqfs_inode_get(&image->fs, &inode, sqfs_dentry_inode(&walk.entry)))
			err = -EBADMSG;
		else
			err = fn(image, arg, walk.path, &inode);
	}
	sqfs_traverse_close(&walk);
	return err ? err : bad ? -EBADMSG : 0;
}

struct look {
	int dir;
	bool is_whole;
};

static int look_at(struct image *image, void *arg, const char *path, sqfs_inode *inode)
{
	struct look *look = arg;
	struct stat stat;

	(void)image;
	if (fstatat(look->dir, path, &stat, AT_SYMLINK_NOFOLLOW) || stat.st_uid != geteuid() ||
	    (stat.st_mode & S_IFMT) != (inode->base.mode & S_IFMT) ||
	    (S_ISREG(stat.st_mode) && (uint64_t)stat.st_size != inode->xtra.reg.file_size)) {
		look->is_whole = false;
		return 1;
	}
	return 0;
}

int image_is_whole(struct image *image, int dir, bool *is_whole_ret)
{
	struct look look = { .dir = dir, .is_whole = true };
	int err = each(image, look_at, &look);

	*is_whole_ret = look.is_whole;
	return err < 0 ? err : 0;
}

/* --- writing --- */

struct copy {
	int dir;
	bool tells;
	char *piece; /* PIECE bytes */
};

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len) {
		const ssize_t n = write(fd, bytes, len);

		if (n < 0)
			return -errno;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

static int copy_bytes(struct image *image, sqfs_inode *inode, int fd, char *piece)
{
	sqfs_off_t at = 0, n;
	int err = 0;

	do {
		n = PIECE;
		if (sqfs_read_range(&image->fs, inode, at, &n, piece))
			return -EBADMSG;
		err = write_all(fd, piece, (size_t)n);
		at += n;
	} while (!err && n > 0);
	return err ? err : (uint64_t)at == inode->xtra.reg.file_size ? 0 : -EBADMSG;
}

static int copy_file(struct image *image, const struct copy *copy, const char *path, sqfs_inode *inode)
{
	const int fd = openat(copy->dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = copy_bytes(image, inode, fd, copy->piece);
	if (!err && fchmod(fd, inode->base.mode & 0755))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	return err;
}

static int copy_link(struct image *image, const struct copy *copy, const char *path, sqfs_inode *inode)
{
	char target[PATH_MAX];
	size_t size = sizeof(target);

	if (sqfs_readlink(&image->fs, inode, target, &size))
		return -EBADMSG;
	return symlinkat(target, copy->dir, path) ? -errno : 0;
}

static int copy_one(struct image *image, void *arg, const char *path, sqfs_inode *inode)
{
	const struct copy *copy = arg;
	int err = -EBADMSG; /* neither file, folder nor link: nobody packs such */

	if (S_ISDIR(inode->base.mode))
		err = mkdirat(copy->dir, path, 0755) ? -errno : 0;
	else if (S_ISREG(inode->base.mode))
		err = copy_file(image, copy, path, inode);
	else if (S_ISLNK(inode->base.mode))
		err = copy_link(image, copy, path, inode);
	if (!err && copy->tells)
		printf("squashfs-root/%s\n", path);
	return err;
}

int image_unpack(struct image *image, int dir, bool tells)
{
	struct copy copy = { .dir = dir, .tells = tells, .piece = malloc(PIECE) };
	int err = copy.piece ? each(image, copy_one, &copy) : -ENOMEM;

	free(copy.piece);
	return err;
}
