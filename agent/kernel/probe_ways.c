/* SPDX-License-Identifier: Apache-2.0 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/kernel/probe_ways.h"
#include "base/cleanup.h"

enum { UPROBE_MULTI_RETURN = 1 /* BPF_F_UPROBE_MULTI_RETURN */ };

uint32_t probe_unit(const char *name)
{
	char path[96];
	AUTO_FCLOSE FILE *f = NULL;
	unsigned number = 0;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
	f = fopen(path, "re");
	return f && fscanf(f, "%u", &number) == 1 ? number : 0;
}

/* BPF_LINK_CREATE for uprobe_multi, which this libbpf does not know: union bpf_attr's link_create. */
struct multi_attr {
	uint32_t program, target, attach_type, flags;
	uint64_t path, offsets, semaphores, cookies;
	uint32_t count, multi_flags, pid, pad;
};

int probe_multi_link(int program, const char *path, const uint64_t *offsets, const uint64_t *semaphores,
		     const uint64_t *cookies, uint32_t count, bool is_return)
{
	struct multi_attr attr = {
		.program = (uint32_t)program,
		.attach_type = UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.semaphores = (uintptr_t)semaphores,
		.cookies = (uintptr_t)cookies,
		.count = count,
		.multi_flags = is_return ? UPROBE_MULTI_RETURN : 0,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

/* A kernel that knows the link complains that a folder is no file; others know no such program. */
static bool has_multi(void)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)UPROBE_MULTI);
	AUTO_CLOSE int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", instructions, ARRAY_LEN(instructions),
					       &opts);
	const uint64_t offset = 0;

	return program >= 0 && probe_multi_link(program, "/", &offset, NULL, NULL, 1, false) == -EBADF;
}

/* Tries one at a function that all kernels have and that nobody calls here. */
static bool has_trampolines(void)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "kernel_restart", BTF_KIND_FUNC) : -1;
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
	AUTO_CLOSE int program = -1;
	AUTO_CLOSE int link = -1;

	opts.attach_btf_id = id > 0 ? (uint32_t)id : 0;
	program = id > 0 ? bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "GPL", instructions, ARRAY_LEN(instructions), &opts)
			 : -1;
	link = program >= 0 ? bpf_raw_tracepoint_open(NULL, program) : -1;
	btf__free(btf);
	return link >= 0;
}

bool probe_way_is_there(enum probe_way way)
{
	switch (way) {
	case PROBE_WAY_UPROBE:
		return probe_unit("uprobe");
	case PROBE_WAY_KPROBE:
		return probe_unit("kprobe");
	case PROBE_WAY_MULTI:
		return has_multi();
	default:
		return has_trampolines();
	}
}
