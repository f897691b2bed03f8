/* SPDX-License-Identifier: Apache-2.0 */
/* Reading captures: whole, cut anywhere, empty, missing, and files that are something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/files/capture.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/cut.h"
#include "proto/profiles_builder.h"
#include "symbols/demangle.h"
#include "tests/unit/large_files.h"

static char path[64];

static int make_path(void **state)
{
	int fd = mkstemp(strcpy(path, "/tmp/hearth-test-capture-XXXXXX"));

	(void)state;
	if (fd < 0)
		return -1;
	return close(fd);
}

static int remove_path(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_file(const void *data, size_t len)
{
	AUTO_FCLOSE FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
}

/* One message of @events events in a function @name, continued from what stands in @out. */
static void append_message(struct builder *b, const char *name, unsigned events, struct otlp_continuation *cont,
			   struct buf *out)
{
	static const struct builder_profile_spec spec = { .scope_name = "test",
							  .scope_version = "1",
							  .sample_type = "samples",
							  .sample_unit = "count",
							  .period_type = "cpu",
							  .period_unit = "nanoseconds",
							  .period = 1000 };
	const struct key_value pid = { .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = 42 } };
	struct profile_line line = { .function_index = builder_function(b, builder_string_z(b, name), 0, 0, 0) };
	int32_t mapping = builder_mapping(b, 0x1000, 0x2000, 0, builder_string_z(b, "/bin/test"), NULL, 0);
	int32_t location = builder_location(b, mapping, 0x1234, &line, 1, NULL, 0);
	int32_t stack = builder_stack(b, &location, 1);
	uint32_t profile = builder_profile(b, builder_resource(b, &pid, 1), &spec);
	struct profiles *p = NULL;

	for (unsigned i = 0; i < events; i++)
		builder_event(b, profile, stack, NULL, 0, 0, 1000 + i, false, 0);
	assert_int_equal(builder_freeze(b, 1000, 2000, &p), 0);
	assert_int_equal(otlp_encode(p, cont, out), 0);
	profiles_put(p);
}

/* A capture of three messages; *@ends are their ends. */
static void make_capture(struct buf *out, size_t ends[3])
{
	static const char *const names[] = { "one", "two", "three" };
	struct otlp_continuation cont = { 0 };
	struct builder *b = builder_new();

	assert_non_null(b);
	for (unsigned i = 0; i < 3; i++) {
		append_message(b, names[i], i + 1, &cont, out);
		ends[i] = out->len;
	}
	builder_free(b);
}

/* Wherever the file ends, what is read is all whole messages before it, and nothing else. */
static void test_cut_anywhere(void **state)
{
	static const uint64_t events[] = { 0, 1, 3, 6 }; /* in 0, 1, 2, 3 whole messages */
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	size_t ends[3];

	(void)state;
	make_capture(&data, ends);
	for (size_t len = 1; len <= data.len; len++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		size_t whole = len < ends[0] ? 0 : len < ends[1] ? 1 : len < ends[2] ? 2 : 3;
		struct capture capture;
		int err;

		write_file(data.data, len);
		assert_int_equal(otlp_whole_bytes(data.data, len), whole ? ends[whole - 1] : 0);
		err = capture_read(path, &capture, &error);
		if (!whole) {
			assert_int_equal(err, -EBADMSG);
			assert_non_null(strstr(buf_text(&error), path));
			continue;
		}
		if (err)
			fail_msg("cut at %zu of %zu: %s", len, data.len, buf_text(&error));
		assert_int_equal(capture.read_bytes, ends[whole - 1]);
		assert_int_equal(capture.file_bytes, len);
		assert_int_equal(capture.profiles->sample_events, events[whole]);
		profiles_put(capture.profiles);
	}
}

static int count_events(void *arg, struct profiles *p)
{
	uint64_t events = 0;

	for (uint32_t i = 0; i < p->resource_count; i++)
		events += p->resources[i].scopes->profiles->samples->timestamp_count;
	assert_int_equal(events, p->sample_events);
	*(uint64_t *)arg += events;
	return 0;
}

