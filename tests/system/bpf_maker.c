/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a BPF program of its own and lets the kernel run it for SECONDS: bpf_maker NAME SECONDS. The kernel calls the code
 * bpf_prog_TAG_NAME. Exit status 77 where that is not allowed.
 */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { INSTRUCTIONS = 4000 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

int main(int argc, char **argv)
{
	static struct bpf_insn code[INSTRUCTIONS];
	static const char licence[] = "GPL";
	char packet[64] = { 0 };
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
				.insn_cnt = INSTRUCTIONS,
				.insns = (uintptr_t)code,
				.license = (uintptr_t)licence };
	double end = argc == 3 ? now() + strtod(argv[2], NULL) : 0;
	long fd;

	if (argc != 3)
		return 2;
	(void)setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }); /* before 5.11 programs count */
	code[0] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K };
	for (int i = 1; i < INSTRUCTIONS - 1; i++) /* r0 = r0 * 5, a chain of it */
		code[i] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MUL | BPF_K, .imm = 5 + i % 3 };
	code[INSTRUCTIONS - 1] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	strncpy(load.prog_name, argv[1], sizeof(load.prog_name) - 1);
	fd = bpf(BPF_PROG_LOAD, &load);
	if (fd < 0)
		return 77;
	while (now() < end) {
		union bpf_attr run = { .test = { .prog_fd = (uint32_t)fd,
						 .data_in = (uintptr_t)packet,
						 .data_size_in = sizeof(packet),
						 .repeat = 1000 } };

		if (bpf(BPF_PROG_TEST_RUN, &run))
			return 77;
	}
	return 0;
}
