/* SPDX-License-Identifier: Apache-2.0 */
/* Readers, sums and writers of profiles, for want of memory at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "proto/sums/activity.h"
#include "proto/report/flamegraph.h"
#include "proto/sums/locks.h"
#include "proto/sums/modules.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/signals.h"
#include "proto/otlp/json/json_decode.h"
#include "proto/formats/pprof.h"
#include "proto/formats/formats.h"
#include "proto/report/report.h"
#include "proto/report/diff_table.h"
#include "proto/sums/timeline.h"
#include "proto/sums/truth.h"
#include "proto/sums/view.h"
#include "tests/unit/failing_memory.h"
#include "tests/unit/proto/otlp_bytes.h"
#include "tests/unit/proto/random_profiles.h"
#include "tests/unit/proto/text_profiles.h"

static struct profiles *profiles, *unnamed; /* of many kinds, made once; with frames without names */
static struct buf message, json, pprof, older, disorder, metrics;

/* What was read, as bytes. */
static int encode(struct profiles *p, struct buf *out)
{
	int error = otlp_encode(p, NULL, out);

	profiles_put(p);
	return error;
}

static int of_otlp(struct buf *out)
{
	struct otlp_error why;
	struct profiles *p;
	int error = otlp_decode(message.data, message.len, false, &p, &why);

	return error ? error : encode(p, out);
}

static int of_older(struct buf *out)
{
	struct otlp_error why;
	struct profiles *p;
	int error = otlp_decode(older.data, older.len, false, &p, &why);

	return error ? error : encode(p, out);
}

static int of_json(struct buf *out)
{
	struct otlp_error why;
	struct profiles *p;
	int error = otlp_json_decode(json.data, json.len, &p, &why);

	return error ? error : encode(p, out);
}

/* Ids are drawn anew, so that only what stands beside them is compared. */
static int stacks_of(struct profiles *p, struct buf *out)
{
	struct tree *t = tree_new();
	int error = t ? tree_add(t, p) : -ENOMEM;

	if (!error)
		error = report_folded(t, out);
	tree_free(t);
	profiles_put(p);
	return error;
}

static int of_pprof(struct buf *out)
{
	struct otlp_error why;
	struct profiles *p;
	int error = pprof_read(pprof.data, pprof.len, &p, &why);

	return error ? error : stacks_of(p, out);
}

static int of_text(int (*read)(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *why),
		   const char *text, struct buf *out)
{
	struct otlp_error why;
	struct profiles *p;
	int error = read((const uint8_t *)text, strlen(text), &p, &why);

	return error ? error : stacks_of(p, out);
}

static int of_folded(struct buf *out)
{
	return of_text(folded_read, "a;b;c 3\na;b 2\nd;e;f;g 7\n", out);
}

static int of_speedscope(struct buf *out)
{
	return of_text(
		speedscope_read,
		"{\"$schema\":\"https://www.speedscope.app/"
		"file-format-schema.json\",\"shared\":{\"frames\":[{\"name\":\"f\"},"
		"{\"name\":\"g\",\"file\":\"g.c\",\"line\":3}]},\"profiles\":[{\"type\":\"sampled\",\"name\":\"t\",\"unit\":"
		"\"nanoseconds\",\"startValue\":0,\"endValue\":9,\"samples\":[[0,1],[0]],\"weights\":[4,5]}]}",
		out);
}

static int of_perf_script(struct buf *out)
{
	return of_text(perf_script_read,
		       "web 1/2 [001] 5.000000001: 10 cpu-clock:\n\t401000 f+0x10 (/bin/a)\n\t402000 [unknown] (/bin/b)\n\n"
		       "io 1/3 [002] 6.0: 10 cpu-clock:\n\tffffffff81000000 g ([kernel.kallsyms])\n\n",
		       out);
}

static int pprof_by(int (*write)(const struct pprof *pp, struct buf *out), struct buf *out)
{
	struct pprof *pp = pprof_new();
	int error = pp ? pprof_add(pp, profiles) : -ENOMEM;

	if (!error)
		error = write(pp, out);
	pprof_free(pp);
	return error;
}

static int to_pprof(struct buf *out)
{
	return pprof_by(pprof_write, out);
}

static int to_packed_pprof(struct buf *out)
{
	return pprof_by(pprof_write_packed, out);
}

static int to_json(struct buf *out)
{
	return otlp_json_encode(profiles, out);
}

static int to_timeline(struct buf *out)
{
	struct timeline *t;
	int error = timeline_new(profiles, &t);

	if (error)
		return error;
	error = timeline_write_speedscope(t, "x", out);
	if (!error)
		error = timeline_write_firefox(t, out);
	timeline_free(t);
	return error;
}

static int to_pictures(struct buf *out)
{
	struct tree *t = tree_new();
	int error = t ? tree_add(t, profiles) : -ENOMEM;

	if (!error)
		error = flamegraph_write_svg(t, out);
	if (!error)
		error = flamegraph_write_html(t, out);
	tree_free(t);
	return error;
}

