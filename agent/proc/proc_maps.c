/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/PID/maps. A line is "start-end perms offset major:minor inode   path"; numbers are hexadecimal except the inode. The
 * file can be far longer than a page, and a process may die while it is read (then it just ends).
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <string.h>

#include "agent/proc/proc_maps.h"
#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_root.h"
#include "base/cleanup.h"

enum {
	MOST_BYTES = 32 << 20,	     /* of more than 65,536 mappings */
	LONGEST_LINE = 3 * PATH_MAX, /* the path of a longer one is none that could be opened */
};

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

int proc_maps_each(uint32_t pid, int (*fn)(void *arg, const struct proc_map *map), void *arg)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	int error = proc_read(pid, pid, "maps", 0, MOST_BYTES, &text);
	const char *line = buf_text(&text), *end = line + text.len, *newline;

	while (!error && line < end && (newline = memchr(line, '\n', (size_t)(end - line)))) {
		struct proc_map map;

		if (newline - line < LONGEST_LINE && !proc_maps_parse_line(line, (size_t)(newline - line), &map))
			error = fn(arg, &map);
		line = newline + 1;
	}
	return error;
}

/* A task that has ended has no address space, so no program; nor has a thread of the kernel. */
static bool read_exe(uint32_t pid, uint32_t task, char *exe, size_t size)
{
	return proc_read_link(pid, task, "exe", false, exe, size) > 0;
}

uint32_t proc_maps_task(uint32_t pid, char *exe, size_t size)
{
	struct dirent *entry;
	uint32_t task = 0;
	char path[PROC_PATH_BYTES], first[2];
	DIR *dir;

	if (!exe) {
		exe = first;
		size = sizeof(first);
	}
	if (read_exe(pid, pid, exe, size))
		return pid;
	dir = opendir(proc_path(path, pid, "task"));
	while (dir && !task && (entry = readdir(dir))) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (isdigit((unsigned char)entry->d_name[0]) && tid != pid && read_exe(pid, tid, exe, size))
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
