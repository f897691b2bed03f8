/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper is forked early, while there is nothing to inherit. It and the workers keep the privileges that looking at
 * processes takes. A worker opens and reads what it is told, and understands nothing of it. One that hangs is killed; where
 * the kernel keeps it even so, it stays until that lets go, and holds only the other end of a socket that nobody reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_worker.h"
#include "base/calls.h"
#include "base/capabilities.h"
#include "base/cleanup.h"
#include "base/fd_pass.h"
#include "base/io.h"
#include "base/memory.h"

enum {
	CONTROL_FD = 3,
	READ_BYTES = 64 << 10,
	KEPT_BYTES = 1 << 20, /* a worker gives back what a longer answer took */
	LEAST_NICE = -20,     /* the agent waits for it */
};

/* --- packets --- */

int proc_wire_send(int sock, const void *head, size_t head_bytes, const void *body, size_t body_bytes, int fd)
{
	const struct iovec parts[] = { { (void *)(uintptr_t)head, head_bytes }, { (void *)(uintptr_t)body, body_bytes } };
	ssize_t len = fd_pass_send(sock, parts, ARRAY_LEN(parts), &fd, fd >= 0, 0);

	return len < 0 ? (int)len : 0;
}

ssize_t proc_wire_receive(int sock, void *head, size_t head_bytes, void *body, size_t body_bytes, int flags, int *fd_ret)
{
	const struct iovec parts[] = { { head, head_bytes }, { body, body_bytes } };

	return fd_pass_receive(sock, parts, ARRAY_LEN(parts), fd_ret, 1, flags);
}

/* --- what a worker does --- */

static int open_folder(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Adds @bytes at @offset of the file to @ret, fewer where it ends or cannot be read further. 0, or the error of the first
 * read. */
static int read_more(const char *path, uint64_t offset, size_t bytes, struct buf *ret)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	if (offset > INT64_MAX - bytes)
		return -EINVAL;
	while (n > 0 && have < bytes) {
		size_t wanted = bytes - have < READ_BYTES ? bytes - have : READ_BYTES;

		if (buf_reserve(ret, wanted))
			return -ENOMEM;
		n = pread(fd, ret->data + ret->len, wanted, (off_t)(offset + have));
		if (n < 0 && !have)
			return -errno;
		ret->len += n > 0 ? (size_t)n : 0;
		have += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* The link's path. 0 or -errno. */
static int read_link(const struct proc_request *r, struct buf *ret)
{
	ssize_t n;

	if (!r->bytes || r->bytes > PATH_MAX)
		return -EINVAL;
	if (buf_reserve(ret, r->bytes))
		return -ENOMEM;
	n = readlink(r->path, (char *)ret->data, r->bytes);
	if (n < 0)
		return -errno;
	ret->len = (size_t)n;
	return 0;
}

int proc_worker_do(const struct proc_request *r, struct proc_reply *reply, struct buf *ret)
{
	int fd = -1;

	*reply = (struct proc_reply){ 0 };
	buf_reset(ret);
	if (r->op == PROC_OP_OPEN || r->op == PROC_OP_FOLDER) {
		fd = r->op == PROC_OP_OPEN ? io_open_regular(r->path) : open_folder(r->path);
		reply->status = fd < 0 ? fd : 0;
		return fd < 0 ? -1 : fd;
	}
	if (r->op == PROC_OP_LINK) {
		reply->status = read_link(r, ret);
		reply->bytes = (uint32_t)ret->len;
		return -1;
	}
	reply->status = r->bytes > PROC_MOST_BYTES ? -EINVAL : read_more(r->path, r->offset, r->bytes, ret);
	reply->bytes = (uint32_t)ret->len;
	if (r->then[0] && read_more(r->then, 0, PROC_SYSCALL_BYTES - 1, ret) == -EACCES)
		buf_putc(ret, '?');
	reply->then_bytes = (uint32_t)ret->len - reply->bytes;
	return -1;
}

static int answer(int sock, struct buf *content)
{
	struct proc_request r;
	struct proc_reply reply;
	AUTO_CLOSE int unasked_fd = -1, fd = -1;
	ssize_t len = proc_wire_receive(sock, &r, sizeof(r), NULL, 0, 0, &unasked_fd);
	size_t sent;
	int error;

	if (len != sizeof(r))
		return -EPIPE;
	r.path[sizeof(r.path) - 1] = r.then[sizeof(r.then) - 1] = '\0';
	fd = proc_worker_do(&r, &reply, content);
	sent = content->len < PROC_PACKET_BYTES ? content->len : PROC_PACKET_BYTES;
	error = proc_wire_send(sock, &reply, sizeof(reply), content->data, sent, fd);
	while (!error && sent < content->len) {
		size_t part = content->len - sent < PROC_PACKET_BYTES ? content->len - sent : PROC_PACKET_BYTES;

		error = proc_wire_send(sock, NULL, 0, content->data + sent, part, -1);
		sent += part;
	}
	if (content->cap > KEPT_BYTES)
		buf_fini(content);
	return error;
}

__attribute__((noreturn)) static void work(int sock)
{
	struct buf content = BUF_EMPTY;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	close(CONTROL_FD);
	memory_map_large(); /* or the heap keeps a long answer that was given back */
	while (!answer(sock, &content))
		;
	_exit(0);
}

/* --- the keeper --- */

static int confine(void)
{
	static const int more[] = { SCMP_SYS(wait4), SCMP_SYS(waitid) };
	int error = capabilities_keep(capabilities_of(CAPABILITY_OPENER, capabilities_effective()));

	return error ? error
		     : calls_filter(
			       &(struct calls){ .more = more, .more_count = ARRAY_LEN(more), .forks = true, .kills = true });
}

/* As long as nobody waited for a worker, no other process has its id. */
static void reap(pid_t workers[PROC_LANES])
{
	pid_t ended;

	while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
		for (int i = 0; i < PROC_LANES; i++)
			if (workers[i] == ended)
				workers[i] = 0;
}

__attribute__((noreturn)) static void serve(int control, pid_t agent)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), sock;
	pid_t workers[PROC_LANES] = { 0 };
	struct proc_order order;

	(void)prctl(PR_SET_NAME, "hearth-proc");
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	(void)setpriority(PRIO_PROCESS, 0, LEAST_NICE);
	/* Whoever reads our output must not wait for a worker that hangs. */
	for (int fd = 0; fd < CONTROL_FD; fd++)
		(void)dup2(null, fd);
	if (dup2(control, CONTROL_FD) < 0 || close_range(CONTROL_FD + 1, ~0u, 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || getppid() != agent || confine())
		_exit(1);
	while (proc_wire_receive(CONTROL_FD, &order, sizeof(order), NULL, 0, 0, &sock) == sizeof(order)) {
		reap(workers);
		if (order.lane < PROC_LANES && workers[order.lane] > 0)
			kill(workers[order.lane], SIGKILL);
		if (sock < 0 || order.lane >= PROC_LANES)
			continue;
		workers[order.lane] = fork();
		if (!workers[order.lane])
			work(sock);
		close(sock);
	}
	_exit(0);
}

pid_t proc_keeper_fork(int *control_ret)
{
	pid_t agent = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	calls_count_here();
	pid = fork();
	if (!pid)
		serve(pair[1], agent);
	if (pid < 0) {
		pid = -errno;
		close(pair[0]);
	} else {
		*control_ret = pair[0];
	}
	close(pair[1]);
	return pid;
}
