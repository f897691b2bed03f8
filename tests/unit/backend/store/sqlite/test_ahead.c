/* SPDX-License-Identifier: Apache-2.0 */
/* Questions over so many blocks that a second thread reads some ahead: what they add up to is what was put in, counted here
 * one sample after another; also where some weigh more than 1 and a block is damaged. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_read.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/profiles_builder.h"
#include "tests/unit/backend/store_put.h"

#define T0   1699999200000000000ull /* a whole hour */
#define HOUR (3600 * NSEC_PER_SEC)

enum {
	HOURS = 60, /* a block each */
	PLAIN_HOURS = 30,
	EVENTS = 500, /* an hour */
	CPUS = 40,    /* more than stand side by side in a sum */
	THREADS = 30,
	STACKS = 50,
	DAMAGED_HOUR = 41,
	MOST_GROUPS = 64,
	MOST_BUCKETS = 1 << 16,
};

struct put {
	uint64_t time_ns;
	int64_t weight;
	uint32_t cpu, thread, hour;
};

struct sum {
	int64_t weight;
	uint64_t events;
};

static struct put samples[HOURS * EVENTS];
static uint64_t state = 88172645463325252ull;
static char folder[] = "/tmp/hearth-ahead-XXXXXX";

static uint32_t rnd(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

static struct profiles *make_hour(uint32_t hour)
{
	static const struct builder_profile_spec spec = { "hearth",	 "1",	   "samples", "count", "cpu",
							  "nanoseconds", 50000000, NULL,      0 };
	struct builder *b = builder_new();
	const bool weighs = hour >= PLAIN_HOURS;
	struct profiles *p;

	for (uint32_t i = 0; i < EVENTS; i++) {
		struct put *s = &samples[hour * EVENTS + i];
		const uint32_t pid = rnd(4);
		struct key_value kv = { .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = pid } };
		struct profile_line line;
		char name[16];
		int32_t attributes[2], location;

		*s = (struct put){ .time_ns = T0 + hour * HOUR + rnd(3600 * 20) * 50000000ull + rnd(3000),
				   .weight = weighs ? (int64_t)rnd(90000) - 10 : 1,
				   .cpu = rnd(CPUS),
				   .thread = pid + 4 * rnd(THREADS / 4),
				   .hour = hour };
		attributes[0] = builder_attribute_int(b, "thread.id", s->thread);
		attributes[1] = builder_attribute_int(b, "cpu.logical_number", s->cpu);
		snprintf(name, sizeof(name), "f%u", rnd(STACKS));
		line = (struct profile_line){ builder_function(b, builder_string_z(b, name), 0, 0, 1), 1, 0 };
		location = builder_location(b, 0, 0, &line, 1, NULL, 0);
		builder_event(b, builder_profile(b, builder_resource(b, &kv, 1), &spec), builder_stack(b, &location, 1),
			      attributes, 2, 0, s->time_ns, weighs, weighs ? s->weight : 0);
	}
	assert_int_equal(builder_freeze(b, T0 + hour * HOUR, T0 + (hour + 1) * HOUR, &p), 0);
	builder_free(b);
	return p;
}

static struct store *open_store(bool read_only, struct metrics *m)
{
	const struct store_config config = {
		.place = folder, .read_only = read_only, .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX
	};
	struct store_error why;
	struct store *s = NULL;

	if (store_sqlite_open(&config, m, &s, &why))
		fail_msg("%s", why.message);
	return s;
}

static int setup(void **arg)
{
	struct store *s;

	(void)arg;
	assert_non_null(mkdtemp(folder));
	s = open_store(false, NULL);
	for (uint32_t hour = 0; hour < HOURS; hour++) {
		struct profiles *p = make_hour(hour);

		store_put(s, p);
		profiles_put(p);
	}
	s->close(s);
	return 0;
}

