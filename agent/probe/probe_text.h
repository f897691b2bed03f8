/* SPDX-License-Identifier: Apache-2.0 */
/* A probe in a user's words, taken apart: uprobe:FILE:FUNCTION+OFFSET and its like. Nothing is looked up. No state. */
#ifndef HEARTH_AGENT_PROBE_PROBE_TEXT_H
#define HEARTH_AGENT_PROBE_PROBE_TEXT_H

#include "agent/probe/probe.h"

enum { PROBE_FILE_BYTES = 1024, PROBE_NAME_BYTES = 2048 };

struct probe_text {
	enum probe_type type;
	char file[PROBE_FILE_BYTES];	 /* "": the kernel */
	char provider[PROBE_FILE_BYTES]; /* of usdt; "": any */
	char name[PROBE_NAME_BYTES];	 /* a function or an event, or a pattern of them; "": it is given by its address */
	uint64_t offset;		 /* from the function's begin, or the address */
	uint32_t arg_cnt;		 /* arguments that are wanted, PROBE_ARGS at most, by number */
	uint8_t args[PROBE_ARGS];
};

/* 0, or -EINVAL with @err filled: what is wrong, and what would be right. */
int probe_text_parse(const char *text, struct probe_text *ret, struct agent_error *err);

/* May @name stand for several names? Names have such characters, too: operator*. */
bool probe_is_pattern(const char *name);

/* Is @name called so, or meant by the pattern @wanted? */
bool probe_name_matches(const char *wanted, const char *name);

#endif
