/* SPDX-License-Identifier: Apache-2.0 */
/* Names for frames without any in a ClickHouse: every byte of the rows that are sent, and which frames are told as bare. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/clickhouse/clickhouse.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pack/zstd.h"
#include "tests/unit/backend/store/clickhouse/fake_clickhouse.h"
#include "tests/unit/backend/store/clickhouse/frame_rows.h"
#include "tests/unit/descriptors.h"

static struct fake_clickhouse fake;
static struct metrics *metrics;
static struct store *store;
static struct store_clickhouse *s;

static int begin(void **state)
{
	struct store_config config = { 0 };
	struct store_error error;

	(void)state;
	fake_begin(&fake);
	metrics = metrics_new();
	config.place = fake.place;
	if (store_clickhouse_open(&config, metrics, &store, &error))
		return -1;
	s = store_clickhouse_of(store);
	return 0;
}

static int end(void **state)
{
	(void)state;
	store->close(store);
	metrics_free(metrics);
	fake_end(&fake);
	return 0;
}

/* --- names that were found --- */

static const struct store_name found[] = {
	{ .address = 0x1234567890,
	  .function = "main",
	  .system_name = "_Zmain",
	  .file = "main.c",
	  .line = 7,
	  .start_line = 5 },
	{ .address = 2, .function = "", .system_name = "s", .file = "", .line = -1, .start_line = 0 },
};

static void test_names(void **state)
{
	AUTO(buf_fini) struct buf rows = BUF_EMPTY, wanted = BUF_EMPTY;
	const uint64_t version = atomic_load(&store->names_version), before = clock_unix_ns();
	uint64_t seen;

	(void)state;
	assert_int_equal(store->write->name_frames(store, "cafe", found, 2), 0);
	fake_check_said(&fake, "INSERT hearth_names ");
	assert_int_equal(zstd_unpack(fake.inserted.data, fake.inserted.len, 1 << 20, &rows), 0);
	assert_true(rows.len > 21);
	memcpy(&seen, rows.data + 13, 8); /* behind "cafe" and the address */
	assert_in_range(seen, before, clock_unix_ns());
	for (int i = 0; i < 2; i++) {
		put_z(&wanted, "cafe");
		put_number(&wanted, found[i].address, 8);
		put_number(&wanted, seen, 8);
		put_z(&wanted, found[i].function);
		put_z(&wanted, found[i].system_name);
		put_z(&wanted, found[i].file);
		put_number(&wanted, (uint64_t)found[i].line, 8);
		put_number(&wanted, (uint64_t)found[i].start_line, 8);
	}
	assert_int_equal(rows.len, wanted.len);
	assert_memory_equal(rows.data, wanted.data, wanted.len);
	assert_int_equal(atomic_load(&store->names_version), version + 1);
}

static void test_names_refused(void **state)
{
	const uint64_t version = atomic_load(&store->names_version);

	(void)state;
	assert_int_equal(store->write->name_frames(store, "", found, 2), -EINVAL);
	assert_int_equal(store->write->name_frames(store, "cafe", found, 0), -EINVAL);
	fake_check_said(&fake, "");
	fake_refuse(&fake, 1, 400);
	assert_int_equal(store->write->name_frames(store, "cafe", found, 1), -EINVAL);
	fake_check_said(&fake, "INSERT hearth_names ");
	assert_int_equal(atomic_load(&store->names_version), version);
	assert_int_equal(store->write->name_frames(store, "cafe", found, 1), 0); /* the lock was given back */
	assert_int_equal(atomic_load(&store->names_version), version + 1);
}

/* --- frames without names --- */

static uint64_t told[8];
static size_t told_count;
static uint64_t fails_at; /* an address; 0: none */

static int on_bare(void *arg, const struct store_frame *f)
{
	assert_ptr_equal(arg, &told);
	if (fails_at == f->address)
		return -EIO;
	assert_true(told_count < 8);
	told[told_count++] = f->address;
	return 0;
}

/* The frames that are told from number @from on. */
static int tell(uint32_t from, uint32_t *next_ret)
{
	told_count = 0;
	return store->read->bare_frames(store, from, next_ret, on_bare, &told);
}

