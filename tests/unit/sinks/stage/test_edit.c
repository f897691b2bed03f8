/* SPDX-License-Identifier: Apache-2.0 */
/* Each action of an edit of resources by itself: on keys that are there, on keys that are not, and on values of other kinds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/text/pattern.h"
#include "sinks/stage/stage.h"
#include "tests/unit/proto/text_profiles.h"

/* The next sink: keeps what it gets. */
struct keeper {
	struct sink sink;
	struct profiles *last;
	int error;
};

static int keep(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct keeper *k = (struct keeper *)sink;

	(void)ack;
	profiles_put(k->last);
	k->last = profiles_get(p);
	return k->error;
}

static void free_nothing(struct sink *sink)
{
	(void)sink;
}

static const struct sink_ops keeper_ops = { .name = "keeper", .consume = keep, .free = free_nothing };

static struct metrics *metrics;
static struct profiles *profiles; /* { text=abc number=42 real=2.75 yes=true digits=17 } */
static struct keeper keeper;

static int setup(void **state)
{
	const struct key_value attributes[] = {
		{ .key = STR("text"), .value = { .kind = VALUE_STRING, .string = STR("abc") } },
		{ .key = STR("number"), .value = { .kind = VALUE_INT, .integer = 42 } },
		{ .key = STR("real"), .value = { .kind = VALUE_DOUBLE, .real = 2.75 } },
		{ .key = STR("yes"), .value = { .kind = VALUE_BOOL, .boolean = true } },
		{ .key = STR("digits"), .value = { .kind = VALUE_STRING, .string = STR("17") } },
	};
	struct builder *b = builder_new();
	int32_t frame = builder_location(b, 0, 1, NULL, 0, NULL, 0);

	(void)state;
	metrics = metrics_new();
	keeper = (struct keeper){ .sink.ops = &keeper_ops };
	builder_event(b, builder_profile(b, builder_resource(b, attributes, ARRAY_LEN(attributes)), &text_cpu_spec),
		      builder_stack(b, &frame, 1), NULL, 0, 0, 5, false, 0);
	if (builder_freeze(b, 1, 10, &profiles))
		return -1;
	builder_free(b);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	profiles_put(profiles);
	profiles_put(keeper.last);
	metrics_free(metrics);
	return 0;
}

/* After @edit the attribute @key is of @kind and reads @wanted; NULL: there is none. */
static void makes(struct stage_edit edit, const char *key, enum value_kind kind, const char *wanted)
{
	const struct stage_edits edits = { .items = &edit, .count = 1 };
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const struct any_value *value;
	struct sink *stage = NULL;

	assert_int_equal(stage_edit_new(&edits, &keeper.sink, metrics, &stage), 0);
	assert_int_equal(sink_consume(stage, profiles, NULL), 0);
	value = profiles_find_key(keeper.last, &keeper.last->resources[0].resource.attributes, key);
	if (wanted) {
		assert_non_null(value);
		profiles_value_append(keeper.last, value, &text);
		assert_string_equal(buf_text(&text), wanted);
		/* A string may be one of the dictionary's. */
		assert_true(value->kind == kind ||
			    (kind == VALUE_STRING && profiles_value_string(keeper.last, value, &(struct str){ 0 })));
	} else {
		assert_null(value);
	}
	sink_free(stage);
}

static struct any_value text_value(const char *text)
{
	return (struct any_value){ .kind = VALUE_STRING, .string = text_str(text) };
}

static void test_insert(void **state)
{
	(void)state;
	makes((struct stage_edit){ .action = EDIT_INSERT, .key = "new", .value = text_value("x") }, "new", VALUE_STRING,
	      "x");
	makes((struct stage_edit){ .action = EDIT_INSERT, .key = "text", .value = text_value("x") }, "text", VALUE_STRING,
	      "abc");
	makes((struct stage_edit){ .action = EDIT_INSERT, .key = "new", .from = "number" }, "new", VALUE_INT, "42");
	makes((struct stage_edit){ .action = EDIT_INSERT, .key = "new", .from = "missing" }, "new", VALUE_STRING, NULL);
}

static void test_update(void **state)
{
	(void)state;
	makes((struct stage_edit){ .action = EDIT_UPDATE, .key = "new", .value = text_value("x") }, "new", VALUE_STRING,
	      NULL);
	makes((struct stage_edit){ .action = EDIT_UPDATE, .key = "text", .value = text_value("x") }, "text", VALUE_STRING,
	      "x");
	makes((struct stage_edit){ .action = EDIT_UPDATE, .key = "text", .from = "number" }, "text", VALUE_INT, "42");
	makes((struct stage_edit){ .action = EDIT_UPDATE, .key = "text", .from = "missing" }, "text", VALUE_STRING, "abc");
}

static void test_upsert(void **state)
{
	(void)state;
	makes((struct stage_edit){ .action = EDIT_UPSERT, .key = "new", .value = text_value("x") }, "new", VALUE_STRING,
	      "x");
	makes((struct stage_edit){ .action = EDIT_UPSERT, .key = "text", .value = text_value("x") }, "text", VALUE_STRING,
	      "x");
}

static void test_delete(void **state)
{
	(void)state;
	makes((struct stage_edit){ .action = EDIT_DELETE, .key = "text" }, "text", VALUE_STRING, NULL);
	makes((struct stage_edit){ .action = EDIT_DELETE, .key = "text" }, "number", VALUE_INT, "42");
	makes((struct stage_edit){ .action = EDIT_DELETE, .key = "tex" }, "text", VALUE_STRING, "abc");
}

