/* SPDX-License-Identifier: Apache-2.0 */
/* Roll-ups of hours say what the hours' samples say: to random questions, also while an hour gets more, and after thinning.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/store/sqlite/db.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/profiles_builder.h"
#include "tests/unit/backend/store_put.h"

#define T0   1699999200000000000ull /* a whole hour */
#define HOUR (3600 * NSEC_PER_SEC)

enum { SERVICES = 5, STACKS = 300, BATCH = 35000, BATCHES = 4 /* an hour: more than is too little for a roll-up */ };

static uint64_t state = 88172645463325252ull;
static char folder[] = "/tmp/hearth-rollup-XXXXXX";

static uint32_t rnd(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

static const struct builder_profile_spec on_cpu = { "hearth",	   "1",	     "samples", "count", "cpu",
						    "nanoseconds", 50000000, NULL,	0 };
static const struct builder_profile_spec off_cpu = { "hearth", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 };

/* Frames 0 to 9, some of them called by others. */
static int32_t make_stack(struct builder *b, uint32_t number)
{
	int32_t type = builder_attribute_string(b, "profile.frame.type", STR("native"));
	int32_t mapping = builder_mapping(b, 0x1000, 0x2000, 0, builder_string_z(b, "/bin/p"), NULL, 0);
	int32_t locations[3];

	for (uint32_t i = 0, rest = number; i < 3; i++, rest /= 10) {
		char name[16];

		snprintf(name, sizeof(name), "f%u", rest % 10);
		locations[i] = builder_location(
			b, mapping, rest % 10,
			&(struct profile_line){ builder_function(b, builder_string_z(b, name), 0, 0, 1), 1, 0 }, 1, &type,
			1);
	}
	return builder_stack(b, locations, 3);
}

/* Samples of the hour from @start_ns on; the service of one does not say its name. */
static struct profiles *make(uint64_t start_ns, uint32_t count)
{
	struct builder *b = builder_new();
	struct profiles *p;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t service = rnd(SERVICES);
		char name[16];
		struct key_value kv[2] = { { .key = STR("process.pid"),
					     .value = { .kind = VALUE_INT, .integer = 100 + service } },
					   { .key = STR("service.name") } };
		int32_t attributes[2] = { builder_attribute_int(b, "thread.id", service * 10 + rnd(3)),
					  builder_attribute_int(b, "cpu.logical_number", rnd(4)) };
		bool is_off = !rnd(10);

		snprintf(name, sizeof(name), "s%u", service);
		kv[1].value = (struct any_value){ .kind = VALUE_STRING, .string = { name, (uint32_t)strlen(name) } };
		builder_event(b, builder_profile(b, builder_resource(b, kv, service ? 2 : 1), is_off ? &off_cpu : &on_cpu),
			      make_stack(b, rnd(STACKS) * rnd(STACKS) / STACKS), attributes, 2, 0,
			      start_ns + (uint64_t)rnd(3600) * NSEC_PER_SEC + rnd(1000), is_off, is_off ? 1 + rnd(5000) : 0);
	}
	assert_int_equal(builder_freeze(b, start_ns, start_ns + HOUR, &p), 0);
	builder_free(b);
	return p;
}

static void put(struct store *s, struct profiles *p)
{
	store_put(s, p);
	profiles_put(p);
}

/* --- answers --- */

static int tell(void *arg, const char *group, uint32_t number, int64_t weight, uint64_t events)
{
	buf_printf(arg, "%s %u %lld %llu\n", group, number, (long long)weight, (unsigned long long)events);
	return 0;
}

static int tell_value(void *arg, const char *value, int64_t weight, uint64_t events)
{
	return tell(arg, value, 0, weight, events);
}

