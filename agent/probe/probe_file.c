/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/probe/probe_file.h"
#include "base/cleanup.h"

/* Folders that every dynamic linker of a 64-bit Debian, Fedora, Arch or Alpine looks into (ld.so(8)). */
static const char *const library_folders[] = { "/lib/x86_64-linux-gnu",
					       "/usr/lib/x86_64-linux-gnu",
					       "/lib/aarch64-linux-gnu",
					       "/usr/lib/aarch64-linux-gnu",
					       "/lib64",
					       "/usr/lib64",
					       "/lib",
					       "/usr/lib",
					       "/usr/local/lib" };
static const char usual_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* Is there a 64-bit ELF file? A library's name without a number may be a script for the linker. */
static bool is_elf(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned char head[EI_NIDENT];
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && pread(fd, head, sizeof(head), 0) == sizeof(head) &&
	       !memcmp(head, ELFMAG, SELFMAG) && head[EI_CLASS] == ELFCLASS64;
}

/* The file called @word in @folder, or @word.so, or @word.so.NUMBER. */
static bool find_library_in(const char *folder, const char *word, char path[static PATH_MAX])
{
	static const char *const suffixes[] = { "", ".so", ".so.*", ".*" };
	glob_t found = { 0 };
	bool is_found = false;

	for (size_t i = 0; i < ARRAY_LEN(suffixes) && !is_found; i++) {
		if (snprintf(path, PATH_MAX, "%s/%s%s", folder, word, suffixes[i]) >= PATH_MAX)
			continue;
		if (suffixes[i][0] && !strchr(suffixes[i], '*') && strstr(word, ".so"))
			continue;
		if (!strcmp(suffixes[i], ".*") && !strstr(word, ".so"))
			continue;
		if (glob(path, 0, NULL, &found))
			continue;
		for (size_t k = 0; k < found.gl_pathc && !is_found; k++)
			is_found = is_elf(found.gl_pathv[k]) && snprintf(path, PATH_MAX, "%s", found.gl_pathv[k]) < PATH_MAX;
		globfree(&found);
	}
	return is_found;
}

/* Looks in the folders that a file of /etc/ld.so.conf.d names, one a line. */
static bool find_library_by(const char *list, const char *word, char path[static PATH_MAX])
{
	AUTO_FCLOSE FILE *f = fopen(list, "re");
	AUTO_FREE char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	while (f && (len = getline(&line, &cap, f)) > 0) {
		while (len && (line[len - 1] == '\n' || line[len - 1] == ' ' || line[len - 1] == '/'))
			line[--len] = '\0';
		if (line[0] == '/' && find_library_in(line, word, path))
			return true;
	}
	return false;
}

static bool find_library(const char *word, char path[static PATH_MAX])
{
	glob_t lists = { 0 };
	bool is_found = false;

	for (size_t i = 0; i < ARRAY_LEN(library_folders) && !is_found; i++)
		is_found = find_library_in(library_folders[i], word, path);
	if (is_found || glob("/etc/ld.so.conf.d/*.conf", 0, NULL, &lists))
		return is_found;
	for (size_t i = 0; i < lists.gl_pathc && !is_found; i++)
		is_found = find_library_by(lists.gl_pathv[i], word, path);
	globfree(&lists);
	return is_found;
}

static bool find_program(const char *folders, const char *word, char path[static PATH_MAX])
{
	for (size_t len; *folders; folders += len + (folders[len] == ':')) {
		len = strcspn(folders, ":");
		if (len && snprintf(path, PATH_MAX, "%.*s/%s", (int)len, folders, word) < PATH_MAX && is_elf(path))
			return true;
	}
	return false;
}

static int find_path(const char *word, char path[static PATH_MAX], struct agent_error *err)
{
	if (strlen(word) < PATH_MAX && is_elf(word)) {
		snprintf(path, PATH_MAX, "%s", word);
		return 0;
	}
	if (access(word, R_OK)) {
		int error = -errno;

		snprintf(err->message, sizeof(err->message), "%.300s: %s", word, strerror(-error));
		return error;
	}
	snprintf(err->message, sizeof(err->message), "%.300s is no 64-bit program or library", word);
	return -ENOEXEC;
}

int probe_file_find(const char *word, char path[static PATH_MAX], struct agent_error *err)
{
	const char *folders = getenv("PATH");

	if (strchr(word, '/'))
		return find_path(word, path, err);
	if ((strncmp(word, "lib", 3) && !strstr(word, ".so") &&
	     (find_program(folders ? folders : "", word, path) || find_program(usual_path, word, path))) ||
	    find_library(word, path) || find_program(folders ? folders : usual_path, word, path))
		return 0;
	snprintf(err->message, sizeof(err->message),
		 "there is no '%.200s': neither a program in PATH nor a library in the dynamic linker's folders; give its "
		 "path",
		 word);
	return -ENOENT;
}
