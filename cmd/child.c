/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a command to record. It stays in our process group, so that the terminal's Ctrl-C reaches it as it reaches us:
 * such signals come from the kernel and are not passed on a second time; one that somebody sends to us alone is.
 */
#include "cmd/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/loop.h"
#include "cmd/cmd.h"
#include "cmd/user.h"

/* In the child: waits for the byte, then becomes the command. */
__attribute__((noreturn)) static void become(char *const *argv, bool as_root, int wait_fd)
{
	struct user user;
	char go;
	int err;

	if (!as_root && user_invoking(&user)) {
		err = user_become(&user);
		if (err) {
			log_error("cannot run the command as user %u: %s; --as-root runs it as root", user.uid,
				  strerror(-err));
			_exit(STATUS_FAILED);
		}
	}
	if (read(wait_fd, &go, 1) != 1)
		_exit(STATUS_FAILED);
	signal(SIGPIPE, SIG_DFL);
	execvp(argv[0], argv);
	if (errno == ENOENT) {
		log_error("%s: command not found", argv[0]);
		_exit(STATUS_NOT_FOUND);
	}
	log_error("%s: cannot be executed: %s", argv[0], strerror(errno));
	_exit(STATUS_NOT_EXECUTABLE);
}

int child_fork(char *const *argv, bool as_root, struct child *ret)
{
	int go[2], err = 0;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC))
		goto fail;
	pid = fork();
	if (pid < 0) {
		err = -errno;
		close(go[0]);
		close(go[1]);
		goto fail;
	}
	if (!pid) {
		close(go[1]);
		become(argv, as_root, go[0]);
	}
	close(go[0]);
	*ret = CHILD_NONE;
	ret->pid = pid;
	ret->go_fd = go[1];
	return 0;
fail:
	err = err ? err : -errno;
	log_error("cannot start %s: %s", argv[0], strerror(-err));
	return err;
}

static void reap(struct child *c)
{
	while (waitpid(c->pid, &c->wait_status, 0) < 0 && errno == EINTR)
		;
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
	int err = write(c->go_fd, "", 1) == 1 ? 0 : -errno;

	if (err)
		log_error("cannot start the command: %s", strerror(-err));
	close(MOVE_FD(c->go_fd));
	return err;
}

int child_wait(struct child *c)
{
	if (!c->is_reaped)
		reap(c);
	return WIFSIGNALED(c->wait_status) ? 128 + WTERMSIG(c->wait_status) : WEXITSTATUS(c->wait_status);
}

void child_fini(struct child *c)
{
	if (c->go_fd >= 0)
		close(c->go_fd);
	if (c->pid_fd >= 0)
		close(c->pid_fd);
	if (c->signals_fd >= 0)
		close(c->signals_fd);
	if (c->pid && c->go_fd >= 0 && !c->is_reaped)
		reap(c);
	*c = CHILD_NONE;
}
