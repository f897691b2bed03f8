/* SPDX-License-Identifier: Apache-2.0 */
/* Real Go programs for tests: tests/truth/go_chain.go as several toolchains and options build it. */
#ifndef HEARTH_TESTS_GO_PROGRAM_H
#define HEARTH_TESTS_GO_PROGRAM_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_GO "go"
#define OLD_GO "/usr/lib/go-1.19/bin/go" /* Debian 12's own */

struct go_program {
	const char *name, *go, *options;
	char path[64]; /* "" when it cannot be built here */
	uint8_t *image;
	size_t len;
};

static char go_folder[] = "/tmp/hearth-go-XXXXXX";

static inline int go_run(const char *command)
{
	return system(command);
}

/* Builds @p into the folder; false, with a notice, when there is no such toolchain. */
static inline bool go_program_build(struct go_program *p)
{
	char command[512];
	struct stat st;
	int fd;

	snprintf(command, sizeof(command), "command -v %s >/dev/null", p->go);
	if (go_run(command)) {
		printf("left out: %s no %s\n", p->name, p->go);
		return false;
	}
	snprintf(p->path, sizeof(p->path), "%s/%s", go_folder, p->name);
	snprintf(command, sizeof(command),
		 "HOME=${HOME:-%s} env -u GOROOT GO111MODULE=off GOFLAGS= GOPROXY=off %s build %s -o %s " TEST_DATA
		 "/truth/go_chain.go",
		 go_folder, p->go, p->options, p->path);
	if (go_run(command)) {
		fprintf(stderr, "failed: %s\n", command);
		exit(1);
	}
	fd = open(p->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		perror(p->path);
		exit(1);
	}
	p->len = (size_t)st.st_size;
	p->image = mmap(NULL, p->len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0); /* tests change their copy */
	close(fd);
	return p->image != MAP_FAILED;
}

static inline void go_program_remove(struct go_program *p)
{
	if (!p->path[0])
		return;
	munmap(p->image, p->len);
	unlink(p->path);
}

/* As the linker's symbol table and the runtime's own spell it: without the calling convention, type arguments and dots. */
static inline void go_plain_name(const char *name, char *out, size_t size)
{
	size_t n = 0;

	for (; *name && n + 1 < size; name++) {
		if (strcmp(name, ".abi0") == 0 || strcmp(name, ".abiinternal") == 0)
			break;
		if (*name == '[') { /* F[...] */
			const char *end = strrchr(name, ']');

			out[n++] = '[';
			name = end ? end : name;
		} else if ((uint8_t)name[0] == 0xc2 && (uint8_t)name[1] == 0xb7) {
			out[n++] = '.';
			name++;
		} else {
			out[n++] = *name;
		}
	}
	out[n] = 0;
}

/* cmocka's group set-up and tear-down: all programs, in a folder of their own. 0 or -1. */
static inline int go_programs_build(struct go_program *programs, size_t count)
{
	if (!mkdtemp(go_folder))
		return -1;
	for (size_t i = 0; i < count; i++)
		go_program_build(&programs[i]);
	return 0;
}

static inline int go_programs_remove(struct go_program *programs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		go_program_remove(&programs[i]);
	return rmdir(go_folder);
}

#endif
