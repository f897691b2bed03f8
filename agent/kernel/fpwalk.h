/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sampler whose stacks the kernel walks (bpf_get_stack, by frame pointers), to compare hearth's with; and the time that
 * programs took, by the kernel's count. One thread; root.
 */
#ifndef HEARTH_AGENT_KERNEL_FPWALK_H
#define HEARTH_AGENT_KERNEL_FPWALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fpwalk;

struct fpwalk_config {
	unsigned hz;	  /* samples a second on each online CPU that this process may run on */
	const char *comm; /* the names of the threads that are sampled begin with its first 8 bytes; NULL: all are sampled */
	bool is_empty;	  /* nothing is walked nor sent: the price of being called at all */
	bool no_stack;	  /* nothing is walked: the price of sending a record */
	const pid_t *pids; /* the processes whose samples are counted; NULL: all. Borrowed */
	size_t pid_count;
};

/* Begins to sample. 0 or -errno. */
int fpwalk_new(const struct fpwalk_config *config, struct fpwalk **ret);

/* Throws away the records that it has sent; to be called at least each 100 ms. Returns how many samples were counted so far,
 * and in *@frames_ret how many user frames they had, the median. */
uint64_t fpwalk_drain(struct fpwalk *f, unsigned *frames_ret);

/* Accepts NULL. */
void fpwalk_free(struct fpwalk *f);

/* From now on, until the returned descriptor is closed, the kernel counts the time that programs take. -errno. */
int fpwalk_count_time(void);

struct fpwalk_time {
	uint64_t ns, runs;
};

/* The time that the sampling programs of process @pid took so far, while it is counted. 0 or -errno. */
int fpwalk_time_of(pid_t pid, struct fpwalk_time *ret);

#endif
