/* SPDX-License-Identifier: Apache-2.0 */
/* The names of system calls come from libseccomp, which hands out copies: each is asked for once, and stays. */
#include <seccomp.h>
#include <stdio.h>

#include "agent/report/wait_labels.h"

#define X(name, text) text,
static const char *const states[] = { WAIT_STATES(X) };
#undef X

enum { MAX_SYSCALLS = 1024 };

static const char *name_syscall(int32_t number)
{
	static const char *names[MAX_SYSCALLS];

	if (number < 0 || number >= MAX_SYSCALLS)
		return NULL;
	if (!names[number])
		names[number] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
	return names[number];
}

int32_t wait_labels_separator(struct builder *b, const struct waker *waker, int32_t type)
{
	struct profile_line line = { 0 };
	char name[sizeof(WAKER_NAME) + COMM_BYTES];

	snprintf(name, sizeof(name), WAKER_NAME, waker->is_irq ? "an interrupt" : waker->comm);
	line.function_index = builder_function(b, builder_string_z(b, name), 0, 0, 0);
	return builder_location(b, 0, 0, &line, 1, &type, 1);
}

/* Of a sample of a waker: the thread that ended the wait. */
static uint32_t build_waker(struct builder *b, const struct waker *waker, int32_t *attributes)
{
	if (waker->is_irq) {
		attributes[0] = builder_attribute_string(b, "waker.thread.name", STR("[interrupt]"));
		return 1;
	}
	attributes[0] = builder_attribute_string(b, "waker.thread.name", str_z(waker->comm));
	attributes[1] = builder_attribute_int(b, "waker.thread.id", waker->tid);
	return waker->tid ? 2 : 1;
}

uint32_t wait_labels_build(struct builder *b, const struct traces *t, const struct trace_event *e, int32_t *attributes)
{
	const char *syscall;
	uint32_t count = 0;

	if (!e->wait)
		return 0;
	attributes[count++] = builder_attribute_string(b, "thread.state", str_z(states[e->wait - 1]));
	syscall = name_syscall(e->syscall);
	if (syscall)
		attributes[count++] = builder_attribute_string(b, "syscall.name", str_z(syscall));
	if (e->target)
		attributes[count++] = builder_attribute_string(b, "wait.target", str_z(traces_target(t, e->target - 1)));
	if (e->waker)
		count += build_waker(b, wakers_get(traces_wakers(t), e->waker - 1), &attributes[count]);
	return count;
}
