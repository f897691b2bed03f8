/* SPDX-License-Identifier: Apache-2.0 */
/* The printer against texts that the lazy backend and the collector distribution wrote (tests/golden/print_*.txt). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "proto/otlp/signals.h"
#include "sinks/sinks.h"
#include "sinks/value_text.h"
#include "tests/unit/sinks/vectors.h"

static const char *const both_types[] = { "samples", "events", NULL };

struct golden {
	const char *name;
	const char *file;
	struct resource_profiles *resources;
	uint32_t count;
	struct print_options options;
};

static const struct golden goldens[] = {
	{ "T1", "print_t1.txt", t1_resources, ARRAY_LEN(t1_resources), { 0 } },
	{ "T2", "print_t2.txt", t2_resources, ARRAY_LEN(t2_resources), { 0 } },
	{ "T3", "print_t3.txt", t3_resources, ARRAY_LEN(t3_resources), { 0 } },
	{ "T7",
	  "print_t7.txt",
	  t1_resources,
	  ARRAY_LEN(t1_resources),
	  { .form = PRINT_TYPED, .skip_without_container_id = true, .sample_types = both_types } },
	{ "T7 of T3",
	  "print_t7_skipped.txt",
	  t3_resources,
	  ARRAY_LEN(t3_resources),
	  { .form = PRINT_TYPED, .skip_without_container_id = true, .sample_types = both_types } },
};

static void read_text(const char *path, struct buf *out)
{
	AUTO_FCLOSE FILE *f = fopen(path, "r");
	char chunk[4096];
	size_t n;

	if (!f)
		fail_msg("cannot open %s", path);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		buf_append(out, chunk, n);
}

/* Prints with the sink into a temporary file and returns what is there. */
static void printed(struct profiles *p, const struct print_options *options, struct buf *out)
{
	char path[] = "/tmp/test_print.XXXXXX";
	int fd = mkstemp(path);
	AUTO_FCLOSE FILE *f = fdopen(fd, "w");
	struct sink *s;

	assert_non_null(f);
	assert_int_equal(sink_print_new(f, options, &s), 0);
	assert_int_equal(sink_consume(s, p, NULL), 0);
	read_text(path, out); /* before anything is closed: consume() itself must have written */
	sink_free(s);
	unlink(path);
}

static void set_zone(const char *zone)
{
	setenv("TZ", zone, 1);
	tzset();
}

static void test_golden(void **state)
{
	(void)state;
	set_zone("UTC");
	for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
		const struct golden *g = &goldens[i];
		struct profiles *p = vector_new(g->resources, g->count);
		struct buf expected = BUF_EMPTY, got = BUF_EMPTY;
		char path[256];

		snprintf(path, sizeof(path), TEST_DATA "/golden/%s", g->file);
		read_text(path, &expected);
		printed(p, &g->options, &got);
		if (expected.len != got.len || memcmp(expected.data, got.data, got.len) != 0)
			fail_msg("%s differs; got:\n%s", g->name, buf_text(&got));
		buf_fini(&expected);
		buf_fini(&got);
		profiles_put(p);
	}
}

/* An empty dictionary (element 0 of each table alone) prints like T2: nothing in it depends on the vectors' tables. */
static void test_empty_dictionary(void **state)
{
	struct profiles *p = vector_new(t2_resources, ARRAY_LEN(t2_resources));
	struct buf expected = BUF_EMPTY, got = BUF_EMPTY;

	(void)state;
	p->dict.mapping_count = p->dict.location_count = p->dict.function_count = p->dict.string_count = 1;
	p->dict.attribute_count = p->dict.stack_count = 1;
	read_text(TEST_DATA "/golden/print_t2.txt", &expected);
	print_profiles(p, NULL, &got);
	assert_string_equal(buf_text(&got), buf_text(&expected));
	buf_fini(&expected);
	buf_fini(&got);
	profiles_put(p);
}

struct zone_case {
	const char *zone;
	uint64_t time_ns;
	const char *text;
};

