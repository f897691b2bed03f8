/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reuse SECONDS: one process id, again and again, for children that execute one of two programs by turns or go on as a copy
 * of this one. clone3 takes the id it is to give (since 5.5).
 */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "comings.h"

CHAIN(copy)

static pid_t fork_as(pid_t wanted)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	if (wanted) {
		args.set_tid = (uintptr_t)&wanted;
		args.set_tid_size = 1;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

int main(int argc, char **argv)
{
	static char *const programs[] = { "./reuse_a", "./reuse_b" };
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);
	pid_t pid = 0;
	int reused = 0;

	tell("reuse_a", "reuse_a", "main", "parta");
	tell("reuse_b", "reuse_b", "main", "partb");
	tell("reuse_copy", "reuse", "main", "copy");
	truth_told();
	for (int round = 0; now_seconds(CLOCK_MONOTONIC) < end; round++) {
		char *arguments[] = { programs[round % 3 % 2], "5", NULL };
		pid_t child = fork_as(pid);

		if (child < 0 && errno == EEXIST) { /* somebody else was faster */
			child = fork_as(0);
		} else {
			reused += pid != 0;
		}
		must(child >= 0, "clone3");
		if (!child && round % 3 == 2) {
			name_me("reuse_copy");
			truth_sink += copy_outer(5);
			_exit(0);
		}
		if (!child) {
			execv(arguments[0], arguments);
			_exit(127);
		}
		pid = child;
		must(status_of(child) == 0, "a child");
	}
	must(reused > 10, "using a process id again");
	return 0;
}
