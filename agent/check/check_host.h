/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `hearth check` that read files of /proc and /sys, and the declarations that they share with
 * agent/check/check.c. */
#ifndef HEARTH_AGENT_CHECK_CHECK_HOST_H
#define HEARTH_AGENT_CHECK_CHECK_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"

struct checker {
	void (*fn)(void *arg, const struct check *check);
	void *arg;
	bool any_version;
	int failed;
};

/* Texts are borrowed during the call; @advice counts only where the result is not yes. */
void checker_say(struct checker *c, const char *name, enum check_result result, const char *found, const char *means,
		 const char *advice);

/* The first line of a file of /proc or /sys, without its newline. */
bool checker_first_line(const char *path, char *line, size_t size);

/*
 * Writes the names of the capabilities that hearth uses and @effective (a mask as in /proc/PID/status) lacks into @text; two
 * of them only if @is_root. CHECK_NO when hearth cannot sample without one of them, CHECK_PARTLY when others are missing,
 * CHECK_YES.
 */
enum check_result check_capabilities_missing(uint64_t effective, bool is_root, char *text, size_t size);

/* The value of @key in @config, a kernel's configuration as text: "y", "m", a number; "" when it is not set. */
void check_config_value(const char *config, const char *key, char *value, size_t size);

void check_kernel_config(struct checker *c);
void check_privileges(struct checker *c);
void check_security(struct checker *c);
void check_settings(struct checker *c);
void check_pids(struct checker *c, const char *proc);
void check_surroundings(struct checker *c);
/* agent/check/check_runtimes.c */
void check_runtimes(struct checker *c);

#endif
