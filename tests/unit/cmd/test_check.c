/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth check`: wrong settings by their lines, and the list of what is here as text and as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/cmd/parsed.h"

#define CHECK(said, ...) run_words(&cmd_check, (const char *const[]){ __VA_ARGS__, NULL }, said)

static char path[64];

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/test_check.XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || close(fd);
}

static int teardown(void **state)
{
	(void)state;
	unsetenv("HEARTH_CONFIG");
	return unlink(path);
}

static void write_file(const char *text)
{
	AUTO_FCLOSE FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
}

/* The text @said is @wanted, in which %s stands for the file. */
static void is(const char *said, const char *wanted)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	for (const char *at; (at = strstr(wanted, "%s")); wanted = at + 2)
		buf_printf(&text, "%.*s%s", (int)(at - wanted), wanted, path);
	buf_puts(&text, wanted);
	assert_string_equal(said, buf_text(&text));
}

static void test_file(void **state)
{
	const char *said;

	(void)state;
	write_file("freq: 9\nrecord: { duration: 5 }\n");
	assert_int_equal(CHECK(&said, "--config", path), STATUS_DONE);
	is(said, "%s: 2 settings, all of them right\n");
	assert_int_equal(CHECK(&said, "--config", path, "--print"), STATUS_DONE);
	assert_non_null(strstr(said, "freq: 9\n"));
	assert_null(strstr(said, "all of them right"));

	write_file("freq: 9\nfrq: 10\nrecord:\n  duration: soon\n");
	assert_int_equal(CHECK(&said, "--config", path), STATUS_FAILED);
	assert_non_null(strstr(said, ":2: unknown key 'frq'; did you mean 'freq'?\n"));
	assert_non_null(strstr(said, ":4: "));
	assert_true(is_said_last("2 settings are wrong in "));
	assert_int_equal(CHECK(&said, "--config", path, "--print"), STATUS_FAILED);
	assert_null(strstr(said, "freq: 9\n"));
	write_file("frq: 10\n");
	assert_int_equal(CHECK(&said, "--config", path), STATUS_FAILED);
	assert_true(is_said_last("1 setting is wrong in "));

	write_file("- freq\n");
	assert_int_equal(CHECK(&said, "--config", path), STATUS_FAILED);
	assert_string_equal(said, "");
	assert_int_equal(CHECK(&said, "--config", "/nowhere/x.yaml"), STATUS_FAILED);
	assert_int_equal(CHECK(&said, "--set", "freq=9"), STATUS_DONE);
	assert_string_equal(said, "--set: 1 settings, all of them right\n");
}

/* A file of pipelines is drawn, with what has no effect, and shown in options when that is asked for. */
static void test_pipelines(void **state)
{
	const char *said;

	(void)state;
	write_file("receivers: { profiling: }\nexporters: { nop: , debug: }\n"
		   "service: { pipelines: { profiles: { receivers: [profiling], exporters: [nop] } } }\n");
	assert_int_equal(CHECK(&said, "--config", path), STATUS_DONE);
	is(said, "%s:2: 'debug' of exporters is not used\nprofiles: profiling -> nop\n");
	assert_int_equal(CHECK(&said, "--config", path, "--print"), STATUS_DONE);
	assert_non_null(strstr(said, "# in options, of the process\n"));
}

/* The file that counts when none is named: none, right or wrong; its line comes last. */
static void test_found_file(void **state)
{
	static const struct {
		const char *text, *head, *advice; /* NULL: there is none */
	} cases[] = {
		{ "freq: 9\n", "\nyes      configuration file: ", NULL },
		{ "frq: 9\n",
		  "\npartly   configuration file: ", "         => hearth check --config FILE names what is wrong in it\n" },
		{ "- freq\n",
		  "\npartly   configuration file: ", "         => hearth check --config FILE names what is wrong in it\n" },
	};
	const char *said;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *at;

		write_file(cases[i].text);
		setenv("HEARTH_CONFIG", path, 1);
		(void)CHECK(&said, "--verbose"); /* the status is this machine's */
		at = strstr(said, cases[i].head);
		if (!at)
			fail_msg("%s: %s", cases[i].text, said);
		assert_int_equal(strncmp(at + strlen(cases[i].head), path, strlen(path)), 0);
		assert_non_null(strstr(at, "\n         settings for all commands, whose keys are the options' names\n"));
		if (cases[i].advice)
			assert_string_equal(strchr(strchr(at + 1, '\n') + 1, '\n') + 1, cases[i].advice);
		else
			assert_null(strstr(at, "=>"));
	}
}

/* The number of each 'no' in JSON, and the status, agree with the list. */
static void test_json(void **state)
{
	const char *said;
	char missing[32];
	unsigned no = 0;
	int status;

	(void)state;
	setenv("HEARTH_CONFIG", "/dev/null", 1);
	status = CHECK(&said, "--json");
	for (const char *p = said; (p = strstr(p, "\"result\": \"no\"")); p++)
		no++;
	snprintf(missing, sizeof(missing), "\"missing\": %u\n", no);
	assert_non_null(strstr(said, missing));
	assert_int_equal(status, no ? STATUS_FAILED : STATUS_DONE);
	assert_non_null(strstr(said, "\"name\": \"configuration file\""));
	assert_non_null(strstr(said, "\"name\": \"kernel BTF\""));
	assert_non_null(strstr(said, "\"name\": \"Kubernetes' API\""));
	assert_int_equal(strncmp(said, "{\n  \"checks\": [", 15), 0);
	assert_int_equal(said[strlen(said) - 1], '\n');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pipelines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_found_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_json, setup, teardown),
	};

	cmd_list(all_commands);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