static void test_bare(void **state)
{
	const uint64_t met[] = { 36, 37 };
	struct buf *ids, *given, *frames;
	uint32_t next = 99, last;

	(void)state;
	given = fake_answer_to(&fake, "hearth_names AS n"); /* it has got a name since, and came without one */
	put_number(given, 34, 8);
	put_z(given, "later");
	put_z(given, "");
	put_z(given, "");
	put_number(given, 0, 8);
	put_number(given, 0, 8);
	ids = fake_answer_to(&fake, "SELECT id FROM hearth_frames WHERE function = '' AND build_id != ''");
	put_number(ids, 33, 8);
	put_number(ids, 34, 8);
	put_number(ids, 35, 8);
	put_number(ids, 31, 8);
	frames = fake_answer_to(&fake, "WHERE id IN (31,33,34,35)");
	put_frame(frames, 31, "main", "/bin/shop");
	put_frame(frames, 33, "", "/bin/shop");
	put_frame(frames, 34, "", "/bin/shop");
	put_frame_of(frames, 35, "", "/bin/shop", "");
	frames = fake_answer_to(&fake, "WHERE id IN (36,37)");
	put_frame(frames, 36, "sell", "/bin/shop");
	put_frame(frames, 37, "", "/bin/shop");

	assert_int_equal(tell(0, &next), 0);
	assert_int_equal(told_count, 2); /* their addresses are four more than their ids */
	assert_int_equal(told[0], 37);
	assert_int_equal(told[1], 38);
	assert_int_equal(next, click_frame_count(s->names));
	last = next;
	assert_int_equal(tell(last, &next), 0); /* none was met since */
	assert_int_equal(told_count, 0);
	assert_int_equal(next, last);

	assert_int_equal(click_names_load_frames(s, met, 2), 0);
	assert_int_equal(tell(last, &next), 0);
	assert_int_equal(told_count, 1);
	assert_int_equal(told[0], 41);
	assert_int_equal(next, last + 2);
	buf_reset(&fake.asked);
	assert_int_equal(tell(next + 1, &next), 0); /* numbers began anew: all are looked at, and none is asked for */
	assert_int_equal(told_count, 3);
	assert_int_equal(next, last + 2);
	assert_int_equal(fake.asked.len, 0);

	fails_at = 38; /* who is told has no room: it goes on there */
	assert_int_equal(tell(last + 2, &next), 0);
	assert_int_equal(told_count, 0);
	assert_int_equal(tell(last + 3, &next), -EIO);
	assert_int_equal(told_count, 1);
	assert_int_equal(told[0], 37);
	fails_at = 0;
	assert_int_equal(tell(next, &next), 0);
	assert_int_equal(told_count, 2);
	assert_int_equal(told[0], 38);
	assert_int_equal(told[1], 41);
}

/* What cannot be asked for, or is cut. */
static void test_bare_refused(void **state)
{
	struct buf *ids, *frames;
	uint32_t next = 99;

	(void)state;
	(void)fake_answer_to(&fake, "hearth_names AS n"); /* none was found */
	ids = fake_answer_to(&fake, "SELECT id FROM hearth_frames");
	put_number(ids, 33, 8);
	frames = fake_answer_to(&fake, "WHERE id IN");
	put_frame(frames, 33, "", "/bin/shop");
	frames->len--;
	assert_int_equal(tell(0, &next), -EBADMSG);
	assert_int_equal(told_count, 0);
	assert_int_equal(next, 0);
	frames->len++;
	assert_int_equal(tell(0, &next), 0);
	assert_int_equal(told_count, 1);
	shutdown(fake.fd, SHUT_RDWR); /* nobody answers any more */
	pthread_join(fake.thread, NULL);
	assert_true(tell(0, &next) < 0);
	assert_int_equal(pthread_create(&fake.thread, NULL, fake_serve, &fake), 0); /* for fake_end(): it ends at once */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_names), TEST(test_names_refused), TEST(test_bare),
					    TEST(test_bare_refused) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
