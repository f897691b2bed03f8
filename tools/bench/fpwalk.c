/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs fpwalk.bpf.c on the cpu-clock of every online CPU until it is told to end, and throws away what it sends. One thread;
 * the program's run time is read from outside, from this process's fdinfo. At its end it prints how many frames the user
 * stacks of the given processes had (the median).   fpwalk HZ fp|empty PID...
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "fpwalk.skel.h"

static volatile sig_atomic_t ended;

static void end(int sig)
{
	ended = sig;
}

enum { MAX_FRAMES = 127, PID_TGID = 1, USER_BYTES = 3 };
static unsigned long stacks_of[MAX_FRAMES + 1]; /* how often a stack of so many frames came */

/* @ctx: the pids as text, NULL behind the last. */
static int count(void *ctx, void *data, size_t len)
{
	const unsigned long *sample = data;
	unsigned long frames = sample[USER_BYTES] / sizeof(long);

	(void)len;
	for (char **pid = ctx; *pid; pid++)
		if (strtoul(*pid, NULL, 10) == sample[PID_TGID] >> 32 && frames <= MAX_FRAMES)
			stacks_of[frames]++;
	return 0;
}

static int median_frames(void)
{
	unsigned long total = 0, below = 0;
	int frames = 0;

	for (int i = 0; i <= MAX_FRAMES; i++)
		total += stacks_of[i];
	while (frames < MAX_FRAMES && (below += stacks_of[frames]) * 2 < total)
		frames++;
	return frames;
}

static int attach(struct bpf_program *program, unsigned long hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hz,
	};
	int cpus = libbpf_num_possible_cpus();

	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd < 0 && errno == ENODEV)
			continue; /* offline */
		if (fd < 0 || !bpf_program__attach_perf_event(program, fd))
			return -errno;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long hz = argc > 1 ? strtoul(argv[1], NULL, 10) : 99;
	bool empty = argc > 2 && strcmp(argv[2], "empty") == 0;
	struct fpwalk_bpf *skel = fpwalk_bpf__open();
	struct ring_buffer *ring;
	int err = skel ? 0 : -errno;

	if (!err)
		bpf_program__set_autoload(empty ? skel->progs.fp_sample : skel->progs.empty_sample, false);
	if (err || (err = fpwalk_bpf__load(skel)) ||
	    (err = attach(empty ? skel->progs.empty_sample : skel->progs.fp_sample, hz))) {
		fprintf(stderr, "fpwalk: %s\n", strerror(-err));
		return 1;
	}
	ring = ring_buffer__new(bpf_map__fd(skel->maps.ring), count, argc > 2 ? argv + 3 : argv + argc, NULL);
	if (!ring)
		return 1;
	signal(SIGTERM, end);
	signal(SIGINT, end);
	while (!ended) {
		usleep(100000);
		ring_buffer__consume(ring);
	}
	printf("%d\n", median_frames());
	ring_buffer__free(ring);
	fpwalk_bpf__destroy(skel);
	return 0;
}
