/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Deep recursion, for the kernel's walk and the late one alike. Where a stack has more than FOLD_FRAMES frames, those behind
 * DEEP_FRAMES that return to the same place as the frame before them are passed over: the walk goes on to the stack's root,
 * and the recursion's callers are there. Frames that captured words are another function each, and of a sample with chains
 * each frame's sp is wanted: they all stay.
 */
#ifndef HEARTH_BPF_DEEP_H
#define HEARTH_BPF_DEEP_H

#include <stdbool.h>

#include <linux/types.h>

enum {
	DEEP_FRAMES = 512,
	FOLD_FRAMES = 960,
	MAX_WALKED_FRAMES = 8192, /* of a stack, in all; they take 0.2 ms */
};

/* The last frames of a deep stack that return to one place. All 0 at the beginning. */
struct deep {
	__u64 pc;     /* that place; 0: there is none, or its frames must stay */
	__u64 row;    /* its row, for the kernel */
	__u32 from;   /* frames of the stack, the first of these with them */
	__u32 folded; /* frames that were passed over */
};

/* Has a frame at @pc, which @count frames stand in front of, no place in the sample? At the first one others lose theirs:
 * *@dropped, which is 0 else. */
static __always_inline bool deep_folds(struct deep *d, __u64 pc, bool is_exact, __u32 count, __u32 *dropped)
{
	*dropped = 0;
	if (pc != d->pc || is_exact || (!d->folded && count < FOLD_FRAMES))
		return false;
	if (!d->folded)
		*dropped = count - d->from;
	d->folded += *dropped + 1;
	return true;
}

/* The frame at @pc is now the last of @count. @is_plain: frames like it need no place. */
static __always_inline void deep_note(struct deep *d, __u64 pc, __u64 row, bool is_plain, __u32 count)
{
	if (count < DEEP_FRAMES || (is_plain && pc == d->pc))
		return;
	d->pc = is_plain ? pc : 0;
	d->row = row;
	d->from = count;
}

#endif
