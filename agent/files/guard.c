/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard is forked early, while there is nothing to inherit. The guard keeps the privileges that opening needs, and does
 * nothing but fork. Each child opens a file and sends the descriptor straight to the agent's socket. A child that
 * hangs is killed; if a file system keeps it even so, it stays until that answers or is unmounted, and holds only the
 * socket's other end. Requests carry a number, so that a late answer is told from the one that is waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent/files/guard.h"
#include "base/calls.h"
#include "base/capabilities.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd_pass.h"
#include "base/io.h"

#ifndef BCACHEFS_MAGIC
#define BCACHEFS_MAGIC 0xca451a4e
#endif
enum { ZFS_MAGIC = 0x2fc12fc1 /* OpenZFS, zfs_vfsops.h */ };
enum { LIMIT_MS = 1000, SLICE_MS = 10, MAX_PATH_BYTES = 4096 + 64, GUARD_FD = 3 };

struct file_guard {
	pid_t pid;
	int sock;
	uint32_t seq;
};

enum request_kind { REQUEST_FILE, REQUEST_FOLDER, REQUEST_KILL /* end the child of the last request */ };

struct request {
	uint32_t seq;
	uint32_t kind;
	char path[MAX_PATH_BYTES];
};

struct reply {
	uint32_t seq;
	int32_t error;
};

/* --- the guard --- */

/* Is @fd on a file system that answers without anybody's help? is_local_type() in agent/files/open.c has these by name. */
static bool is_local(int fd)
{
	static const unsigned long local[] = {
		EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, BCACHEFS_MAGIC,  ZFS_MAGIC,	      RAMFS_MAGIC
	};
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_LEN(local) && !fstatfs(fd, &fs); i++)
		if ((unsigned long)fs.f_type == local[i])
			return true;
	return false;
}

/* Opens "ROOT//FOLDER": FOLDER as it is below the root folder ROOT. */
static int open_folder(const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	const char *border = strstr(path, "//");
	AUTO_FREE char *root_path = border ? strndup(path, (size_t)(border - path)) : NULL;
	AUTO_CLOSE int root = root_path ? open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1, fd = -1;

	if (!border)
		return -EINVAL;
	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, border + 2, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	return is_local(fd) ? MOVE_FD(fd) : -EREMOTE;
}

static void send_reply(uint32_t seq, int error, int fd)
{
	struct reply reply = { .seq = seq, .error = error };
	const struct iovec part = { &reply, sizeof(reply) };

	(void)fd_pass_send(GUARD_FD, &part, 1, &fd, fd >= 0, 0);
}

/* Keeps what opening takes, and the calls that it and forking make. */
static int confine(void)
{
	static const int more[] = { SCMP_SYS(openat2), SCMP_SYS(wait4), SCMP_SYS(waitid) };
	int error = capabilities_keep(capabilities_of(CAPABILITY_OPENER, capabilities_effective()));

	if (error)
		return error;
	return calls_filter(&(struct calls){ .more = more, .more_count = ARRAY_LEN(more), .forks = true, .kills = true });
}

/* The child's whole life. */
__attribute__((noreturn)) static void open_and_send(const struct request *r)
{
	int fd;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	fd = r->kind == REQUEST_FOLDER ? open_folder(r->path) : io_open_regular(r->path);
	send_reply(r->seq, fd < 0 ? fd : 0, fd);
	_exit(0);
}

static void end_child(pid_t child)
{
	/* As long as nobody waited for the child, no other process has its id. */
	if (child > 0 && waitpid(child, NULL, WNOHANG) == 0)
		kill(child, SIGKILL);
}