static int tell_kind(void *arg, const struct store_kind *kind)
{
	return tell(arg, kind->type, 0, kind->period, kind->events);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lines in order: groups and sums come in any. */
static void append_sorted(struct buf *out, struct buf *lines)
{
	size_t count = 0, cap = 1;
	AUTO_FREE char **items = NULL;

	for (size_t i = 0; i < lines->len; i++)
		cap += lines->data[i] == '\n';
	items = calloc(cap, sizeof(*items));
	for (char *rest = (char *)buf_text(lines), *line; (line = strsep(&rest, "\n")) && *line;)
		items[count++] = line;
	qsort(items, count, sizeof(*items), compare_lines);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s\n", items[i]);
	buf_puts(out, "--\n");
}

static const char *const by_all[] = { NULL, "service.name", "process.pid", "thread.id", "cpu.logical_number", "none" };
static const char *const by_kept[] = { NULL, "service.name", "process.pid", "none" }; /* by thinning */

static void ask(struct store *s, const struct store_selection *sel, const char *by, uint64_t step_ns, struct buf *out)
{
	AUTO(buf_fini) struct buf stacks = BUF_EMPTY, times = BUF_EMPTY, values = BUF_EMPTY;

	assert_int_equal(s->read->sum_stacks(s, sel, by, tell, &stacks), 0);
	append_sorted(out, &stacks);
	assert_int_equal(s->read->sum_times(s, sel, step_ns, by, tell, &times), 0);
	append_sorted(out, &times);
	if (by)
		assert_int_equal(s->read->label_values(s, sel, by, tell_value, &values), 0);
	append_sorted(out, &values);
}

/* What the store says of [@from_ns, @to_ns), to every kind of question. */
static char *answer(struct store *s, uint64_t from_ns, uint64_t to_ns, bool is_thin)
{
	static const struct store_matcher matchers[] = { { "service.name", MATCH_EQUAL, "s2", NULL },
							 { "service.name", MATCH_NOT_EQUAL, "s1", NULL },
							 { "thread.id", MATCH_EQUAL, "21", NULL } };
	static const char *const kinds[] = { "samples", "off_cpu" };
	uint64_t some[5] = { 0x5a5a5a5a5a5a5a5a, 0xff00ff00ff00ff00, ~0ull, 0, 12345 };
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	const char *const *by = is_thin ? by_kept : by_all;

	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		for (size_t i = 0; i < (is_thin ? ARRAY_LEN(by_kept) : ARRAY_LEN(by_all)); i++) {
			for (size_t m = 0; m <= (is_thin ? 2 : ARRAY_LEN(matchers)); m++) {
				struct store_selection sel = { .from_ns = from_ns,
							       .to_ns = to_ns,
							       .kind = kinds[k],
							       .matchers = m ? &matchers[m - 1] : NULL,
							       .matcher_count = m > 0 };

				if (!by[i])
					assert_int_equal(s->read->kinds(s, &sel, tell_kind, &out), 0);
				ask(s, &sel, by[i], m % 2 ? 60 * NSEC_PER_SEC : HOUR, &out);
				if (m)
					continue;
				sel.stacks = some;
				sel.stack_count = 64 * ARRAY_LEN(some);
				ask(s, &sel, by[i], 60 * NSEC_PER_SEC, &out);
			}
		}
	}
	return strdup(buf_text(&out));
}

/* --- the file, as others see it --- */

static void execute(const char *sql)
{
	char path[64];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/profiles.db", folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 10000);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static int64_t number(const char *sql)
{
	char path[64];
	int64_t n = -1;
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/profiles.db", folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 10000);
	assert_int_equal(store_get_int(db, sql, -1, &n), 0);
	sqlite3_close(db);
	return n;
}

static struct store *open_store(uint64_t thin_age_ns)
{
	struct store_config config = {
		.place = folder, .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX, .thin_age_ns = thin_age_ns
	};
	struct store_error err;
	struct store *s = NULL;

	if (store_sqlite_open(&config, NULL, &s, &err))
		fail_msg("%s", err.message);
	return s;
}

#define HOURS  "SELECT count(DISTINCT hour) FROM rollups"
#define EVENTS "SELECT sum(events) FROM rollups"

static const uint64_t ranges[][2] = {
	{ T0, T0 + 3 * HOUR },
	{ T0 + 60 * NSEC_PER_SEC, T0 + 2 * HOUR },
	{ T0 - 7, T0 + 2 * HOUR + HOUR / 2 },
};

/* With roll-ups, and without. */
static void check_same(struct store *s, const uint64_t range[2], bool is_thin)
{
	AUTO_FREE char *with = answer(s, range[0], range[1], is_thin), *without = NULL;

	execute("CREATE TABLE kept AS SELECT * FROM rollups; DELETE FROM rollups");
	without = answer(s, range[0], range[1], is_thin);
	assert_string_equal(with, without);
	execute("INSERT INTO rollups SELECT * FROM kept; DROP TABLE kept");
}

static int add_events(void *arg, const char *group, uint32_t number, int64_t weight, uint64_t events)
{
	(void)group;
	(void)number;
	(void)weight;
	*(uint64_t *)arg += events;
	return 0;
}

/* Of both kinds. */
static uint64_t count_events(struct store *s)
{
	struct store_selection sel = { .from_ns = T0, .to_ns = T0 + 3 * HOUR, .kind = "samples" };
	uint64_t count = 0;

	assert_int_equal(s->read->sum_stacks(s, &sel, NULL, add_events, &count), 0);
	sel.kind = "off_cpu";
	assert_int_equal(s->read->sum_stacks(s, &sel, NULL, add_events, &count), 0);
	return count;
}

static int add_problem(void *arg, const char *problem)
{
	buf_printf(arg, "%s\n", problem);
	return 0;
}

/* What is wrong with the store, but for numbers. */
static void check_problems(struct store *s, const char *wanted)
{
	AUTO(buf_fini) struct buf problems = BUF_EMPTY;

	assert_int_equal(store_sqlite_verify(s, add_problem, &problems), 0);
	for (size_t i = 0; i < problems.len; i++)
		if (problems.data[i] >= '0' && problems.data[i] <= '9')
			problems.data[i] = '#';
	assert_string_equal(buf_text(&problems), wanted);
}

#define FIRST "WHERE id = (SELECT min(id) FROM rollups)"

/* Each kind of damage of a roll-up alone, and then it is as it was. */
static void check_verify(struct store *s)
{
	static const struct {
		const char *sql, *problems;
	} damages[] = {
		{ "SELECT 1", "" },
		{ "UPDATE rollups SET head = substr(head, 1, 9) " FIRST, "roll-up # is damaged\n" },
		{ "UPDATE rollups SET stacks = zeroblob(length(stacks)) " FIRST, "roll-up # is damaged\n" },
		{ "UPDATE rollups SET cells = zeroblob(7) " FIRST, "roll-up # is damaged\n" },
		{ "UPDATE rollups SET events = events - 1 " FIRST,
		  "roll-up # is damaged\nthe roll-up of hour ###### has ###### samples of ######\n" },
	};

	execute("CREATE TABLE kept AS SELECT * FROM rollups");
	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		execute(damages[i].sql);
		print_message("%s\n", damages[i].sql);
		check_problems(s, damages[i].problems);
		execute("DELETE FROM rollups; INSERT INTO rollups SELECT * FROM kept");
	}
	execute("DROP TABLE kept");
}