/* In parts the same; also where a message refers to one before it, from which on the rest is one part. */
static void test_parts(void **state)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct otlp_continuation cont = { 0 };
	struct builder *b = builder_new();
	uint64_t events = 0;
	size_t ends[3];

	(void)state;
	make_capture(&data, ends);
	for (unsigned i = 0; i < 3; i++) {
		write_file(data.data, i == 2 ? ends[2] : ends[i] + 3);
		events = 0;
		assert_int_equal(capture_each(path, count_events, &events), 0);
		assert_int_equal(events, (i + 1) * (i + 2) / 2);
	}
	write_file(data.data, ends[0] - 1);
	assert_int_equal(capture_each(path, count_events, &events), -EBADMSG);
	data.len = 0;
	for (unsigned i = 0; i < 4; i++) {
		cont.strings -= i == 2;
		append_message(b, i == 2 ? "early" : "some", 1u << i, &cont, &data);
	}
	builder_free(b);
	write_file(data.data, data.len);
	events = 0;
	assert_int_equal(capture_each(path, count_events, &events), 0);
	assert_int_equal(events, 15);
}

static void test_refused(void **state)
{
	static const struct {
		const char *data;
		size_t len;
		int err;
		const char *says;
	} cases[] = {
		{ "", 0, -ENODATA, "is empty" },
		{ "\x1f\x8b\x08\0", 4, -EBADMSG, "gzip-compressed" },
		{ "\x28\xb5\x2f\xfd\0", 5, -EBADMSG, "zstd-compressed" },
		{ "PERFILE2....", 12, -EBADMSG, "perf" },
		{ "\x7f"
		  "ELF\2\1\1",
		  7, -EBADMSG, "hearth record -- PROGRAM" },
		{ "{\"nodes\":[]}", 12, -EBADMSG, "neither OTLP's nor speedscope's" },
		{ "root:x:0:0:root:/root:/bin/bash\n", 32, -EBADMSG, "cannot be read as a profile, or is damaged: " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		struct capture capture;

		write_file(cases[i].data, cases[i].len);
		assert_int_equal(capture_read(path, &capture, &error), cases[i].err);
		if (!strstr(buf_text(&error), cases[i].says) || !strstr(buf_text(&error), path))
			fail_msg("case %zu: %s", i, buf_text(&error));
	}
}

/* Sparse files are refused before they are read. */
static void test_sparse(void **state)
{
	static const struct {
		off_t begin, size; /* of a message; the file's */
		const char *says;
	} cases[] = {
		{ 0, 10ll << 30, "larger than 8 GB" },
		{ 0, 7ll << 30, "has a hole from byte 0 on" },
		{ 4096, 7ll << 30, "has a hole from byte 4096 on" },
	};

	(void)state;
	allow_large_files();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY, data = BUF_EMPTY;
		struct capture capture;

		for (off_t k = 0; k < cases[i].begin; k++)
			buf_putc(&data, '\n');
		write_file(data.data ? data.data : (const uint8_t *)"", data.len);
		assert_int_equal(truncate(path, cases[i].size), 0);
		assert_true(capture_read(path, &capture, &error) < 0);
		if (!strstr(buf_text(&error), cases[i].says))
			fail_msg("case %zu: %s", i, buf_text(&error));
	}
}

static void test_missing(void **state)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct capture capture;

	(void)state;
	assert_int_equal(capture_read("/hearth/no/such/file", &capture, &error), -ENOENT);
	assert_string_equal(buf_text(&error), "cannot read /hearth/no/such/file: No such file or directory");
	buf_reset(&error);
	assert_int_equal(capture_read("/tmp", &capture, &error), -EISDIR);
	assert_string_equal(buf_text(&error), "cannot read /tmp: Is a directory");
}

/* A sample of a function kept as @name and, where that is not "", as @mangled. */
static void add_function(struct builder *b, const char *name, const char *mangled)
{
	static const struct builder_profile_spec spec = { .scope_name = "test",
							  .scope_version = "",
							  .sample_type = "samples",
							  .sample_unit = "count",
							  .period_type = "",
							  .period_unit = "" };
	struct profile_line line = { .function_index = builder_function(b, builder_string_z(b, name),
									builder_string_z(b, mangled), 0, 0) };
	int32_t location = builder_location(b, 0, 0, &line, 1, NULL, 0);

	builder_value(b, builder_profile(b, builder_resource(b, NULL, 0), &spec), builder_stack(b, &location, 1), NULL, 0, 0,
		      1);
}