static const struct zone_case zone_cases[] = {
	{ "Europe/Berlin", 1758603335517877230, "1758603335517877230 (2025-09-23 06:55:35.51787723 +0200 CEST)" },
	{ "Europe/Berlin", 1737000000000000000, "1737000000000000000 (2025-01-16 05:00:00 +0100 CET)" },
	{ "America/St_Johns", 1737000000100000000, "1737000000100000000 (2025-01-16 00:30:00.1 -0330 NST)" },
	{ "America/Sao_Paulo", 1737000000000000001, "1737000000000000001 (2025-01-16 01:00:00.000000001 -0300 -03)" },
	{ "UTC", 0, "0 (1970-01-01 00:00:00 +0000 UTC)" },
	{ "UTC", UINT64_MAX, "18446744073709551615 (1969-12-31 23:59:59.999999999 +0000 UTC)" },
};

static void test_zones(void **state)
{
	struct sample sample = t1_sample;
	struct profile profile = t1_profile;
	struct scope_profiles scope = { .profiles = &profile, .profile_count = 1 };
	struct resource_profiles resource = { .scopes = &scope, .scope_count = 1 };

	(void)state;
	profile.samples = &sample;
	for (size_t i = 0; i < ARRAY_LEN(zone_cases); i++) {
		struct profiles *p = vector_new(&resource, 1);
		struct buf got = BUF_EMPTY;
		uint64_t time_ns = zone_cases[i].time_ns;
		char line[160];

		set_zone(zone_cases[i].zone);
		sample.timestamps_unix_ns = &time_ns;
		print_profiles(p, NULL, &got);
		snprintf(line, sizeof(line), "\n  Timestamp[0]: %s\n", zone_cases[i].text);
		if (!strstr(buf_text(&got), line))
			fail_msg("%s: no%sin\n%s", zone_cases[i].zone, line, buf_text(&got));
		/* the profile's own time stays in UTC */
		assert_non_null(strstr(buf_text(&got), "\n  Time: 2025-09-23 04:55:35.51787723 +0000 UTC\n"));
		buf_fini(&got);
		profiles_put(p);
	}
	set_zone("UTC");
}

#define STRING STRING_VALUE
#define DOUBLE(d)                                 \
	{                                         \
		.kind = VALUE_DOUBLE, .real = (d) \
	}
#define LIST(...)                                                                              \
	{                                                                                      \
		.kind = VALUE_ARRAY, .array = {                                                \
			(struct any_value[]){ __VA_ARGS__ },                                   \
			sizeof((struct any_value[]){ __VA_ARGS__ }) / sizeof(struct any_value) \
		}                                                                              \
	}
#define MAP(...)                                                                               \
	{                                                                                      \
		.kind = VALUE_KVLIST, .kvlist = {                                              \
			(struct key_value[]){ __VA_ARGS__ },                                   \
			sizeof((struct key_value[]){ __VA_ARGS__ }) / sizeof(struct key_value) \
		}                                                                              \
	}
#define BYTES(s)                                       \
	{                                              \
		.kind = VALUE_BYTES, .string = TEXT(s) \
	}

struct value_case {
	struct any_value value;
	const char *text;
	const char *type;
};

