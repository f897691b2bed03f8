/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles out of text, for tests. One sample a line, root first: "comm;main@app;read@libc.so.6;vfs_read@[kernel] 3" is seen
 * three times. Modules in brackets hold kernel code, those that end in ".go" Go code, all others native code. A frame
 * without a name ("@libfoo.so") lies at 0x1000.
 */
#ifndef HEARTH_TESTS_TEXT_PROFILES_H
#define HEARTH_TESTS_TEXT_PROFILES_H

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/profiles_builder.h"

static const struct builder_profile_spec text_cpu_spec = {
	.scope_name = "hearth",
	.scope_version = "1",
	.sample_type = "samples",
	.sample_unit = "count",
	.period_type = "cpu",
	.period_unit = "nanoseconds",
	.period = 50000000,
};

enum { TEXT_START_S = 1000, TEXT_INTERVAL_S = 5 };

/* For AUTO(). */
static inline void free_builder(struct builder **b)
{
	builder_free(*b);
}

static inline void put_profiles(struct profiles **p)
{
	profiles_put(*p);
}

static inline struct str text_str(const char *s)
{
	return (struct str){ s, (uint32_t)strlen(s) };
}

static inline int32_t text_frame(struct builder *b, char *frame)
{
	char *module = strchr(frame, '@');
	const char *type = "native";
	struct profile_line line = { 0 };
	int32_t type_attribute, mapping = 0;

	if (module) {
		*module++ = '\0';
		type = *module == '[' ? "kernel" : strstr(module, ".go") ? "go" : "native";
		mapping = builder_mapping(b, 0, 0, 0, builder_string_z(b, module), NULL, 0);
	}
	type_attribute = builder_attribute_string(b, "profile.frame.type", text_str(type));
	line.function_index = builder_function(b, builder_string_z(b, frame), 0, 0, 0);
	return builder_location(b, mapping, 0x1000, &line, *frame != '\0', &type_attribute, 1);
}

static inline void text_sample(struct builder *b, char *line, uint64_t start_unix_ns)
{
	char *count = strrchr(line, ' '), *rest = line, *frame;
	int32_t stack[4096], attribute;
	uint32_t depth = 0, profile = builder_profile(b, builder_resource(b, NULL, 0), &text_cpu_spec);

	*count++ = '\0';
	attribute = builder_attribute_string(b, "thread.name", text_str(strsep(&rest, ";")));
	while ((frame = strsep(&rest, ";")) && depth < ARRAY_LEN(stack))
		stack[ARRAY_LEN(stack) - ++depth] = text_frame(b, frame);
	for (int n = atoi(count); n > 0; n--)
		builder_event(b, profile, builder_stack(b, &stack[ARRAY_LEN(stack) - depth], depth), &attribute, 1, 0,
			      start_unix_ns + (uint64_t)n, false, 0);
}

/* The profiles of @text, seen in the interval number @interval. NULL for want of memory. */
static inline struct profiles *text_profiles(const char *text, unsigned interval)
{
	uint64_t start = (TEXT_START_S + (uint64_t)interval * TEXT_INTERVAL_S) * 1000000000ull;
	struct builder *b = builder_new();
	AUTO_FREE char *copy = strdup(text);
	struct profiles *p = NULL;
	char *rest = copy, *line;

	while (b && (line = strsep(&rest, "\n"))) {
		if (*line)
			text_sample(b, line, start);
	}
	if (b && builder_freeze(b, start, start + TEXT_INTERVAL_S * 1000000000ull, &p) < 0)
		p = NULL;
	builder_free(b);
	return p;
}

#endif