/* A pattern takes all keys that it fits, those beside each other, too. */
static void test_delete_by_pattern(void **state)
{
	struct pattern_error error;
	struct stage_edit edit = { .action = EDIT_DELETE };

	(void)state;
	assert_int_equal(pattern_new("^(text|number|digits)$", 0, &edit.pattern, &error), 0);
	makes(edit, "text", VALUE_STRING, NULL);
	makes(edit, "number", VALUE_INT, NULL);
	makes(edit, "digits", VALUE_STRING, NULL);
	makes(edit, "real", VALUE_DOUBLE, "2.75");
	assert_int_equal(keeper.last->resources[0].resource.attributes.count, 2);
	pattern_free(edit.pattern);
}

static struct stage_edit convert(const char *key, enum value_kind kind)
{
	return (struct stage_edit){ .action = EDIT_CONVERT, .key = key, .value = { .kind = kind } };
}

static void test_to_text(void **state)
{
	(void)state;
	makes(convert("number", VALUE_STRING), "number", VALUE_STRING, "42");
	makes(convert("real", VALUE_STRING), "real", VALUE_STRING, "2.75");
	makes(convert("yes", VALUE_STRING), "yes", VALUE_STRING, "true");
	makes(convert("text", VALUE_STRING), "text", VALUE_STRING, "abc");
}

/* A fraction is cut off; a text that is no whole number stays. */
static void test_to_whole_numbers(void **state)
{
	(void)state;
	makes(convert("real", VALUE_INT), "real", VALUE_INT, "2");
	makes(convert("digits", VALUE_INT), "digits", VALUE_INT, "17");
	makes(convert("number", VALUE_INT), "number", VALUE_INT, "42");
	makes(convert("text", VALUE_INT), "text", VALUE_STRING, "abc");
	makes(convert("yes", VALUE_INT), "yes", VALUE_BOOL, "true");
}

static void test_to_numbers(void **state)
{
	(void)state;
	makes(convert("digits", VALUE_DOUBLE), "digits", VALUE_DOUBLE, "17");
	makes(convert("number", VALUE_DOUBLE), "number", VALUE_DOUBLE, "42");
	makes(convert("text", VALUE_DOUBLE), "text", VALUE_STRING, "abc");
}

static void test_nothing_to_convert(void **state)
{
	(void)state;
	makes(convert("missing", VALUE_INT), "missing", VALUE_INT, NULL);
}

/* Where nothing changes the profiles themselves go on. */
static void test_unchanged(void **state)
{
	(void)state;
	makes((struct stage_edit){ .action = EDIT_UPDATE, .key = "new", .value = text_value("x") }, "text", VALUE_STRING,
	      "abc");
	assert_ptr_equal(keeper.last, profiles);
	makes(convert("text", VALUE_INT), "text", VALUE_STRING, "abc");
	assert_ptr_equal(keeper.last, profiles);
}

/* Which resources are meant. */
static void test_include_and_exclude(void **state)
{
	struct stage_test abc = { .key = "text", .value = "abc" }, other = { .key = "text", .value = "x" };
	struct stage_edit edit = { .action = EDIT_DELETE, .key = "text" };
	struct stage_edits edits = { .items = &edit, .count = 1 };
	const struct {
		bool has_include, has_exclude;
		struct stage_test *include, *exclude;
		bool is_edited;
	} cases[] = {
		{ true, false, &abc, NULL, true },  { true, false, &other, NULL, false },
		{ false, true, NULL, &abc, false }, { false, true, NULL, &other, true },
		{ true, true, &abc, &abc, false },  { true, true, &abc, &other, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sink *stage = NULL;

		edits.has_include = cases[i].has_include;
		edits.has_exclude = cases[i].has_exclude;
		edits.include.tests = cases[i].include;
		edits.include.count = cases[i].include != NULL;
		edits.exclude.tests = cases[i].exclude;
		edits.exclude.count = cases[i].exclude != NULL;
		assert_int_equal(stage_edit_new(&edits, &keeper.sink, metrics, &stage), 0);
		assert_int_equal(sink_consume(stage, profiles, NULL), 0);
		assert_int_equal(keeper.last != profiles, cases[i].is_edited);
		sink_free(stage);
	}
}

/* The next sink's error is the producer's. */
static void test_errors(void **state)
{
	const struct stage_edits edits = { .count = 0 };
	struct sink *stage = NULL;

	(void)state;
	assert_int_equal(stage_edit_new(&edits, &keeper.sink, metrics, &stage), 0);
	keeper.error = -EAGAIN;
	assert_int_equal(sink_consume(stage, profiles, NULL), -EAGAIN);
	sink_free(stage);
}

#define EDIT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EDIT_TEST(test_insert),
		EDIT_TEST(test_update),
		EDIT_TEST(test_upsert),
		EDIT_TEST(test_delete),
		EDIT_TEST(test_delete_by_pattern),
		EDIT_TEST(test_to_text),
		EDIT_TEST(test_to_whole_numbers),
		EDIT_TEST(test_to_numbers),
		EDIT_TEST(test_nothing_to_convert),
		EDIT_TEST(test_unchanged),
		EDIT_TEST(test_include_and_exclude),
		EDIT_TEST(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