static struct value_case value_cases[] = {
	{ { .kind = VALUE_NONE }, "", "Empty" },
	{ STRING(""), "", "Str" },
	{ STRING("a\nb <&> \"c\""), "a\nb <&> \"c\"", "Str" },
	{ { .kind = VALUE_STRINDEX, .strindex = S_LIBC }, "libc.so.6", "Str" },
	{ { .kind = VALUE_BOOL, .boolean = true }, "true", "Bool" },
	{ { .kind = VALUE_BOOL }, "false", "Bool" },
	{ INT_VALUE(0), "0", "Int" },
	{ INT_VALUE(INT64_MIN), "-9223372036854775808", "Int" },
	{ DOUBLE(1), "1", "Double" },
	{ DOUBLE(-0.0), "-0", "Double" },
	{ DOUBLE(0.1), "0.1", "Double" },
	{ DOUBLE(-2.5), "-2.5", "Double" },
	{ DOUBLE(0.000001), "0.000001", "Double" },
	{ DOUBLE(1e-7), "1e-7", "Double" },
	{ DOUBLE(1.5e-10), "1.5e-10", "Double" },
	{ DOUBLE(123456789), "123456789", "Double" },
	{ DOUBLE(1e20), "100000000000000000000", "Double" },
	{ DOUBLE(1e21), "1e+21", "Double" },
	{ DOUBLE(1.7976931348623157e308), "1.7976931348623157e+308", "Double" },
	{ DOUBLE(5e-324), "5e-324", "Double" },
	{ DOUBLE(0x1p-44), "5.684341886080802e-14", "Double" }, /* not ...8015: the doubles above lie wider */
	{ DOUBLE(NAN), "NaN", "Double" },
	{ DOUBLE(INFINITY), "Infinity", "Double" },
	{ DOUBLE(-INFINITY), "-Infinity", "Double" },
	{ BYTES(""), "", "Bytes" },
	{ BYTES("f"), "Zg==", "Bytes" },
	{ BYTES("fo"), "Zm8=", "Bytes" },
	{ BYTES("foo"), "Zm9v", "Bytes" },
	{ BYTES("\xff\xfe\x00"), "//4A", "Bytes" },
	{ { .kind = VALUE_ARRAY }, "[]", "Slice" },
	{ { .kind = VALUE_KVLIST }, "{}", "Map" },
	{ LIST(INT_VALUE(1), STRING("a\"\\\n\x01<&>\x7f"), { .kind = VALUE_BOOL, .boolean = true }, { .kind = VALUE_NONE },
	       DOUBLE(1e-7), BYTES("fo")),
	  "[1,\"a\\\"\\\\\\n\\u0001<&>\x7f\",true,null,1e-7,\"Zm8=\"]", "Slice" },
	{ LIST(STRING("\xff\xc3\xa9\xe2\x80\xa8\xed\xa0\x80\b\f")),
	  "[\"\\ufffd\xc3\xa9\\u2028\\ufffd\\ufffd\\ufffd\\b\\f\"]", "Slice" },
	{ MAP({ TEXT("b"), 0, INT_VALUE(2) }, { TEXT("a"), 0, LIST(MAP({ TEXT("x"), 0, STRING("y") })) },
	      { TEXT(""), S_CPU, INT_VALUE(3) }, { TEXT("b"), 0, INT_VALUE(4) }, { TEXT("aa"), 0, { .kind = VALUE_NONE } }),
	  "{\"a\":[{\"x\":\"y\"}],\"aa\":null,\"b\":4,\"cpu\":3}", "Map" },
	{ LIST(INT_VALUE(1), DOUBLE(NAN)), "", "Slice" },
};

static void test_values(void **state)
{
	struct key_value pair = { .key = TEXT("k") };
	struct resource_profiles resource = { .has_resource = true, .resource.attributes = { &pair, 1 } };
	struct print_options plain = { .raw = true }, typed = { .form = PRINT_TYPED, .raw = true };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(value_cases); i++) {
		const struct value_case *c = &value_cases[i];
		struct profiles *p = vector_new(&resource, 1);
		struct buf got = BUF_EMPTY;
		char expected[512];

		pair.value = c->value;
		print_profiles(p, &plain, &got);
		print_profiles(p, &typed, &got);
		snprintf(expected, sizeof(expected),
			 "--------------- New Resource Profile --------------\n  k: %s\n"
			 "-------------- End Resource Profile ---------------\n\n"
			 "--------------- New Resource Profile --------------\n  k: %s (%s)\n"
			 "-------------- End Resource Profile ---------------\n\n",
			 c->text, c->text, c->type);
		assert_string_equal(buf_text(&got), expected);
		buf_fini(&got);
		profiles_put(p);
	}
}

static const char *const only_go[] = { "go", NULL };
static const char *const only_events[] = { "events", NULL };

struct switch_case {
	struct print_options options;
	const char *gone, *kept;
};

static const struct switch_case switch_cases[] = {
	{ { .hide_resource_attributes = true }, "container.id", "thread.name" },
	{ { .hide_sample_attributes = true }, "thread.name", "Timestamp[0]" },
	{ { .hide_sample_attributes = true }, "\n-----------------------------------------", "container.id" },
	{ { .hide_frames = true }, "Instrumentation", "thread.name" },
	{ { .hide_profile_attributes = true }, "~~~", "SampleType: samples" },
	{ { .frame_types = only_go }, "do_syscall_64", "runtime.futex" },
	{ { .sample_types = only_events }, "New Profile", "container.id" },
	{ { .hide_source = true }, "File: runtime/sys_linux_amd64.s", "Function: runtime.futex\n" },
};

