/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of resources: what is changed is seen at once and stands in the new object; the old one stays as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "base/buf.h"
#include "proto/resource_edit.h"
#include "tests/unit/proto/text_profiles.h"

static struct profiles *profiles; /* resources { a=1 b=x } and { a=2 } */

static int setup(void **state)
{
	const struct key_value first[] = { { .key = STR("a"), .value = { .kind = VALUE_STRING, .string = STR("1") } },
					   { .key = STR("b"), .value = { .kind = VALUE_STRING, .string = STR("x") } } },
			       second[] = { { .key = STR("a"), .value = { .kind = VALUE_STRING, .string = STR("2") } } };
	struct builder *b = builder_new();
	int32_t frame = builder_location(b, 0, 0x1000, NULL, 0, NULL, 0), stack = builder_stack(b, &frame, 1);

	(void)state;
	builder_event(b, builder_profile(b, builder_resource(b, first, 2), &text_cpu_spec), stack, NULL, 0, 0, 5, false, 0);
	builder_event(b, builder_profile(b, builder_resource(b, first, 2), &text_cpu_spec), stack, NULL, 0, 0, 6, false, 0);
	builder_event(b, builder_profile(b, builder_resource(b, second, 1), &text_cpu_spec), stack, NULL, 0, 0, 7, false, 0);
	if (builder_freeze(b, 1, 10, &profiles))
		return -1;
	builder_free(b);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	profiles_put(profiles);
	return 0;
}

/* "key=value ..." of a list; a list of texts as [x,y]. */
static void append_list(const struct profiles *p, struct key_values list, struct buf *out)
{
	for (uint32_t i = 0; i < list.count; i++) {
		const struct any_value *value = &list.items[i].value;
		struct str key = profiles_key(p, &list.items[i]);

		buf_printf(out, "%s%.*s=", i ? " " : "", (int)key.len, key.data);
		if (value->kind != VALUE_ARRAY) {
			profiles_value_append(p, value, out);
			continue;
		}
		for (uint32_t k = 0; k < value->array.count; k++) {
			buf_putc(out, k ? ',' : '[');
			profiles_value_append(p, &value->array.items[k], out);
		}
		buf_puts(out, value->array.count ? "]" : "[]");
	}
}

/* The attributes of all resources of @p, a ';' between them. */
static void holds(const struct profiles *p, const char *wanted)
{
	struct buf text = BUF_EMPTY;

	for (uint32_t i = 0; i < p->resource_count; i++) {
		buf_puts(&text, i ? "; " : "");
		append_list(p, p->resources[i].resource.attributes, &text);
	}
	assert_string_equal(buf_text(&text), wanted);
	buf_fini(&text);
}

/* What the resource that is changed has now. */
static void has_now(const struct resource_edit *e, const char *wanted)
{
	struct buf text = BUF_EMPTY;

	append_list(e->from, resource_edit_list(e), &text);
	assert_string_equal(buf_text(&text), wanted);
	buf_fini(&text);
}

static void set(struct resource_edit *e, const char *key, const char *value)
{
	char own_key[16], own_value[16]; /* gone when the test goes on */
	const struct any_value v = { .kind = VALUE_STRING, .string = { own_value, (uint32_t)strlen(value) } };

	snprintf(own_key, sizeof(own_key), "%s", key);
	snprintf(own_value, sizeof(own_value), "%s", value);
	resource_edit_set(e, str_z(own_key), &v);
	memset(own_key, '?', sizeof(own_key));
	memset(own_value, '?', sizeof(own_value));
}

/* Nothing changed: the object itself is the result. */
static void test_nothing_changes(void **state)
{
	struct resource_edit e = { .from = profiles };
	struct profiles *ret;

	(void)state;
	assert_true(resource_edit_next(&e));
	assert_false(resource_edit_next(&e));
	ret = resource_edit_end(&e);
	assert_ptr_equal(ret, profiles);
	profiles_put(ret);
}