/* Names are made of the mangled ones, whatever they were when the capture was made. */
static void test_demangled_anew(void **state)
{
	static const struct {
		enum demangle_style style;
		const char *names[4];
	} cases[] = {
		{ DEMANGLE_SHORT, { "main", "foo::bar", "foo::baz", "core::fmt" } },
		{ DEMANGLE_FULL, { "main", "foo::bar(int)", "foo::baz(int)", "core::fmt" } },
		{ DEMANGLE_NONE, { "main", "_ZN3foo3barEi", "_ZN3foo3bazEi", "_ZN4core3fmt17h6e0c9e8f3a1b2c4dE" } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct capture_names *known = capture_names_new();
		struct builder *b = builder_new();
		struct profiles *p;

		assert_non_null(b);
		assert_non_null(known);
		add_function(b, "other", "_ZN3foo5otherEi");
		add_function(b, "foo::bar", "_ZN3foo3barEi");
		assert_int_equal(builder_freeze(b, 1000, 2000, &p), 0);
		symbols_set_demangling(cases[i].style, false);
		assert_int_equal(capture_demangle(p, known), 0);
		profiles_put(p);
		add_function(b, "main", "");
		add_function(b, "foo::bar", "_ZN3foo3barEi");
		add_function(b, "_ZN3foo3bazEi", "");
		add_function(b, "core::fmt", "_ZN4core3fmt17h6e0c9e8f3a1b2c4dE");
		assert_int_equal(builder_freeze(b, 1000, 2000, &p), 0);
		assert_int_equal(capture_demangle(p, i % 2 ? NULL : known), 0);
		assert_int_equal(p->dict.function_count, 1 + ARRAY_LEN(cases[i].names));
		for (size_t k = 0; k < ARRAY_LEN(cases[i].names); k++) {
			struct str name = profiles_string(p, p->dict.functions[1 + k].name_strindex);

			if (!str_is(name, cases[i].names[k]))
				fail_msg("%.*s instead of %s", (int)name.len, name.data, cases[i].names[k]);
		}
		profiles_put(p);
		builder_free(b);
		capture_names_free(known);
	}
	symbols_set_demangling(DEMANGLE_SHORT, false);
}

/* Of a frame with inlined calls the function stays that they are part of. */
static void test_drop_inlined(void **state)
{
	static const struct builder_profile_spec samples = { .scope_name = "test",
							     .scope_version = "1",
							     .sample_type = "samples",
							     .sample_unit = "count",
							     .period_type = "",
							     .period_unit = "" };
	struct builder *b = builder_new();
	struct profile_line lines[] = {
		{ .function_index = builder_function(b, builder_string_z(b, "inner"), 0, 0, 0), .line = 1 },
		{ .function_index = builder_function(b, builder_string_z(b, "outer"), 0, 0, 0), .line = 2 },
	};
	int32_t frames[] = { builder_location(b, 0, 1, lines, 2, NULL, 0), builder_location(b, 0, 2, lines, 1, NULL, 0),
			     builder_location(b, 0, 3, NULL, 0, NULL, 0) };
	static const int64_t expected[] = { 2, 1, 0 }; /* the line that is left, by address; 0: none */
	struct profiles *p;

	(void)state;
	builder_event(b, builder_profile(b, builder_resource(b, NULL, 0), &samples), builder_stack(b, frames, 3), NULL, 0, 0,
		      1, false, 0);
	assert_int_equal(builder_freeze(b, 1, 2, &p), 0);
	capture_drop_inlined(p);
	for (uint32_t i = 1; i <= ARRAY_LEN(expected); i++) {
		const struct profile_location *l = &p->dict.locations[i];
		int64_t line = expected[l->address - 1];

		assert_int_equal(l->line_count, line != 0);
		if (line)
			assert_int_equal(l->lines[0].line, line);
	}
	profiles_put(p);
	builder_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cut_anywhere, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_parts, make_path, remove_path),
		cmocka_unit_test(test_missing),
		cmocka_unit_test_setup_teardown(test_sparse, make_path, remove_path),
		cmocka_unit_test_setup_teardown(test_refused, make_path, remove_path),
		cmocka_unit_test(test_demangled_anew),
		cmocka_unit_test(test_drop_inlined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