static void test_rollups(void **unused)
{
	struct store *s;
	char *before, *after;

	(void)unused;
	assert_non_null(mkdtemp(folder));
	s = open_store(0);
	for (uint32_t i = 0; i < 2 * BATCHES; i++)
		put(s, make(T0 + i / BATCHES * HOUR, BATCH));
	put(s, make(T0 + 2 * HOUR, 1000));
	/* Where that took long, the writer has made roll-ups by itself: nothing can be said of them before it is asked. */
	assert_int_equal(s->maintain->task(s, STORE_MERGE), 0);
	assert_int_equal(number(HOURS), 2);
	assert_int_equal(number(EVENTS), 2 * BATCHES * BATCH);
	check_same(s, ranges[0], false);
	check_verify(s);

	/* More in an hour: they count at once, whether merged or not. */
	put(s, make(T0 + HOUR, 10));
	assert_int_equal(count_events(s), 2 * BATCHES * BATCH + 1000 + 10);
	assert_int_equal(s->maintain->task(s, STORE_MERGE), 0);
	assert_int_equal(number(HOURS), 2);
	assert_int_equal(number(EVENTS), 2 * BATCHES * BATCH + 10);
	check_same(s, ranges[2], false);

	/* Thinned ones lose what is not by the minute, in the roll-up too. */
	before = answer(s, T0, T0 + 3 * HOUR, true);
	s->close(s);
	/* As a store was before there were roll-ups: it is brought forward. */
	execute("DROP TABLE rollups; DROP TRIGGER blocks_more; DROP TRIGGER blocks_fewer; DROP INDEX blocks_time;"
		"ALTER TABLE blocks DROP COLUMN first_link; ALTER TABLE blocks DROP COLUMN last_link;"
		"CREATE INDEX blocks_time ON blocks(from_ns, to_ns, level, events, generation); PRAGMA user_version = 2");
	s = open_store(HOUR);
	assert_int_equal(s->maintain->task(s, STORE_COMPACT), 0);
	assert_int_equal(number("SELECT min(level) FROM blocks"), 3);
	assert_int_equal(number(HOURS), 2);
	after = answer(s, T0, T0 + 3 * HOUR, true);
	assert_string_equal(before, after);
	check_same(s, ranges[1], true);
	free(before);
	free(after);

	/* A block less, and the hour is not as it was. */
	execute("DELETE FROM blocks WHERE id = (SELECT max(id) FROM blocks WHERE from_ns < 1699999200000000000 + "
		"3600000000000)");
	assert_int_equal(number(HOURS), 1);
	check_same(s, ranges[0], true);

	/* They are what is read: without their blocks they still answer. */
	execute("DROP TRIGGER blocks_fewer; DELETE FROM blocks WHERE from_ns >= 1699999200000000000 + 3600000000000");
	{
		struct store_selection sel = { .from_ns = T0 + HOUR, .to_ns = T0 + 3 * HOUR, .kind = "samples" };
		AUTO(buf_fini) struct buf stacks = BUF_EMPTY, times = BUF_EMPTY, values = BUF_EMPTY;

		assert_int_equal(s->read->sum_stacks(s, &sel, "service.name", tell, &stacks), 0);
		assert_int_equal(s->read->sum_times(s, &sel, 60 * NSEC_PER_SEC, NULL, tell, &times), 0);
		assert_int_equal(s->read->label_values(s, &sel, "process.pid", tell_value, &values), 0);
		assert_true(stacks.len && times.len && values.len);
	}
	s->close(s);
}

static int clean(void **unused)
{
	static const char *const names[] = { "profiles.db", "profiles.db-wal", "profiles.db-shm", "lock" };
	char path[96];

	(void)unused;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rollups) };

	return cmocka_run_group_tests(tests, NULL, clean);
}
