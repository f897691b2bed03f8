/* SPDX-License-Identifier: Apache-2.0 */
/* The report on modules against a golden file: mappings of one file counted as one, what a later one says of it, the order,
 * and whom there is advice for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/sums/modules.h"
#include "proto/profiles_builder.h"
#include "tests/unit/proto/golden.h"

static const struct builder_profile_spec spec = {
	.scope_name = "test",
	.scope_version = "1",
	.sample_type = "samples",
	.sample_unit = "count",
	.period_type = "",
	.period_unit = "",
};

static struct builder *builder;

static struct str str_of(const char *text)
{
	return (struct str){ text, (uint32_t)strlen(text) };
}

/* A frame in a mapping at @start of the file @path; no build id or source where it is NULL. */
static int32_t frame(const char *path, uint64_t start, const char *build_id, const char *source, const char *function)
{
	struct profile_line line = { 0 };
	int32_t attributes[2], mapping;
	uint32_t count = 0;

	if (build_id)
		attributes[count++] = builder_attribute_string(builder, "process.executable.build_id.gnu", str_of(build_id));
	if (source)
		attributes[count++] = builder_attribute_string(builder, MODULES_SOURCE_KEY, str_of(source));
	mapping = builder_mapping(builder, start, start + 0x1000, 0, builder_string_z(builder, path), attributes, count);
	if (function)
		line.function_index = builder_function(builder, builder_string_z(builder, function), 0, 0, 0);
	return builder_location(builder, mapping, start + 16, &line, function != NULL, NULL, 0);
}

static void add(unsigned times, const int32_t *frames, uint32_t count)
{
	uint32_t profile = builder_profile(builder, builder_resource(builder, NULL, 0), &spec);

	for (unsigned i = 0; i < times; i++)
		builder_event(builder, profile, builder_stack(builder, frames, count), NULL, 0, 0, i + 1, false, 0);
}

static void advise(void *arg, const char *path, const char *build_id, struct buf *out)
{
	(void)arg;
	assert_null(strstr(path, "app"));
	if (build_id[0])
		buf_printf(out, "install %s-dbg", strrchr(path, '/') + 1);
}

static void test_report(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct modules *m = modules_new();
	struct profiles *p;
	int32_t app, app_later, app_unnamed, libc, libc_other, kernel, odd;

	(void)state;
	builder = builder_new();
	app = frame("/opt/app", 0, "aa01", "pending", "main");
	app_unnamed = frame("/opt/app", 0x1000, "aa01", "pending", NULL);
	app_later = frame("/opt/app", 0, "aa01", "dwarf", "main");
	libc = frame("/lib/libc.so", 0, "bb02", "dynsym", "read");
	libc_other = frame("/lib/libc.so", 0, "cc03", "symtab", "read"); /* in a container, another build */
	kernel = frame("vmlinux", 0, NULL, NULL, "vfs_read");
	odd = frame("/tmp/o\x1b"
		    "dd",
		    0, NULL, "none", NULL);
	add(3, (int32_t[]){ libc, app }, 2);
	add(2, (int32_t[]){ app_unnamed, app, app }, 3); /* one sample, three frames */
	add(4, (int32_t[]){ kernel, libc_other, app_later }, 3);
	add(1, (int32_t[]){ odd }, 1);
	assert_int_equal(builder_freeze(builder, 1, 2, &p), 0);
	builder_free(builder);
	assert_int_equal(modules_add(m, p), 0);
	profiles_put(p);
	assert_int_equal(modules_report(m, advise, NULL, &out), 0);
	assert_golden(&out, "report_modules.txt");
	modules_free(m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_report) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
