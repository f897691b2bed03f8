/* SPDX-License-Identifier: Apache-2.0 */
/* comm in the SQLite store: the thread's name, else the process's; a selector takes all threads of a process so named, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/store/sqlite/db.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/pattern.h"
#include "proto/profiles_builder.h"
#include "tests/unit/backend/store_put.h"
#include "tests/unit/backend/store/sqlite/told.h"

#define T0 1700000040000000000ull

static const struct builder_profile_spec off_cpu = { "hearth", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 };

static struct store *open_store(void)
{
	struct store_config config = { .place = ":memory:", .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	struct store_error err;
	struct store *s = NULL;

	if (store_sqlite_open(&config, NULL, &s, &err))
		fail_msg("%s", err.message);
	return s;
}

static int tell_value(void *arg, const char *value, int64_t weight, uint64_t events)
{
	struct told *t = arg;

	snprintf(t->lines[t->count++], sizeof(t->lines[0]), "%s %lld %llu", value, (long long)weight,
		 (unsigned long long)events);
	return 0;
}

static const struct {
	const char *exe, *thread;
	int64_t weight;
} commed[] = { { "java", "java", 1 }, { "java", "GC", 2 }, { "java", NULL, 4 },	 { "java", "", 8 },
	       { NULL, "curl", 16 },  { NULL, NULL, 32 },  { "curl", "dns", 64 } };

static struct profiles *make_commed(void)
{
	struct builder *b = builder_new();
	struct profile_line line = { builder_function(b, builder_string_z(b, "main"), 0, 0, 10), 12, 0 };
	int32_t main_ = builder_location(b, 0, 0x1100, &line, 1, NULL, 0), top = builder_stack(b, &main_, 1);
	struct profiles *p;

	for (size_t i = 0; i < ARRAY_LEN(commed); i++) {
		struct key_value exe = { .key = STR("process.executable.name"), .value = { .kind = VALUE_STRING } };
		int32_t name = 0;

		if (commed[i].exe)
			exe.value.string = str_z(commed[i].exe);
		if (commed[i].thread)
			name = builder_attribute_string(b, "thread.name", str_z(commed[i].thread));
		builder_event(b, builder_profile(b, builder_resource(b, &exe, commed[i].exe != NULL), &off_cpu), top, &name,
			      commed[i].thread != NULL, 0, T0 + i, true, commed[i].weight);
	}
	assert_int_equal(builder_freeze(b, T0, T0 + NSEC_PER_SEC, &p), 0);
	builder_free(b);
	return p;
}

static void test_comm(void **state)
{
	static const struct {
		enum store_match match;
		const char *value;
		int64_t weight;
		int events;
	} asked[] = { { MATCH_EQUAL, "java", 15, 4 },	  { MATCH_NOT_EQUAL, "java", 112, 3 },
		      { MATCH_EQUAL, "GC", 2, 1 },	  { MATCH_EQUAL, "curl", 80, 2 },
		      { MATCH_REGEX, "c.*|G.*", 82, 3 },  { MATCH_NOT_REGEX, "c.*|G.*", 45, 4 },
		      { MATCH_EQUAL, "", 32, 1 },	  { MATCH_NOT_EQUAL, "", 95, 6 },
		      { MATCH_REGEX, ".*", 127, 7 },	  { MATCH_REGEX, "|dns", 96, 2 },
		      { MATCH_NOT_REGEX, "|dns", 31, 5 }, { MATCH_EQUAL, "none", 0, 0 } };
	struct store *s = open_store();
	struct store_selection all = { .to_ns = UINT64_MAX };
	struct profiles *p = make_commed();
	struct told t = { .count = 0 };

	(void)state;
	store_put(s, p);
	profiles_put(p);
	for (int merged = 0; merged < 2; merged++) {
		t.count = 0;
		assert_int_equal(s->read->label_values(s, &all, STORE_COMM_LABEL, tell_value, &t), 0);
		check_told(&t, " 32 1\nGC 2 1\ncurl 16 1\ndns 64 1\njava 13 3\n");
		for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
			struct store_matcher m = { STORE_COMM_LABEL, asked[i].match, asked[i].value, NULL };
			struct store_selection some = all;
			struct pattern_error why;
			char line[64];

			if (m.match == MATCH_REGEX || m.match == MATCH_NOT_REGEX)
				assert_int_equal(pattern_new(m.value, PATTERN_WHOLE, &m.pattern, &why), 0);
			some.matchers = &m;
			some.matcher_count = 1;
			assert_int_equal(s->read->label_values(s, &some, "nothing", tell_value, &t), 0);
			snprintf(line, sizeof(line), " %lld %d\n", (long long)asked[i].weight, asked[i].events);
			check_told(&t, asked[i].events ? line : "");
			pattern_free(m.pattern);
		}
		assert_int_equal(s->maintain->task(s, STORE_COMPACT), 0);
	}
	s->close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_comm) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
