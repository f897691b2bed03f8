/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sampler to compare hearth's with (hearth bench, make bench). It leaves walking to the kernel's bpf_get_stack, so it
 * needs programs built with frame pointers. Like hearth's sampler it takes the kernel part and the user part and sends a
 * record as long as its content.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>

enum { MAX_FRAMES = 127 };

struct sample {
	__u64 time_ns;
	__u64 pid_tgid;
	__s64 kernel_bytes;
	__s64 user_bytes; /* the fourth word: fpwalk.c reads it */
	__u64 frames[2 * MAX_FRAMES];
};

const volatile __u8 no_stack; /* the record has neither part */

/* The first 8 bytes of the name of the threads that are sampled; 0: all threads are sampled. */
const volatile __u64 only_comm;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

SEC("perf_event")
int fp_sample(struct bpf_perf_event_data *ctx)
{
	__u32 zero = 0;
	struct sample *s = bpf_map_lookup_elem(&scratch, &zero);
	__u64 len = sizeof(*s) - sizeof(s->frames);
	__u64 comm[2];

	if (only_comm && (bpf_get_current_comm(comm, sizeof(comm)) || comm[0] != only_comm))
		return 0;
	if (!s)
		return 0;
	s->time_ns = bpf_ktime_get_ns();
	s->pid_tgid = bpf_get_current_pid_tgid();
	s->kernel_bytes = s->user_bytes = 0;
	if (no_stack) {
		bpf_ringbuf_output(&ring, s, sizeof(*s) - sizeof(s->frames), BPF_RB_NO_WAKEUP);
		return 0;
	}
	s->kernel_bytes = bpf_get_stack(ctx, s->frames, MAX_FRAMES * sizeof(__u64), 0);
	if (s->kernel_bytes < 0)
		s->kernel_bytes = 0;
	if (s->kernel_bytes > (__s64)(MAX_FRAMES * sizeof(__u64)))
		return 0;
	s->user_bytes = bpf_get_stack(ctx, (char *)s->frames + s->kernel_bytes, MAX_FRAMES * sizeof(__u64),
				      BPF_F_USER_STACK);
	if (s->user_bytes < 0)
		s->user_bytes = 0;
	len += s->kernel_bytes + s->user_bytes;
	if (len <= sizeof(*s))
		bpf_ringbuf_output(&ring, s, len, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Measures the cost of being called at all. */
SEC("perf_event")
int empty_sample(struct bpf_perf_event_data *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