static void test_switches(void **state)
{
	struct profile profile = t1_profile;
	struct scope_profiles scope = { .profiles = &profile, .profile_count = 1 };
	struct resource_profiles resource = t1_resources[0];

	(void)state;
	profile.attributes = (struct indices)INDICES(A_CPU);
	resource.scopes = &scope;
	for (size_t i = 0; i < ARRAY_LEN(switch_cases); i++) {
		struct profiles *p = vector_new(&resource, 1);
		struct buf all = BUF_EMPTY, got = BUF_EMPTY;

		print_profiles(p, NULL, &all);
		print_profiles(p, &switch_cases[i].options, &got);
		assert_non_null(strstr(buf_text(&all), switch_cases[i].gone));
		assert_null(strstr(buf_text(&got), switch_cases[i].gone));
		assert_non_null(strstr(buf_text(&got), switch_cases[i].kept));
		buf_fini(&all);
		buf_fini(&got);
		profiles_put(p);
	}
}

/* A profile's attributes and the rule under them, which is three tildes shorter than the others. */
static void test_profile_attributes(void **state)
{
	struct profile profile = { .attributes = INDICES(A_CPU, A_THREAD_ETCD),
				   .profile_id = TEXT("\x01"
						      "23456789abcdef\xff") };
	struct scope_profiles scope = { .profiles = &profile, .profile_count = 1 };
	struct resource_profiles resource = { .scopes = &scope, .scope_count = 1 };
	struct profiles *p = vector_new(&resource, 1);
	struct buf got = BUF_EMPTY;

	(void)state;
	print_profiles(p, NULL, &got);
	assert_non_null(strstr(buf_text(&got), "\n  ProfileID: 0132333435363738396162636465"
					       "66ff\n"));
	assert_non_null(strstr(buf_text(&got), "\n  SampleType: \n  cpu.logical_number: 5\n  thread.name: etcd\n"
					       "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
					       "------------------- End Profile -------------------\n"));
	buf_fini(&got);
	profiles_put(p);
}

/* What a terminal would obey is shown, in keys, values, names and types; other bytes stay. */
static void test_escapes(void **state)
{
	static const struct {
		struct str value;
		const char *text, *raw;
	} cases[] = {
		{ TEXT("a\nb\tc\rd"), "a\\nb\\tc\\rd", "a\nb\tc\rd" },
		{ TEXT("\x1b[31m\x07\x7f"), "\\x1b[31m\\x07\\x7f", "\x1b[31m\x07\x7f" },
		{ TEXT("\xc2\x9b"
		       "2J"),
		  "\\u009b2J",
		  "\xc2\x9b"
		  "2J" },
		{ TEXT("\\n \xc3\xa9 \xc2\xa0"), "\\n \xc3\xa9 \xc2\xa0", "\\n \xc3\xa9 \xc2\xa0" },
	};
	struct print_options raw = { .raw = true };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct key_value pair = { .key = cases[i].value,
					  .value = { .kind = VALUE_STRING, .string = cases[i].value } };
		struct resource_profiles resource = { .has_resource = true, .resource.attributes = { &pair, 1 } };
		struct profiles *p = vector_new(&resource, 1);
		struct buf got = BUF_EMPTY;
		char expected[64];

		print_profiles(p, NULL, &got);
		snprintf(expected, sizeof(expected), "\n  %s: %s\n-----", cases[i].text, cases[i].text);
		assert_non_null(strstr(buf_text(&got), expected));
		buf_reset(&got);
		print_profiles(p, &raw, &got);
		snprintf(expected, sizeof(expected), "\n  %s: %s\n-----", cases[i].raw, cases[i].raw);
		assert_non_null(strstr(buf_text(&got), expected));
		buf_fini(&got);
		profiles_put(p);
	}
}

