/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store in a ClickHouse that is none (fake_clickhouse.h): what is sent when, what becomes of samples that are not taken,
 * clearing, and every field of frames that come back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/clickhouse/clickhouse.h"
#include "base/clock.h"
#include "tests/unit/backend/store/clickhouse/fake_clickhouse.h"
#include "tests/unit/backend/store/clickhouse/frame_rows.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/proto/text_profiles.h"
#include "tests/unit/sinks/counted_ack.h"

#define ALL_REST "INSERT hearth_frames INSERT hearth_stacks INSERT hearth_labels INSERT hearth_series "
#define SAMPLES	 "INSERT hearth_samples "
#define LONG_NS	 (60 * NSEC_PER_SEC)

static struct fake_clickhouse fake;
static struct metrics *metrics;
static struct store *store;
static struct sink *sink;
static struct profiles *profiles;
static struct counted_ack ack;

static int open_store(bool is_read_only, const char *spool)
{
	struct store_config config = { .place = fake.place, .read_only = is_read_only, .spool_dir = spool };
	struct store_error error;
	int err = store_clickhouse_open(&config, metrics, &store, &error);

	if (err)
		print_message("%s\n", error.message);
	return err;
}

static int begin(void **state)
{
	(void)state;
	fake_begin(&fake);
	metrics = metrics_new();
	profiles = text_profiles("shop;main@shop;sell@shop 2\n", 0);
	ack = (struct counted_ack){ .ack.done = counted_done };
	sink = NULL;
	return 0;
}

static int end(void **state)
{
	(void)state;
	sink_free(sink);
	if (store)
		store->close(store);
	store = NULL;
	profiles_put(profiles);
	metrics_free(metrics);
	fake_end(&fake);
	return 0;
}

static uint64_t count(const char *name)
{
	return metric_get(metrics_counter(metrics, name, NULL, ""));
}

static void check_counts(uint64_t kept, uint64_t lost, uint64_t commits, uint64_t errors)
{
	assert_int_equal(count("hearth_store_events_total"), kept);
	assert_int_equal(count("hearth_store_lost_events_total"), lost);
	assert_int_equal(count("hearth_store_commits_total"), commits);
	assert_int_equal(count("hearth_store_commit_errors_total"), errors);
}

static void give(int error)
{
	const int before = ack.done;

	assert_int_equal(sink_consume(sink, profiles, &ack.ack), 0);
	assert_int_equal(sink_flush(sink, clock_mono_ns() + LONG_NS), 0);
	assert_int_equal(ack.done, before + 1);
	assert_int_equal(ack.error, error);
}

/* What samples refer to is sent once, and again after a batch that was refused and after clearing. */
static void test_sent(void **state)
{
	(void)state;
	assert_int_equal(open_store(false, NULL), 0);
	assert_int_equal(store->write->writer(store, &sink), 0);
	give(0);
	fake_check_said(&fake, ALL_REST SAMPLES);
	check_counts(2, 0, 1, 0);
	give(0);
	fake_check_said(&fake, SAMPLES);

	fake_refuse(&fake, 1, 400); /* it makes no sense to the server: lost */
	give(-EINVAL);
	fake_check_said(&fake, SAMPLES);
	check_counts(4, 2, 2, 1);
	give(0);
	fake_check_said(&fake, ALL_REST SAMPLES);
	check_counts(6, 2, 3, 1);

	assert_int_equal(store->maintain->task(store, STORE_CLEAR), 0);
	fake_check_said(&fake, "TRUNCATE hearth_samples TRUNCATE hearth_series TRUNCATE hearth_labels TRUNCATE "
			       "hearth_stacks TRUNCATE hearth_frames ");
	give(0);
	fake_check_said(&fake, ALL_REST SAMPLES);
	assert_int_equal(store->maintain->task(store, STORE_MERGE), -ENOTSUP);
}

/* A server that is not able to now gets the same batch once more. */
static void test_busy(void **state)
{
	(void)state;
	assert_int_equal(open_store(false, NULL), 0);
	assert_int_equal(store->write->writer(store, &sink), 0);
	fake_refuse(&fake, 1, 503);
	give(0);
	fake_check_said(&fake, "INSERT hearth_frames " ALL_REST SAMPLES);
	check_counts(2, 0, 1, 1);
	fake_refuse(&fake, 1000, 503); /* until the end: nothing is left but to say so */
	assert_int_equal(sink_consume(sink, profiles, &ack.ack), 0);
	sink_free(MOVE(sink));
	store->close(MOVE(store));
	assert_int_equal(ack.done, 2);
	assert_int_not_equal(ack.error, 0);
	assert_int_equal(count("hearth_store_events_total"), 2);
	assert_int_equal(count("hearth_store_lost_events_total"), 2);
}

