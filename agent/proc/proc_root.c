/* SPDX-License-Identifier: Apache-2.0 */
/* One root for the whole process, set once by the command. Any thread reads it. */
#include "agent/proc/proc_root.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

enum { FIRST_NAMESPACE = 0xEFFFFFFC /* PROC_PID_INIT_INO, include/linux/proc_ns.h */ };

static char root[PROC_ROOT_MAX_BYTES] = "/proc";
static bool is_ours = true, is_whole = true;

int proc_root_set(const char *path)
{
	size_t len = path ? strlen(path) : 0;

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len >= sizeof(root))
		return -ENAMETOOLONG;
	if (len)
		snprintf(root, sizeof(root), "%.*s", (int)len, path);
	else
		snprintf(root, sizeof(root), "/proc");
	return 0;
}

const char *proc_root(void)
{
	return root;
}

const char *proc_path(char path[static PROC_PATH_BYTES], uint32_t pid, const char *name)
{
	snprintf(path, PROC_PATH_BYTES, "%s/%u%s%s", root, pid, *name ? "/" : "", name);
	return path;
}

unsigned proc_status_levels(const char *status)
{
	const char *line = strncmp(status, "NSpid:", 6) ? strstr(status, "\nNSpid:") : status;
	unsigned count = 0;

	if (!line)
		return 1;
	for (const char *p = strchr(line, ':') + 1; *p && *p != '\n'; p++)
		count += p[0] == '\t';
	return count ? count : 1;
}

/* The beginning of file @name of @process, the name of a folder below the root. */
static int read_file(const char *process, const char *name, char *text, size_t size)
{
	char path[PROC_PATH_BYTES];
	ssize_t len;

	snprintf(path, sizeof(path), "%s/%.20s/%s", root, process, name);
	len = io_read_text(AT_FDCWD, path, text, size);
	return len < 0 ? (int)len : 0;
}

/* The inode number of the pid namespace that @process is in; 0 where that may not be read. */
static uint32_t namespace_of(const char *process)
{
	char path[PROC_PATH_BYTES];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%.20s/ns/pid", root, process);
	return stat(path, &st) ? 0 : (uint32_t)st.st_ino;
}

/* Any process that has one number alone is in the namespace that the root shows. (Its process 1 may be out of reach.) */
static uint32_t find_namespace(void)
{
	DIR *dir = opendir(root);
	struct dirent *entry;
	char status[4096];
	uint32_t ns = 0;

	while (dir && !ns && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    !read_file(entry->d_name, "status", status, sizeof(status)) && proc_status_levels(status) == 1)
			ns = namespace_of(entry->d_name);
	if (dir)
		closedir(dir);
	return ns;
}

static int refuse(struct agent_error *err, int error, const char *what)
{
	snprintf(err->message, sizeof(err->message), "%.200s %s", root, what);
	return error;
}

int proc_root_space(struct pid_space *ret, struct agent_error *err)
{
	char status[4096];
	struct statfs fs;
	uint32_t ns;

	*ret = (struct pid_space){ .is_ours = true };
	if (statfs(root, &fs))
		return refuse(err, -errno, "is not there: --proc names the place where the host's /proc is mounted");
	if (fs.f_type != PROC_SUPER_MAGIC)
		return refuse(err, -EINVAL,
			      "is no proc file system: --proc names the place where the host's /proc is mounted");
	if (read_file("self", "status", status, sizeof(status)))
		return refuse(err, -ESRCH,
			      "does not show this process: it is of another pid namespace, neither ours nor one around it; "
			      "mount the host's");
	ret->is_ours = is_ours = proc_status_levels(status) == 1;
	ns = is_ours ? namespace_of("self") : find_namespace();
	if (!ns && !is_ours)
		return refuse(err, -EACCES,
			      "shows a pid namespace around ours, and none of its processes may be asked which one "
			      "that is (/proc/PID/ns/pid): run it as root, with CAP_SYS_PTRACE");
	ret->ns = ns == FIRST_NAMESPACE ? 0 : ns;
	is_whole = !ret->ns;
	return 0;
}

bool proc_root_is_ours(void)
{
	return is_ours;
}

bool proc_root_is_whole(void)
{
	return is_whole;
}

int proc_root_pid(uint32_t pid, uint32_t *ret)
{
	AUTO_CLOSE int fd = is_ours ? -1 : pidfd_open((pid_t)pid, 0);
	char name[32], text[512];
	const char *line;
	int error;

	if (is_ours) {
		*ret = pid;
		return 0;
	}
	if (fd < 0)
		return -errno;
	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	error = read_file("self", name, text, sizeof(text));
	line = error ? NULL : strstr(text, "\nPid:");
	if (!line || sscanf(line + 5, "%u", ret) != 1 || !*ret)
		return error ? error : -ESRCH;
	return 0;
}
