/* SPDX-License-Identifier: Apache-2.0 */
/* Names, formats and streams that `hearth record` writes to, and those that it refuses before anything is sampled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"

static bool is_terminal; /* standard output */

static int told_terminal(int fd)
{
	return fd == STDOUT_FILENO && is_terminal;
}

#define isatty(fd) told_terminal(fd)

#include "cmd/record.c"

static struct recording recording;
static struct config config;

static int setup(void **state)
{
	(void)state;
	memset(&recording, 0, sizeof(recording));
	is_terminal = false;
	unsetenv("TMPDIR");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (recording.folder.len)
		rmdir(buf_text(&recording.folder));
	buf_fini(&recording.path);
	buf_fini(&recording.capture_path);
	buf_fini(&recording.folder);
	config_fini(&config);
	return 0;
}

/* Chooses by the words of a command line. */
static int choose(const char *const *words)
{
	config = parse_words(&cmd_record, words);
	return choose_path(&recording, &config);
}

#define CHOOSE(...) choose((const char *const[]){ __VA_ARGS__, NULL })

static void writes(const char *path, const char *format, const char *capture)
{
	assert_string_equal(buf_text(&recording.path), path);
	assert_string_equal(recording.format->name, format);
	assert_string_equal(buf_text(&recording.capture_path), capture);
}

/* Without a name the file is called by the date, and the terminal gets a summary. */
static void test_no_name(void **state)
{
	struct tm tm = { 0 };
	const char *end;

	(void)state;
	is_terminal = true;
	assert_int_equal(choose((const char *const[]){ NULL }), 0);
	end = strptime(buf_text(&recording.path), "hearth-%Y%m%d-%H%M%S", &tm);
	assert_non_null(end);
	assert_string_equal(end, ".otlp");
	tm.tm_isdst = -1;
	assert_true(llabs((long long)(time(NULL) - mktime(&tm))) <= 5);
	assert_string_equal(buf_text(&recording.capture_path), buf_text(&recording.path));
	assert_false(recording.is_stream);
	assert_true(recording.summarises);
}

static void test_who_gets_a_summary(void **state)
{
	(void)state;
	assert_int_equal(choose((const char *const[]){ NULL }), 0);
	assert_false(recording.summarises); /* no terminal */
}

static void test_nobody_wants_a_summary(void **state)
{
	(void)state;
	is_terminal = true;
	assert_int_equal(CHOOSE("--quiet"), 0);
	assert_false(recording.summarises);
}

static void test_a_named_file_is_its_own_summary(void **state)
{
	(void)state;
	is_terminal = true;
	assert_int_equal(CHOOSE("-o", "x.otlp"), 0);
	assert_false(recording.summarises);
	writes("x.otlp", "otlp", "x.otlp");
}

/* Another format is made of a capture beside it. */
static void test_other_formats(void **state)
{
	(void)state;
	assert_int_equal(CHOOSE("-o", "/no/such/x.svg"), 0);
	writes("/no/such/x.svg", "svg", "/no/such/x.svg.otlp");
	assert_false(recording.is_stream);
}

static void test_format_that_is_said(void **state)
{
	(void)state;
	assert_int_equal(CHOOSE("-o", "x.txt", "--format", "svg"), 0);
	writes("x.txt", "svg", "x.txt.otlp");
}

static void test_no_format(void **state)
{
	(void)state;
	assert_int_equal(CHOOSE("-o", "x.xyz"), -EINVAL);
	assert_true(is_said_last("--output: 'x.xyz' does not say which format to write; end the name in one of .otlp"));
	assert_true(is_said_last(", or say --format"));
}

/* A folder is no stream, and says no format. */
static void test_a_folder(void **state)
{
	(void)state;
	assert_int_equal(CHOOSE("-o", "/tmp"), -EINVAL);
	assert_false(recording.is_stream);
}

/* --- streams --- */

static void test_standard_output(void **state)
{
	(void)state;
	assert_int_equal(CHOOSE("-o", "-"), 0);
	assert_true(recording.is_stream);
	writes("-", "otlp", "-");
	assert_string_equal(output_name(buf_text(&recording.path)), "standard output");
	assert_string_equal(output_name("x"), "x");
}

static void test_a_device(void **state)
{
	(void)state;
	assert_int_equal(CHOOSE("-o", "/dev/null"), 0);
	assert_true(recording.is_stream);
	writes("/dev/null", "otlp", "/dev/null");
}

static void test_binary_on_a_terminal(void **state)
{
	(void)state;
	is_terminal = true;
	assert_int_equal(CHOOSE("-o", "-"), -EINVAL);
	assert_true(is_said_last("--output -: the format otlp is binary and standard output is a terminal"));
}

static void test_text_on_a_terminal(void **state)
{
	(void)state;
	is_terminal = true;
	assert_int_equal(CHOOSE("-o", "-", "--format", "svg"), 0);
	assert_string_equal(recording.format->name, "svg");
}

