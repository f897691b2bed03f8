/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into hearth: writes down, in their order, all changes of files below $POWER_FOLDER and all flushes of them, into
 * the file $POWER_LOG, out of which power.py makes what a power cut may have left. A record is a struct change, the path,
 * and the data.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum change_kind { WRITE = 1, SIZE, FLUSH, CREATE, REMOVE, RENAME };

struct change {
	uint32_t kind, path_bytes;
	uint64_t offset,
		bytes; /* WRITE: of the data; RENAME: of the new path, which is the data; SIZE: the new size is offset */
};

static int log_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("POWER_LOG");

	if (path)
		log_fd = fcntl(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666), F_DUPFD_CLOEXEC, 900);
}

static int is_ours(const char *path)
{
	const char *folder = getenv("POWER_FOLDER");

	return log_fd >= 0 && folder && !strncmp(path, folder, strlen(folder));
}

static void put(enum change_kind kind, const char *path, uint64_t offset, const void *data, uint64_t bytes)
{
	static ssize_t (*real)(int fd, const struct iovec *parts, int count);
	struct change c = { kind, (uint32_t)strlen(path), offset, bytes };
	const struct iovec parts[] = { { &c, sizeof(c) },
				       { (void *)(uintptr_t)path, c.path_bytes },
				       { (void *)(uintptr_t)data, data ? bytes : 0 } };

	if (!real)
		*(void **)&real = next("writev");
	if (real(log_fd, parts, 3) != (ssize_t)(sizeof(c) + c.path_bytes + (data ? bytes : 0)))
		abort(); /* the test would judge what is not true */
}

/* The path of what @fd is open on; NULL: none of ours. */
static const char *path_of(int fd, char path[PATH_MAX])
{
	char link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, PATH_MAX - 1);
	if (len <= 0)
		return NULL;
	path[len] = 0;
	return is_ours(path) ? path : NULL;
}

/* One call at a time, so that the log has them in the order in which they were made. */
#define IN_ORDER(call)                       \
	do {                                 \
		pthread_mutex_lock(&lock);   \
		call;                        \
		pthread_mutex_unlock(&lock); \
	} while (0)

static ssize_t note_write(int fd, const void *data, ssize_t done, uint64_t at)
{
	char path[PATH_MAX];

	if (done > 0 && path_of(fd, path))
		put(WRITE, path, at, data, (uint64_t)done);
	return done;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
	static ssize_t (*real)(int fd, const void *data, size_t size, off64_t at);
	ssize_t done;

	if (!real)
		*(void **)&real = next("pwrite64");
	IN_ORDER(done = note_write(fd, data, real(fd, data, size, at), (uint64_t)at));
	return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
	return pwrite64(fd, data, size, at);
}

ssize_t write(int fd, const void *data, size_t size)
{
	static ssize_t (*real)(int fd, const void *data, size_t size);
	char path[PATH_MAX];
	ssize_t done;

	if (!real)
		*(void **)&real = next("write");
	if (!path_of(fd, path))
		return real(fd, data, size);
	pthread_mutex_lock(&lock);
	done = real(fd, data, size);
	note_write(fd, data, done, (uint64_t)(lseek(fd, 0, SEEK_CUR) - (done > 0 ? done : 0)));
	pthread_mutex_unlock(&lock);
	return done;
}

/* The file may have another size now. */
static int note_size(int fd, int status)
{
	char path[PATH_MAX];
	struct stat st;

	if (!status && path_of(fd, path) && !fstat(fd, &st))
		put(SIZE, path, (uint64_t)st.st_size, NULL, 0);
	return status;
}

int ftruncate64(int fd, off64_t size)
{
	static int (*real)(int fd, off64_t size);
	int status;

	if (!real)
		*(void **)&real = next("ftruncate64");
	IN_ORDER(status = note_size(fd, real(fd, size)));
	return status;
}

int ftruncate(int fd, off_t size)
{
	return ftruncate64(fd, size);
}

int fallocate64(int fd, int mode, off64_t at, off64_t size)
{
	static int (*real)(int fd, int mode, off64_t at, off64_t size);
	int status;

	if (!real)
		*(void **)&real = next("fallocate64");
	IN_ORDER(status = note_size(fd, real(fd, mode, at, size)));
	return status;
}

int fallocate(int fd, int mode, off_t at, off_t size)
{
	return fallocate64(fd, mode, at, size);
}

