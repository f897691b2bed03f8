/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The choice of intervals of time, such as a thread's waits. One of @mean_ns and longer is always chosen and counts for just
 * what it is. The shorter ones, put end to end, are cut into windows of @mean_ns, and one point is drawn in each: the
 * interval that has it is chosen and counts for @mean_ns. A point lies in an interval with a chance as great as the
 * interval's part of the window, whatever the pattern of intervals, so each sum has the right mean; and a random number is
 * needed only for each interval that is chosen.
 *
 * Who includes this defines draw_random(), which returns a number that is equally distributed over 32 bits.
 */
#ifndef HEARTH_BPF_DRAW_H
#define HEARTH_BPF_DRAW_H

#include <linux/types.h>

#include "bpf/arch.h"

#define DRAW_MOST_NS 2000000000ull /* of @mean_ns: the sums below have 32 bits */

struct draw {
	__u32 left_ns; /* up to the next point */
	__u32 rest_ns; /* from there to the end of its window */
};

static __always_inline __u32 draw_random(void);

/* A place in a window. */
static __always_inline __u32 draw_point(__u64 mean_ns)
{
	return (__u32)(draw_random() * mean_ns >> 32);
}

/* Begins with a new window. */
static __always_inline void draw_begin(struct draw *d, __u64 mean_ns)
{
	d->left_ns = draw_point(mean_ns);
	d->rest_ns = (__u32)mean_ns - d->left_ns;
}

/* The value of the next interval, which has @ns; 0: it is not chosen. Two points may lie in it: the last of a window and the
 * first of the one behind. */
static __always_inline __u64 draw_interval(struct draw *d, __u64 ns, __u64 mean_ns)
{
	__u64 value = 0;
	__u32 point;

	if (ns >= mean_ns)
		return ns;
	for (int i = 0; i < 2 && ns >= d->left_ns; i++) {
		ns -= d->left_ns;
		point = draw_point(mean_ns);
		d->left_ns = d->rest_ns + point;
		d->rest_ns = (__u32)mean_ns - point;
		value += mean_ns;
	}
	d->left_ns = ns < d->left_ns ? d->left_ns - (__u32)ns : 0;
	return value;
}

#endif
