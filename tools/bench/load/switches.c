/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes on one CPU that wake each other by pipes, with STEPS of work between: "switches STEPS ROUNDS" prints how
 * many nanoseconds a switch took, the least of ROUNDS rounds first, then their median. "switches NS" prints how many steps
 * take so long: who compares asks once, as a CPU is not as fast each time.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 5000 };

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Work of a fixed amount, not of a fixed time: what slows a switch down must not shorten it. */
static void work(uint64_t steps)
{
	for (volatile uint64_t i = 0; i < steps; i++)
		;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double steps_of_ns(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		uint64_t start = now();

		work(100000);
		start = now() - start;
		least = start < least ? start : least;
	}
	return 100000.0 / (double)least;
}

int main(int argc, char **argv)
{
	uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	int rounds = argc > 2 ? atoi(argv[2]) : 20, there[2], back[2];
	double *times = calloc((size_t)rounds, sizeof(*times));
	cpu_set_t set;
	char byte = 0;

	if (argc == 2) {
		printf("%.0f\n", (double)steps * steps_of_ns());
		free(times);
		return 0;
	}

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	if (!times || rounds < 1 || sched_setaffinity(0, sizeof(set), &set) || pipe(there) || pipe(back))
		return 1;
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(there[0], &byte, 1) == 1) {
			work(steps);
			if (write(back[1], &byte, 1) != 1)
				break;
		}
		_exit(0);
	}
	for (int r = 0; r < rounds; r++) {
		uint64_t start = now();

		for (int i = 0; i < TURNS; i++) {
			work(steps);
			if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
				return 1;
		}
		times[r] = (double)(now() - start) / (2 * TURNS);
	}
	qsort(times, (size_t)rounds, sizeof(*times), compare);
	printf("%.1f %.1f\n", times[0], times[rounds / 2]);
	return 0;
}
