/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of the kernel's caches: what each kind of machine gets, and that they keep within the memory they may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kernel/map_sizes.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

#define GB (1ull << 30)
#define MB (1ull << 20)

static const struct {
	struct map_host host;
	struct map_sizes sizes;
	uint64_t most_bytes;
} cases[] = {
	/* a desktop or a small server: within the bar of 30 MB, of which the process takes two thirds */
	{ { 4, 200, 16 * GB }, { 4096, 16384, 16384 }, 9 * MB },
	{ { 2, 0, 8 * GB }, { 4096, 16384, 16384 }, 9 * MB },
	/* many processes: 60 MB */
	{ { 4, 2000, 24 * GB }, { 8192, 65536, 16384 }, 16 * MB },
	{ { 16, 3300, 64 * GB }, { 16384, 131072, 16384 }, 25 * MB },
	/* many CPUs */
	{ { 64, 600, 256 * GB }, { 16384, 16384, 65536 }, 28 * MB },
	{ { 512, 20000, 2048 * GB }, { 131072, 524288, 131072 }, 132 * MB },
	/* little memory: a 512th of it, but never nothing */
	{ { 2, 100, 1 * GB }, { 512, 2048, 2048 }, 2 * MB },
	{ { 1, 50, 128 * MB }, { 512, 2048, 2048 }, 2 * MB },
	{ { 4, 2000, 4 * GB }, { 4096, 32768, 8192 }, 8 * MB },
};

static void test_machines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct map_sizes s = map_sizes_choose(&cases[i].host, 0);

		assert_int_equal(s.procs, cases[i].sizes.procs);
		assert_int_equal(s.mappings, cases[i].sizes.mappings);
		assert_int_equal(s.blocks, cases[i].sizes.blocks);
		assert_true(map_sizes_bytes(&s) <= cases[i].most_bytes);
	}
}

/* More of anything never makes a cache smaller; no machine is so large that the sizes wrap round. */
static void test_monotone(void **state)
{
	struct map_sizes last = { 0 };

	(void)state;
	for (uint64_t n = 1; n <= 1ull << 31; n *= 2) {
		struct map_host host = { .cpus = (uint32_t)n, .processes = (uint32_t)n, .memory_bytes = UINT64_MAX };
		struct map_sizes s = map_sizes_choose(&host, 0);

		assert_true(s.procs >= last.procs && s.mappings >= last.mappings && s.blocks >= last.blocks);
		last = s;
	}
	assert_true(last.procs > 4096 && last.mappings > 16384 && last.blocks > 16384);
}

static void test_scale(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct map_sizes one = map_sizes_choose(&cases[i].host, 0);

		for (unsigned scale = 1; scale <= MAX_MAP_SCALE; scale++) {
			struct map_sizes s = map_sizes_choose(&cases[i].host, scale);

			assert_int_equal(s.procs, one.procs << scale);
			assert_int_equal(s.mappings, one.mappings << scale);
			assert_int_equal(s.blocks, one.blocks << scale);
			assert_int_equal(map_sizes_bytes(&s), map_sizes_bytes(&one) << scale);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machines),
		cmocka_unit_test(test_monotone),
		cmocka_unit_test(test_scale),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
