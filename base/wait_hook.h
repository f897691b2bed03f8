/* SPDX-License-Identifier: Apache-2.0 */
/* A function that whoever waits, or works for long, calls now and then, so that other work goes on meanwhile. It runs in the
 * thread of the one who waits. Each owner of a wait says what the function must not call. */
#ifndef HEARTH_BASE_WAIT_HOOK_H
#define HEARTH_BASE_WAIT_HOOK_H

#include <stddef.h>

struct wait_hook {
	void (*run)(void *arg); /* or NULL: nothing goes on */
	void *arg;
};

/* Runs @hook, if it is there and has a function. */
static inline void wait_hook_run(const struct wait_hook *hook)
{
	if (hook && hook->run)
		hook->run(hook->arg);
}

#endif
