/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs fpwalk.bpf.c on the cpu-clock of every online CPU until it is told to end, and throws away what it sends. One thread;
 * the program's run time is read from outside, from this process's fdinfo.   fpwalk HZ
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
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

static int discard(void *ctx, void *data, size_t len)
{
	(void)ctx;
	(void)data;
	(void)len;
	return 0;
}

static int attach(struct fpwalk_bpf *skel, unsigned long hz)
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
		if (fd < 0 || !bpf_program__attach_perf_event(skel->progs.fp_sample, fd))
			return -errno;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long hz = argc > 1 ? strtoul(argv[1], NULL, 10) : 99;
	struct fpwalk_bpf *skel = fpwalk_bpf__open_and_load();
	struct ring_buffer *ring = skel ? ring_buffer__new(bpf_map__fd(skel->maps.ring), discard, NULL, NULL) : NULL;
	int err;

	if (!ring || (err = attach(skel, hz))) {
		fprintf(stderr, "fpwalk: %s\n", ring ? strerror(-err) : "its program does not load");
		return 1;
	}
	signal(SIGTERM, end);
	signal(SIGINT, end);
	puts("ready");
	fflush(stdout);
	while (!ended) {
		usleep(100000);
		ring_buffer__consume(ring);
	}
	ring_buffer__free(ring);
	fpwalk_bpf__destroy(skel);
	return 0;
}