/* T1 and T2 in the older forms: T1's golden text with the lines that differ. */
static void test_older_forms(void **state)
{
	static const struct {
		enum print_form form;
		const char *lines;
	} cases[] = {
		{ PRINT_2025_09, "  Time: 2025-09-23 04:55:35.51787723 +0000 UTC\n"
				 "  Duration: 1970-01-01 00:00:02.840298447 +0000 UTC\n"
				 "  PeriodType: [cpu, nanoseconds, Cumulative]\n"
				 "  Period: 50000000\n"
				 "  Dropped attributes count: 0\n"
				 "  SampleType: samples\n"
				 "------------------- New Sample --------------------\n"
				 "  Timestamp[0]: 1758603335517877230 (2025-09-23 04:55:35.51787723 +0000 UTC)\n" },
		{ PRINT_2025_08, "  ProfileID: 00000000000000000000000000000000\n"
				 "  Dropped attributes count: 0\n"
				 "  SampleType: samples\n"
				 "------------------- New Sample --------------------\n"
				 "  timestamp[0]: 1758603335517877230 (2025-09-23 04:55:35.51787723 +0000 UTC)\n"
				 "  thread.name: etcd\n" },
	};
	struct profile profile = t1_profile;
	struct scope_profiles scope = { .profiles = &profile, .profile_count = 1 };
	struct resource_profiles resource = t1_resources[0];

	(void)state;
	set_zone("UTC");
	profile.period_type.temporality = 2;
	resource.scopes = &scope;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct print_options options = { .form = cases[i].form };
		struct profiles *p = vector_new(&resource, 1), *q = vector_new(t2_resources, ARRAY_LEN(t2_resources));
		struct buf got = BUF_EMPTY;

		print_profiles(p, &options, &got);
		assert_non_null(strstr(buf_text(&got), cases[i].lines));
		assert_non_null(strstr(buf_text(&got), "Line: 558, Column: 0\n"));
		buf_reset(&got);
		print_profiles(q, &options, &got);
		assert_int_equal(!strstr(buf_text(&got), "SampleType"), cases[i].form == PRINT_2025_08);
		assert_int_equal(!strstr(buf_text(&got), "  PeriodType: [, , Unspecified]\n"),
				 cases[i].form == PRINT_2025_08);
		buf_fini(&got);
		profiles_put(p);
		profiles_put(q);
	}
}

static void test_containers(void **state)
{
	struct print_options one = { .container_id = "abc123" }, none = { .container_id = "abc" };
	struct print_options typed = { .form = PRINT_TYPED, .show_source = true };
	struct profiles *p = vector_new(t2_resources, ARRAY_LEN(t2_resources));
	struct profiles *t1 = vector_new(t1_resources, ARRAY_LEN(t1_resources));
	struct buf got = BUF_EMPTY;

	(void)state;
	print_profiles(p, &one, &got);
	assert_non_null(strstr(buf_text(&got), "container.id: abc123"));
	assert_null(strstr(buf_text(&got), "service.name"));
	buf_reset(&got);
	print_profiles(p, &none, &got);
	assert_int_equal(got.len, 0);
	print_profiles(t1, &typed, &got);
	assert_non_null(
		strstr(buf_text(&got), "Function: runtime.futex, File: runtime/sys_linux_amd64.s, Line: 558, Column: 0\n"));
	buf_fini(&got);
	profiles_put(p);
	profiles_put(t1);
}

static const char log_json[] =
	"{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"shop\"}}]}"
	","
	"\"scopeLogs\":[{\"logRecords\":[{\"timeUnixNano\":\"1758603335517877230\",\"severityNumber\":9,"
	"\"severityText\":\"INFO\",\"body\":{\"stringValue\":\"paid\\u001b[0m\"},\"attributes\":[{\"key\":\"n\",\"value\":"
	"{\"intValue\":3}}]},{\"observedTimeUnixNano\":1,\"body\":{\"kvlistValue\":{\"values\":[{\"key\":\"a\",\"value\":"
	"{\"boolValue\":true}}]}}}]}]}]}";

