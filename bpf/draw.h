/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The choice of intervals of time: one of @ns is chosen with the chance min(1, @ns / @mean_ns) and then counts for
 * max(@ns, @mean_ns). So its mean is @ns whatever that is, an interval of @mean_ns and more is always chosen and counts for
 * just what it is, and of what one thread does at most one interval in @mean_ns is chosen on average.
 */
#ifndef HEARTH_BPF_DRAW_H
#define HEARTH_BPF_DRAW_H

#include <linux/types.h>

#include "bpf/arch.h"

#define DRAW_MOST_NS 0xffffffffull /* of @mean_ns: the product below has 64 bits */

/* The value of an interval of @ns that @random, equally distributed over 32 bits, gives; 0: it is not chosen. */
static __always_inline __u64 draw_interval(__u64 ns, __u64 mean_ns, __u32 random)
{
	if (ns >= mean_ns)
		return ns;
	return (random * mean_ns) >> 32 < ns ? mean_ns : 0;
}

#endif
