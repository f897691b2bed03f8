/* SPDX-License-Identifier: Apache-2.0 */
/* The truth report: complete, truncated and kernel-only stacks told apart, reasons and modules counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/profiles_builder.h"
#include "proto/truth.h"

static const struct builder_profile_spec spec = {
	.scope_name = "test",
	.scope_version = "1",
	.sample_type = "samples",
	.sample_unit = "count",
	.period_type = "cpu",
	.period_unit = "nanoseconds",
	.period = 10000000,
};

static int32_t location(struct builder *b, const char *file, const char *type, uint64_t addr, const char *function)
{
	int32_t kind = builder_attribute_string(b, "profile.frame.type", (struct str){ type, (uint32_t)strlen(type) });
	int32_t mapping = builder_mapping(b, 0, 0, 0, builder_string_z(b, file), NULL, 0);
	struct profile_line line = { 0 };

	if (function)
		line.function_index = builder_function(b, builder_string_z(b, function), 0, 0, 0);
	return builder_location(b, mapping, addr, &line, function ? 1 : 0, &kind, 1);
}

static void event(struct builder *b, const char *comm, const char *reason, int32_t leaf, int32_t root, uint64_t time_ns)
{
	uint32_t resource = builder_resource(b, NULL, 0), count = 1;
	int32_t stack[2] = { leaf, root }, attributes[2];

	attributes[0] = builder_attribute_string(b, "thread.name", (struct str){ comm, (uint32_t)strlen(comm) });
	if (reason)
		attributes[count++] = builder_attribute_string(b, TRUTH_TRUNCATED_KEY,
							       (struct str){ reason, (uint32_t)strlen(reason) });
	builder_event(b, builder_profile(b, resource, &spec), builder_stack(b, stack, root ? 2 : 1), attributes, count, 0,
		      time_ns, false, 0);
}

static void test_report(void **state)
{
	static const char expected[] = "8 samples, 7 with a user stack: 4 complete (57.14 %), 3 truncated\n"
				       "\n"
				       "truncated stacks, by reason and where the walk stopped\n"
				       "  SAMPLES  REASON            MODULE\n"
				       "        2  no rule           libb.so\n"
				       "        1  depth             a\n"
				       "\n"
				       "truncated stacks, by process\n"
				       "TRUNCATED    SAMPLES     PART  PROCESS\n"
				       "        2          6    33.33%  one\n"
				       "        1          1   100.00%  two\n"
				       "\n"
				       "frames without a name, by module\n"
				       "  UNNAMED     FRAMES     PART  MODULE\n"
				       "        2          2   100.00%  libb.so\n";
	struct builder *b = builder_new();
	struct truth *truth = truth_new();
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	int32_t main_fn, leaf, unnamed, kernel;
	struct profiles *p;

	(void)state;
	assert_non_null(b);
	assert_non_null(truth);
	main_fn = location(b, "/bin/a", "native", 0x10, "main");
	leaf = location(b, "/bin/a", "native", 0x20, "leaf");
	unnamed = location(b, "/lib/libb.so", "native", 0x30, NULL);
	kernel = location(b, "vmlinux", "kernel", 0x40, "kthread");
	for (uint64_t i = 0; i < 4; i++)
		event(b, "one", NULL, leaf, main_fn, 1000 + i);
	event(b, "one", "no rule", leaf, unnamed, 2000);
	event(b, "one", "no rule", main_fn, unnamed, 2001);
	event(b, "two", "depth", leaf, main_fn, 2002);
	event(b, "kworker", NULL, kernel, 0, 2003);
	assert_int_equal(builder_freeze(b, 1, 3000, &p), 0);
	assert_int_equal(truth_add(truth, p), 0);
	assert_int_equal(truth_report(truth, &out), 0);
	assert_string_equal(buf_text(&out), expected);
	profiles_put(p);
	truth_free(truth);
	builder_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_report) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