static int to_tables(struct buf *out)
{
	struct top *top = top_new();
	struct tree *tree = tree_new();
	struct activity *activity = activity_new(ACTIVITY_PROCESSES, NULL);
	int error = top && tree && activity ? 0 : -ENOMEM;

	if (!error)
		error = top_add(top, profiles);
	if (!error)
		error = tree_add(tree, profiles);
	if (!error)
		error = activity_add(activity, profiles);
	if (!error)
		error = report_json(top, activity, tree, out);
	if (!error)
		error = report_csv(top, out);
	if (!error)
		error = report_activity(activity, true, &(struct report_style){ .columns = 80 }, out);
	top_free(top);
	tree_free(tree);
	activity_free(activity);
	return error;
}

static int to_modules(struct buf *out)
{
	struct modules *m = modules_new();
	int error = m ? modules_add(m, profiles) : -ENOMEM;

	if (!error)
		error = modules_report(m, NULL, NULL, out);
	modules_free(m);
	return error;
}

static int in_order(struct buf *out)
{
	struct otlp_error why;
	struct profiles *p;
	int error = otlp_decode(disorder.data, disorder.len, false, &p, &why);

	if (error)
		return error;
	error = profiles_merge(p);
	if (!error)
		error = profiles_order(p);
	if (error)
		profiles_put(p);
	return error ? error : encode(p, out);
}

/* Another signal than profiles, with packed numbers. */
static int of_metrics(struct buf *out)
{
	struct otlp_error why;
	struct otlp_other o;
	int error = otlp_other_decode(OTLP_METRICS, false, metrics.data, metrics.len, &o, &why);

	if (error)
		return error;
	error = otlp_other_encode(&o, out);
	if (!error)
		error = otlp_other_json_encode(&o, out);
	otlp_other_fini(&o);
	return error;
}

static int to_difference(struct buf *out)
{
	struct diff *d = diff_new(NULL);
	const struct diff_result *r;
	int error = d ? diff_add_run(d, DIFF_A, profiles) : -ENOMEM;

	if (!error)
		error = diff_add_run(d, DIFF_B, profiles);
	if (!error)
		error = diff_judge(d, DIFF_SHARES, 0, &r);
	if (!error)
		error = report_diff_json(r, out);
	if (!error)
		error = report_diff_svg(d, r, out);
	if (!error)
		error = report_diff_html(d, r, out);
	diff_free(d);
	return error;
}

/* A view that groups and selects. NULL without memory. */
static struct view *view_of_threads(void)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct view *v = view_new();

	if (v && !view_match(v, VIEW_IGNORE, "^no such frame$", &error) && !view_match(v, VIEW_HIDE, "^x$", &error) &&
	    !view_match(v, VIEW_FOCUS, ".", &error) && !view_group(v, "thread", &error))
		return v;
	view_free(v);
	return NULL;
}

/* By group, by line, upside down, and who called. */
static int to_views(struct buf *out)
{
	const struct report_style style = { .columns = 100, .by = "thread" };
	struct view *v = view_of_threads();
	struct top *top = top_new(), *lines = top_new(), *groups = top_new();
	struct tree *inverted = tree_new(), *callers = tree_new();
	struct activity *activity = v ? activity_new(ACTIVITY_GROUPS, v) : NULL;
	int error = v && top && lines && groups && inverted && callers && activity ? 0 : -ENOMEM;

	if (!error) {
		top_view(top, v);
		top_view(lines, v);
		top_view(groups, v);
		top_split_lines(lines);
		top_count(groups, TOP_GROUPS);
		tree_view(inverted, v);
		tree_show(inverted, FRAME_PLACE | FRAME_INLINED);
		tree_invert(inverted);
		tree_callers(callers, "f1", NULL, 3);
		error = top_add(top, profiles);
	}
	if (!error)
		error = top_add(lines, profiles);
	if (!error)
		error = top_add(groups, profiles);
	if (!error)
		error = tree_add(inverted, profiles);
	if (!error)
		error = tree_add(callers, profiles);
	if (!error)
		error = activity_add(activity, profiles);
	if (!error)
		error = report_top(top, &style, out);
	if (!error)
		error = report_lines(top, lines, NULL, NULL, &style, out);
	if (!error)
		error = report_csv(groups, out);
	if (!error)
		error = report_tree(inverted, &style, out);
	if (!error)
		error = report_folded(callers, out);
	if (!error)
		error = report_activity(activity, false, &style, out);
	top_free(top);
	top_free(lines);
	top_free(groups);
	tree_free(inverted);
	tree_free(callers);
	activity_free(activity);
	view_free(v);
	return error;
}

