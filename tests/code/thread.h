/* SPDX-License-Identifier: Apache-2.0 */
/* The busiest thread of a program that is started to be stopped at random instructions. */
#ifndef HEARTH_TESTS_CODE_THREAD_H
#define HEARTH_TESTS_CODE_THREAD_H

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

static inline uint64_t thread_cpu(pid_t pid, const char *tid)
{
	AUTO_FCLOSE FILE *f = NULL;
	char path[300], line[1024];
	unsigned long user = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, tid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f) || !strrchr(line, ')'))
		return 0;
	(void)sscanf(strrchr(line, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu", &user);
	return user;
}

static inline pid_t thread_busiest(pid_t pid)
{
	char path[64];
	uint64_t most = 0;
	pid_t tid = pid;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		uint64_t cpu = e->d_name[0] == '.' ? 0 : thread_cpu(pid, e->d_name);

		if (cpu <= most)
			continue;
		most = cpu;
		tid = (pid_t)atoi(e->d_name);
	}
	if (dir)
		closedir(dir);
	return tid;
}

/* Starts @argv as *@pid, lets it run for @warm_ms, and attaches to its busiest thread *@tid. The file of its memory, or -1.
 */
static inline int thread_start(char **argv, unsigned warm_ms, pid_t *pid, pid_t *tid)
{
	char path[64];
	int fd;

	*pid = fork();
	if (!*pid) {
		dup2(2, 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	usleep(warm_ms * 1000);
	snprintf(path, sizeof(path), "/proc/%d/mem", *pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	*tid = thread_busiest(*pid);
	if (fd < 0 || ptrace(PTRACE_SEIZE, *tid, 0, 0)) {
		perror("ptrace");
		return -1;
	}
	return fd;
}

/* Waits until it stops because it was told to. Signals that it gets meanwhile go to it: a virtual machine has uses for them.
 */
static inline bool thread_await(pid_t tid)
{
	int status;

	while (waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status)) {
		if (status >> 16 == PTRACE_EVENT_STOP)
			return true;
		if (ptrace(PTRACE_CONT, tid, 0, (void *)(intptr_t)WSTOPSIG(status)))
			break;
	}
	return false;
}

/* Stops it and reads its registers. False: it is gone. */
static inline bool thread_stop(pid_t tid, struct user_regs_struct *regs)
{
	struct iovec to = { .iov_base = regs, .iov_len = sizeof(*regs) };

	return !ptrace(PTRACE_INTERRUPT, tid, 0, 0) && thread_await(tid) &&
	       !ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &to);
}

#endif
