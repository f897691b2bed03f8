/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses go, functions and places in files stay, and the original is what it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "proto/profiles_builder.h"
#include "proto/profiles_hide.h"
#include "proto/unnamed.h"

#define KERNEL	0xffffffff81234567ull
#define MAPPED	0x7f1234560000ull
#define OFFSET	0x1000ull
#define OF_FILE 0x4d1000ull
#define JIT	0x7faabbccdd00ull

static const struct builder_profile_spec spec = { .scope_name = "hearth",
						  .scope_version = "",
						  .sample_type = "samples",
						  .sample_unit = "count",
						  .period_type = "",
						  .period_unit = "" };

static int32_t location(struct builder *b, const char *path, uint64_t start, uint64_t limit, uint64_t address)
{
	int32_t mapping = path ? builder_mapping(b, start, limit, OFFSET, builder_string_z(b, path), NULL, 0) : 0;
	struct profile_line line = { .function_index = builder_function(b, builder_string_z(b, "function"), 0, 0, 0),
				     .line = 7 };
	int32_t attribute = builder_attribute_int(b, CODE_START_KEY, (int64_t)KERNEL);

	return builder_location(b, mapping, address, &line, 1, &attribute, 1);
}

static struct profiles *make(void)
{
	struct builder *b = builder_new();
	struct profiles *p = NULL;
	int32_t frames[] = { location(b, "vmlinux", 0, 0, KERNEL),
			     location(b, "/usr/lib/libc.so.6", MAPPED, MAPPED + 0x2000, MAPPED + 0x123),
			     location(b, "/usr/bin/program", 0, 0, OF_FILE), location(b, ANONYMOUS_PATH, 0, 0, JIT),
			     location(b, NULL, 0, 0, JIT + 1) };
	uint32_t resource = builder_resource(b, NULL, 0), profile = builder_profile(b, resource, &spec);

	builder_event(b, profile, builder_stack(b, frames, ARRAY_LEN(frames)), NULL, 0, 0, 1000, false, 0);
	assert_int_equal(builder_freeze(b, 0, 2000, &p), 0);
	builder_free(b);
	return p;
}

/* Frame @i of the only stack. */
static const struct profile_location *frame(const struct profiles *p, uint32_t i)
{
	const struct sample *s = &p->resources[0].scopes[0].profiles[0].samples[0];

	return &p->dict.locations[p->dict.stacks[s->stack_index].items[i]];
}

static void test_hide(void **state)
{
	static const uint64_t before[] = { KERNEL, MAPPED + 0x123, OF_FILE, JIT, JIT + 1 },
			      after[] = { 0, 0x123, OF_FILE, 0, 0 };
	struct profiles *p = make(), *hidden = NULL;
	const struct profile_mapping *m;

	(void)state;
	assert_int_equal(profiles_hide_addresses(p, &hidden), 0);
	for (uint32_t i = 0; i < ARRAY_LEN(before); i++) {
		assert_int_equal(frame(p, i)->address, before[i]);
		assert_int_equal(frame(hidden, i)->address, after[i]);
		assert_int_equal(frame(hidden, i)->line_count, 1);
		assert_int_equal(frame(hidden, i)->lines[0].line, 7);
	}
	m = &hidden->dict.mappings[frame(hidden, 1)->mapping_index];
	assert_int_equal(m->memory_start, 0);
	assert_int_equal(m->memory_limit, 0x2000);
	assert_int_equal(m->file_offset, OFFSET);
	assert_int_equal(p->dict.mappings[frame(p, 1)->mapping_index].memory_start, MAPPED);
	for (uint32_t i = 0; i < hidden->dict.attribute_count; i++)
		assert_false(hidden->dict.attributes[i].value.kind == VALUE_INT &&
			     hidden->dict.attributes[i].value.integer < 0);
	profiles_put(p); /* the other keeps it */
	assert_int_equal(frame(hidden, 1)->address, 0x123);
	profiles_put(hidden);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hide) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
