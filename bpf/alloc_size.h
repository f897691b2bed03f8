/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a function that allocates says how much: the cookie of its probe (bpf/allocs.bpf.c). */
#ifndef HEARTH_BPF_ALLOC_SIZE_H
#define HEARTH_BPF_ALLOC_SIZE_H

enum alloc_size {
	ALLOC_SIZE_FIRST,   /* by its first argument: malloc */
	ALLOC_SIZE_SECOND,  /* aligned_alloc, realloc */
	ALLOC_SIZE_THIRD,   /* posix_memalign */
	ALLOC_SIZE_PRODUCT, /* the first times the second: calloc */
	ALLOC_SIZE_GROWN,   /* the second, if the first is not 0: a realloc that calls malloc for the other case */
};

#endif