__attribute__((noreturn)) static void serve(int sock, pid_t agent)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct request r;
	pid_t child = 0;
	ssize_t len;

	(void)prctl(PR_SET_NAME, "hearth-open");
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	/* Whoever reads our output must not wait for a child that hangs. */
	for (int fd = 0; fd < GUARD_FD; fd++)
		(void)dup2(null, fd);
	if (dup2(sock, GUARD_FD) < 0 || close_range(GUARD_FD + 1, ~0u, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) ||
	    getppid() != agent || confine())
		_exit(1);
	while ((len = recv(GUARD_FD, &r, sizeof(r), 0)) > 0 || (len < 0 && errno == EINTR)) {
		if (len < (ssize_t)offsetof(struct request, path))
			continue;
		if (r.kind == REQUEST_KILL) {
			end_child(child);
			child = 0;
			continue;
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		r.path[sizeof(r.path) - 1] = '\0';
		child = fork();
		if (!child)
			open_and_send(&r);
		if (child < 0)
			send_reply(r.seq, -errno, -1);
	}
	_exit(0);
}

/* --- the agent's side --- */

int file_guard_new(struct file_guard **ret)
{
	struct file_guard *g = calloc(1, sizeof(*g));
	pid_t agent = getpid();
	int pair[2];

	if (!g)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		free(g);
		return -errno;
	}
	calls_count_here();
	g->pid = fork();
	if (!g->pid)
		serve(pair[1], agent);
	close(pair[1]);
	if (g->pid < 0) {
		int error = -errno;

		close(pair[0]);
		free(g);
		return error;
	}
	g->sock = pair[0];
	*ret = g;
	return 0;
}

void file_guard_free(struct file_guard *g)
{
	if (!g)
		return;
	close(g->sock); /* it ends with it */
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(g);
}

/* Waits for the next answer until @end_ns; -EINTR now and then before that. 0 with *@reply and *@fd_ret (-1: none), or
 * -errno. */
static int receive(struct file_guard *g, uint64_t end_ns, struct reply *reply, int *fd_ret)
{
	const struct iovec part = { reply, sizeof(*reply) };
	struct pollfd ready = { .fd = g->sock, .events = POLLIN };
	uint64_t now_ns = clock_mono_ns();
	ssize_t len;
	int n = poll(&ready, 1, end_ns > now_ns ? SLICE_MS : 0);

	if (n <= 0)
		return n && errno != EINTR ? -errno : now_ns < end_ns ? -EINTR : -ETIMEDOUT;
	len = fd_pass_receive(g->sock, &part, 1, fd_ret, 1, MSG_DONTWAIT);
	return len > 0 ? 0 : len ? (int)len : -ECHILD;
}

static int ask(struct file_guard *g, enum request_kind kind, const char *path, const struct wait_hook *hook)
{
	uint64_t end_ns = clock_mono_ns() + LIMIT_MS * NSEC_PER_MSEC;
	struct request request = { .seq = ++g->seq, .kind = kind };
	size_t len = strlen(path) + 1;
	struct reply reply;
	int error;

	if (len > sizeof(request.path))
		return -ENAMETOOLONG;
	memcpy(request.path, path, len);
	if (send(g->sock, &request, offsetof(struct request, path) + len, MSG_NOSIGNAL) < 0)
		return errno == EPIPE ? -ECHILD : -errno;
	do {
		AUTO_CLOSE int fd = -1;

		error = receive(g, end_ns, &reply, &fd);
		if (error == -EINTR)
			wait_hook_run(hook);
		if (!error && reply.seq == request.seq)
			return reply.error ? reply.error : fd >= 0 ? MOVE_FD(fd) : -EBADF;
	} while (!error || error == -EINTR); /* descriptors of late answers, which nobody waits for, are closed */
	if (error == -ETIMEDOUT) {
		request = (struct request){ .seq = g->seq, .kind = REQUEST_KILL };
		(void)send(g->sock, &request, offsetof(struct request, path), MSG_NOSIGNAL);
	}
	return error;
}

int file_guard_open(struct file_guard *g, const char *path, const struct wait_hook *hook)
{
	return ask(g, REQUEST_FILE, path, hook);
}

int file_guard_open_folder(struct file_guard *g, const char *path, const struct wait_hook *hook)
{
	return ask(g, REQUEST_FOLDER, path, hook);
}
