/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function that is called over and over: "hits ROUNDS" prints the best time of a call, in nanoseconds, of ROUNDS rounds.
 * "hits ROUNDS empty" puts a probe there itself, with a BPF program that does nothing: what the trap alone costs. Root.
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 20000 };

extern const char __executable_start; /* the linker's */

/* Begins with an instruction that the kernel need not single-step. */
__attribute__((noinline, noclone)) void hit(void)
{
	__asm__ volatile("nop");
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int load_empty(void)
{
	struct bpf_insn code[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
				   { .code = BPF_JMP | BPF_EXIT } };
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_KPROBE,
				.insns = (uint64_t)(uintptr_t)code,
				.insn_cnt = sizeof(code) / sizeof(code[0]),
				.license = (uint64_t)(uintptr_t) "GPL" };

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int probe(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .sample_period = 1 };
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	int program = load_empty(), event;

	if (!f || fscanf(f, "%u", &attr.type) != 1 || program < 0)
		return -1;
	fclose(f);
	attr.config1 = (uint64_t)(uintptr_t) "/proc/self/exe";
	attr.config2 = (uint64_t)((uintptr_t)hit -
				  (uintptr_t)&__executable_start); /* its segments lie in the file as in memory */
	event = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
	return event < 0 || ioctl(event, PERF_EVENT_IOC_SET_BPF, program) || ioctl(event, PERF_EVENT_IOC_ENABLE, 0) ? -1 : 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10;
	double best = 1e12;

	if (argc > 2 && probe()) {
		perror("hits: cannot probe itself");
		return 1;
	}
	for (int round = 0; round < rounds; round++) {
		double start = now_ns(), each;

		for (int i = 0; i < CALLS; i++)
			hit();
		each = (now_ns() - start) / CALLS;
		best = each < best ? each : best;
	}
	printf("%.1f\n", best);
	return 0;
}
