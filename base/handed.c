/* SPDX-License-Identifier: Apache-2.0 */
/* A short list: a process has at most a dozen of them. */
#include "base/handed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HANDED = 64, PATH_BYTES = 32 };

static struct {
	char path[PATH_BYTES]; /* "/proc/self/fd/7" */
	int fd;
	const char *shown;
} paths[MAX_HANDED];
static size_t path_count;

static struct {
	const char *address;
	unsigned port;
	int fd; /* -1: taken */
} sockets[MAX_HANDED];
static size_t socket_count;

int handed_add(int fd, const char *shown, const char **path_ret)
{
	if (path_count == MAX_HANDED)
		return -ENOSPC;
	snprintf(paths[path_count].path, PATH_BYTES, "/proc/self/fd/%d", fd);
	paths[path_count].fd = fd;
	paths[path_count].shown = shown;
	*path_ret = paths[path_count++].path;
	return 0;
}

/* Does @text begin with the handed path number @i, as a whole word of a path? */
static bool is_path(size_t i, const char *text, size_t len)
{
	size_t n = strlen(paths[i].path);

	return n <= len && !memcmp(text, paths[i].path, n) && (n == len || text[n] < '0' || text[n] > '9');
}

const char *handed_path(const char *shown)
{
	for (size_t i = 0; shown && i < path_count; i++)
		if (!strcmp(shown, paths[i].shown))
			return paths[i].path;
	return shown;
}

int handed_open(const char *shown)
{
	for (size_t i = 0; i < path_count; i++)
		if (!strcmp(shown, paths[i].shown))
			return fcntl(paths[i].fd, F_DUPFD_CLOEXEC, 0);
	return -1;
}

const char *handed_name(const char *path)
{
	for (size_t i = 0; path && i < path_count; i++)
		if (!strcmp(path, paths[i].path))
			return paths[i].shown;
	return path;
}

size_t handed_rewrite(char *line, size_t len, size_t size)
{
	for (size_t at = 0; path_count && at < len; at++) {
		for (size_t i = 0; line[at] == '/' && i < path_count; i++) {
			size_t old = strlen(paths[i].path), fresh = strlen(paths[i].shown);

			if (!is_path(i, line + at, len - at) || len - old + fresh > size)
				continue;
			memmove(line + at + fresh, line + at + old, len - at - old);
			memcpy(line + at, paths[i].shown, fresh);
			len = len - old + fresh;
			at += fresh ? fresh - 1 : 0;
			break;
		}
	}
	return len;
}

int handed_add_socket(int fd, const char *address, unsigned port)
{
	if (socket_count == MAX_HANDED)
		return -ENOSPC;
	sockets[socket_count].address = address;
	sockets[socket_count].port = port;
	sockets[socket_count++].fd = fd;
	return 0;
}

int handed_take_socket(const char *address, unsigned *port_ret)
{
	for (size_t i = 0; i < socket_count; i++) {
		int fd = sockets[i].fd;

		if (fd < 0 || strcmp(sockets[i].address, address) != 0)
			continue;
		sockets[i].fd = -1;
		*port_ret = sockets[i].port;
		return fd;
	}
	return -1;
}
