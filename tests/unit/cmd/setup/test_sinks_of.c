/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks by their names: help and refusals tell of the same table, and a sink that cannot be made says why. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "cmd/options/config.h"
#include "cmd/setup/sinks_of.h"
#include "proto/sink.h"

/* Makes the sink @spec. @names and @error get what is told. */
static int make(const char *spec, struct buf *names, struct buf *error)
{
	char *items[] = { (char *)(uintptr_t)spec, NULL };
	const struct config config = { .print_form = "plain",
				       .collector_compression = "gzip",
				       .sinks = { .items = items, .count = 1 } };
	struct metrics *metrics = metrics_new();
	struct store *store = NULL;
	struct sink *sink = NULL;
	int err = sinks_of(&config, metrics, &sink, &store, names, error);

	assert_true(!sink == !!err);
	assert_null(store);
	sink_free(sink);
	metrics_free(metrics);
	return err;
}

static void test_refusals(void **state)
{
	static const struct {
		const char *spec, *says; /* NULL: it is made */
		int err;
	} cases[] = {
		{ "null", NULL, 0 },
		{ "nul", "--sink: there is no sink 'nul'; did you mean null?", -EINVAL },
		{ "null=x", "--sink: null takes no value", -EINVAL },
		{ "file", "--sink: file needs a value: file=PATH", -EINVAL },
		{ "file=", "--sink: file needs a value: file=PATH", -EINVAL },
		{ "file=/nowhere/x", "cannot write to /nowhere/x: No such file or directory", -ENOENT },
		{ "dir=/dev/null", "cannot write to /dev/null: Not a directory", -ENOTDIR },
		{ "prometheus", "--sink: prometheus is what 'hearth serve' counts for /metrics", -EINVAL },
		{ "otlp=ftp://u:secret@x",
		  "--collector: 'ftp://u:xxxxxx@x' is no collector's address; give one such as http://127.0.0.1:4318 or "
		  "grpc://127.0.0.1:4317",
		  -EINVAL },
		{ "store=/dev/null/x", "cannot keep profiles in /dev/null/x: Not a directory", -ENOTDIR },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf names = BUF_EMPTY, error = BUF_EMPTY;
		int err = make(cases[i].spec, &names, &error);

		if (err != cases[i].err || strcmp(buf_text(&error), cases[i].says ? cases[i].says : "") != 0)
			fail_msg("%s: %d, '%s'", cases[i].spec, err, buf_text(&error));
		assert_string_equal(buf_text(&names), cases[i].says ? "" : cases[i].spec);
	}
}

/* The refusal of an unknown name lists what help lists, without the words in parentheses. */
static void test_list(void **state)
{
	AUTO(buf_fini) struct buf names = BUF_EMPTY, error = BUF_EMPTY, help = BUF_EMPTY, want = BUF_EMPTY;
	const char *last;

	(void)state;
	sinks_print_help(&help);
	last = strrchr(buf_text(&help), ',');
	assert_non_null(last);
	buf_puts(&want, "--sink: there is no sink 'xyzzyx'; there are ");
	for (const char *p = buf_text(&help); *p; p++) {
		if (*p == ' ' && p[1] == '(')
			p = strchr(p, ')');
		else if (p == last)
			buf_puts(&want, " and");
		else
			buf_putc(&want, *p);
	}
	assert_int_equal(make("xyzzyx", &names, &error), -EINVAL);
	assert_string_equal(buf_text(&error), buf_text(&want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
