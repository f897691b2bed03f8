/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes: places in programs and in the kernel at which each passing is an event. They are found once, before the agent
 * starts, from the words of users (-e uprobe:FILE:FUNCTION and its like); agent/kernel/sampler_probes.c attaches to them. No
 * state; the caller's thread.
 */
#ifndef HEARTH_AGENT_PROBE_PROBE_H
#define HEARTH_AGENT_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/probe_args.h"

struct agent_error;

/* X(name, word, is it in a file of user space?, does it stand where a function returns?) */
#define PROBE_TYPES(X)                         \
	X(UPROBE, "uprobe", true, false)       \
	X(URETPROBE, "uretprobe", true, true)  \
	X(USDT, "usdt", true, false)           \
	X(KPROBE, "kprobe", false, false)      \
	X(KRETPROBE, "kretprobe", false, true) \
	X(FENTRY, "fentry", false, false)      \
	X(FEXIT, "fexit", false, true)

#define X(name, word, is_user, is_return) PROBE_##name,
enum probe_type { PROBE_TYPES(X) PROBE_TYPE_MAX };
#undef X

struct probe_type_info {
	const char *word;
	bool is_user, is_return;
};

extern const struct probe_type_info probe_types[PROBE_TYPE_MAX];

enum {
	PROBES_A_PATTERN = 1000, /* functions that one word of users may mean */
	PROBES_OF_ALL = 4000,
};

enum { PROBE_ARG_RETURN = 255 }; /* what the function returns, in place of an argument's number */

struct probe {
	enum probe_type type;
	char *target;	    /* owned: the file, or the kernel's function */
	uint64_t offset;    /* of the place in the file, or from the function's begin */
	uint64_t semaphore; /* of usdt: offset in the file of the counter that turns it on; 0: it has none */
	char *label;	    /* owned: "uprobe:FILE:FUNCTION" with FILE as users wrote it */
	bool is_of_pattern; /* one of many, of which some may be refused */
	struct probe_args args;
	uint8_t arg_numbers[PROBE_ARGS]; /* of these; PROBE_ARG_RETURN */
};

struct probe_set {
	struct probe *list;
	uint32_t count, cap;
};

/* Does @text begin as a probe does? */
bool probe_is_text(const char *text);

/* Finds the places that the @count @texts mean. 0; -EINVAL, -ENOENT, -errno with @err filled; -ENOMEM. */
int probes_find(const char *const *texts, size_t count, struct probe_set **ret, struct agent_error *err);
void probe_set_free(struct probe_set *set);

#endif
