/* SPDX-License-Identifier: Apache-2.0 */
/* The truth report against a golden file: complete, truncated and kernel-only stacks told apart, reasons and modules
 * counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/profiles_builder.h"
#include "proto/sums/truth.h"
#include "tests/unit/proto/golden.h"

static const struct builder_profile_spec spec = {
	.scope_name = "test",
	.scope_version = "1",
	.sample_type = "samples",
	.sample_unit = "count",
	.period_type = "cpu",
	.period_unit = "nanoseconds",
	.period = 10000000,
};

static struct builder *builder;

static struct str str_of(const char *text)
{
	return (struct str){ text, (uint32_t)strlen(text) };
}

/* A frame as text: "TYPE MODULE FUNCTION", "-" for an empty one. */
static int32_t frame(const char *text)
{
	char type[32], module[64], function[64];
	struct profile_line line = { 0 };
	int32_t kind, mapping = 0;

	assert_int_equal(sscanf(text, "%31s %63s %63[^\n]", type, module, function), 3);
	kind = builder_attribute_string(builder, "profile.frame.type", str_of(type));
	if (strcmp(module, "-"))
		mapping = builder_mapping(builder, 0, 0, 0, builder_string_z(builder, module), NULL, 0);
	if (strcmp(function, "-"))
		line.function_index = builder_function(builder, builder_string_z(builder, function), 0, 0, 0);
	return builder_location(builder, mapping, 0x10, &line, strcmp(function, "-") ? 1 : 0, &kind, 1);
}

struct stack {
	unsigned times;
	const char *executable; /* NULL: the resource has none */
	const char *comm;
	const char *reason;    /* NULL: no attribute */
	const char *frames[4]; /* leaf first; one that begins with '=' is the outcome of the script's chain */
};

static void add(const struct stack *s)
{
	struct key_value name = { .key = STR("process.executable.name"), .value = { .kind = VALUE_STRING } };
	int32_t stack[4], attributes[3];
	uint32_t resource, depth = 0, count = 0;
	static uint64_t time_ns;

	name.value.string = s->executable ? str_of(s->executable) : STR("");
	resource = builder_resource(builder, &name, s->executable ? 1 : 0);
	attributes[count++] = builder_attribute_string(builder, "thread.name", str_of(s->comm));
	if (s->reason)
		attributes[count++] = builder_attribute_string(builder, TRUTH_TRUNCATED_KEY, str_of(s->reason));
	for (unsigned i = 0; i < ARRAY_LEN(stack) && s->frames[i]; i++) {
		if (s->frames[i][0] == '=')
			attributes[count++] = builder_attribute_string(builder, TRUTH_SCRIPT_KEY, str_of(s->frames[i] + 1));
		else
			stack[depth++] = frame(s->frames[i]);
	}
	for (unsigned i = 0; i < s->times; i++)
		builder_event(builder, builder_profile(builder, resource, &spec), builder_stack(builder, stack, depth),
			      attributes, count, 0, 1000 + time_ns++, false, 0);
}

/* The report of @stacks, which come in intervals of three. */
static void report(const struct stack *stacks, size_t count, struct buf *out)
{
	struct truth *truth = truth_new();
	struct profiles *p;

	builder = builder_new();
	assert_non_null(builder);
	assert_non_null(truth);
	for (size_t i = 0; i < count; i++) {
		add(&stacks[i]);
		if (i % 3 != 2 && i != count - 1)
			continue;
		assert_int_equal(builder_freeze(builder, 1, 3000, &p), 0);
		assert_int_equal(truth_add(truth, p), 0);
		profiles_put(p);
	}
	assert_int_equal(truth_report(truth, out), 0);
	truth_free(truth);
	builder_free(builder);
}

#define MAIN	"native /opt/bin/app main"
#define UNNAMED "native /lib/libb.so -"

#define PYTHON "cpython app.py work", "native /usr/bin/python3 -", "cpython app.py <module>"