int posix_fallocate64(int fd, off64_t at, off64_t size)
{
	static int (*real)(int fd, off64_t at, off64_t size);
	int status;

	if (!real)
		*(void **)&real = next("posix_fallocate64");
	IN_ORDER(status = note_size(fd, real(fd, at, size)));
	return status;
}

int posix_fallocate(int fd, off_t at, off_t size)
{
	return posix_fallocate64(fd, at, size);
}

static int note_flush(int fd, int status)
{
	char path[PATH_MAX];

	if (!status && path_of(fd, path))
		put(FLUSH, path, 0, NULL, 0);
	return status;
}

int fsync(int fd)
{
	static int (*real)(int fd);
	int status;

	if (!real)
		*(void **)&real = next("fsync");
	IN_ORDER(status = note_flush(fd, real(fd)));
	return status;
}

int fdatasync(int fd)
{
	static int (*real)(int fd);
	int status;

	if (!real)
		*(void **)&real = next("fdatasync");
	IN_ORDER(status = note_flush(fd, real(fd)));
	return status;
}

static int real_openat(int folder, const char *name, int flags, unsigned mode)
{
	static int (*real)(int folder, const char *name, int flags, ...);

	if (!real)
		*(void **)&real = next("openat64");
	return real(folder, name, flags, mode);
}

static int open_at(int folder, const char *name, int flags, unsigned mode)
{
	struct stat st;
	char path[PATH_MAX];
	int fd, is_new;

	pthread_mutex_lock(&lock);
	is_new = (flags & O_CREAT) && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW);
	fd = real_openat(folder, name, flags, mode);
	if (fd >= 0 && is_new && path_of(fd, path))
		put(CREATE, path, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
	return fd;
}

static unsigned mode_of(int flags, va_list more)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, unsigned) : 0;
}

#define OPEN(name)                                                         \
	int name(const char *path, int flags, ...)                         \
	{                                                                  \
		va_list more;                                              \
		int fd;                                                    \
                                                                           \
		va_start(more, flags);                                     \
		fd = open_at(AT_FDCWD, path, flags, mode_of(flags, more)); \
		va_end(more);                                              \
		return fd;                                                 \
	}
#define OPEN_AT(name)                                                    \
	int name(int folder, const char *path, int flags, ...)           \
	{                                                                \
		va_list more;                                            \
		int fd;                                                  \
                                                                         \
		va_start(more, flags);                                   \
		fd = open_at(folder, path, flags, mode_of(flags, more)); \
		va_end(more);                                            \
		return fd;                                               \
	}
OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)

/* The path of @name in @folder, as the kernel knows it: folders above may be closed to us. NULL: none of ours. */
static const char *name_at(int folder, const char *name, char path[PATH_MAX])
{
	const char *last = strrchr(name, '/');
	char way[PATH_MAX], link[64];
	ssize_t len;
	int fd;

	snprintf(way, sizeof(way), "%.*s", last ? (int)(last - name) + 1 : 1, last ? name : ".");
	fd = real_openat(folder, way, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, PATH_MAX - 1);
	if (fd >= 0)
		close(fd);
	if (len <= 0)
		return NULL;
	snprintf(path + len, PATH_MAX - (size_t)len, "/%s", last ? last + 1 : name);
	return is_ours(path) ? path : NULL;
}

int unlinkat(int folder, const char *name, int flags)
{
	static int (*real)(int folder, const char *name, int flags);
	char path[PATH_MAX];
	int status;

	if (!real)
		*(void **)&real = next("unlinkat");
	pthread_mutex_lock(&lock);
	status = real(folder, name, flags);
	if (!status && name_at(folder, name, path))
		put(REMOVE, path, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
	return status;
}

int unlink(const char *name)
{
	return unlinkat(AT_FDCWD, name, 0);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
	static int (*real)(int from_folder, const char *from, int to_folder, const char *to);
	char old[PATH_MAX], new[PATH_MAX];
	int status;

	if (!real)
		*(void **)&real = next("renameat");
	pthread_mutex_lock(&lock);
	status = real(from_folder, from, to_folder, to);
	if (!status && name_at(from_folder, from, old) && name_at(to_folder, to, new))
		put(RENAME, old, 0, new, strlen(new));
	pthread_mutex_unlock(&lock);
	return status;
}

int rename(const char *from, const char *to)
{
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}
