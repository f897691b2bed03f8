/* SPDX-License-Identifier: Apache-2.0 */
/* Which settings ask for a second process, and which half gets which of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cmd/halves/share.h"
#include "cmd/options/config_file.h"
#include "cmd/pipeline/pipelines.h"
#include "tests/unit/cmd/parsed.h"

static void test_needs(void **state)
{
	static const struct {
		const char *words[3];
		bool keeps, backend;
	} rows[] = {
		{ { NULL }, false, false },
		{ { NULL }, true, true },
		{ { "--store", "here" }, false, true },
		{ { "--collector", "http://h" }, false, true },
		{ { "--metrics-address", "127.0.0.1:0" }, false, true },
		{ { "--rest-address", "127.0.0.1:0" }, false, true },
		{ { "--pprof-address", "127.0.0.1:0" }, false, true },
		{ { "--sink", "file=a" }, false, false },
		{ { "--sink", "store=a" }, false, true },
		{ { "--sink", "otlp=http://h" }, false, true },
		{ { "--print" }, false, false },
		{ { "--sink", "null", "--print" }, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *words[4] = { rows[i].words[0], rows[i].words[1], rows[i].words[2], NULL };
		struct config config = parse_words(&cmd_run, words);

		if (share_needs_backend(&config, rows[i].keeps) != rows[i].backend)
			fail_msg("row %zu", i);
		assert_int_equal(share_needs_one_process(&config, rows[i].keeps), rows[i].backend);
		config_fini(&config);
	}
}

static const struct {
	const char *text;
	bool backend, one_process; /* what they need */
} files[] = {
	{ "receivers:\n  profiling: {}\nexporters:\n  debug: {}\nservice:\n  pipelines:\n    profiles:\n"
	  "      receivers: [profiling]\n      exporters: [debug]\n",
	  false, false },
	{ "receivers:\n  profiling: {}\nexporters:\n  otlp: { endpoint: \"h:4317\" }\nservice:\n  pipelines:\n    "
	  "profiles:\n"
	  "      receivers: [profiling]\n      exporters: [otlp]\n",
	  true, true },
	{ "receivers:\n  profiling: {}\nexporters:\n  file: { path: a.json }\nservice:\n  pipelines:\n    profiles:\n"
	  "      receivers: [profiling]\n      exporters: [file]\n",
	  false, false },
	{ "receivers:\n  profiling: {}\n  otlp: { protocols: { http: { endpoint: \"127.0.0.1:0\" } } }\n"
	  "exporters:\n  debug: {}\nservice:\n  pipelines:\n    profiles:\n"
	  "      receivers: [profiling, otlp]\n      exporters: [debug]\n",
	  true, true },
};

/* Pipelines go to one half as a whole, and to the other not at all. */
static void test_pipelines(void **state)
{
	(void)state;
	cmd_list(all_commands);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		struct buf error = BUF_EMPTY;
		struct config_file *file = NULL;
		struct config config = PARSED(&cmd_run, "--freq", "99");
		struct share share;

		if (config_file_parse("c", files[i].text, strlen(files[i].text), &file, &error))
			fail_msg("file %zu: %s", i, buf_text(&error));
		config.pipelines = config_file_pipelines(file);
		for (int keeps = 0; keeps < 2; keeps++) {
			if (share_needs_backend(&config, keeps) != files[i].backend)
				fail_msg("file %zu, backend", i);
			if (share_needs_one_process(&config, keeps) != files[i].one_process)
				fail_msg("file %zu, one process", i);
		}
		assert_int_equal(share_divide(&config, &share), 0);
		assert_ptr_equal(share.agent.pipelines, files[i].backend ? NULL : config.pipelines);
		assert_ptr_equal(share.backend.pipelines, files[i].backend ? config.pipelines : NULL);
		assert_ptr_equal(share.senders.pipelines, files[i].backend ? config.pipelines : NULL);
		share_fini(&share);
		/* metrics need a server, which is the pipelines' where they have one */
		config.metrics_address = "127.0.0.1:0";
		assert_true(share_needs_backend(&config, false));
		assert_true(share_needs_one_process(&config, false));
		config.metrics_address = NULL;
		config.pprof_address = "127.0.0.1:0";
		assert_true(share_needs_backend(&config, false));
		assert_true(share_needs_one_process(&config, false));
		config_fini(&config);
		config_file_free(file);
		buf_fini(&error);
	}
}

/* The names of the sinks in @l, with a space behind each. */
static const char *names(const struct string_list *l)
{
	static char text[256];

	*text = '\0';
	for (size_t i = 0; i < l->count; i++) {
		strcat(text, l->items[i]);
		strcat(text, " ");
	}
	return text;
}

static void test_divided(void **state)
{
	struct config config = PARSED(&cmd_run, "--sink", "file=a", "--sink", "store=b", "--sink", "otlp=http://c", "--sink",
				      "null", "--collector", "http://d", "--print", "--metrics-address", "127.0.0.1:1",
				      "--http-address", "127.0.0.1:2", "--rest-address", "127.0.0.1:3", "--pprof-address",
				      "127.0.0.1:4");
	struct share share;

	(void)state;
	config.store = "e";
	assert_int_equal(share_divide(&config, &share), 0);
	assert_string_equal(names(&share.agent.sinks), "file=a null ");
	assert_string_equal(names(&share.backend.sinks), "store=b ");
	assert_string_equal(names(&share.senders.sinks), "otlp=http://c ");
	assert_null(share.agent.store);
	assert_string_equal(share.backend.store, "e");
	assert_null(share.senders.store);
	assert_int_equal(share.agent.collectors.count, 0);
	assert_int_equal(share.backend.collectors.count, 0);
	assert_string_equal(names(&share.senders.collectors), "http://d ");
	assert_true(share.agent.print);
	assert_false(share.backend.print || share.senders.print);
	assert_null(share.agent.metrics_address);
	assert_null(share.agent.rest_address);
	assert_null(share.agent.pprof_address);
	assert_string_equal(share.backend.pprof_address, "127.0.0.1:4");
	assert_string_equal(share.backend.metrics_address, "127.0.0.1:1");
	assert_string_equal(share.senders.rest_address, "127.0.0.1:3");

	share.backend.http_address = "127.0.0.1:9";
	share.backend.spool = "given";
	share.backend.store = "moved";
	share_renew_senders(&share);
	assert_string_equal(share.senders.http_address, "127.0.0.1:9");
	assert_string_equal(share.senders.spool, "given");
	assert_null(share.senders.store);
	assert_string_equal(names(&share.senders.sinks), "otlp=http://c ");
	assert_string_equal(names(&share.senders.collectors), "http://d ");
	assert_string_equal(names(&share.backend.sinks), "store=b ");
	share_fini(&share);
	config_fini(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_needs),
		cmocka_unit_test(test_pipelines),
		cmocka_unit_test(test_divided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
