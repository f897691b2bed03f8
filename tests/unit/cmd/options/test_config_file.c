/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: what is in it, what is wrong with it by line, and who goes before whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/config_file.h"
#include "cmd/options/options.h"

/* --- what is wrong --- */

static void test_not_a_configuration(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "- freq\n", "c:1: the file is lines of 'option: value', such as 'freq: 99'" },
		{ "just text\n", "c:1: the file is lines of 'option: value', such as 'freq: 99'" },
		{ "freq: 9\nfreq: 10\n", "c:2: 'freq' stands here twice" },
		{ "\nfreq:\n  below: 1\n", "c:2: 'freq' is no command, and options have no settings below them" },
		{ "run:\n  record:\n    freq: 1\n", "c:2: 'record' is no command, and options have no settings below them" },
		{ "pid: [1, [2]]\n", "c:1: 'pid' takes texts and numbers, not lists in a list" },
		{ "[a, b]: 1\n", "c:1: a key is a word, such as freq" },
		{ "freq: \"1\\0\"\n", "c:1: the value of 'freq' has a zero byte" },
		{ "freq: 9\n\tverbose: yes\n", "c:2: not YAML: found a tab character that violates indentation" },
		{ "freq: [1\n", "c:2: not YAML: did not find expected ',' or ']'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		struct config_file *file = NULL;

		assert_int_equal(config_file_parse("c", cases[i].text, strlen(cases[i].text), &file, &error), -EINVAL);
		assert_string_equal(buf_text(&error), cases[i].error);
		assert_null(file);
	}
}

static void test_check(void **state)
{
	static const char text[] = "# a comment\n"
				   "freq: 99\n"
				   "frq: 9\n"
				   "collector: [ http://a, 'http://b' ]\n"
				   "report-interval: soon\n"
				   "record:\n"
				   "  freq: max\n"
				   "  http-address: 127.0.0.1:1\n"
				   "  frek: 3\n"
				   "print: maybe\n"
				   "rows: [1, 2]\n"
				   "symbols: ~\n"
				   "help: yes\n"
				   "format: pprof\n";
	static const char problems[] = "c:3: unknown key 'frq'; did you mean 'freq'?\n"
				       "c:5: report-interval: 'soon' is not a time; give one such as 500ms, 2m or 5s\n"
				       "c:8: 'http-address' is no option of 'hearth record'\n"
				       "c:9: 'frek' is no option of 'hearth record'; did you mean 'freq'?\n"
				       "c:10: print: 'maybe' is neither yes nor no\n"
				       "c:11: rows takes one value, not a list\n"
				       "c:13: unknown key 'help'; did you mean 'heap'?\n";
	AUTO(buf_fini) struct buf error = BUF_EMPTY, out = BUF_EMPTY;
	struct config_file *file = NULL;

	(void)state;
	assert_int_equal(config_file_parse("c", text, sizeof(text) - 1, &file, &error), 0);
	assert_int_equal(config_file_count(file), 12);
	assert_int_equal(config_file_check(file, &out), 7);
	assert_string_equal(buf_text(&out), problems);
	assert_int_equal(config_file_check_keys(file, &error), -EINVAL);
	assert_string_equal(buf_text(&error), "c:3: unknown key 'frq'; did you mean 'freq'?");
	config_file_free(file);
}

/* --- what counts --- */

struct fixture {
	char folder[64], path[96];
};

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fputs(text, f) < 0, 0);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	static struct fixture f;

	snprintf(f.folder, sizeof(f.folder), "/tmp/hearth-config-XXXXXX");
	assert_non_null(mkdtemp(f.folder));
	snprintf(f.path, sizeof(f.path), "%s/hearth.yaml", f.folder);
	clearenv();
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	rmdir(f->folder);
	return 0;
}

/* 0, or what is wrong in @error. */
static int parse(const char *command, const char *path, const char *flag, struct config *config, struct buf *error)
{
	static char words[6][128];
	static char *argv[7];
	int argc = 0;

	argv[argc] = strcpy(words[argc], command);
	argc++;
	if (path) {
		argv[argc] = strcpy(words[argc], "--config");
		argc++;
		argv[argc] = strcpy(words[argc], path);
		argc++;
	}
	if (flag) {
		argv[argc] = strcpy(words[argc], flag);
		argc++;
	}
	argv[argc] = NULL;
	return options_parse(cmd_find(command), argc, argv, config, error);
}