static int teardown(void **arg)
{
	char command[64];

	(void)arg;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

/* --- answers --- */

static int add_group(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct sum *sum = &((struct sum *)arg)[*group ? strtoul(group, NULL, 10) : MOST_GROUPS - 1];

	(void)node;
	sum->weight += weight;
	sum->events += events;
	return 0;
}

static int add_node(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct sum *sum = &((struct sum *)arg)[node];

	(void)group;
	assert_true(node < MOST_BUCKETS);
	sum->weight += weight;
	sum->events += events;
	return 0;
}

static bool is_in(const struct put *s, const struct store_selection *sel)
{
	return s->time_ns >= sel->from_ns && s->time_ns < sel->to_ns;
}

/* By cpu, or by thread, without the samples of @hour (none: HOURS). */
static void check_groups(struct store *s, const struct store_selection *sel, bool by_cpu, uint32_t hour)
{
	struct sum wanted[MOST_GROUPS] = { 0 }, told[MOST_GROUPS] = { 0 };

	for (size_t i = 0; i < HOURS * EVENTS; i++) {
		struct sum *sum = &wanted[by_cpu ? samples[i].cpu : samples[i].thread];

		if (!is_in(&samples[i], sel) || samples[i].hour == hour)
			continue;
		sum->weight += samples[i].weight;
		sum->events++;
	}
	assert_int_equal(s->read->sum_stacks(s, sel, by_cpu ? "cpu.logical_number" : "thread.id", add_group, told), 0);
	assert_memory_equal(told, wanted, sizeof(told));
}

static void check_times(struct store *s, const struct store_selection *sel, uint64_t step_ns)
{
	static struct sum wanted[MOST_BUCKETS], told[MOST_BUCKETS];

	memset(wanted, 0, sizeof(wanted));
	memset(told, 0, sizeof(told));
	for (size_t i = 0; i < HOURS * EVENTS; i++) {
		if (!is_in(&samples[i], sel))
			continue;
		wanted[(samples[i].time_ns - sel->from_ns) / step_ns].weight += samples[i].weight;
		wanted[(samples[i].time_ns - sel->from_ns) / step_ns].events++;
	}
	assert_int_equal(s->read->sum_times(s, sel, step_ns, NULL, add_node, told), 0);
	assert_memory_equal(told, wanted, sizeof(told));
}

/* Some stacks alone: what all nodes add up to says how much these do. */
static void check_some_stacks(struct store *s, const struct store_selection *all)
{
	static struct sum nodes[MOST_BUCKETS], times[MOST_BUCKETS];
	const uint64_t odd[] = { 0xaaaaaaaaaaaaaaaaull };
	struct store_selection some = *all;
	struct sum wanted = { 0 }, groups[MOST_GROUPS] = { 0 };

	memset(nodes, 0, sizeof(nodes));
	memset(times, 0, sizeof(times));
	assert_int_equal(s->read->sum_stacks(s, all, NULL, add_node, nodes), 0);
	for (size_t node = 1; node < 64; node += 2) {
		wanted.weight += nodes[node].weight;
		wanted.events += nodes[node].events;
	}
	assert_true(wanted.events > 0 && wanted.events < (uint64_t)HOURS * EVENTS);
	some.stacks = odd;
	some.stack_count = 64;
	assert_int_equal(s->read->sum_times(s, &some, HOUR, NULL, add_node, times), 0);
	assert_int_equal(s->read->sum_stacks(s, &some, "cpu.logical_number", add_group, groups), 0);
	for (size_t i = 0; i < HOURS + 1; i++) {
		groups[MOST_GROUPS - 2].weight += times[i].weight;
		groups[MOST_GROUPS - 2].events += times[i].events;
	}
	assert_memory_equal(&groups[MOST_GROUPS - 2], &wanted, sizeof(wanted));
	for (size_t i = 0; i < CPUS; i++) {
		groups[MOST_GROUPS - 1].weight += groups[i].weight;
		groups[MOST_GROUPS - 1].events += groups[i].events;
	}
	assert_memory_equal(&groups[MOST_GROUPS - 1], &wanted, sizeof(wanted));
}

static void test_sums(void **arg)
{
	struct store *s = open_store(true, NULL);
	struct store_selection sel = { .from_ns = T0, .to_ns = T0 + HOURS * HOUR };
	const uint64_t plain_ns = T0 + PLAIN_HOURS * HOUR;

	(void)arg;
	for (unsigned turn = 0; turn < 20; turn++) {
		const uint64_t range_ns = sel.to_ns - sel.from_ns;

		check_groups(s, &sel, true, HOURS);
		check_groups(s, &sel, false, HOURS);
		check_times(s, &sel, HOUR);
		check_times(s, &sel, range_ns / 1000 + 1);
		check_times(s, &sel, range_ns / (MOST_BUCKETS - 1) + 1 + turn);
		sel.from_ns = T0 + rnd(3600) * NSEC_PER_SEC * (turn % 2 ? 1 : PLAIN_HOURS) + rnd(2000);
		sel.to_ns = turn % 3 ? T0 + HOURS * HOUR - rnd(3600) * NSEC_PER_SEC : plain_ns + rnd(3600) * NSEC_PER_SEC;
	}
	sel = (struct store_selection){ .from_ns = T0, .to_ns = T0 + HOURS * HOUR };
	check_some_stacks(s, &sel);
	s->close(s);
}

/* An answer that nobody waits for any more, or that would come too late, ends, and so does the thread. */
static void test_ends(void **arg)
{
	struct store *s = open_store(true, NULL);
	struct sum told[MOST_GROUPS] = { 0 };
	const _Atomic bool is_unwanted = true;
	struct store_selection sel = { .from_ns = T0, .to_ns = T0 + HOURS * HOUR, .is_unwanted = &is_unwanted };

	(void)arg;
	assert_int_equal(s->read->sum_stacks(s, &sel, "cpu.logical_number", add_group, told), -ECANCELED);
	sel.is_unwanted = NULL;
	for (uint64_t us = 1; us < 5000; us *= 2) { /* wherever it is then */
		int err;

		sel.deadline_ns = clock_mono_ns() + us * 1000;
		err = s->read->sum_stacks(s, &sel, "cpu.logical_number", add_group, told);
		assert_true(err == -ETIMEDOUT || !err);
	}
	sel.deadline_ns = 0;
	check_groups(s, &sel, true, HOURS);
	s->close(s);
}

static void test_damaged(void **arg)
{
	struct metrics *m = metrics_new();
	struct store *s = open_store(true, m);
	struct store_selection sel = { .from_ns = T0, .to_ns = T0 + HOURS * HOUR };
	struct metric *damaged = metrics_counter(m, "hearth_store_damaged_blocks_total", NULL,
						 "Blocks met whose content is not what was written.");
	char path[64], sql[160];
	sqlite3 *db;

	(void)arg;
	snprintf(path, sizeof(path), "%s/profiles.db", folder);
	snprintf(sql, sizeof(sql),
		 "UPDATE blocks SET cpus = zeroblob(length(cpus)) WHERE from_ns >= %llu AND from_ns < %llu",
		 T0 + DAMAGED_HOUR * HOUR, T0 + (DAMAGED_HOUR + 1) * HOUR);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_changes(db), 1);
	sqlite3_close(db);
	check_groups(s, &sel, false, HOURS);
	assert_int_equal(metric_get(damaged), 0);
	check_groups(s, &sel, true, DAMAGED_HOUR);
	assert_int_equal(metric_get(damaged), 1);
	s->close(s);
	metrics_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums), cmocka_unit_test(test_ends), cmocka_unit_test(test_damaged), /* at the end */
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
