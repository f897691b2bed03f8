/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of scripts by content: equal ones are one object, of which somebody holds each reference; ids are used again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/objects/objects.h"

enum { MANY = 5000 };

static struct objects *all;

static int make(void **state)
{
	(void)state;
	return objects_new(&all);
}

static int destroy(void **state)
{
	uint32_t count = objects_count(all);

	(void)state;
	objects_free(all);
	return (int)count; /* nothing stays behind */
}

static struct object *add(uint32_t runtime, const char *content)
{
	struct object *object = NULL;

	assert_int_equal(objects_add(all, runtime, content, (uint32_t)strlen(content), &object), 0);
	assert_non_null(object);
	assert_int_equal(object->runtime, runtime);
	assert_int_equal(object->len_bytes, strlen(content));
	assert_memory_equal(object->content, content, strlen(content));
	assert_ptr_equal(objects_find(all, object->id), object);
	return object;
}

static void test_equal(void **state)
{
	struct object *a = add(0, "function a"), *b = add(0, "function b"), *again = add(0, "function a"),
		      *other = add(1, "function a"), *prefix = add(0, "function"), *empty = add(0, "");

	(void)state;
	assert_ptr_equal(a, again);
	assert_int_equal(a->refs, 2);
	assert_true(a != b && a != other && a != prefix && other != prefix && empty != prefix);
	assert_true(a->id && b->id && a->id != b->id && a->id != other->id && a->id != prefix->id);
	assert_int_equal(objects_count(all), 5);
	object_put(again);
	assert_int_equal(a->refs, 1);
	assert_ptr_equal(objects_find(all, a->id), a);
	assert_ptr_equal(object_get(a), a);
	assert_int_equal(a->refs, 2);
	object_put(a);
	object_put(a);
	assert_int_equal(objects_count(all), 4);
	assert_ptr_equal(add(1, "function a"), other); /* another runtime's stays */
	object_put(other);
	object_put(other);
	object_put(b);
	object_put(prefix);
	object_put(empty);
	assert_null(object_get(NULL));
	object_put(NULL);
}

static void test_ids(void **state)
{
	struct object *a = add(0, "a"), *b = add(0, "b"), *c;
	uint32_t id = a->id, most = a->id > b->id ? a->id : b->id;

	(void)state;
	assert_null(objects_find(all, 0));
	assert_null(objects_find(all, most + 1));
	assert_null(objects_find(all, UINT32_MAX));
	object_put(a);
	assert_null(objects_find(all, id));
	c = add(0, "c");
	assert_int_equal(c->id, id); /* used again */
	a = add(0, "a");
	assert_int_equal(a->id, most + 1);
	assert_true(a->id < OBJECT_IDS);
	object_put(a);
	object_put(b);
	object_put(c);
	for (uint32_t i = 0; i < most + 3; i++)
		assert_null(objects_find(all, i));
}

/* Lists of a hash: the same content for each of many runtimes, taken out from the front, the middle and the end; whatever
 * the hash is, the others are found. */
static void test_lists(void **state)
{
	enum { RUNTIMES = 9 };
	struct object *objects[RUNTIMES];

	(void)state;
	for (uint32_t round = 0; round < RUNTIMES; round++) {
		for (uint32_t i = 0; i < RUNTIMES; i++)
			objects[i] = add(i, "the same");
		for (uint32_t i = 0; i < RUNTIMES; i++) {
			uint32_t gone = (round + i * 4) % RUNTIMES;

			object_put(objects[gone]);
			objects[gone] = NULL;
			for (uint32_t k = 0; k < RUNTIMES; k++) {
				if (objects[k]) {
					assert_ptr_equal(add(k, "the same"), objects[k]);
					object_put(objects[k]);
				}
			}
		}
		assert_int_equal(objects_count(all), 0);
	}
}

static void test_many(void **state)
{
	static struct object *objects[MANY];
	size_t before = objects_memory_bytes(all), full;
	char text[64];

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "function number %u", i);
		objects[i] = add(0, text);
		assert_int_equal(objects[i]->id, i + 1);
	}
	full = objects_memory_bytes(all);
	assert_true(full >= before + MANY * (sizeof(struct object) + strlen("function number ")));
	assert_true(full <= before + MANY * (sizeof(struct object) + 128));
	for (uint32_t i = 0; i < MANY; i += 2)
		object_put(objects[i]);
	assert_int_equal(objects_count(all), MANY / 2);
	assert_true(objects_memory_bytes(all) < full - MANY / 2 * sizeof(struct object));
	for (uint32_t i = 1; i < MANY; i += 2) {
		snprintf(text, sizeof(text), "function number %u", i);
		assert_ptr_equal(objects_find(all, i + 1), objects[i]);
		assert_ptr_equal(add(0, text), objects[i]);
		object_put(objects[i]);
	}
	for (uint32_t i = 0; i < MANY; i += 2) {
		snprintf(text, sizeof(text), "another number %u", i);
		objects[i] = add(0, text);
		assert_true(objects[i]->id <= MANY);
	}
	for (uint32_t i = 0; i < MANY; i++)
		object_put(objects[i]);
	objects_free(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_equal, make, destroy),
		cmocka_unit_test_setup_teardown(test_ids, make, destroy),
		cmocka_unit_test_setup_teardown(test_lists, make, destroy),
		cmocka_unit_test_setup_teardown(test_many, make, destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