static uint64_t freq_of(const char *command, const char *path, const char *flag)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO(config_fini) struct config config;

	if (parse(command, path, flag, &config, &error))
		fail_msg("%s", buf_text(&error));
	return config.freq_hz;
}

static void test_order(void **state)
{
	struct fixture *f = *state;

	write_file(f->path, "freq: 30\nrecord:\n  freq: 40\ncollector: http://file\n");
	assert_int_equal(freq_of("run", NULL, NULL), 20);
	assert_int_equal(freq_of("run", f->path, NULL), 30);
	assert_int_equal(freq_of("record", f->path, NULL), 40);
	setenv("HEARTH_FREQ", "50", 1);
	assert_int_equal(freq_of("record", f->path, NULL), 50);
	assert_int_equal(freq_of("record", f->path, "-F60"), 60);
	unsetenv("HEARTH_FREQ");
	/* the file's place: the flag before the variable before where it is looked for */
	setenv("XDG_CONFIG_HOME", f->folder, 1);
	assert_int_equal(freq_of("run", NULL, NULL), 30);
	setenv("HEARTH_CONFIG", "/dev/null", 1);
	assert_int_equal(freq_of("run", NULL, NULL), 20);
	assert_int_equal(freq_of("run", f->path, NULL), 30);
	unsetenv("HEARTH_CONFIG");
	/* one that others may write to is not believed, unless it is named */
	assert_int_equal(chmod(f->path, 0666), 0);
	assert_int_equal(freq_of("run", NULL, NULL), 20);
	assert_int_equal(freq_of("run", f->path, NULL), 30);
}

static void test_lists_and_otel(void **state)
{
	struct fixture *f = *state;
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO(config_fini) struct config config, other;

	write_file(f->path, "collector: [http://a, http://b]\npid: [1, 2]\ncomm: 'x,y'\nprint: true\ncollector-timeout: 3s\n"
			    "error-frames: no\nrows: 7\n");
	assert_int_equal(parse("run", f->path, NULL, &config, &error), 0);
	assert_int_equal(config.collectors.count, 2);
	assert_string_equal(config.collectors.items[1], "http://b");
	assert_int_equal(config.pids.count, 2);
	assert_int_equal(config.pids.items[1], 2);
	assert_int_equal(config.comms.count, 2);
	assert_true(config.print);
	assert_false(config.error_frames);
	assert_int_equal(config.collector_timeout_ns, 3000000000);
	setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "4000", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://otel/", 1);
	assert_int_equal(parse("run", f->path, NULL, &other, &error), 0);
	assert_int_equal(other.collector_timeout_ns, 4000000000);
	assert_int_equal(other.collectors.count, 1); /* replaced, not added to */
}

static void test_mistakes_end_the_start(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "frq: 1\n", ":1: unknown key 'frq'; did you mean 'freq'?" },
		{ "\nfreq: fast\n", ":2: freq: 'fast' is not a number; give a whole number or max, such as 20" },
		{ "a: [\n", ":2: not YAML: did not find expected node content" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		AUTO(config_fini) struct config config;

		write_file(f->path, cases[i].text);
		assert_int_equal(parse("run", f->path, NULL, &config, &error), -EINVAL);
		assert_non_null(strstr(buf_text(&error), cases[i].error));
		assert_int_equal(strncmp(buf_text(&error), f->path, strlen(f->path)), 0);
	}
	for (size_t i = 0; i < 2; i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		AUTO(config_fini) struct config config;

		assert_int_equal(parse("run", i ? f->folder : "/no/such/file", NULL, &config, &error), -EINVAL);
		assert_non_null(strstr(buf_text(&error), i ? "Is a directory" : "cannot read /no/such/file"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_a_configuration),
		cmocka_unit_test(test_check),
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lists_and_otel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mistakes_end_the_start, setup, teardown),
	};

	cmd_list(all_commands);
	if (options_fill_in(all_option_texts))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