/* With a spool nothing is lost: it waits on the disk, and the next start sends it. */
static void test_spooled(void **state)
{
	char folder[] = "/tmp/test_clickhouse.XXXXXX", command[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(open_store(false, folder), 0);
	assert_int_equal(store->write->writer(store, &sink), 0);
	fake_refuse(&fake, 1000, 503);
	give(0); /* it is kept, on the disk */
	assert_int_equal(count("hearth_store_spooled_events_total"), 2);
	sink_free(MOVE(sink));
	store->close(MOVE(store));
	assert_int_equal(count("hearth_store_events_total"), 0);
	assert_int_equal(count("hearth_store_lost_events_total"), 0);

	fake_refuse(&fake, 0, 0);
	assert_int_equal(open_store(false, folder), 0);
	for (int i = 0; i < 600 && !count("hearth_store_events_total"); i++)
		usleep(100000);
	assert_int_equal(count("hearth_store_events_total"), 2);
	assert_int_equal(count("hearth_store_lost_events_total"), 0);
	store->close(MOVE(store));
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

/* --- reading --- */

static void put_stack(struct buf *b, uint64_t id, uint64_t outer, uint64_t inner)
{
	put_number(b, id, 8);
	put_number(b, 2, 1);
	put_number(b, outer, 8);
	put_number(b, inner, 8);
}

static struct store_frame frame_of(uint64_t stack, bool is_outer)
{
	struct store_clickhouse *s = store_clickhouse_of(store);
	struct store_node node;
	struct store_frame f;

	assert_int_equal(store->read->nodes(store, click_names_stack(s->names, stack), 1, &node), 0);
	if (is_outer)
		assert_int_equal(store->read->nodes(store, node.parent, 1, &node), 0);
	assert_int_equal(store->read->frame(store, node.frame, &f), 0);
	return f;
}

static void check_frame(const struct store_frame *f, uint64_t id, const char *function, const char *path, const char *module)
{
	assert_string_equal(f->function, function);
	assert_string_equal(f->system_name, "_Zx");
	assert_string_equal(f->file, "x.c");
	assert_string_equal(f->type, "native");
	assert_string_equal(f->path, path);
	assert_string_equal(f->module, module);
	assert_string_equal(f->build_id, "cafe");
	assert_int_equal(f->start_line, id + 1);
	assert_int_equal(f->line, id + 2);
	assert_int_equal(f->address, id + 4);
	assert_int_equal(f->inlined, id & 1);
}

static void test_frames(void **state)
{
	const uint64_t stacks[] = { 501, 502, 501, 0, 503 };
	struct store_clickhouse *s;
	struct store_frame f;
	struct buf *b;

	(void)state;
	b = fake_answer_to(&fake, "hearth_names AS n"); /* a name that was found later, of the frame without one */
	put_number(b, 33, 8);
	put_z(b, "later");
	put_z(b, "_Zlater");
	put_z(b, "later.c");
	put_number(b, 9, 8);
	put_number(b, 8, 8);
	b = fake_answer_to(&fake, "FROM hearth_frames");
	put_frame(b, 31, "main", "/bin/shop");
	put_frame(b, 32, "sell", "shop/");
	put_frame(b, 33, "", "/bin/shop");
	b = fake_answer_to(&fake, "FROM hearth_stacks");
	put_stack(b, 501, 31, 32);
	put_stack(b, 502, 31, 33);
	assert_int_equal(open_store(false, NULL), 0);
	s = store_clickhouse_of(store);
	assert_int_equal(click_names_load(s, NULL, stacks, ARRAY_LEN(stacks)), 0);
	assert_int_equal(store->read->node_count(store), 1 + 3);
	f = frame_of(501, true);
	check_frame(&f, 31, "main", "/bin/shop", "shop");
	f = frame_of(501, false);
	check_frame(&f, 32, "sell", "shop/", "shop/");
	f = frame_of(502, true);
	check_frame(&f, 31, "main", "/bin/shop", "shop");
	f = frame_of(502, false);
	assert_string_equal(f.function, "later");
	assert_string_equal(f.system_name, "_Zlater");
	assert_string_equal(f.file, "later.c");
	assert_int_equal(f.line, 9);
	assert_int_equal(f.start_line, 8);
	assert_string_equal(f.path, "/bin/shop");
	assert_int_equal(click_names_stack(s->names, 503), 0); /* it is not there */
	assert_int_equal(click_names_stack(s->names, 0), 0);
}

/* An answer that ends within a row. */
static void test_cut_answer(void **state)
{
	const uint64_t stack = 501;
	struct buf *frames, *stacks;

	(void)state;
	frames = fake_answer_to(&fake, "FROM hearth_frames");
	put_frame(frames, 31, "main", "/bin/shop");
	put_frame(frames, 32, "sell", "/bin/shop");
	stacks = fake_answer_to(&fake, "FROM hearth_stacks");
	put_stack(stacks, 501, 31, 32);
	assert_int_equal(open_store(false, NULL), 0);
	frames->len--;
	assert_int_equal(click_names_load(store_clickhouse_of(store), NULL, &stack, 1), -EBADMSG);
	frames->len++;
	stacks->len--;
	assert_int_equal(click_names_load(store_clickhouse_of(store), NULL, &stack, 1), -EBADMSG);
	stacks->len++;
	assert_int_equal(click_names_load(store_clickhouse_of(store), NULL, &stack, 1), 0);
}

/* A store that is only read: nothing is there yet; then nothing that writes. */
static void test_read_only(void **state)
{
	(void)state;
	assert_int_equal(open_store(true, NULL), -ENOENT);
	fake.version = CLICK_SCHEMA_VERSION;
	assert_int_equal(open_store(true, NULL), 0);
	assert_int_equal(store->write->writer(store, &sink), -EROFS);
	assert_int_equal(store->maintain->task(store, STORE_CLEAR), -EROFS);
	assert_int_equal(click_writer_pause(store_clickhouse_of(store)), 0); /* there is none */
	click_writer_resume(store_clickhouse_of(store));
	fake_check_said(&fake, "");
	store->close(MOVE(store));
	fake.version = CLICK_SCHEMA_VERSION + 1;
	assert_int_equal(open_store(true, NULL), -EPROTO);
	assert_int_equal(open_store(false, NULL), -EPROTO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_sent),   TEST(test_busy),	  TEST(test_spooled),
		TEST(test_frames), TEST(test_cut_answer), TEST(test_read_only),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