static void test_the_command_writes_there(void **state)
{
	(void)state;
	assert_int_equal(CHOOSE("-o", "-", "--", "true"), -EINVAL);
	assert_true(is_said_last("--output -: the command writes to standard output too; name a file"));
}

/* A stream of another format: its capture lies in a folder of its own, where temporary files are. */
static void test_the_capture_of_a_stream(void **state)
{
	(void)state;
	assert_int_equal(CHOOSE("-o", "-", "--format", "svg"), 0);
	assert_memory_equal(buf_text(&recording.capture_path), "/tmp/hearth-", 12);
	assert_string_equal(buf_text(&recording.capture_path) + 18, "/capture.otlp");
	assert_int_equal(access(buf_text(&recording.folder), R_OK | W_OK | X_OK), 0);
	assert_memory_equal(buf_text(&recording.capture_path), buf_text(&recording.folder), recording.folder.len);
}

static void test_tmpdir(void **state)
{
	(void)state;
	setenv("TMPDIR", "", 1); /* as if it were not set */
	assert_int_equal(CHOOSE("-o", "-", "--format", "svg"), 0);
	assert_memory_equal(buf_text(&recording.folder), "/tmp/hearth-", 12);
}

static void test_no_tmpdir(void **state)
{
	(void)state;
	setenv("TMPDIR", "/no/such/folder", 1);
	assert_int_equal(CHOOSE("-o", "-", "--format", "svg"), -ENOENT);
	assert_true(is_said_last("cannot make a folder for the capture, /no/such/folder/hearth-"));
	assert_true(is_said_last("set TMPDIR to a place that can be written to"));
	assert_int_equal(recording.folder.len, 0);
	unsetenv("TMPDIR");
}

/* --- the end --- */

static void is_size(uint64_t bytes, const char *wanted)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	print_size(bytes, &out);
	assert_string_equal(buf_text(&out), wanted);
}

static void test_sizes(void **state)
{
	(void)state;
	is_size(0, "0 bytes");
	is_size(1023, "1023 bytes");
	is_size(1024, "1.0 KiB");
	is_size(1536, "1.5 KiB");
	is_size(1024 * 1024 - 1, "1024.0 KiB");
	is_size(1024 * 1024, "1.0 MiB");
	is_size(5ull << 30, "5120.0 MiB");
}

static void test_who_wants_allocations(void **state)
{
	(void)state;
	config = PARSED(&cmd_record, "-e", "malloc");
	assert_true(samples_malloc(&config));
	config_fini(&config);
	config = PARSED(&cmd_record, "-e", "cpu-clock");
	assert_false(samples_malloc(&config));
	config_fini(&config);
	config = PARSED(&cmd_record, "-d", "1");
	assert_false(samples_malloc(&config));
}

/* The folder of a stream's capture goes, unless something is left in it. */
static void test_the_folder_goes(void **state)
{
	AUTO_FCLOSE FILE *f = NULL;

	(void)state;
	assert_int_equal(CHOOSE("-o", "-", "--format", "svg"), 0);
	f = fopen(buf_text(&recording.capture_path), "w");
	assert_non_null(f);
	end_folder(&recording);
	assert_true(is_said_last(" is left behind: "));
	assert_int_equal(unlink(buf_text(&recording.capture_path)), 0);
	end_folder(&recording);
	assert_int_equal(access(buf_text(&recording.folder), F_OK), -1);
}

/* --- the file --- */

static void test_no_place_for_the_file(void **state)
{
	(void)state;
	assert_int_equal(CHOOSE("-o", "/no/such/folder/x.otlp"), 0);
	assert_int_equal(open_file(&recording), -ENOENT);
	assert_true(is_said_last("cannot write /no/such/folder/x.otlp: "));
	assert_null(recording.session.sink);
}

#define RECORD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RECORD_TEST(test_no_name),
		RECORD_TEST(test_who_gets_a_summary),
		RECORD_TEST(test_nobody_wants_a_summary),
		RECORD_TEST(test_a_named_file_is_its_own_summary),
		RECORD_TEST(test_other_formats),
		RECORD_TEST(test_format_that_is_said),
		RECORD_TEST(test_no_format),
		RECORD_TEST(test_a_folder),
		RECORD_TEST(test_standard_output),
		RECORD_TEST(test_a_device),
		RECORD_TEST(test_binary_on_a_terminal),
		RECORD_TEST(test_text_on_a_terminal),
		RECORD_TEST(test_the_command_writes_there),
		RECORD_TEST(test_the_capture_of_a_stream),
		RECORD_TEST(test_tmpdir),
		RECORD_TEST(test_no_tmpdir),
		RECORD_TEST(test_sizes),
		RECORD_TEST(test_who_wants_allocations),
		RECORD_TEST(test_the_folder_goes),
		RECORD_TEST(test_no_place_for_the_file),
	};

	if (options_fill_in(all_option_texts))
		return 1;
	return run_group_of_descriptors(tests, NULL, NULL);
}
