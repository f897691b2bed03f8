/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded command. The child is forked first, before there are threads or privileged descriptors, and waits until the
 * recorder is ready; then it becomes the command. Functions log what fails.
 */
#ifndef HEARTH_CMD_SETUP_CHILD_H
#define HEARTH_CMD_SETUP_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct loop;

struct child {
	pid_t pid;     /* 0: none */
	int go_fd;     /* a byte here lets it start; closing it instead makes it leave */
	int status_fd; /* of what the child tells: see become() */
	int pid_fd;    /* readable when it has ended */
	int signals_fd;
	bool is_reaped, is_signalled;
	bool is_stopped; /* at its entry point */
	int wait_status; /* as of waitpid(2), once reaped */
	uint64_t cpu_ns; /* that it and the children it waited for took, once reaped */
	void (*on_end)(void *arg);
	void *arg;
};

#define CHILD_NONE ((struct child){ .go_fd = -1, .status_fd = -1, .pid_fd = -1, .signals_fd = -1 })

/*
 * Forks; the child drops to the user behind sudo unless @as_root, looks for the command, and waits. 0 or -errno. -ECHILD:
 * the command is not found or may not be executed, which is said, and child_wait() returns a shell's status for it.
 */
int child_fork(char *const *argv, bool as_root, struct child *ret);

/*
 * Passes signals that ask us to end on to the command from now on, and @on_end is called from @loop when it has ended, and
 * again when a signal comes after that. To be called before any thread starts.
 */
int child_watch(struct child *c, struct loop *loop, void (*on_end)(void *arg), void *arg);

/*
 * Lets the command run up to the entry point of its program, where its libraries are mapped, and stop there. Before
 * child_watch(), and before any thread starts. 0 or -errno; -ECHILD as above, of what only execve(2) finds out, or when it
 * has ended on its way.
 */
int child_stop_at_entry(struct child *c);

/* Lets the command run. 0 or -errno; -ECHILD as above, of what only execve(2) finds out. */
int child_release(struct child *c);

/* Waits for its end; returns its exit status as a shell gives it: 128 + the signal that killed it. */
int child_wait(struct child *c);

/* A child that was never released is ended. Accepts one that was never forked. */
void child_fini(struct child *c);

#endif
