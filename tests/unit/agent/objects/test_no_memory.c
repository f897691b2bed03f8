/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of scripts, for want of memory: an id that was taken for nothing names nothing, and is used later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/objects/objects.h"
#include "tests/unit/failing_memory.h"

enum { OBJECTS = 40 };

static int fill(struct buf *out)
{
	struct object *objects[OBJECTS] = { NULL };
	struct objects *all = NULL;
	int error = objects_new(&all);
	uint32_t count = 0;

	for (uint32_t i = 0; !error && i < OBJECTS; i++) {
		error = objects_add(all, 0, &i, sizeof(i), &objects[i]);
		count += !error;
	}
	if (error && all) { /* whoever tries again has room now */
		memory_suffices();
		assert_int_equal(objects_count(all), count);
		assert_null(objects_find(all, count + 1));
		assert_int_equal(objects_add(all, 0, &count, sizeof(count), &objects[count]), 0);
		assert_int_equal(objects[count]->id, count + 1);
		assert_ptr_equal(objects_find(all, count + 1), objects[count]);
	}
	if (all)
		buf_printf(out, "%u objects", objects_count(all));
	for (uint32_t i = 0; i < OBJECTS; i++)
		object_put(objects[i]);
	objects_free(all);
	return error;
}

static void test_objects(void **state)
{
	static const struct memory_scenario scenario = { "objects", fill, false };

	(void)state;
	memory_fails_everywhere(&scenario);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_objects) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
