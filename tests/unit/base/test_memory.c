/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics' word on memory, against what /proc and the allocator's callers know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/sanitizer.h"
#include "tests/unit/descriptors.h"

enum { MB = 1 << 20 };

static uint64_t value_of(struct metrics *m, const char *name, const char *labels)
{
	return metric_get(metrics_gauge(m, name, labels, ""));
}

static void free_metrics(struct metrics **m)
{
	metrics_free(*m);
}

/* The last word counts, each part has its own series, and there may be nobody to tell. */
static void test_parts(void **state)
{
	struct metrics *m AUTO(free_metrics) = metrics_new();
	size_t before = metrics_memory_bytes(m);

	(void)state;
	memory_tell(m, "names", 5 * (size_t)MB);
	memory_tell(m, "rows", 7);
	memory_tell(m, "names", 3);
	memory_tell_mapped(m, "rows", 9);
	memory_tell(NULL, "names", 1);
	assert_int_equal(value_of(m, "hearth_memory_bytes", "part=\"names\""), 3);
	assert_int_equal(value_of(m, "hearth_memory_bytes", "part=\"rows\""), 7);
	assert_int_equal(value_of(m, "hearth_mapped_bytes", "what=\"rows\""), 9);
	assert_true(metrics_memory_bytes(m) > before + 3 * sizeof(struct metric));
	assert_true(metrics_memory_bytes(m) < before + 2048);
}

static uint64_t resident(struct metrics *m, const char *kind)
{
	char labels[64];

	snprintf(labels, sizeof(labels), "kind=\"%s\"", kind);
	return value_of(m, "hearth_resident_bytes", labels);
}

static uint64_t heap(struct metrics *m, const char *state)
{
	char labels[64];

	snprintf(labels, sizeof(labels), "state=\"%s\"", state);
	return value_of(m, "hearth_heap_bytes", labels);
}

/* The second number of /proc/self/statm. */
static uint64_t resident_now(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void test_process(void **state)
{
	struct metrics *m AUTO(free_metrics) = metrics_new();
	uint64_t anonymous, used, mapped, sum, now;
	void *small[512];
	char *large;

	(void)state;
	memory_tell_process(m);
	anonymous = resident(m, "anonymous");
	used = heap(m, "used");
	mapped = heap(m, "mapped");
	large = malloc(16 * (size_t)MB);
	memset(large, 1, 16 * (size_t)MB);
	for (size_t i = 0; i < ARRAY_LEN(small); i++)
		small[i] = memset(malloc(4096), 1, 4096);
	memory_tell_process(m);
	sum = resident(m, "anonymous") + resident(m, "file") + resident(m, "shared");
	now = resident_now();
	assert_true(resident(m, "anonymous") >= anonymous + 17 * (uint64_t)MB);
	assert_true(resident(m, "file") > 0);
	assert_true(sum > now - now / 8 && sum < now + now / 8); /* the kernel counts by batches */
	if (!HAS_SANITIZER) {					 /* which have an allocator of their own */
		assert_true(heap(m, "used") >= used + 2 * (uint64_t)MB);
		assert_true(heap(m, "mapped") >= mapped + 16 * (uint64_t)MB);
	}
	for (size_t i = 0; i < ARRAY_LEN(small); i++)
		free(small[i]);
	free(large);
}

/* Much that was freed below what is still used goes back to the system. */
static void check_gives_back(bool is_above)
{
	enum { PIECES = 256, PIECE_BYTES = 64 << 10 };
	void *pieces[PIECES];
	uint64_t used;

	if (HAS_SANITIZER) /* whose allocator keeps what is freed */
		return;
	for (size_t i = 0; i < PIECES; i++) {
		pieces[i] = malloc(PIECE_BYTES);
		assert_non_null(pieces[i]);
		memset(pieces[i], 1, PIECE_BYTES);
	}
	used = resident_now();
	for (size_t i = 0; i < PIECES - 1; i++)
		free(pieces[i]);
	memory_give_back_above((size_t)PIECES * PIECE_BYTES * 2); /* less than that is kept */
	assert_true(resident_now() + PIECES / 2 * PIECE_BYTES >= used);
	if (is_above)
		memory_give_back_above((size_t)PIECES / 4 * PIECE_BYTES);
	else
		memory_give_back();
	assert_true(resident_now() + PIECES / 2 * PIECE_BYTES < used);
	free(pieces[PIECES - 1]);
}

static void test_gives_back(void **state)
{
	(void)state;
	check_gives_back(false);
	check_gives_back(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_gives_back),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