static const struct stack stacks[] = {
	{ 4, "app", "worker", NULL, { "kernel vmlinux schedule", "native /opt/bin/app leaf", MAIN } },
	{ 2, "app", "worker", "no rule", { "native /opt/bin/app leaf", UNNAMED } },
	{ 1, "app", "app", "depth", { MAIN, UNNAMED, UNNAMED } },
	{ 1, "app", "app", "copy limit", { MAIN } },
	{ 3, "gcc", "cc1", "no rule", { "native /usr/lib/cc1 parse", "native /usr/lib/cc1 -" } },
	{ 1, "gcc", "cc1", "copy limit", { "native /usr/lib/cc1 parse", UNNAMED, MAIN } },
	{ 5, NULL, "kworker/0:1", NULL, { "kernel vmlinux worker_thread", "kernel nf_tables -" } },
	{ 1, "old32", "old32", "32-bit", { "kernel vmlinux schedule" } },
	{ 2, NULL, "odd\x1b[31m", "no mapping", { "native - main" } },
	{ 9, "fine", "fine", NULL, { "native /usr/bin/fine main" } },
	{ 7, "stripped", "stripped", NULL, { "native /usr/bin/stripped -", "native /usr/bin/stripped -" } },
	/* --error-frames, and a marker alone, as of another profiler */
	{ 2, "app", "worker", "no rule", { "native /opt/bin/app leaf", "abort-marker - [stack truncated: no rule]" } },
	{ 1, "alien", "alien", NULL, { "native /opt/alien run", "abort-marker - native_bad_pc" } },
	/* scripts: chains that are complete, torn, without a name; one whose attribute makes no sense */
	{ 6, "python3", "python3", NULL, { PYTHON, "=python: complete" } },
	{ 2, "python3", "python3", "depth", { PYTHON, "=python: torn" } },
	{ 1, "python3", "python3", NULL, { PYTHON, "=python: unreadable" } },
	{ 1, "python3", "python3", NULL, { "script - -", "cpython app.py main", "=python: complete" } },
	{ 3, "php", "php", NULL, { "php index.php view", "native /usr/bin/php main", "=php: complete" } },
	{ 1, "php", "php", NULL, { "php index.php view", "=nothing" } },
};

static void test_report(void **state)
{
	struct stack reversed[ARRAY_LEN(stacks)];
	AUTO(buf_fini) struct buf out = BUF_EMPTY, again = BUF_EMPTY;

	(void)state;
	report(stacks, ARRAY_LEN(stacks), &out);
	assert_golden(&out, "report_truth.txt");
	/* the order of the samples changes nothing */
	for (size_t i = 0; i < ARRAY_LEN(stacks); i++)
		reversed[i] = stacks[ARRAY_LEN(stacks) - 1 - i];
	report(reversed, ARRAY_LEN(stacks), &again);
	assert_string_equal(buf_text(&again), buf_text(&out));
}

static void test_nothing_to_say(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY, none = BUF_EMPTY;

	(void)state;
	report(stacks, 1, &out);
	assert_string_equal(buf_text(&out), "4 samples, 4 with a user stack: 4 complete (100.00 %), 0 truncated\n"
					    "named: 100.00 % of the time (the innermost function of 4 of 4 samples), "
					    "100.00 % of user frames (8 of 8)\n");
	report(stacks, 0, &none);
	assert_string_equal(buf_text(&none), "0 samples, 0 with a user stack: 0 complete (0.00 %), 0 truncated\n"
					     "named: 0.00 % of the time (the innermost function of 0 of 0 samples), "
					     "0.00 % of user frames (0 of 0)\n");
}

/* More reasons than anybody has: told apart as far as there is room, none forgotten. */
static void test_many_reasons(void **state)
{
	enum { REASONS = 40 };
	static char names[REASONS][16];
	struct stack many[REASONS];
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	for (unsigned i = 0; i < REASONS; i++) {
		snprintf(names[i], sizeof(names[i]), "reason %02u", i);
		many[i] = (struct stack){ 1, "app", "app", names[i], { MAIN } };
	}
	report(many, REASONS, &out);
	for (unsigned i = 0; i < REASONS; i++)
		assert_non_null(strstr(buf_text(&out), names[i]));
	assert_non_null(strstr(buf_text(&out), "reason 22 1"));
	assert_non_null(strstr(buf_text(&out), "others 17"));
}

/* Functions that were inlined into a frame's are no frames of their own. */
static void test_inlined(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct profile_line lines[3] = { 0 };
	struct truth *t = truth_new();
	struct profiles *p;
	int32_t location;

	(void)state;
	builder = builder_new();
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		lines[i].function_index = builder_function(builder, builder_string_z(builder, "f"), 0, 0, 0);
	location = builder_location(builder, 0, 0x10, lines, ARRAY_LEN(lines), NULL, 0);
	builder_event(builder, builder_profile(builder, builder_resource(builder, NULL, 0), &spec),
		      builder_stack(builder, &location, 1), NULL, 0, 0, 1, false, 0);
	assert_int_equal(builder_freeze(builder, 1, 2, &p), 0);
	builder_free(builder);
	assert_int_equal(truth_add(t, p), 0);
	assert_int_equal(truth_report(t, &out), 0);
	assert_non_null(strstr(buf_text(&out), "100.00 % of user frames (1 of 1)"));
	truth_free(t);
	profiles_put(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_nothing_to_say),
		cmocka_unit_test(test_many_reasons),
		cmocka_unit_test(test_inlined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