/* Who was active by thread, and who waited for what. */
static int to_waits(struct buf *out)
{
	struct activity *threads = activity_new(ACTIVITY_THREADS, NULL);
	struct locks *locks = locks_new(NULL);
	int error = threads && locks ? 0 : -ENOMEM;

	if (!error)
		error = activity_add(threads, profiles);
	if (!error)
		error = locks_add(locks, profiles);
	if (!error)
		error = report_activity(threads, false, &(struct report_style){ 0 }, out);
	if (!error)
		error = report_locks(locks, &(struct report_style){ 0 }, out);
	activity_free(threads);
	locks_free(locks);
	return error;
}

/* Which frames have names, of small profiles, so that each allocation gets its turn. */
static int to_truth(struct buf *out)
{
	struct truth *truth = truth_new();
	int error = truth ? truth_add(truth, unnamed) : -ENOMEM;

	if (!error)
		error = truth_report(truth, out);
	truth_free(truth);
	return error;
}

static const struct memory_scenario scenarios[] = {
	{ "OTLP", of_otlp, false },
	{ "OTLP 1.7", of_older, false },
	{ "JSON", of_json, false },
	{ "pprof", of_pprof, false },
	{ "folded", of_folded, false },
	{ "speedscope", of_speedscope, false },
	{ "perf script", of_perf_script, false },
	{ "to pprof", to_pprof, false },
	{ "to packed pprof", to_packed_pprof, false },
	{ "to JSON", to_json, false },
	{ "timeline", to_timeline, false },
	{ "pictures", to_pictures, false },
	{ "tables", to_tables, false },
	{ "modules", to_modules, false },
	{ "order", in_order, false },
	{ "metrics", of_metrics, false },
	{ "difference", to_difference, false },
	{ "views", to_views, false },
	{ "waits", to_waits, false },
	{ "truth", to_truth, false },
};

static void test_scenarios(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++)
		memory_fails_everywhere(&scenarios[i]);
}

/* Every table is the wrong way round: one stack a location, which all share one in the middle; a function a location. */
static void make_disorder(struct buf *out)
{
	enum { COUNT = 400 };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	buf_puts(&text, "1{2{2{1{1:1 2:2}");
	for (int i = 1; i <= COUNT; i++)
		buf_printf(&text, " 2{1:%d 4[1]}", i);
	buf_puts(&text, " 3=5 4:6}}}2{1{} 2{}");
	for (int i = 1; i <= COUNT; i++)
		buf_printf(&text, " 2{2:%d 3{1:%d 2:%d}}", 9000 - i, COUNT + 1 - i, i);
	buf_puts(&text, " 3{}");
	for (int i = 1; i <= COUNT; i++)
		buf_printf(&text, " 3{1:%d 3:%d 4:%d}", 3 + COUNT - i, 3 + COUNT + i % 7, COUNT - i);
	buf_puts(&text, " 4{} 5'' 5'count' 5'unit'");
	for (int i = 0; i < COUNT + 7; i++)
		buf_printf(&text, " 5's%d'", i);
	buf_puts(&text, " 6{} 7{}");
	for (int i = 1; i <= COUNT; i++)
		buf_printf(&text, " 7{1[%d %d]}", COUNT + 1 - i, COUNT / 2);
	buf_puts(&text, "}");
	bytes_fields(buf_text(&text), out);
}

/* Frames without a name in more modules than tables begin with, the last one with a long name. */
static struct profiles *of_many_modules(void)
{
	enum { MODULES = 100, LONG_NAME = 600 };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	for (int i = 0; i < MODULES; i++)
		buf_printf(&text, "app;main@app;@lib%d 3\n", i);
	buf_printf(&text, "app;main@app;@%0*d 2\n", LONG_NAME, 0);
	return text_profiles(buf_text(&text), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scenarios) };
	int failed;

	profiles = random_profiles(12);
	unnamed = of_many_modules();
	bytes_fields("1{2{2{1{1:1 2:2 3:1} 2{1:0 2:2 3[7] 4[0] 5:0} 2{1:1 2:2 3[8]} 3[0 1 0 1] 4:5 5:6 6{1:1} 7:9 11:3 "
		     "14[0] 8[1]}}}"
		     "2{1{1:4096 2:8192 4:1 5[0] 6:1 8:1} 2{1:0 2:5 3{1:0 2:7} 5[0]} 2{2:6 4:1} 3{1:2} 4{1'0123456789abcdef'"
		     " 2'01234567'} 5'' 5'a' 5'count' 5'unit' 6{1'key' 2{3:1}}}",
		     &older);
	make_disorder(&disorder);
	bytes_fields("1{2{2{1'size' 10{1{3=5 8{1:2 2[1 2 300]}} 2:1}}}}", &metrics);
	if (!profiles || otlp_encode(profiles, NULL, &message) || to_json(&json) || to_pprof(&pprof) || older.failed ||
	    disorder.failed || metrics.failed)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	buf_fini(&message);
	buf_fini(&json);
	buf_fini(&pprof);
	buf_fini(&older);
	buf_fini(&disorder);
	buf_fini(&metrics);
	profiles_put(profiles);
	profiles_put(unnamed);
	return failed;
}
