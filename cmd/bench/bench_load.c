/* SPDX-License-Identifier: Apache-2.0 */
/* The load that `hearth bench` samples: a process a CPU, so many calls deep. It is built with frame pointers, which the
 * other walks need. */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cmd/bench/bench.h"

static volatile uint64_t turns;
static volatile bool is_done; /* never: it is killed */

/* NOLINTNEXTLINE(misc-no-recursion) */
__attribute__((noinline)) static uint64_t descend(unsigned depth)
{
	if (depth)
		return descend(depth - 1) + turns; /* not the last thing it does: a frame each */
	while (!is_done)
		turns = turns * 6364136223846793005u + 1442695040888963407u;
	return turns;
}

pid_t bench_load_start(unsigned cpu)
{
	const pid_t parent = getpid();
	cpu_set_t set;
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, BENCH_LOAD);
	if (getppid() != parent)
		_exit(1);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	_exit((int)descend(BENCH_DEPTH));
}
