/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth report` over small captures: every format gets its samples, options count or are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/otlp/otlp.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/proto/text_profiles.h"

static char folder[64], capture[128], empty[128], nothing[128];

static void write_capture(const char *path, const struct profiles *p)
{
	AUTO(buf_fini) struct buf message = BUF_EMPTY;
	AUTO_FCLOSE FILE *f = fopen(path, "w");

	assert_non_null(f);
	if (p)
		assert_int_equal(otlp_encode(p, NULL, &message), 0);
	if (message.len)
		assert_int_equal(fwrite(message.data, 1, message.len, f), message.len);
}

/* 3 samples of outer, which has inner inlined, below main; 1 of idle. */
static void fill(struct builder *b)
{
	const struct key_value resource[] = {
		{ .key = STR("process.executable.name"), .value = { .kind = VALUE_STRING, .string = STR("shop") } },
		{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = 7 } },
	};
	int32_t type = builder_attribute_string(b, "profile.frame.type", STR("native"));
	int32_t mapping = builder_mapping(b, 0, 0, 0, builder_string_z(b, "/bin/shop"), NULL, 0), stacks[2];
	const char *const names[] = { "inner", "outer", "main", "idle" };
	struct profile_line lines[4] = { { 0 } };
	uint32_t profile = builder_profile(b, builder_resource(b, resource, ARRAY_LEN(resource)), &text_cpu_spec);
	int32_t main_at;

	for (int i = 0; i < 4; i++)
		lines[i] = (struct profile_line){
			builder_function(b, builder_string_z(b, names[i]), 0, builder_string_z(b, "shop.c"), 0), 10 + i, 0
		};
	main_at = builder_location(b, mapping, 0x30, &lines[2], 1, &type, 1);
	stacks[0] = builder_stack(b, (int32_t[]){ builder_location(b, mapping, 0x10, lines, 2, &type, 1), main_at }, 2);
	stacks[1] = builder_stack(b, (int32_t[]){ builder_location(b, mapping, 0x40, &lines[3], 1, &type, 1), main_at }, 2);
	for (uint64_t i = 0; i < 4; i++)
		builder_event(b, profile, stacks[i == 3], NULL, 0, 0, TEXT_START_S * 1000000000ull + i, false, 0);
}

static int make_captures(void **state)
{
	AUTO(free_builder) struct builder *b = builder_new();
	AUTO(put_profiles) struct profiles *p = NULL, *without = NULL;

	(void)state;
	strcpy(folder, "/tmp/test_report.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(capture, sizeof(capture), "%s/x.otlp", folder);
	snprintf(empty, sizeof(empty), "%s/empty.otlp", folder);
	snprintf(nothing, sizeof(nothing), "%s/nothing.otlp", folder);
	if (builder_freeze(b, TEXT_START_S * 1000000000ull, 1000000000, &without))
		return -1;
	write_capture(empty, without);
	fill(b);
	if (builder_freeze(b, TEXT_START_S * 1000000000ull, 1000000000, &p))
		return -1;
	write_capture(capture, p);
	write_capture(nothing, NULL);
	return 0;
}

static int remove_captures(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

#define REPORT(said, ...) run_words(&cmd_report, (const char *const[]){ __VA_ARGS__, NULL }, said)

static void test_folded(void **state)
{
	const char *said;

	(void)state;
	assert_int_equal(REPORT(&said, "--format", "folded", capture), STATUS_DONE);
	assert_string_equal(said, "shop;main;idle 1\nshop;main;outer;inner 3\n");
	assert_int_equal(REPORT(&said, "--format", "folded", "--no-inline", capture), STATUS_DONE);
	assert_string_equal(said, "shop;main;idle 1\nshop;main;outer 3\n");
	assert_int_equal(REPORT(&said, "--format", "folded", capture, capture), STATUS_DONE); /* one report of both */
	assert_string_equal(said, "shop;main;idle 2\nshop;main;outer;inner 6\n");
	assert_int_equal(REPORT(&said, "--format", "folded", "--focus", "inn?er", capture), STATUS_DONE);
	assert_string_equal(said, "shop;main;outer;inner 3\n");
	assert_int_equal(REPORT(&said, "--format", "folded", "--invert", capture), STATUS_DONE);
	assert_non_null(strstr(said, "inner;outer;main"));
}

/* A word of each format that only the samples can have put there. */
static void test_formats(void **state)
{
	static const struct {
		const char *format, *has;
	} cases[] = {
		{ "top", "outer" },	 { "tree", "inner" },	  { "folded", "inner" },  { "lines", "shop.c" },
		{ "processes", "shop" }, { "threads", "shop" },	  { "timeline", "shop" }, { "locks", "" },
		{ "csv", "inner" },	 { "json", "\"inner\"" }, { "truth", "4" },	  { "modules", "shop" },
		{ "print", "inner" },
	};
	const char *said;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		if (REPORT(&said, "--format", cases[i].format, capture) != STATUS_DONE || !strstr(said, cases[i].has))
			fail_msg("%s: %s", cases[i].format, said);
	}
	assert_int_equal(REPORT(&said, "--format", "csv", "--lines", capture), STATUS_DONE);
	assert_non_null(strstr(said, "shop.c"));
	assert_int_equal(REPORT(&said, "--format", "tree", "--depth", "1", capture), STATUS_DONE);
	assert_null(strstr(said, "outer"));
}

/* Options that would do nothing are refused, by their name; those that do something are not. */
static void test_refused(void **state)
{
	static const struct {
		const char *format, *option, *value, *says; /* NULL: it is not refused */
	} cases[] = {
		{ "modules", "--focus", "main", "--focus has no meaning" },
		{ "truth", "--focus", "main", "--focus has no meaning" },
		{ "print", "--focus", "main", "--focus has no meaning" },
		{ "processes", "--by", "thread", "--by has no meaning" },
		{ "threads", "--by", "process", "--by has no meaning" },
		{ "timeline", "--by", "thread", NULL },
		{ "json", "--by", "thread", NULL },
		{ "locks", "--by", "thread", "--by has no meaning" },
		{ "locks", "--kind", "off_cpu", "--kind has no meaning" },
		{ "top", "--invert", NULL, "--invert has no meaning" },
		{ "tree", "--invert", NULL, NULL },
		{ "folded", "--depth", "2", "--depth has no meaning" },
		{ "top", "--depth", "2", "--depth has no meaning" },
		{ "top", "--function", "main", "--function has no meaning" },
		{ "lines", "--function", "main", NULL },
		{ "lines", "--function", "(", "is no regular expression" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *value = cases[i].value;
		int status = value ? REPORT(NULL, "--format", cases[i].format, cases[i].option, value, capture)
				   : REPORT(NULL, "--format", cases[i].format, cases[i].option, capture);

		if (status != (cases[i].says ? STATUS_USAGE : STATUS_DONE) ||
		    (cases[i].says && !is_said_last(cases[i].says)))
			fail_msg("--format %s %s %s: status %d", cases[i].format, cases[i].option, value ? value : "",
				 status);
	}
}

static void test_files(void **state)
{
	(void)state;
	assert_int_equal(REPORT(NULL, "/nowhere/x.otlp"), STATUS_FAILED);
	assert_int_equal(REPORT(NULL, capture, "/nowhere/x.otlp"), STATUS_FAILED);
	assert_int_equal(REPORT(NULL, nothing), STATUS_FAILED);
	assert_true(is_said_last("is empty"));
	assert_int_equal(REPORT(NULL, empty), STATUS_DONE);
	assert_true(is_said_last("holds no samples"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_files),
	};

	return run_group_of_descriptors(tests, make_captures, remove_captures);
}
