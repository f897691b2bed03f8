/* SPDX-License-Identifier: Apache-2.0 */
/* Places of probes in a file of user space, and in the kernel: by functions' names, addresses, and USDT's notes. No state.
 */
#ifndef HEARTH_AGENT_PROBE_USER_PLACES_H
#define HEARTH_AGENT_PROBE_USER_PLACES_H

#include "agent/probe/probe_text.h"

/* A place that was found. */
struct probe_found {
	uint64_t addr, semaphore; /* ELF addresses; of the kernel: from the function's begin */
	uint64_t size_bytes;	  /* of the function; 0: not known */
	bool is_indirect;
	const char *arguments; /* of an event of USDT, in the file; NULL: it is a function */
	char *name;	       /* owned; as people read it */
};

struct probe_places {
	struct probe_found *list; /* owned */
	size_t count, cap;
	size_t matched; /* with those that there was no room for, more than PROBES_A_PATTERN */
	bool no_memory;
};

void probe_places_fini(struct probe_places *p);

/* Adds one, unless there is one at @addr already, whose name stays. */
void probe_places_add(struct probe_places *p, uint64_t addr, const char *name, struct probe_found **ret);

/* Adds to @set the places of @t, a user's @text, in the file @path. 0; -ENOENT, -EINVAL, -errno with @err filled; -ENOMEM.
 */
int probe_user_places(const char *text, const struct probe_text *t, const char *path, struct probe_set *set,
		      struct agent_error *err);

/* The same for the kernel's functions: agent/probe/kernel_places.c. @symbols: the list, /proc/kallsyms when NULL. */
int probe_kernel_places(const char *text, const struct probe_text *t, const char *symbols, struct probe_set *set,
			struct agent_error *err);

/* Fills in the arguments that @t wants of @probe; @arguments: of an event of USDT, else NULL. 0; -EINVAL with @err filled.
 */
int probe_find_arguments(const char *text, const struct probe_text *t, const char *arguments, struct probe *probe,
			 struct agent_error *err);

/* Adds a probe; @target and @label are copied. 0; -ENOMEM. */
int probe_set_add(struct probe_set *set, const struct probe *probe);

#endif
