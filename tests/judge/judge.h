/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An independent judge of the stack walk. A program is run under ptrace and stopped again and again, at random and at every
 * instruction of random stretches; at each stop hearth's walk and elfutils' libdwfl start from the same registers and the
 * same memory. A third voice decides where they differ: what the program itself did, its calls and returns as they were
 * stepped over. This header: what those parts share. One thread.
 */
#ifndef HEARTH_TESTS_JUDGE_H
#define HEARTH_TESTS_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/event.h"

/* The frames of one stop, innermost first, exact ones with FRAME_EXACT. */
struct chain {
	uint64_t pcs[MAX_USER_FRAMES];
	uint32_t count;
	const char *end; /* how it ended, a literal */
};

/* --- memory.c: the stopped program's memory, every byte read once a stop, so that all see the same --- */

struct memory;

struct memory *memory_new(pid_t pid);
void memory_free(struct memory *m);

/* The program ran: what was read is out of date. */
void memory_forget(struct memory *m);

/* 0, or not 0 when some of it cannot be read. */
int memory_read(struct memory *m, uint64_t addr, void *dst, size_t len_bytes);

/* As much of [@addr, @addr + @len_bytes) as can be read from its start on; the number of bytes. */
size_t memory_copy(struct memory *m, uint64_t addr, void *dst, size_t len_bytes);

/* --- kernel.c: the caches, the walk and the records of bpf/, in plain memory --- */

/* What the kernel knows of a stopped thread. */
struct kernel_thread {
	uint64_t regs[USER_REGS]; /* DWARF order */
	uint64_t fs_base;
	uint64_t alternate_sp, alternate_bytes; /* its signal stack */
	uint64_t area_end;			/* of the memory area that holds the stack pointer */
	uint64_t start_stack;			/* where the program's first stack began; 0: not told */
	uint64_t time_ns;			/* of the sample; 0: any */
	uint32_t asid;
	bool by_tail_calls; /* the programs for kernels without bpf_loop */
};

/* Walks as the kernel does with what it was told, and hands out the records it would send. @is_miss: as if it had missed. */
void kernel_sample(struct memory *m, const struct kernel_thread *thread, bool is_miss,
		   void (*on_record)(void *arg, const struct record *record), void *arg);

/* Forgets everything. */
void kernel_reset(void);

/* --- hearth.c: the whole of hearth's walk --- */

struct hearth;

struct hearth *hearth_new(pid_t pid, struct memory *m);
void hearth_free(struct hearth *h);

/* The program's mappings may have changed. */
void hearth_reread(struct hearth *h);

/* Fills in @thread's asid. */
void hearth_walk(struct hearth *h, struct kernel_thread *thread, struct chain *chain);

/* Walks in user space that did not meet the kernel's frames. */
uint64_t hearth_mismatches(const struct hearth *h);

/* The name of the file that is mapped at @addr, without its folders; "?" where none is. */
const char *hearth_module(const struct hearth *h, uint64_t addr);

/* --- libdwfl.c: the judge --- */

struct libdwfl;

struct libdwfl *libdwfl_new(pid_t pid, struct memory *m);
void libdwfl_free(struct libdwfl *d);
void libdwfl_reread(struct libdwfl *d);
void libdwfl_walk(struct libdwfl *d, const uint64_t *regs, struct chain *chain);

/* The function at @addr, "?" when it has no name. Valid until the next reread. */
const char *libdwfl_name(struct libdwfl *d, uint64_t addr, uint64_t *off_ret);

#endif
