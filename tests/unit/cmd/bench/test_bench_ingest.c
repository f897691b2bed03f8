/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver that `hearth bench` feeds: this test, started as hearth, with what it takes and keeps counted from outside. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cmd/bench/bench.h"
#include "cmd/setup/made_up.h"
#include "proto/otlp/otlp.h"
#include "proto/profiles.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"

enum { SAMPLES = 50 };

static char folder[64], store[96], messages[96], capture[96];

static void write_capture(void)
{
	AUTO(buf_fini) struct buf body = BUF_EMPTY;
	AUTO_FCLOSE FILE *f = fopen(capture, "we");
	struct profiles *p;

	assert_int_equal(made_up_profiles(SAMPLES, clock_unix_ns(), NSEC_PER_SEC, &p), 0);
	assert_int_equal(p->sample_events, SAMPLES);
	assert_int_equal(otlp_encode(p, NULL, &body), 0);
	profiles_put(p);
	assert_int_equal(fwrite(body.data, 1, body.len, f), body.len);
}

static void test_ingest(void **state)
{
	const uint64_t began = clock_mono_ns();
	struct bench_ingested got;
	char file[128];
	struct stat st;

	(void)state;
	write_capture();
	unlink(messages);
	assert_int_equal(bench_ingest_run(store, messages, capture, &got), 0);
	assert_in_range(clock_mono_ns() - began, 3 * NSEC_PER_SEC, 60 * NSEC_PER_SEC);
	assert_true(got.requests > 0);
	assert_int_equal(got.samples, got.requests * SAMPLES);
	assert_in_range(got.cpu_ns, NSEC_PER_MSEC, 30 * NSEC_PER_SEC);
	for (int i = 0; i < BENCH_QUESTIONS; i++)
		assert_true(got.graph_ms[i] > 0.01 && got.graph_ms[i] < 20000);
	snprintf(file, sizeof(file), "%s/profiles.db", store);
	assert_int_equal(stat(file, &st), 0);
	/* the first request is stored, too */
	assert_true(got.bytes_a_sample * (double)(got.samples + SAMPLES) > (double)st.st_size - 1);
	assert_true(got.bytes_a_sample * (double)(got.samples + SAMPLES) < (double)st.st_size + 1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* What cannot be fed, or is no receiver, is an error. */
static void test_failures(void **state)
{
	struct bench_ingested got;
	FILE *f;

	(void)state;
	assert_int_equal(bench_ingest_run(store, messages, "/nowhere/x", &got), -ENOENT);
	f = fopen(capture, "we");
	fputs("no profiles", f);
	fclose(f);
	unlink(messages);
	assert_int_equal(bench_ingest_run(store, messages, capture, &got), -EPROTO);
	assert_int_equal(got.samples, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* As hearth, whose options are known. */
static int hearth(int argc, char **argv)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct config config;
	int status;

	cmd_list(all_commands);
	if (options_parse(&cmd_serve, argc - 1, argv + 1, &config, &error))
		return 9;
	status = cmd_serve.run(&config);
	config_fini(&config);
	return status;
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_bench_ingest.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(store, sizeof(store), "%s/store", folder);
	snprintf(messages, sizeof(messages), "%s/messages", folder);
	snprintf(capture, sizeof(capture), "%s/capture", folder);
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_ingest), cmocka_unit_test(test_failures) };

	setenv("HEARTH_CONFIG", "/dev/null", 1);
	if (argc > 1 && !strcmp(argv[0], "hearth"))
		return hearth(argc, argv);
	return run_group_of_descriptors(tests, setup, teardown);
}
