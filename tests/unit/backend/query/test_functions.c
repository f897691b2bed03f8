/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a store's frames: one for all frames of a function, and memory by what is asked, not by what there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backend/query/functions.h"
#include "backend/store/store_read.h"

enum { FAR = 45000000, MANY = 400000, FUNCTIONS = 100, MB = 1 << 20 };

static int asked;

/* Frame n is of function n % FUNCTIONS, in line n. */
static int tell_frame(struct store *store, uint32_t frame, struct store_frame *ret)
{
	static char name[32];

	(void)store;
	asked++;
	snprintf(name, sizeof(name), "function%u", frame % FUNCTIONS);
	*ret = (struct store_frame){ .function = name,
				     .system_name = "",
				     .file = "",
				     .module = "prog",
				     .path = "/bin/prog",
				     .build_id = "id",
				     .type = "native",
				     .line = frame };
	return 0;
}

static const struct store_read_ops ops = { .frame = tell_frame };

static void check(struct functions *f, uint32_t frame)
{
	struct function_call call;
	char name[32];

	assert_int_equal(functions_of_frame(f, frame, &call), 0);
	snprintf(name, sizeof(name), "function%u", frame % FUNCTIONS);
	assert_string_equal(functions_get(f, call.function).name, name);
	assert_string_equal(functions_get(f, call.function).file, "");
	assert_string_equal(functions_get(f, call.function).build_id, "id");
	assert_int_equal(call.line, frame);
}

static void test_memory(void **state)
{
	struct store store = { .read = &ops };
	struct functions *f = functions_new(&store);
	const uint64_t some[2] = { 1 << 7 | 1 << 9, 3 };

	(void)state;
	assert_non_null(f);
	check(f, FAR);
	check(f, 7);
	check(f, 8);
	assert_int_equal(asked, 3);
	check(f, 7);
	assert_int_equal(asked, 3);
	assert_int_equal(functions_meet(f, some, 2), 0);
	assert_int_equal(asked, 6);
	check(f, 9);
	check(f, 64);
	check(f, 65);
	assert_int_equal(asked, 6);
	assert_true(functions_memory_bytes(f) < MB);
	functions_trim(f, FUNCTIONS); /* little is kept as it is */
	check(f, FAR);
	assert_int_equal(asked, 6);
	for (uint32_t i = 1; i <= MANY; i++)
		check(f, i);
	assert_int_equal(functions_count(f), FUNCTIONS);
	assert_true(functions_memory_bytes(f) > 3 * MB);
	functions_trim(f, FUNCTIONS); /* much is not, but for the functions */
	assert_true(functions_memory_bytes(f) < MB);
	assert_int_equal(functions_count(f), FUNCTIONS);
	check(f, FAR);
	functions_trim(f, 0);
	assert_int_equal(functions_count(f), 0);
	assert_true(functions_memory_bytes(f) < 8192);
	check(f, FAR);
	functions_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_memory) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
