/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The work that threads say they do, as records have it, and how the kernel's half finds it (bpf/context/context.bpf.c). A
 * part of bpf/event.h, which includes it.
 */
#ifndef HEARTH_BPF_CONTEXT_THREAD_CONTEXT_H
#define HEARTH_BPF_CONTEXT_THREAD_CONTEXT_H

#include <linux/types.h>

/* A label, whose key and value are cut to so many bytes. Both follow the head, padded with 0 to whole words each. */
enum { MAX_LABELS = 16, LABEL_KEY_BYTES = 64, LABEL_VALUE_BYTES = 128 };
#define LABEL_HEAD(key_bytes, value_bytes) ((__u64)(key_bytes) | (__u64)(value_bytes) << 16)
#define LABEL_KEY_OF(head)		   ((__u16)(head))
#define LABEL_VALUE_OF(head)		   ((__u16)((head) >> 16))

/* The head of a thread's context (OTEP 4947, "Thread-local context record"); at most so many bytes of attributes follow it
 * there, as the whole should have no more than 640. */
enum { CONTEXT_HEAD_BYTES = 28, MAX_CONTEXT_BYTES = 640 - CONTEXT_HEAD_BYTES };

struct span_info {
	__u8 trace[16], span[8]; /* as on the wire; all 0: not told */
	__u64 flags;		 /* W3C's, of the trace */
};

/* A value of the map in which OBI notes spans (open-telemetry/opentelemetry-ebpf-instrumentation,
 * bpf/common/trace_parent.h): the bytes as on the wire. */
struct noted_span {
	__u64 trace[2], span;
};

/* chain_state.style of CONTEXT_ID. */
enum context_style {
	CONTEXT_RECORD, /* a variable of the thread points to a record (OTEP 4947) */
	/* runtime/pprof's labels of goroutines, since Go 1.24 and before; chain_state.offset by enum context_go. */
	CONTEXT_GO_LIST,
	CONTEXT_GO_MAP,
};

/* The place below the thread pointer where a thread has its g (cpu_go_g); where m has its goroutine, and g its labels and
 * its number. */
enum context_go { CONTEXT_GO_PLACE, CONTEXT_GO_CURG, CONTEXT_GO_LABELS, CONTEXT_GO_ID };
enum { MAX_GO_LABELS_OFFSET = 504 };

_Static_assert(sizeof(struct span_info) == 32, "struct span_info has a fixed size");

#endif
