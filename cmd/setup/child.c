/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command to record. The command stays in our process group, so that the terminal's Ctrl-C reaches it as it reaches
 * us: such signals come from the kernel and are not passed on a second time; one that somebody sends to us alone is.
 */
#include "cmd/setup/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "cmd/options/command.h"
#include "cmd/setup/user.h"

/* Says why the command cannot be run, and leaves with the status that a shell would give. */
__attribute__((noreturn)) static void leave(const char *name, int err)
{
	if (err == ENOENT) {
		log_error("%s: command not found", name);
		_exit(STATUS_NOT_FOUND);
	}
	log_error("%s: cannot be executed: %s", name, strerror(err));
	_exit(STATUS_NOT_EXECUTABLE);
}

/* 0, or the errno that execve(2) would give for the file @path. */
static int check_file(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return eaccess(path, X_OK) ? errno : 0;
}

/* 0, or the errno of execvp(3) for @name, as far as it is known before: it is not found, or may not be executed. */
static int find_command(const char *name)
{
	const char *path = getenv("PATH");
	int err = ENOENT;

	if (strchr(name, '/') || !*name)
		return check_file(name);
	for (path = path ? path : "/bin:/usr/bin";; path++) {
		AUTO(buf_fini) struct buf file = BUF_EMPTY;
		size_t len = strcspn(path, ":");
		int found;

		buf_printf(&file, "%.*s%s%s", (int)len, path, len ? "/" : "", name);
		found = check_file(buf_text(&file));
		if (!found)
			return 0;
		err = found == EACCES ? found : err; /* execvp goes on too, and tells this one in the end */
		path += len;
		if (!*path)
			return err;
	}
}

/*
 * Runs in the child: waits for the byte, then becomes the command. Writes a byte to @status_fd when the command was found,
 * and another one when it cannot be executed all the same; success closes it.
 */
__attribute__((noreturn)) static void become(char *const *argv, bool as_root, int wait_fd, int status_fd)
{
	struct user user;
	char go = 0;
	int err;

	if (!as_root && user_invoking(&user)) {
		err = user_become(&user);
		if (err) {
			log_error("cannot run the command as user %u: %s; --as-root runs it as root", user.uid,
				  strerror(-err));
			_exit(STATUS_FAILED);
		}
	}
	err = find_command(argv[0]);
	if (err)
		leave(argv[0], err);
	if (write(status_fd, &go, 1) != 1 || read(wait_fd, &go, 1) != 1)
		_exit(STATUS_FAILED);
	signal(SIGPIPE, SIG_DFL);
	execvp(argv[0], argv);
	err = errno;
	(void)!write(status_fd, &go, 1); /* who does not hear it has gone */
	if (err == ENOENT) {
		log_error("%s: the interpreter that its first line names is not found", argv[0]);
		_exit(STATUS_NOT_FOUND);
	}
	leave(argv[0], err);
}

/* Whether the child has written a byte, which it does or closes its end. */
static bool heard(int fd)
{
	char byte;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

int child_fork(char *const *argv, bool as_root, struct child *ret)
{
	int go[2] = { -1, -1 }, status[2] = { -1, -1 }, err = 0;
	pid_t pid = -1;

	*ret = CHILD_NONE;
	if (!pipe2(go, O_CLOEXEC) && !pipe2(status, O_CLOEXEC))
		pid = fork();
	err = pid < 0 ? -errno : 0;
	if (!pid) {
		close(go[1]);
		close(status[0]);
		become(argv, as_root, go[0], status[1]);
	}
	cleanup_close(&go[0]);
	cleanup_close(&status[1]);
	ret->go_fd = go[1];
	ret->status_fd = status[0];
	if (err) {
		log_error("cannot start %s: %s", argv[0], strerror(-err));
		child_fini(ret);
		return err;
	}
	ret->pid = pid;
	return heard(ret->status_fd) ? 0 : -ECHILD;
}

static uint64_t timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_usec * 1000;
}

static void reap(struct child *c)
{
	struct rusage usage = { 0 };

	while (wait4(c->pid, &c->wait_status, 0, &usage) < 0 && errno == EINTR)
		;
	c->cpu_ns = timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
	c->is_reaped = true;
}

static void on_pid_fd(void *arg, int fd, uint32_t events)
{
	struct child *c = arg;

	(void)fd;
	(void)events;
	if (c->is_reaped)
		return;
	reap(c);
	c->on_end(c->arg);
}

static void on_signals(void *arg, int fd, uint32_t events)
{
	struct child *c = arg;
	struct signalfd_siginfo info;

	(void)events;
	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		c->is_signalled = true;
		if (c->is_reaped)
			c->on_end(c->arg);
		else if (info.ssi_code <= 0) /* SI_USER, SI_QUEUE, SI_TKILL */
			kill(c->pid, (int)info.ssi_signo);
	}
}

int child_watch(struct child *c, struct loop *loop, void (*on_end)(void *arg), void *arg)
{
	sigset_t set;
	int err;

	c->on_end = on_end;
	c->arg = arg;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	c->signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	c->pid_fd = pidfd_open(c->pid, 0);
	err = c->signals_fd < 0 || c->pid_fd < 0 ? -errno : 0;
	if (!err)
		err = loop_add_fd(loop, c->signals_fd, EPOLLIN, on_signals, c, NULL);
	if (!err)
		err = loop_add_fd(loop, c->pid_fd, EPOLLIN, on_pid_fd, c, NULL);
	if (err)
		log_error("cannot watch the command: %s", strerror(-err));
	return err;
}

int child_release(struct child *c)
{
	int err;

	if (c->is_stopped) {
		c->is_stopped = false;
		return kill(c->pid, SIGCONT) ? -errno : 0;
	}
	err = write(c->go_fd, "", 1) == 1 ? 0 : -errno;

	if (err)
		log_error("cannot start the command: %s", strerror(-err));
	close(MOVE_FD(c->go_fd));
	return err ? err : heard(c->status_fd) ? -ECHILD : 0;
}

int child_wait(struct child *c)
{
	if (!c->is_reaped)
		reap(c);
	return WIFSIGNALED(c->wait_status) ? 128 + WTERMSIG(c->wait_status) : WEXITSTATUS(c->wait_status);
}

void child_fini(struct child *c)
{
	bool is_new = c->go_fd >= 0;

	if (c->pid && is_new)
		close(MOVE_FD(c->go_fd));
	if (c->pid && c->is_stopped)
		kill(c->pid, SIGKILL);
	if (c->pid && (is_new || c->is_stopped) && !c->is_reaped)
		reap(c);
	cleanup_close(&c->go_fd);
	cleanup_close(&c->status_fd);
	cleanup_close(&c->pid_fd);
	cleanup_close(&c->signals_fd);
	*c = CHILD_NONE;
}
