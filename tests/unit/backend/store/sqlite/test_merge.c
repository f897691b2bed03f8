/* SPDX-License-Identifier: Apache-2.0 */
/* Thinning: what of old samples goes (time below the minute, thread, CPU, link), what stays, and which are old enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/store/sqlite/db.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/profiles_builder.h"
#include "tests/unit/backend/store_put.h"

#define THIN_AGE (2 * HOUR_NS)

static const struct builder_profile_spec on_cpu = { "hearth",	   "1",	     "samples", "count", "cpu",
						    "nanoseconds", 50000000, NULL,	0 },
					 off_cpu = { "hearth", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 };

struct fixture {
	char folder[64];
	struct metrics *metrics;
	struct store *s;
	struct builder *b;
	uint64_t border_ns; /* samples of before are thinned */
	struct buf told;
};

static void open_store(struct fixture *f, uint64_t thin_age_ns)
{
	const struct store_config config = {
		.place = f->folder, .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX, .thin_age_ns = thin_age_ns
	};
	struct store_error err;

	if (store_sqlite_open(&config, f->metrics, &f->s, &err))
		fail_msg("%s", err.message);
}

/* A store thins of itself now and then; one that is to show first what it was given does not. */
static void open_anew(struct fixture *f, uint64_t thin_age_ns)
{
	f->s->close(f->s);
	open_store(f, thin_age_ns);
}

static int setup(void **state)
{
	static struct fixture f;
	const uint64_t hour_ns = HOUR_NS;

	f = (struct fixture){ .metrics = metrics_new(), .b = builder_new() };
	snprintf(f.folder, sizeof(f.folder), "/tmp/hearth-thin-XXXXXX");
	assert_non_null(mkdtemp(f.folder));
	while (clock_unix_ns() % hour_ns > hour_ns - 60 * NSEC_PER_SEC) /* no hour ends while a test runs */
		usleep(100000);
	f.border_ns = (clock_unix_ns() - THIN_AGE) / hour_ns * hour_ns;
	open_store(&f, THIN_AGE);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	f->s->close(f->s);
	builder_free(f->b);
	metrics_free(f->metrics);
	buf_fini(&f->told);
	snprintf(command, sizeof(command), "rm -rf %s", f->folder);
	return system(command);
}

struct seen {
	const char *thread, *route; /* labels; NULL: none */
	int64_t cpu;		    /* -1: not told */
	bool is_linked;
};

/* An event at @time_ns; @value 0: one of time on a CPU. */
static void add(struct fixture *f, uint64_t time_ns, const struct seen *seen, int64_t value)
{
	static const uint8_t trace[16] = { 1 }, span[8] = { 2 };
	struct profile_line line = { builder_function(f->b, builder_string_z(f->b, "main"), 0, 0, 10), 12, 0 };
	int32_t frame = builder_location(f->b, 0, 0x1100, &line, 1, NULL, 0), attributes[4];
	uint32_t count = 0;

	if (seen->thread) {
		attributes[count++] = builder_attribute_string(f->b, "thread.name", str_z(seen->thread));
		attributes[count++] = builder_attribute_int(f->b, "thread.id", 77);
	}
	if (seen->route)
		attributes[count++] = builder_attribute_string(f->b, "http.route", str_z(seen->route));
	if (seen->cpu >= 0)
		attributes[count++] = builder_attribute_int(f->b, "cpu.logical_number", seen->cpu);
	builder_event(f->b, builder_profile(f->b, builder_resource(f->b, NULL, 0), value ? &off_cpu : &on_cpu),
		      builder_stack(f->b, &frame, 1), attributes, count,
		      seen->is_linked ? builder_link(f->b, trace, span) : 0, time_ns, value != 0, value);
}

/* What was added comes in one batch. */
static void put(struct fixture *f)
{
	struct profiles *p;

	assert_int_equal(builder_freeze(f->b, f->border_ns - 20 * HOUR_NS, f->border_ns, &p), 0);
	store_put(f->s, p);
	profiles_put(p);
}

static void thin(struct fixture *f)
{
	assert_int_equal(f->s->maintain->task(f->s, STORE_PRUNE), 0);
}

static uint64_t thinned(struct fixture *f)
{
	return metric_get(store_sqlite_of(f->s)->metrics.thinned_events);
}