static void test_logs(void **state)
{
	static const char expected[] = "---------------- New Resource Logs ----------------\n"
				       "  service.name: shop\n"
				       "------------------ New Log Record -----------------\n"
				       "  Time: 2025-09-23 04:55:35.51787723 +0000 UTC\n"
				       "  SeverityNumber: 9\n"
				       "  SeverityText: INFO\n"
				       "  Body: paid\\x1b[0m\n"
				       "  n: 3\n"
				       "------------------ End Log Record -----------------\n"
				       "------------------ New Log Record -----------------\n"
				       "  Time: 1970-01-01 00:00:00.000000001 +0000 UTC\n"
				       "  SeverityNumber: 0\n"
				       "  SeverityText: \n"
				       "  Body: {\"a\":true}\n"
				       "------------------ End Log Record -----------------\n"
				       "---------------- End Resource Logs ----------------\n\n";
	struct print_options debug = { .form = PRINT_DEBUG }, other = { .container_id = "x" };
	struct otlp_other o;
	struct otlp_error err;
	struct buf got = BUF_EMPTY, protobuf = BUF_EMPTY;
	char path[] = "/tmp/test_print.XXXXXX";
	AUTO_FCLOSE FILE *f = fdopen(mkstemp(path), "w");
	struct sink *s;

	(void)state;
	assert_int_equal(otlp_other_decode(OTLP_LOGS, true, (const uint8_t *)log_json, sizeof(log_json) - 1, &o, &err), 0);
	print_other(&o, NULL, &got);
	assert_string_equal(buf_text(&got), expected);
	buf_reset(&got);
	print_other(&o, &other, &got);
	assert_int_equal(got.len, 0);
	print_other(&o, &debug, &got);
	assert_non_null(strstr(buf_text(&got),
			       "LogsData:\n  resource_logs[0]:\n    resource:\n      attributes[0]:\n"
			       "        key: \"service.name\"\n        value:\n          string_value: \"shop\"\n"));
	assert_non_null(strstr(buf_text(&got), "        severity_number: 9 SEVERITY_NUMBER_INFO\n"));
	assert_non_null(strstr(buf_text(&got), "string_value: \"paid\\u001b[0m\"\n"));

	/* and through the sink, which gets protobuf */
	buf_reset(&got);
	assert_int_equal(otlp_other_encode(&o, &protobuf), 0);
	assert_int_equal(sink_print_new(f, NULL, &s), 0);
	assert_int_equal(sink_consume_other(s, OTLP_LOGS, protobuf.data, protobuf.len, NULL), 0);
	assert_int_equal(sink_consume_other(s, OTLP_TRACES, (const uint8_t *)"", 0, NULL), -EOPNOTSUPP);
	assert_int_equal(sink_consume_other(s, OTLP_LOGS, (const uint8_t *)"\x0a\x05", 2, NULL), -EBADMSG);
	read_text(path, &got);
	assert_string_equal(buf_text(&got), expected);
	sink_free(s);
	unlink(path);
	otlp_other_fini(&o);
	buf_fini(&got);
	buf_fini(&protobuf);
}

/* The debug form names every field that is set. */
static void test_debug(void **state)
{
	static const char *const lines[] = {
		"ProfilesData:\n  resource_profiles[0]:\n",
		"        sample_type:\n          type_strindex: 1 \"samples\"\n          unit_strindex: 2 \"count\"\n",
		"\n        time_unix_nano: 1758603335517877230\n",
		"\n          timestamps_unix_nano: [1758603335517877230]\n",
		"  dictionary:\n",
		"    string_table[1]: \"samples\"\n",
		"      name_strindex: ",
	};
	struct print_options debug = { .form = PRINT_DEBUG };
	struct profiles *p = vector_new(t1_resources, 1);
	struct buf got = BUF_EMPTY;

	(void)state;
	print_profiles(p, &debug, &got);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		if (!strstr(buf_text(&got), lines[i]))
			fail_msg("not there: %s\nin %s", lines[i], buf_text(&got));
	buf_fini(&got);
	profiles_put(p);
}

static void test_write_error(void **state)
{
	AUTO_FCLOSE FILE *full = fopen("/dev/full", "w");
	struct profiles *p = vector_new(t1_resources, 1);
	struct sink *s;

	(void)state;
	assert_non_null(full);
	assert_int_equal(sink_print_new(full, NULL, &s), 0);
	assert_int_equal(sink_consume(s, p, NULL), -ENOSPC);
	sink_free(s);
	profiles_put(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),	   cmocka_unit_test(test_empty_dictionary),
		cmocka_unit_test(test_zones),	   cmocka_unit_test(test_values),
		cmocka_unit_test(test_switches),   cmocka_unit_test(test_profile_attributes),
		cmocka_unit_test(test_escapes),	   cmocka_unit_test(test_older_forms),
		cmocka_unit_test(test_containers), cmocka_unit_test(test_logs),
		cmocka_unit_test(test_debug),	   cmocka_unit_test(test_write_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
