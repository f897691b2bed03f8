/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/PID/maps. A line is "start-end perms offset major:minor inode   path"; numbers are hexadecimal except the inode. The
 * file is read in pieces by read(2): it can be far longer than a page, and a process may die on the way (then it just ends).
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "agent/proc/proc_maps.h"
#include "agent/proc/proc_root.h"
#include "base/cleanup.h"

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* A number in @base followed by @delimiter; advances *pos behind it. */
static int parse_number(const char **pos, const char *end, int base, char delimiter, uint64_t *ret)
{
	const char *p = *pos;
	uint64_t v = 0;

	for (; p < end && *p != delimiter; p++) {
		int d = digit_value(*p);

		if (d < 0 || d >= base || v > (UINT64_MAX - (uint64_t)d) / (uint64_t)base)
			return -EBADMSG;
		v = v * (uint64_t)base + (uint64_t)d;
	}
	if (p == *pos || p == end)
		return -EBADMSG;
	*pos = p + 1;
	*ret = v;
	return 0;
}

int proc_maps_parse_line(const char *line, size_t len, struct proc_map *ret)
{
	const char *p = line, *end = line + len;
	struct proc_map m = { 0 };
	uint64_t major, minor;
	const char *inode;

	if (parse_number(&p, end, 16, '-', &m.start) || parse_number(&p, end, 16, ' ', &m.end) || end - p < 5 || p[4] != ' ')
		return -EBADMSG;
	m.executable = p[2] == 'x';
	p += 5;
	if (parse_number(&p, end, 16, ' ', &m.offset) || parse_number(&p, end, 16, ':', &major) ||
	    parse_number(&p, end, 16, ' ', &minor) || major > UINT32_MAX || minor > UINT32_MAX)
		return -EBADMSG;
	m.dev_major = (uint32_t)major;
	m.dev_minor = (uint32_t)minor;
	/* Reads the inode, which ends the line when there is no path. */
	for (inode = p; p < end && *p >= '0' && *p <= '9'; p++) {
		uint64_t d = (uint64_t)(*p - '0');

		if (m.inode > (UINT64_MAX - d) / 10)
			return -EBADMSG;
		m.inode = m.inode * 10 + d;
	}
	if (p == inode || (p < end && *p != ' '))
		return -EBADMSG;
	while (p < end && *p == ' ')
		p++;
	if (m.start >= m.end)
		return -EBADMSG;
	m.path = p;
	m.path_len = (size_t)(end - p);
	*ret = m;
	return 0;
}

/* Hands out the whole lines of @text; *@used_ret is how many bytes they have. *@is_tail: the text begins inside a line that
 * is skipped. 0 or the callback's error. */
static int each_line(char *text, size_t len, size_t *used_ret, bool *is_tail, int (*fn)(void *, const struct proc_map *),
		     void *arg)
{
	size_t used = 0;
	char *newline;

	while ((newline = memchr(text + used, '\n', len - used))) {
		size_t line_len = (size_t)(newline - (text + used));
		struct proc_map map;
		int error = 0;

		if (!*is_tail && !proc_maps_parse_line(text + used, line_len, &map))
			error = fn(arg, &map);
		*is_tail = false;
		if (error)
			return error;
		used += line_len + 1;
	}
	*used_ret = used;
	return 0;
}

int proc_maps_each(uint32_t pid, int (*fn)(void *arg, const struct proc_map *map), void *arg)
{
	char path[PROC_PATH_BYTES], text[3 * PATH_MAX];
	AUTO_CLOSE int fd = -1;
	bool is_tail = false;
	size_t len = 0, used;
	ssize_t n;
	int error;

	fd = open(proc_path(path, pid, "maps"), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while ((n = read(fd, text + len, sizeof(text) - len)) > 0) {
		len += (size_t)n;
		error = each_line(text, len, &used, &is_tail, fn, arg);
		if (error)
			return error;
		if (!used && len == sizeof(text)) { /* a line longer than any path we could open */
			used = len;
			is_tail = true;
		}
		memmove(text, text + used, len - used);
		len -= used;
	}
	return n < 0 ? -errno : 0;
}

/* A task that has ended has no address space, so no program. */
static bool has_memory(uint32_t task)
{
	char path[PROC_PATH_BYTES], first;

	return readlink(proc_path(path, task, "exe"), &first, 1) == 1;
}

uint32_t proc_maps_task(uint32_t pid)
{
	struct dirent *entry;
	uint32_t task = 0;
	char path[PROC_PATH_BYTES];
	DIR *dir;

	if (has_memory(pid))
		return pid;
	dir = opendir(proc_path(path, pid, "task"));
	while (dir && !task && (entry = readdir(dir))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (isdigit((unsigned char)entry->d_name[0]) && has_memory(tid))
			task = tid;
	}
	if (dir)
		closedir(dir);
	return task ? task : pid;
}

void proc_path_strip(char *path)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(path), mark_len = sizeof(mark) - 1;

	if (len > mark_len && !strcmp(path + len - mark_len, mark))
		path[len - mark_len] = '\0';
}