/* --- what is there: "KEY=VALUE ... linked TIMES VALUES" a sample, times in milliseconds since the border --- */

static void tell_attribute(struct fixture *f, const struct profiles *p, const struct sample *s, const char *key)
{
	const struct any_value *value = profiles_find_attribute(p, &s->attributes, key);
	struct str text;

	if (!value)
		return;
	if (profiles_value_string(p, value, &text))
		buf_printf(&f->told, "%s=%.*s ", key, (int)text.len, text.data);
	else
		buf_printf(&f->told, "%s=%d ", key, (int)value->integer);
}

static void tell_sample(struct fixture *f, const struct profiles *p, const struct sample *s)
{
	tell_attribute(f, p, s, "thread.name");
	tell_attribute(f, p, s, "thread.id");
	tell_attribute(f, p, s, "http.route");
	tell_attribute(f, p, s, "cpu.logical_number");
	if (s->link_index)
		buf_puts(&f->told, "linked ");
	for (uint32_t i = 0; i < s->timestamp_count; i++)
		buf_printf(&f->told, "%s%lld", i ? "," : "",
			   (long long)(s->timestamps_unix_ns[i] - f->border_ns) / (long long)NSEC_PER_MSEC);
	for (uint32_t i = 0; i < s->value_count; i++)
		buf_printf(&f->told, "%s%lld", i ? "," : "=", (long long)s->values[i]);
	buf_putc(&f->told, '\n');
}

static int tell(void *arg, struct profiles *p)
{
	for (uint32_t r = 0; r < p->resource_count; r++)
		for (uint32_t i = 0; i < p->resources[r].scopes[0].profile_count; i++)
			for (uint32_t k = 0; k < p->resources[r].scopes[0].profiles[i].sample_count; k++)
				tell_sample(arg, p, &p->resources[r].scopes[0].profiles[i].samples[k]);
	return 0;
}

static void holds(struct fixture *f, const char *wanted)
{
	const struct store_selection all = { .to_ns = UINT64_MAX };

	buf_reset(&f->told);
	assert_int_equal(f->s->read->export(f->s, &all, tell, f), 0);
	assert_string_equal(buf_text(&f->told), wanted);
}

static const struct seen bare = { NULL, NULL, -1, false };

/* --- tests --- */

static void test_times_to_the_minute(void **state)
{
	struct fixture *f = *state;

	open_anew(f, 0);
	add(f, f->border_ns - 60 * NSEC_PER_SEC, &bare, 0);
	add(f, f->border_ns - NSEC_PER_SEC / 2, &bare, 0);
	add(f, f->border_ns - 61 * NSEC_PER_SEC, &bare, 0);
	put(f);
	holds(f, "-61000,-60000,-500\n");
	open_anew(f, THIN_AGE);
	thin(f);
	holds(f, "-120000,-60000,-60000\n");
	assert_int_equal(thinned(f), 3);
}

/* The samples of an hour that is not old enough as a whole stay as they are. */
static void test_which_are_old(void **state)
{
	struct fixture *f = *state;

	add(f, f->border_ns - NSEC_PER_MSEC, &bare, 0);
	put(f);
	add(f, f->border_ns + 1500 * NSEC_PER_MSEC, &bare, 0);
	put(f);
	thin(f);
	holds(f, "-60000\n1500\n");
	assert_int_equal(thinned(f), 1);
}

static void test_the_last_moment(void **state)
{
	struct fixture *f = *state;

	add(f, f->border_ns - 1, &bare, 0);
	put(f);
	add(f, f->border_ns + 1 * NSEC_PER_MSEC, &bare, 0);
	put(f);
	thin(f);
	assert_int_equal(thinned(f), 1);
	holds(f, "-60000\n1\n");
}

/* Threads, CPUs and links are of no use so late; the others stay. */
static void test_what_goes(void **state)
{
	static const struct seen seen = { "worker", "/cart", 3, true };
	struct fixture *f = *state;

	add(f, f->border_ns - 30 * NSEC_PER_SEC, &seen, 0);
	put(f);
	holds(f, "thread.name=worker thread.id=77 http.route=/cart cpu.logical_number=3 linked -30000\n");
	thin(f);
	holds(f, "http.route=/cart -60000\n");
}

