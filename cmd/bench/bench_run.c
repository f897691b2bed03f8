/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that `hearth bench` runs and measures from outside, with what the kernel counts of them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/ourselves.h"
#include "cmd/bench/bench.h"

#define LOOK_NS (100ull * 1000 * 1000)
#define WAIT_NS (1000ull * 1000)

void bench_sleep(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

bool bench_has(const char *name)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];

	for (size_t len; path && *path; path += len + (path[len] == ':')) {
		len = strcspn(path, ":");
		snprintf(file, sizeof(file), "%.*s/%s", (int)len, path, name);
		if (!access(file, X_OK))
			return true;
	}
	return false;
}

static void become(const char *const *argv, const char *in, const char *out, const char *messages, pid_t parent)
{
	const char *const files[] = { in, out, messages };

	prctl(PR_SET_PDEATHSIG, SIGINT);
	for (int i = 0; i < 3; i++) {
		int fd = open(files[i] ? files[i] : "/dev/null", i ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0600);

		if (fd < 0 || dup2(fd, i) < 0)
			_exit(126);
		if (fd > STDERR_FILENO)
			close(fd);
	}
	if (getppid() != parent)
		_exit(126);
	if (!strcmp(argv[0], "hearth"))
		execv(ourselves_program(), (char *const *)(uintptr_t)argv);
	else
		execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

int bench_start(struct bench_run *r, const char *const *argv, const char *in, const char *out, const char *messages)
{
	const pid_t parent = getpid();

	*r = (struct bench_run){ .began_ns = clock_mono_ns() };
	r->pid = fork();
	if (r->pid == 0)
		become(argv, in, out, messages, parent);
	return r->pid < 0 ? -errno : 0;
}

/* The memory that belongs to @pid: what it shares with others counts by its share. */
static uint64_t memory_of(pid_t pid)
{
	char path[64], line[256];
	uint64_t kilobytes = 0;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	AUTO_FCLOSE FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Pss: %" SCNu64, &kilobytes) == 1)
			break;
	}
	return kilobytes * 1024;
}

/* The sum of @fn over the process and its children. */
static uint64_t sum_of(const struct bench_run *r, uint64_t (*fn)(pid_t pid))
{
	uint64_t sum = fn(r->pid);
	char path[64];
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)r->pid, (int)r->pid);
	AUTO_FCLOSE FILE *file = fopen(path, "re");
	while (file && fscanf(file, "%d", &child) == 1)
		sum += fn((pid_t)child);
	return sum;
}

void bench_look(struct bench_run *r)
{
	uint64_t bytes = sum_of(r, memory_of);

	if (bytes > r->memory_bytes)
		r->memory_bytes = bytes;
}

static uint64_t cpu_of(pid_t pid)
{
	struct timespec t = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t bench_cpu_ns(const struct bench_run *r)
{
	return sum_of(r, cpu_of);
}

static uint64_t ns_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_usec * 1000;
}

int bench_wait(struct bench_run *r)
{
	struct rusage usage;
	uint64_t looked_ns = 0, now;
	pid_t pid;

	while ((pid = wait4(r->pid, &r->status, WNOHANG, &usage)) == 0) {
		now = clock_mono_ns();
		if (now - looked_ns >= LOOK_NS) {
			bench_look(r);
			looked_ns = now;
		}
		bench_sleep(WAIT_NS);
	}
	r->wall_ns = clock_mono_ns() - r->began_ns;
	if (pid < 0)
		return -errno;
	r->cpu_ns = ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
	return WIFEXITED(r->status) && WEXITSTATUS(r->status) == 0 ? 0 : -EPROTO;
}

int bench_end(struct bench_run *r)
{
	kill(r->pid, SIGINT);
	return bench_wait(r);
}