static void test_set(void **state)
{
	struct resource_edit e = { .from = profiles };
	struct profiles *ret;

	(void)state;
	set(&e, "b", "y");
	set(&e, "c", "new");
	has_now(&e, "a=1 b=y c=new");
	assert_true(resource_edit_next(&e));
	has_now(&e, "a=2");
	set(&e, "a", "");
	(void)resource_edit_next(&e);
	ret = resource_edit_end(&e);
	assert_false(e.failed);
	holds(ret, "a=1 b=y c=new; a=");
	holds(profiles, "a=1 b=x; a=2");
	assert_int_equal(ret->sample_events, 3);
	profiles_put(ret);
}

static void test_find(void **state)
{
	struct resource_edit e = { .from = profiles };

	(void)state;
	assert_non_null(resource_edit_find(&e, "b"));
	assert_null(resource_edit_find(&e, "c"));
	set(&e, "c", "z");
	assert_true(str_is(profiles_value_text(e.from, resource_edit_find(&e, "c")), "z"));
	resource_edit_remove(&e, 1);
	assert_null(resource_edit_find(&e, "b"));
	(void)resource_edit_next(&e);
	assert_null(resource_edit_find(&e, "c"));
	(void)resource_edit_next(&e);
	profiles_put(resource_edit_end(&e));
}

static void test_remove(void **state)
{
	struct resource_edit e = { .from = profiles };
	struct profiles *ret;

	(void)state;
	resource_edit_remove(&e, 0);
	has_now(&e, "b=x");
	resource_edit_remove(&e, 0);
	has_now(&e, "");
	assert_true(resource_edit_next(&e));
	(void)resource_edit_next(&e);
	ret = resource_edit_end(&e);
	holds(ret, "; a=2");
	holds(profiles, "a=1 b=x; a=2");
	profiles_put(ret);
}

/* The second resource alone is changed. */
static void test_the_second(void **state)
{
	struct resource_edit e = { .from = profiles };
	struct profiles *ret;

	(void)state;
	assert_true(resource_edit_next(&e));
	set(&e, "d", "4");
	(void)resource_edit_next(&e);
	ret = resource_edit_end(&e);
	holds(ret, "a=1 b=x; a=2 d=4");
	profiles_put(ret);
}

static void test_lists(void **state)
{
	const struct str texts[] = { STR("one"), STR(""), STR("three") };
	struct resource_edit e = { .from = profiles };
	struct profiles *ret;

	(void)state;
	resource_edit_set_list(&e, STR("b"), texts, 3);
	resource_edit_set_list(&e, STR("none"), texts, 0);
	has_now(&e, "a=1 b=[one,,three] none=[]");
	(void)resource_edit_next(&e);
	(void)resource_edit_next(&e);
	ret = resource_edit_end(&e);
	holds(ret, "a=1 b=[one,,three] none=[]; a=2");
	profiles_put(ret);
}

/* More attributes than there was room for at first. */
static void test_many(void **state)
{
	struct resource_edit e = { .from = profiles };
	struct profiles *ret;
	char key[16];

	(void)state;
	for (int i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		set(&e, key, key);
	}
	assert_int_equal(resource_edit_list(&e).count, 202);
	(void)resource_edit_next(&e);
	(void)resource_edit_next(&e);
	ret = resource_edit_end(&e);
	assert_int_equal(ret->resources[0].resource.attributes.count, 202);
	for (int i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		assert_true(str_is(
			profiles_value_text(ret, profiles_find_key(ret, &ret->resources[0].resource.attributes, key)), key));
	}
	profiles_put(ret);
}

static void test_events(void **state)
{
	(void)state;
	assert_int_equal(resource_events(&profiles->resources[0]), 2);
	assert_int_equal(resource_events(&profiles->resources[1]), 1);
}

#define EDIT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EDIT_TEST(test_nothing_changes), EDIT_TEST(test_set),	EDIT_TEST(test_find), EDIT_TEST(test_remove),
		EDIT_TEST(test_the_second),	 EDIT_TEST(test_lists), EDIT_TEST(test_many), EDIT_TEST(test_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
