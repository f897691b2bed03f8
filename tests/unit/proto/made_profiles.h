/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of one interval and one program, for tests of what makes and orders them. Included after cmocka. */
#ifndef HEARTH_TESTS_MADE_PROFILES_H
#define HEARTH_TESTS_MADE_PROFILES_H

#include "tests/unit/proto/text_profiles.h"

enum { S = 1000000000 };

static inline struct profiles *freeze(struct builder *b)
{
	struct profiles *p = NULL;

	assert_int_equal(builder_freeze(b, 10ull * S, 15ull * S, &p), 0);
	assert_non_null(p);
	return p;
}

static inline uint32_t cpu_profile(struct builder *b, const char *executable)
{
	struct key_value kv = { .key = STR("process.executable.name"),
				.value = { .kind = VALUE_STRING, .string = text_str(executable) } };

	return builder_profile(b, builder_resource(b, &kv, 1), &text_cpu_spec);
}

#endif
