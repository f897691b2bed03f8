/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who ended waits, as samples tell, each with its stack. The sample of the wait itself, which the thread gave that was
 * woken, finds its waker here by the thread and the moment of the waking. Both come in one interval, but for those that an
 * interval's end has between them. A waker is used once. Agent's thread.
 */
#ifndef HEARTH_AGENT_SAMPLES_WAKERS_H
#define HEARTH_AGENT_SAMPLES_WAKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

/* The frame between the stack of a wait and that of who ended it: its type, and its name, with the waker's. */
#define WAKER_TYPE "waker"
#define WAKER_NAME "[woken by %s]"

struct process;
struct wakers;

struct waker {
	struct process *process; /* a reference */
	uint64_t woken_ns;
	uint64_t value; /* of the wait */
	uint32_t woken_tid;
	uint32_t kind;	/* in the session's list of kinds: of samples of wakers */
	uint32_t trace; /* stack of the waker; in the interval's traces */
	uint32_t tid;	/* waker's */
	bool is_irq;	/* an interrupt; its thread, process and name mean nothing */
	bool is_used;
	char comm[COMM_BYTES];
};

struct wakers *wakers_new(void);
void wakers_free(struct wakers *w);

/* Keeps a copy of @waker and takes over its reference. 0 or -ENOMEM (the reference stays the caller's). */
int wakers_add(struct wakers *w, const struct waker *waker);

/* Finds the waker, not used yet, of the thread @tid at @woken_ns, and marks it as used. Its number; UINT32_MAX: there is
 * none. */
uint32_t wakers_use(struct wakers *w, uint32_t tid, uint64_t woken_ns);

uint32_t wakers_count(const struct wakers *w);
const struct waker *wakers_get(const struct wakers *w, uint32_t number);

/* Forgets all. */
void wakers_reset(struct wakers *w);

size_t wakers_memory_bytes(const struct wakers *w);

#endif
