/* SPDX-License-Identifier: Apache-2.0 */
/* The pointer map, compared with a plain array through long random runs of puts and deletes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "tests/unit/descriptors.h"

enum { KEYS = 700, STEPS = 300000 };

static char values[KEYS]; /* addresses to point to */

static void check_walk(const struct map *m, void *const *model, uint64_t stride)
{
	size_t pos = 0, seen = 0, expected = 0;
	uint64_t key;
	void *value;

	for (size_t i = 0; i < KEYS; i++)
		expected += model[i] != NULL;
	while (map_next(m, &pos, &key, &value)) {
		assert_int_equal(key % stride, 0);
		assert_true(key / stride < KEYS);
		assert_ptr_equal(value, model[key / stride]);
		seen++;
	}
	assert_int_equal(seen, expected);
	assert_int_equal(m->count, expected);
	assert_true(m->count <= m->cap / 4 * 3);
}

/* A third goes, a third becomes another. */
static void *swept(void *value)
{
	size_t nth = (size_t)((char *)value - values);

	return nth % 3 == 0 ? NULL : nth % 3 == 1 ? &values[nth + 1 < KEYS ? nth + 1 : 1] : value;
}

static void *keep(void *arg, void *value)
{
	++*(size_t *)arg;
	return swept(value);
}

static void check_sweep(struct map *m, void **model)
{
	size_t before = m->count, met = 0;

	map_sweep(m, keep, &met);
	assert_int_equal(met, before);
	for (size_t i = 0; i < KEYS; i++)
		model[i] = model[i] ? swept(model[i]) : NULL;
}

static void test_against_array(void **state)
{
	static const uint64_t strides[] = { 1, 4096, 1ull << 32, 0x9e3779b97f4a7c15ull / KEYS };

	(void)state;
	srandom(7);
	for (size_t s = 0; s < ARRAY_LEN(strides); s++) {
		struct map m AUTO(map_fini) = MAP_EMPTY;
		void *model[KEYS] = { 0 };

		for (long step = 0; step < STEPS; step++) {
			size_t k = (size_t)random() % KEYS;
			/* Deletes win in the second half, so the map fills up first and empties then. */
			bool is_delete = random() % 5 < (step < STEPS / 2 ? 2 : 4);

			assert_ptr_equal(map_get(&m, k * strides[s]), model[k]);
			if (is_delete) {
				assert_ptr_equal(map_del(&m, k * strides[s]), model[k]);
				model[k] = NULL;
			} else {
				model[k] = &values[random() % KEYS];
				assert_int_equal(map_put(&m, k * strides[s], model[k]), 0);
			}
			if (step % 1000 == 0)
				check_sweep(&m, model);
			if (step % 1000 == 0 || step % 10000 == 10)
				check_walk(&m, model, strides[s]);
		}
		check_walk(&m, model, strides[s]);
	}
}

static void test_empty(void **state)
{
	struct map m AUTO(map_fini) = MAP_EMPTY;
	size_t pos = 0, met = 0;
	uint64_t key;
	void *value;

	(void)state;
	assert_null(map_get(&m, 0));
	assert_null(map_del(&m, 0));
	map_sweep(&m, keep, &met);
	assert_int_equal(met, 0);
	assert_false(map_next(&m, &pos, &key, &value));
	assert_int_equal(map_put(&m, 0, values), 0);
	assert_ptr_equal(map_get(&m, 0), values);
	assert_null(map_get(&m, UINT64_MAX));
	assert_ptr_equal(map_del(&m, 0), values);
	assert_null(map_get(&m, 0));
	assert_null(map_del(&m, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_against_array), cmocka_unit_test(test_empty) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
