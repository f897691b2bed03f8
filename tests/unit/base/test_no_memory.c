/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, patterns, metrics and configurations for want of memory at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/text/pattern.h"
#include "base/text/tree.h"
#include "tests/unit/failing_memory.h"

static int interned(struct buf *out)
{
	struct intern *t = intern_new();
	int error = t ? 0 : -ENOMEM;

	for (unsigned i = 0; i < 3000 && !error; i++) {
		unsigned key = i % 2000 * 7;
		uint32_t place = UINT32_MAX;
		int is_new = intern_add(t, &key, sizeof(key), &place);

		error = is_new < 0 ? is_new : 0;
		if (!error)
			buf_printf(out, "%u%c", place, is_new ? '+' : ' ');
	}
	intern_free(t);
	return error;
}

static int patterns(struct buf *out)
{
	struct pattern *p = NULL;
	struct pattern_error why;
	int error = pattern_new("^ma(in|ll)oc+$", 0, &p, &why);

	if (!error)
		buf_printf(out, "%d %d", pattern_matches(p, "malloc", 6), pattern_matches(p, "mallo", 5));
	pattern_free(p);
	return error;
}

static void pass_on(void *arg, const struct metric_view *view)
{
	(void)metrics_other(arg, view); /* what is lost of it is told the next time */
}

static void refresh(void *arg)
{
	(void)arg;
}

static int registry(struct buf *out)
{
	struct metrics *m = metrics_new(), *other = metrics_new();
	int error = m && other ? metrics_on_collect(m, refresh, m) : -ENOMEM;

	for (int i = 0; !error && i < 40; i++) {
		AUTO(buf_fini) struct buf labels = BUF_EMPTY;
		char name[32];

		snprintf(name, sizeof(name), "hearth_%d_total", i % 20);
		metrics_label(&labels, "n", name, strlen(name));
		metric_add(metrics_counter(m, "hearth_a_total", buf_text(&labels), "A."),
			   1); /* a series more or less is no error */
		metric_add(metrics_counter(other, "hearth_b_total", buf_text(&labels), "B."), 1);
	}
	if (!error) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY;

		metrics_view(other, pass_on, m);
		metrics_write(m, &text);
		error = text.failed ? -ENOMEM : 0;
	}
	(void)out;
	metrics_free(m);
	metrics_free(other);
	return error;
}

static int mapped(struct buf *out)
{
	AUTO(map_fini) struct map m = MAP_EMPTY;
	int error = 0;

	for (uint64_t i = 1; !error && i < 500; i++) {
		error = map_put(&m, i * 7, (void *)(uintptr_t)i);
		if (!error && map_get(&m, i * 7) != (void *)(uintptr_t)i)
			return -EBADMSG;
	}
	for (uint64_t i = 1; !error && i < 500; i++)
		buf_printf(out, "%d ", (int)(uintptr_t)map_get(&m, i * 7));
	return error;
}

static int configured(struct buf *out)
{
	static const char text[] = "a:\n  b: [1, 'two', \"three\"]\n  c: long text\nd: [{e: f}, {g: h}]\n";
	AUTO(buf_fini) struct buf why = BUF_EMPTY;
	AUTO(tree_fini) struct tree t = TREE_EMPTY;
	int error = tree_parse("file", text, sizeof(text) - 1, &t, &why);

	if (!error)
		tree_write(&t, 0, out);
	return error;
}

static const struct memory_scenario scenarios[] = {
	{ "a registry of metrics", registry, false },
	{ "a map", mapped, false },
	{ "a configuration", configured, true },
	{ "interned", interned, false },
	{ "patterns", patterns, true },
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

	return cmocka_run_group_tests(tests, NULL, NULL);
}
