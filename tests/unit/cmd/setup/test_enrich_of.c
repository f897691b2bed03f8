/* SPDX-License-Identifier: Apache-2.0 */
/* --enrich as words: which parts, whose part of two halves, whether a server is asked; and advice for names. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "cmd/setup/advice.h"
#include "cmd/setup/enrich_of.h"
#include "proto/sink.h"
#include "sinks/sinks.h"
#include "symbols/symbols.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"

static void test_words(void **state)
{
	static const struct {
		const char *words, *says; /* NULL: they are right */
	} cases[] = {
		{ "pods", NULL },
		{ "pods,containers,services", NULL },
		{ "none", NULL },
		{ "pod", "--enrich: there is no 'pod'; did you mean pods?" },
		{ "pods,servces", "--enrich: there is no 'servces'; did you mean services?" },
		{ "xyzzyx", "--enrich: there is no 'xyzzyx'; there are pods, containers, services and none" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config config = PARSED(&cmd_run, "--enrich", cases[i].words);

		assert_int_equal(enrich_check_options(&config), cases[i].says ? -EINVAL : 0);
		assert_true(!cases[i].says || is_said_last(cases[i].says));
		config_fini(&config);
	}
}

static void test_parts(void **state)
{
	struct config config = PARSED(&cmd_run, "--enrich", "pods,services", "--kube-namespace", "shop");
	struct enrich_config enrich = enrich_config_of(&config);

	(void)state;
	assert_true(enrich.pods && enrich.services);
	assert_false(enrich.containers);
	assert_string_equal(enrich.namespace, "shop");
	config_fini(&config);
}

/* A server is asked for pods alone, and where something says which. */
static void test_network(void **state)
{
	static const struct {
		const char *words[5], *host;
		bool asks;
	} cases[] = {
		{ { "--enrich", "pods" }, NULL, false },
		{ { "--enrich", "pods" }, "10.0.0.1", true },
		{ { "--enrich", "pods", "--kube-config", "x" }, NULL, true },
		{ { "--enrich", "pods", "--kubelet", "https://127.0.0.1:10250" }, NULL, true },
		{ { "--enrich", "containers", "--kube-config", "x" }, "10.0.0.1", false },
		{ { "--enrich", "pods,none", "--kube-config", "x" }, "10.0.0.1", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config config = parse_words(&cmd_run, cases[i].words);

		(void)(cases[i].host ? setenv("KUBERNETES_SERVICE_HOST", cases[i].host, 1)
				     : unsetenv("KUBERNETES_SERVICE_HOST"));
		if (enrich_asks_network(&config) != cases[i].asks)
			fail_msg("case %zu", i);
		config_fini(&config);
	}
	unsetenv("KUBERNETES_SERVICE_HOST");
}

/* The stage is put in front only where the half that asks has something of it to do. */
static void test_wrap(void **state)
{
	static const struct {
		const char *words;
		enum enrich_part part;
		bool is_there;
	} cases[] = {
		{ "none", ENRICH_WHOLE, false },
		{ "containers", ENRICH_WHOLE, true },
		{ "containers", ENRICH_OF_AGENT, true },
		{ "containers", ENRICH_OF_BACKEND, false },
		{ "services", ENRICH_OF_AGENT, false },
		{ "services", ENRICH_OF_BACKEND, true },
		{ "containers,none", ENRICH_WHOLE, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config config = PARSED(&cmd_run, "--enrich", cases[i].words);
		struct metrics *metrics = metrics_new();
		struct sink *sink = NULL, *plain;

		assert_int_equal(sink_null_new(&sink), 0);
		plain = sink;
		assert_int_equal(enrich_wrap(&config, cases[i].part, metrics, &sink), 0);
		if ((sink != plain) != cases[i].is_there)
			fail_msg("%s, part %d", cases[i].words, (int)cases[i].part);
		sink_free(sink);
		metrics_free(metrics);
		config_fini(&config);
	}
}

/* Where better names of a file are to be had. */
static void test_advice(void **state)
{
	static const char libc[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";
	static const struct {
		const char *path, *build_id, *says;
	} cases[] = {
		{ "[vdso]", "abcd", "" },
		{ "//anon", "abcd", "" },
		{ "/bin/x", "", "it has no build id; build it with -g and keep it unstripped" },
		{ "/bin/x", "abcdef", "put its debug file at /usr/lib/debug/.build-id/ab/cdef.debug" },
		{ libc, "abcdef", "put its debug file at /usr/lib/debug/.build-id/ab/cdef.debug" }, /* another build of it */
	};
	struct build_ids ids;
	int fd;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		advice_debug_files(NULL, cases[i].path, cases[i].build_id, &out);
		assert_string_equal(buf_text(&out), cases[i].says);
	}
	fd = open(libc, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !access("/var/lib/dpkg/info/libc6:amd64.list", R_OK) && !build_ids_read(fd, &ids)) {
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		advice_debug_files(NULL, libc, ids.gnu, &out);
		assert_string_equal(buf_text(&out), "install libc6-dbg");
	}
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words), cmocka_unit_test(test_parts),  cmocka_unit_test(test_network),
		cmocka_unit_test(test_wrap),  cmocka_unit_test(test_advice),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
