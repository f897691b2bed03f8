/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of code without a name: what they say is read back, and all addresses of one function are one line of a table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "proto/profiles_builder.h"
#include "proto/sums/top.h"
#include "proto/unnamed.h"

static void free_top(struct top **t)
{
	top_free(*t);
}

static void put_profiles(struct profiles **p)
{
	profiles_put(*p);
}

static void test_texts(void **state)
{
	static const struct {
		struct unnamed u;
		const char *text;
	} cases[] = {
		{ { { "zstd", 4 }, { "", 0 }, 0x97390, 0x97380, 0xd80, false }, "zstd+0x97380..0x98100" },
		{ { { "zstd", 4 }, { "", 0 }, 0, 0x97380, 0xd80, false }, "zstd+0x97380..0x98100" },
		{ { { "zstd", 4 }, { "", 0 }, 0x98100, 0x97380, 0xd80, false }, "zstd (no symbols)" }, /* not in it */
		{ { { "zstd", 4 }, { "", 0 }, 5, UINT64_MAX, 0xd80, false }, "zstd (no symbols)" },
		{ { { "zstd", 4 }, { "", 0 }, 0x97390, 0, 0, false }, "zstd (no symbols)" },
		{ { { "anon", 4 }, { "java", 4 }, 0x7f00, 0, 0, true }, "[JIT code] java" },
		{ { { "anon", 4 }, { "", 0 }, 0x7f00, 0, 0, true }, "[JIT code]" },
		{ { { "", 0 }, { "", 0 }, 0x7f00, 0x7e00, 0x200, false }, "[unknown]" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY, again = BUF_EMPTY;
		struct unnamed u;

		unnamed_print(&cases[i].u, &out);
		assert_string_equal(buf_text(&out), cases[i].text);
		assert_true(unnamed_read(str_z(cases[i].text), &u));
		unnamed_print(&u, &again);
		assert_string_equal(buf_text(&again), cases[i].text);
	}
}

static void test_names(void **state)
{
	static const char *const names[] = { "main",	      "operator+",   "f+0x",	 "f+0x12..", "f+0x12..0x12",
					     "f+0x12...0x13", "a..b",	     "+0x12",	 "0x1..0x2", "f+0x11112222333344445",
					     " (no symbols)", "[JIT code]r", "[unknown", "f+0xAB",   "" };
	struct unnamed u;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_false(unnamed_read(str_z(names[i]), &u));
	assert_true(unnamed_read(STR("a+b+0x12"), &u));
	assert_int_equal(u.address, 0x12);
	assert_int_equal(u.module.len, 3);
	assert_true(unnamed_read(STR("0xffff"), &u));
	assert_int_equal(u.module.len, 0);
}

static int32_t add_location(struct builder *b, int32_t mapping, uint64_t address, int64_t start, int64_t size)
{
	int32_t attributes[] = { builder_attribute_int(b, CODE_START_KEY, start),
				 builder_attribute_int(b, CODE_SIZE_KEY, size) };

	return builder_location(b, mapping, address, NULL, 0, attributes, size ? 2 : 0);
}

/* Many addresses, few rows. */
static void test_top(void **state)
{
	const struct builder_profile_spec spec = { .scope_name = "test",
						   .scope_version = "1",
						   .sample_type = "samples",
						   .sample_unit = "count",
						   .period_type = "",
						   .period_unit = "" };
	struct builder *b = builder_new();
	int32_t java = builder_attribute_string(b, CODE_PROCESS_KEY, STR("java"));
	int32_t zstd = builder_mapping(b, 0, 0, 0, builder_string_z(b, "/usr/bin/zstd"), NULL, 0);
	int32_t jit = builder_mapping(b, 0, 0, 0, builder_string_z(b, ANONYMOUS_PATH), &java, 1);
	uint32_t profile = builder_profile(b, builder_resource(b, NULL, 0), &spec);
	AUTO(put_profiles) struct profiles *p = NULL;
	AUTO(free_top) struct top *t = top_new();
	const struct top_row *rows;
	uint32_t count;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		int32_t location = i % 10 < 5	? add_location(b, zstd, 0x1000 + i, 0x1000, 1000)
				   : i % 10 < 8 ? add_location(b, jit, 0x7f0000001000 + i, 0, 0)
						: add_location(b, zstd, 0x9000 + i, 0, 0);

		builder_event(b, profile, builder_stack(b, &location, 1), NULL, 0, 0, 1 + i, false, 0);
	}
	assert_int_equal(builder_freeze(b, 1, 2, &p), 0);
	builder_free(b);
	assert_int_equal(top_add(t, p), 0);
	rows = top_rows(t, &count);
	assert_int_equal(count, 3);
	assert_string_equal(rows[0].name, "zstd+0x1000..0x13e8");
	assert_int_equal(rows[0].all.self, 500);
	assert_string_equal(rows[1].name, "[JIT code] java");
	assert_string_equal(rows[2].name, "zstd (no symbols)");
	assert_int_equal(p->dict.location_count, 1 + 1000); /* the addresses stay */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
