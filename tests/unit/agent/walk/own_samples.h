/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of this program: its own registers and a copy of its own stack, taken below functions whose frames differ, with
 * what glibc's backtrace() finds as the truth.
 */
#ifndef HEARTH_TESTS_UNIT_AGENT_WALK_OWN_SAMPLES_H
#define HEARTH_TESTS_UNIT_AGENT_WALK_OWN_SAMPLES_H

#include <execinfo.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/samples/record.h"

enum { STACK_BYTES = 128 << 10, MAX_TRUTH = 128 };

struct capture {
	struct sample_record record;
	struct sample_regs regs;
	struct pending_sample sample;
	uint64_t user[1]; /* the kernel found no frame */
	struct stack_area area;
	uint8_t stack[STACK_BYTES];
	void *truth[MAX_TRUTH];
	int truth_cnt;
};

static struct capture *capture;
static uint64_t stack_end;

/* Byte by byte and behind the sanitizer's back: this reads all frames up to main's, red zones too. */
__attribute__((noinline, no_sanitize("address"))) static void copy_stack(struct capture *c, uint64_t from)
{
	const volatile uint8_t *src = (const volatile uint8_t *)(uintptr_t)from;
	uint32_t bytes = stack_end - from < STACK_BYTES ? (uint32_t)(stack_end - from) : STACK_BYTES;

	for (uint32_t i = 0; i < bytes; i++)
		c->stack[i] = src[i];
	c->area = (struct stack_area){ from, bytes, c->stack };
}

__attribute__((noinline)) static void take(struct capture *c)
{
	static const int gregs[USER_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
					      REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
	ucontext_t here = { 0 };

	c->truth_cnt = backtrace(c->truth, MAX_TRUTH);
	getcontext(&here);
	for (int i = 0; i < USER_REGS; i++)
		c->regs.regs[i] = (uint64_t)here.uc_mcontext.gregs[gregs[i]];
	copy_stack(c, c->regs.regs[REG_SP]);
	c->record = (struct sample_record){ .pid = (uint32_t)getpid(), .end = END_MISS_PROC };
	c->sample.record = &c->record;
	c->sample.user = c->user;
	c->sample.regs = &c->regs;
	c->sample.areas = &c->area;
	c->sample.area_cnt = 1;
}

/* Functions whose frames differ: none but the return address, a large one, one of run-time size, a realigned one. */
#ifdef __clang__
#define FRAME_OF_ITS_OWN __attribute__((noinline, disable_tail_calls))
#else
#define FRAME_OF_ITS_OWN __attribute__((noinline, noclone, optimize("O2,omit-frame-pointer,no-optimize-sibling-calls")))
#endif

static volatile int sink;

FRAME_OF_ITS_OWN static void small_frame(void)
{
	take(capture);
	sink++;
}

FRAME_OF_ITS_OWN static void large_frame(int depth)
{
	volatile char room[3000];

	room[depth] = 1;
	if (depth)
		large_frame(depth - 1);
	else
		small_frame();
	sink += room[depth];
}

FRAME_OF_ITS_OWN static void sized_frame(size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes);

	room[0] = 1;
	large_frame(8);
	sink += room[0];
}

FRAME_OF_ITS_OWN static void aligned_frame(int n)
{
	volatile char room[128] __attribute__((aligned(64)));

	room[0] = (char)n;
	sized_frame((size_t)n * 100 + 10);
	sink += room[0];
}

/* A frame found through rbx, as hand-written code has it: only the exact rule follows that register. hand_frame(fn) calls
 * fn. */
void hand_frame(void (*fn)(void));
__asm__(".text\n"
	".type hand_frame, @function\n"
	"hand_frame:\n"
	".cfi_startproc\n"
	"push %rbx\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset 3, -16\n"
	"mov %rsp, %rbx\n"
	".cfi_def_cfa_register 3\n"
	"sub $200, %rsp\n"
	"and $-64, %rsp\n"
	"call *%rdi\n"
	"mov %rbx, %rsp\n"
	".cfi_def_cfa_register 7\n"
	"pop %rbx\n"
	".cfi_def_cfa_offset 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size hand_frame, . - hand_frame\n");

FRAME_OF_ITS_OWN static void use_registers(void)
{
	__asm__ volatile("xor %%ebx, %%ebx\n\txor %%r12d, %%r12d" ::: "rbx", "r12");
	large_frame(10);
	__asm__ volatile("" ::: "rbx", "r12");
}

static int compare_deep(const void *a, const void *b)
{
	aligned_frame(*(const int *)a + *(const int *)b);
	return 0;
}

static void on_signal(int sig)
{
	large_frame(2);
	sink += sig;
}

static void through_calls(void)
{
	int numbers[] = { 2, 1 };

	qsort(numbers, 2, sizeof(numbers[0]), compare_deep);
}

#endif
