/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registers that a user stack walk (bpf/unwind.h) goes on with, for those who keep a walk but do not step. */
#ifndef HEARTH_BPF_UNWIND_STATE_H
#define HEARTH_BPF_UNWIND_STATE_H

#include <linux/types.h>

struct unwind_state {
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 lr;      /* CPU_HAS_LR: the frame's value of lr; 0: not known, or surely another call's */
	__u32 exact;   /* pc is where the thread stands, not a return address */
	__u32 end;     /* enum walk_end, set when the step ends the walk */
	__u32 falls;   /* how often sp has fallen */
	__u32 lost_sp; /* CPU_HAS_LR: sp is only a lower bound of the frame's sp (behind a frame known by its frame pointer
			  alone) */
};

#endif
