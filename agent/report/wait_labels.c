/* SPDX-License-Identifier: Apache-2.0 */
/* The names of system calls come from libseccomp, which hands out copies: each is asked for once, and stays. */
#include <seccomp.h>

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

uint32_t wait_labels_build(struct builder *b, const struct trace_event *e, int32_t *attributes)
{
	const char *syscall;
	uint32_t count = 0;

	if (!e->wait)
		return 0;
	attributes[count++] = builder_attribute_string(b, "thread.state", str_z(states[e->wait - 1]));
	syscall = name_syscall(e->syscall);
	if (syscall)
		attributes[count++] = builder_attribute_string(b, "syscall.name", str_z(syscall));
	return count;
}
