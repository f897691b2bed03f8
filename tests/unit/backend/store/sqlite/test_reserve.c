/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that gets full: how large the reserve is, which samples go so that a part of the disk stays free, and that none go
 * in vain. The disk is the test's: of the size that it says, with room that the store's own files take.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backend/store/sqlite/db.h"
#include "backend/store/sqlite/reserve.h"
#include "backend/store/sqlite/sqlite.h"
#include "backend/store/sqlite/write.h"
#include "backend/store/store_maintain.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "proto/profiles_builder.h"
#include "tests/unit/backend/store_put.h"

enum { KIB = 1 << 10, MIB = 1 << 20, BLOCK = 4096 };

static char folder[64];

/* --- the disk --- */

static struct {
	uint64_t bytes;
	uint64_t others_free; /* bytes that were free without the store */
	bool is_none;	      /* nobody knows how large it is */
} disk;

/* Bytes of all files of the store. */
static uint64_t our_bytes(void)
{
	DIR *d = opendir(folder);
	uint64_t sum = 0;

	for (const struct dirent *e; d && (e = readdir(d));) {
		struct stat st;

		if (!fstatat(dirfd(d), e->d_name, &st, 0) && S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	}
	if (d)
		closedir(d);
	return sum;
}

int statvfs(const char *path, struct statvfs *ret)
{
	const uint64_t ours = our_bytes();

	(void)path;
	*ret = (struct statvfs){ .f_bsize = BLOCK, .f_frsize = BLOCK, .f_blocks = disk.is_none ? 0 : disk.bytes / BLOCK };
	ret->f_bavail = ret->f_bfree = disk.others_free > ours ? (disk.others_free - ours) / BLOCK : 0;
	return 0;
}

/* --- the store --- */

static struct metrics *metrics;
static struct store *store;
static uint64_t now_ns;

static struct store_sqlite *sqlite(void)
{
	return store_sqlite_of(store);
}

static void open_store(uint64_t keep_bytes, double keep_free_part)
{
	const struct store_config config = {
		.place = folder, .keep_age_ns = UINT64_MAX, .keep_bytes = keep_bytes, .keep_free_part = keep_free_part
	};
	struct store_error err;

	if (store_sqlite_open(&config, metrics, &store, &err))
		fail_msg("%s", err.message);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/hearth-full-XXXXXX");
	metrics = metrics_new();
	now_ns = clock_unix_ns();
	disk.bytes = 1000ull * MIB;
	disk.others_free = 900ull * MIB;
	disk.is_none = false;
	return !mkdtemp(folder);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	if (store)
		store->close(store);
	store = NULL;
	metrics_free(metrics);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* A block of @count events, @hours ago. */
static void put(unsigned hours, unsigned count)
{
	static const struct builder_profile_spec spec = { "hearth", "1", "off_cpu", "nanoseconds", "", "", 0, NULL, 0 };
	const uint64_t time_ns = now_ns - hours * HOUR_NS;
	struct builder *b = builder_new();
	struct profile_line line = { builder_function(b, builder_string_z(b, "main"), 0, 0, 10), 12, 0 };
	int32_t frame = builder_location(b, 0, 0x1100, &line, 1, NULL, 0);
	uint32_t profile = builder_profile(b, builder_resource(b, NULL, 0), &spec);
	struct profiles *p;

	for (unsigned i = 0; i < count; i++)
		builder_event(b, profile, builder_stack(b, &frame, 1), NULL, 0, 0, time_ns + i, true, 1);
	assert_int_equal(builder_freeze(b, time_ns, time_ns + NSEC_PER_SEC, &p), 0);
	builder_free(b);
	store_put(store, p);
	profiles_put(p);
}

static int64_t number(const char *sql)
{
	int64_t ret;

	assert_int_equal(store_get_int(sqlite()->read_db, sql, -1, &ret), 0);
	return ret;
}

static int64_t events(void)
{
	return number("SELECT sum(events) FROM blocks");
}

/* Does @sql with the store's file while nobody has it open, and opens it again. */
static void change(const char *sql, uint64_t keep_bytes, double keep_free_part)
{
	char path[96];
	sqlite3 *db;

	store->close(store);
	store = NULL;
	snprintf(path, sizeof(path), "%s/profiles.db", folder);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(store_exec(db, sql), 0);
	sqlite3_close(db);
	open_store(keep_bytes, keep_free_part);
}

static void prune(void)
{
	assert_int_equal(store->maintain->task(store, STORE_PRUNE), 0);
}

static bool is_said(const char *text)
{
	struct log_message said[16];
	bool is = false;

	for (size_t i = log_recent(said, ARRAY_LEN(said)); i > 0; i--)
		is |= strstr(said[i - 1].text, text) != NULL;
	return is;
}

/* --- the reserve --- */

static uint64_t reserve_bytes(void)
{
	char path[96];
	struct stat st;

	snprintf(path, sizeof(path), "%s/reserve", folder);
	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

/* The reserve of a store that is to keep @keep_bytes, on the disk as it is. */
static void reserve_is(uint64_t keep_bytes, uint64_t wanted)
{
	open_store(keep_bytes, 0);
	prune();
	assert_int_equal(reserve_bytes(), wanted);
	assert_int_equal(sqlite()->reserve_bytes, wanted);
	assert_false(sqlite()->is_reserve_used);
	store->close(store);
	store = NULL;
}

static void test_reserve(void **state)
{
	(void)state;
	reserve_is(UINT64_MAX, 4 * MIB);
	reserve_is(64 * MIB, 4 * MIB);
	reserve_is(32 * MIB, 2 * MIB);
	reserve_is(16 * (MIB + 65535), MIB); /* of whole pieces */
	reserve_is(16 * 65535, 0);
}

/* Of a small disk the reserve is a sixteenth. */
static void test_reserve_of_a_small_disk(void **state)
{
	(void)state;
	disk.bytes = 48 * MIB;
	disk.others_free = 40 * MIB;
	reserve_is(UINT64_MAX, 3 * MIB);
	disk.bytes = 64 * MIB;
	reserve_is(UINT64_MAX, 4 * MIB);
	disk.is_none = true;
	reserve_is(UINT64_MAX, 0);
}

/* There is no reserve where it would take the last room: it and a sixteenth of it must be free. */
static void test_room_for_the_reserve(void **state)
{
	const uint64_t wanted = MIB, margin = wanted / 16;

	(void)state;
	open_store(16 * MIB, 0);
	prune();
	store->close(store);
	store = NULL;
	open_store(16 * MIB, 0);
	disk.others_free = our_bytes() - reserve_bytes() + wanted + margin;
	store_reserve_make(sqlite());
	assert_int_equal(reserve_bytes(), wanted);
	assert_false(sqlite()->is_reserve_used);
	assert_int_equal(store_reserve_lacks(sqlite()), 0);
	assert_true(store_reserve_free(sqlite()));
	assert_int_equal(reserve_bytes(), 0);
	assert_true(sqlite()->is_reserve_used);
	assert_int_equal(store_reserve_lacks(sqlite()), wanted + margin);
	assert_false(store_reserve_free(sqlite())); /* there is none any more */
	disk.others_free -= BLOCK;
	store_reserve_make(sqlite());
	assert_int_equal(reserve_bytes(), 0);
	assert_true(sqlite()->is_reserve_used);
	disk.others_free += BLOCK;
	store_reserve_make(sqlite());
	assert_int_equal(reserve_bytes(), wanted);
	assert_false(sqlite()->is_reserve_used);
	assert_true(is_said("there is room again, samples are kept"));
}

/* A reserve of another size is made anew. */
static void test_another_reserve(void **state)
{
	(void)state;
	reserve_is(32 * MIB, 2 * MIB);
	reserve_is(16 * MIB, MIB);
	reserve_is(64 * MIB, 4 * MIB);
}

static void test_may_be_written(void **state)
{
	(void)state;
	open_store(16 * MIB, 0);
	disk.others_free = our_bytes() + MIB / 2 + BLOCK;
	assert_true(store_may_be_written(sqlite()));
	disk.others_free -= BLOCK;
	assert_false(store_may_be_written(sqlite()));
}

/* --- samples --- */

enum { KEPT = 16 * MIB };

/* Four blocks of 350 kB: of 9, 7, 5 and 3 hours ago, with 1, 2, 4 and 8 events. */
static void fill(double keep_free_part)
{
	open_store(KEPT, 0);
	for (unsigned i = 0; i < 4; i++)
		put(9 - 2 * i, 1u << i);
	prune();
	change("UPDATE blocks SET times = zeroblob(350000), level = 9", KEPT, keep_free_part);
}

/* The disk lacks @bytes to what is to be free of it, a tenth. */
static void lack(int64_t bytes)
{
	disk.others_free = (uint64_t)((int64_t)(disk.bytes / 10 + our_bytes()) - bytes);
}

static void test_enough_is_free(void **state)
{
	(void)state;
	fill(0.1);
	lack(0);
	assert_false(store_disk_is_full(sqlite()));
	prune();
	assert_int_equal(events(), 15);
}

/* The oldest samples go, no more of them than it takes. */
static void test_samples_go(void **state)
{
	(void)state;
	fill(0.1);
	lack(200000);
	assert_true(store_disk_is_full(sqlite()));
	prune();
	assert_int_equal(events(), 14);
	assert_false(store_disk_is_full(sqlite()));
	assert_int_equal(metric_get(sqlite()->metrics.pruned_events), 1);
	assert_int_equal(metric_get(sqlite()->metrics.disk_lacks), 0);
	prune();
	assert_int_equal(events(), 14);
}

static void test_two_blocks_go(void **state)
{
	(void)state;
	fill(0.1);
	lack(500000);
	prune();
	assert_int_equal(events(), 12);
	assert_false(store_disk_is_full(sqlite()));
}

/* Room that is free within the file is given back, and no sample goes for it. */
static void test_free_room_first(void **state)
{
	uint64_t before;

	(void)state;
	fill(0.1);
	change("INSERT INTO strings VALUES(1000000, hex(zeroblob(1000000))); DELETE FROM strings WHERE id = 1000000", KEPT,
	       0.1);
	before = our_bytes();
	lack(1000000);
	prune();
	assert_int_equal(events(), 15);
	assert_true(our_bytes() + 1000000 <= before);
	assert_false(store_disk_is_full(sqlite()));
}

/* Where all samples that may go would not do they stay, and it is told how much is lacking. */
static void test_none_go_in_vain(void **state)
{
	(void)state;
	fill(0.1);
	lack(50 * MIB);
	prune();
	assert_int_equal(events(), 15);
	assert_in_range(metric_get(sqlite()->metrics.disk_lacks), 47 * MIB, 50 * MIB);
	assert_true(is_said("its disk is fuller than --keep-free allows"));
	assert_true(is_said("so they stay, and the store does not grow"));
}

/* When the room is there again nothing is lacking any more. */
static void test_the_end_of_it(void **state)
{
	(void)state;
	fill(0.1);
	lack(50 * MIB);
	prune();
	assert_true(metric_get(sqlite()->metrics.disk_lacks) > 0);
	disk.others_free += 60 * MIB;
	prune();
	assert_int_equal(metric_get(sqlite()->metrics.disk_lacks), 0);
	assert_int_equal(events(), 15);
}

/* A store that is small is not to blame for a full disk. */
static void test_a_small_store(void **state)
{
	(void)state;
	open_store(KEPT, 0.1);
	put(9, 1);
	put(7, 2);
	lack(100 * KIB);
	prune();
	assert_int_equal(events(), 3);
}

/* Without --keep-free the disk may be as full as it is. */
static void test_no_part_is_to_be_free(void **state)
{
	(void)state;
	fill(0);
	lack(50 * MIB);
	assert_false(store_disk_is_full(sqlite()));
	prune();
	assert_int_equal(events(), 15);
}

#define FULL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FULL_TEST(test_reserve),
		FULL_TEST(test_reserve_of_a_small_disk),
		FULL_TEST(test_room_for_the_reserve),
		FULL_TEST(test_another_reserve),
		FULL_TEST(test_may_be_written),
		FULL_TEST(test_enough_is_free),
		FULL_TEST(test_samples_go),
		FULL_TEST(test_two_blocks_go),
		FULL_TEST(test_free_room_first),
		FULL_TEST(test_none_go_in_vain),
		FULL_TEST(test_the_end_of_it),
		FULL_TEST(test_a_small_store),
		FULL_TEST(test_no_part_is_to_be_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
