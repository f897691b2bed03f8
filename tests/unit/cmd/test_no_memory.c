/* SPDX-License-Identifier: Apache-2.0 */
/* Settings, files of pipelines, sinks and made-up profiles, for want of memory at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/config_file.h"
#include "cmd/options/options.h"
#include "cmd/options/seed_flags.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/setup/made_up.h"
#include "cmd/setup/sinks_of.h"
#include "proto/otlp/otlp.h"
#include "proto/sink.h"
#include "tests/unit/cmd/pipeline/quickstart.h"
#include "tests/unit/failing_memory.h"

static int made_up(struct buf *out)
{
	struct profiles *p;
	int error = made_up_profiles(40, 2000 * NSEC_PER_SEC, NSEC_PER_SEC, &p);

	if (error)
		return error;
	buf_printf(out, "%d of %d", (int)p->sample_events, (int)p->resource_count);
	profiles_put(p);
	error = made_up_profiles(0, 2000 * NSEC_PER_SEC, NSEC_PER_SEC, &p);
	if (error)
		return error;
	error = otlp_encode(p, NULL, out);
	profiles_put(p);
	return error;
}

static void add_note(void *arg, const char *text)
{
	buf_printf(arg, "%s\n", text);
}

static int pipelines_file(const char *text, struct buf *out)
{
	struct config_file *file = NULL;
	struct buf why = BUF_EMPTY;
	int error = config_file_parse("c", text, strlen(text), &file, &why);

	buf_fini(&why);
	if (error)
		return error;
	memory_suffices(); /* to show what was read */
	pipelines_show(config_file_pipelines(file), out);
	pipelines_draw(config_file_pipelines(file), out);
	pipelines_notes(config_file_pipelines(file), add_note, out);
	config_file_free(file);
	return 0;
}

static int quick_start(struct buf *out)
{
	return pipelines_file(quickstart, out);
}

static int of_kubernetes(struct buf *out)
{
	return pipelines_file(kubernetes, out);
}

static int lazy_flags(struct buf *out)
{
	const char *const words[] = { "serve", "-receiver", "stdout", "-stdout.sample-types", "a,b", NULL };
	struct buf why = BUF_EMPTY;
	struct seed_flags f;
	int error = seed_flags_rewrite(5, (char **)(uintptr_t)words, &f, &why);

	for (int i = 0; i < f.argc && !error; i++)
		buf_printf(out, "%s ", f.argv[i]);
	seed_flags_fini(&f);
	buf_fini(&why);
	return error;
}

/* Options, and the sink that they name. */
static int sinks(struct buf *out)
{
	const char *const words[] = { "serve", "--sink", "null", NULL };
	struct config config = { 0 };
	struct metrics *metrics = metrics_new();
	struct buf why = BUF_EMPTY;
	struct store *store = NULL;
	struct sink *sink = NULL;
	int error = metrics ? options_parse(&cmd_serve, 3, (char **)(uintptr_t)words, &config, &why) : -ENOMEM;

	if (!error)
		error = sinks_of(&config, metrics, &sink, &store, out, &why);
	sink_free(sink);
	config_fini(&config);
	metrics_free(metrics);
	buf_fini(&why);
	return error;
}

static const struct memory_scenario scenarios[] = {
	{ "made up", made_up, false },
	{ "quick start", quick_start, false },
	{ "Kubernetes", of_kubernetes, false },
	{ "lazy flags", lazy_flags, false },
	{ "sinks", sinks, false },
};

static void test_scenarios(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++)
		memory_fails_everywhere(&scenarios[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scenarios) };

	setenv("TEST_NODE_NAME", "node-7", 1);
	setenv("HEARTH_CONFIG", "/dev/null", 1);
	cmd_list(all_commands);
	if (options_fill_in(all_option_texts))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
