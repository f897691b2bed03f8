/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the sampler of agent/kernel/fpwalk.h until it is told to end; its run time is read from outside, from this process's
 * fdinfo. At its end it prints how many user frames the stacks of the given processes had (the median). One thread.
 *   fpwalk HZ fp|record|empty PID...
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/kernel/fpwalk.h"
#include "base/cleanup.h"

enum { DRAIN_US = 50000 };

static volatile sig_atomic_t ended;

static void end(int sig)
{
	ended = sig;
}

int main(int argc, char **argv)
{
	AUTO_FREE pid_t *pids = calloc((size_t)argc, sizeof(*pids));
	struct fpwalk_config config = { .pids = pids };
	struct fpwalk *walk;
	unsigned frames;
	int err;

	if (argc < 3 || !pids) {
		fprintf(stderr, "usage: fpwalk HZ fp|record|empty PID...\n");
		return 2;
	}
	config.hz = (unsigned)strtoul(argv[1], NULL, 10);
	config.is_empty = !strcmp(argv[2], "empty");
	config.no_stack = !strcmp(argv[2], "record");
	for (char **pid = argv + 3; *pid; pid++)
		pids[config.pid_count++] = (pid_t)strtol(*pid, NULL, 10);
	err = fpwalk_new(&config, &walk);
	if (err) {
		fprintf(stderr, "fpwalk: %s\n", strerror(-err));
		return 1;
	}
	signal(SIGTERM, end);
	signal(SIGINT, end);
	while (!ended) {
		usleep(DRAIN_US);
		fpwalk_drain(walk, &frames);
	}
	fpwalk_drain(walk, &frames);
	printf("%u\n", frames);
	fpwalk_free(walk);
	return 0;
}