/* Samples that are alike without them are one, with the times of both. */
static void test_what_becomes_one(void **state)
{
	static const struct seen first = { "a", "/cart", 0, false }, second = { "b", "/cart", 1, true },
				 other = { "a", "/pay", 0, false };
	struct fixture *f = *state;

	add(f, f->border_ns - 30 * NSEC_PER_SEC, &first, 0);
	add(f, f->border_ns - 29 * NSEC_PER_SEC, &second, 0);
	add(f, f->border_ns - 28 * NSEC_PER_SEC, &other, 0);
	put(f);
	thin(f);
	holds(f, "http.route=/cart -60000,-60000\nhttp.route=/pay -60000\n");
	assert_int_equal(thinned(f), 3);
}

/* A label alone that goes leaves a sample without labels. */
static void test_nothing_else(void **state)
{
	static const struct seen seen = { "worker", NULL, -1, false };
	struct fixture *f = *state;

	add(f, f->border_ns - 30 * NSEC_PER_SEC, &seen, 0);
	add(f, f->border_ns - 30 * NSEC_PER_SEC, &bare, 0);
	put(f);
	thin(f);
	holds(f, "-60000,-60000\n");
}

/* Values stay what they are. */
static void test_values(void **state)
{
	static const struct seen seen = { "worker", NULL, 1, false };
	struct fixture *f = *state;

	add(f, f->border_ns - 30 * NSEC_PER_SEC, &seen, 500);
	add(f, f->border_ns - 10 * NSEC_PER_SEC, &bare, 7);
	put(f);
	thin(f);
	holds(f, "-60000,-60000=500,7\n");
}

/* What was thinned is not thinned again, and what comes late is. */
static void test_once(void **state)
{
	struct fixture *f = *state;

	add(f, f->border_ns - 30 * NSEC_PER_SEC, &bare, 0);
	put(f);
	thin(f);
	thin(f);
	assert_int_equal(thinned(f), 1);
	add(f, f->border_ns - 3 * HOUR_NS + 90 * NSEC_PER_SEC, &bare, 0);
	put(f);
	thin(f);
	assert_int_equal(thinned(f), 2);
}

/* Without an age nothing is thinned, however old it is. */
static void test_no_age(void **state)
{
	struct fixture *f = *state;

	open_anew(f, 0);
	add(f, f->border_ns - 19 * HOUR_NS + 1500 * NSEC_PER_MSEC, &bare, 0);
	put(f);
	thin(f);
	assert_int_equal(thinned(f), 0);
	holds(f, "-68398500\n");
}

/* The sums of a question are the same, and minutes are as fine as they were. */
static int add_weight(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events)
{
	int64_t *sums = arg;

	(void)group;
	assert_true(bucket < 4);
	sums[bucket] += weight * 1000 + (int64_t)events;
	return 0;
}

static void test_sums(void **state)
{
	struct fixture *f = *state;
	const struct store_selection sel = { .from_ns = f->border_ns - 240 * NSEC_PER_SEC,
					     .to_ns = f->border_ns,
					     .kind = "off_cpu" };
	int64_t before[4] = { 0 }, after[4] = { 0 };

	for (unsigned i = 0; i < 40; i++)
		add(f, f->border_ns - (1 + i * 6) * NSEC_PER_SEC, &bare, 1 + i);
	put(f);
	assert_int_equal(f->s->read->sum_times(f->s, &sel, 60 * NSEC_PER_SEC, NULL, add_weight, before), 0);
	thin(f);
	assert_int_equal(thinned(f), 40);
	assert_int_equal(f->s->read->sum_times(f->s, &sel, 60 * NSEC_PER_SEC, NULL, add_weight, after), 0);
	assert_true(before[0] > 0);
	assert_memory_equal(before, after, sizeof(before));
}

#define THIN_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		THIN_TEST(test_times_to_the_minute),
		THIN_TEST(test_which_are_old),
		THIN_TEST(test_the_last_moment),
		THIN_TEST(test_what_goes),
		THIN_TEST(test_what_becomes_one),
		THIN_TEST(test_nothing_else),
		THIN_TEST(test_values),
		THIN_TEST(test_once),
		THIN_TEST(test_no_age),
		THIN_TEST(test_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
