/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query threads and the API's own work, which long questions end, but not too often; who may wait, in which order, and
 * what is packed. Files with symbols (backend/api/api_symbols.c) and the clock (base/clock.c) are the test's: work lasts
 * until it is told to end, and time stands still until it is moved.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "backend/api/api_call.h"
#include "backend/api/query_thread.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "tests/unit/backend/api/bare_store.h"

#define PAUSE_NS (120 * NSEC_PER_SEC)

enum { LONGEST_WAIT_MS = 20000 };

/* --- the clock --- */

static _Atomic uint64_t now_ns; /* later than it is, so that whoever waits for a time waits until it is woken */

uint64_t clock_mono_ns(void)
{
	return atomic_load(&now_ns);
}

uint64_t clock_unix_ns(void)
{
	return clock_mono_ns();
}

void clock_refresh(void)
{
}

uint64_t clock_mono_to_unix_ns(uint64_t mono_ns)
{
	return mono_ns;
}

/* --- files with symbols --- */

static _Atomic bool has_work, is_given_up, is_let_go;
static _Atomic unsigned works, given_up;
static size_t answer_bytes;

int api_symbols_init(struct api *api)
{
	(void)api;
	return 0;
}

void api_symbols_fini(struct api *api)
{
	(void)api;
}

void api_symbols_update(struct api *api)
{
	(void)api;
}

uint64_t api_work_ns(const struct api *api)
{
	(void)api;
	return has_work ? 0 : UINT64_MAX;
}

void api_work(struct api *api)
{
	(void)api;
	works++;
	while (!is_given_up && !is_let_go)
		usleep(100);
	if (is_let_go)
		has_work = false;
}

void api_abandon(struct api *api)
{
	(void)api;
	given_up++;
	is_given_up = true;
}

void api_resume(struct api *api)
{
	(void)api;
	is_given_up = false;
}

int api_symbols_file(const struct api *api)
{
	(void)api;
	return -ENOENT;
}

void api_take_symbols(struct api *api, int fd, enum ingest_encoding encoding, struct api_answer *answer)
{
	(void)api;
	(void)encoding;
	answer->status = 200;
	for (size_t i = 0; i < answer_bytes; i++)
		buf_putc(&answer->body, (char)('a' + fd));
}

/* --- a store that knows of one label --- */

static int tell_kinds(struct store *s, const struct store_selection *sel,
		      int (*fn)(void *arg, const struct store_kind *kind), void *arg)
{
	(void)s;
	(void)sel;
	(void)fn;
	(void)arg;
	return 0;
}

static int tell_labels(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const char *label),
		       void *arg)
{
	(void)s;
	(void)sel;
	return fn(arg, "k");
}

static const struct store_read_ops shared_ops = { .kinds = tell_kinds,
						  .labels = tell_labels,
						  .status = tell_status,
						  .reader = share },
				   lone_ops = { .kinds = tell_kinds, .labels = tell_labels, .status = tell_status };
static const struct store_write_ops no_write;
static const struct store_maintain_ops no_tasks;
static struct store store = { .write = &no_write, .maintain = &no_tasks, .close = keep_open };

/* --- questions --- */

struct question {
	struct query_job job;
	struct query_param items[2];
	unsigned done; /* the how manieth that was answered; 0: not yet */
};

static struct loop *loop;
static struct query_thread *thread;
static unsigned answered;

static void on_done(struct query_job *job)
{
	((struct question *)job)->done = ++answered;
}

static void prepare(struct question *q)
{
	*q = (struct question){ .items = { { "from", "1" }, { "to", "9" } } };
	q->job.path = "/api/v1/labels";
	q->job.params = (struct query_params){ q->items, ARRAY_LEN(q->items) };
	q->job.symbols_fd = -1;
	q->job.done = on_done;
}

/* A question that takes no time. */
static int ask(struct question *q)
{
	prepare(q);
	return query_thread_ask(thread, &q->job);
}

/* A file with symbols, which is for the first thread alone: a long question. */
static int ask_long(struct question *q)
{
	prepare(q);
	q->job.symbols_fd = 0;
	return query_thread_ask(thread, &q->job);
}

static void wait_for(const struct question *q)
{
	for (int i = 0; !q->done && i < LONGEST_WAIT_MS; i++)
		loop_step(loop, 1);
	assert_true(q->done > 0);
	assert_int_equal(q->job.answer.status, 200);
}

static void end(struct question *q)
{
	wait_for(q);
	buf_fini(&q->job.answer.body);
}

static void wait_for_work(unsigned number)
{
	for (int i = 0; works < number && i < LONGEST_WAIT_MS; i++)
		usleep(1000);
	assert_int_equal(works, number);
}

static void begin(const struct store_read_ops *ops, bool with_work, unsigned most)
{
	const struct api_config config = { .store = &store };
	struct timespec real;
	struct api *api;

	clock_gettime(CLOCK_MONOTONIC, &real);
	now_ns = ((uint64_t)real.tv_sec + 3600) * NSEC_PER_SEC;
	store.read = ops;
	has_work = with_work;
	is_given_up = is_let_go = false;
	works = given_up = answered = 0;
	answer_bytes = 3;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(api_new(&config, &api), 0);
	assert_int_equal(query_thread_new(api, loop, most, &thread), 0);
	if (with_work)
		wait_for_work(1);
}

static void finish(void)
{
	query_thread_free(thread);
	loop_free(loop);
}

/* --- pauses --- */

static void test_a_long_question_ends_the_work(void **state)
{
	struct question q;

	(void)state;
	begin(&shared_ops, true, 16);
	assert_int_equal(ask_long(&q), 0);
	assert_int_equal(given_up, 1);
	end(&q);
	wait_for_work(2); /* it is begun again */
	is_let_go = true;
	finish();
}

/* Two minutes must have gone since the last pause: until then a long question waits. */
static void test_not_more_often_than_every_two_minutes(void **state)
{
	struct question first, early, late;

	(void)state;
	begin(&shared_ops, true, 16);
	assert_int_equal(ask_long(&first), 0);
	end(&first);
	wait_for_work(2);
	now_ns += PAUSE_NS;
	assert_int_equal(ask_long(&early), 0);
	assert_int_equal(given_up, 1);
	assert_int_equal(works, 2);
	now_ns++;
	assert_int_equal(ask_long(&late), 0);
	assert_int_equal(given_up, 2);
	end(&early);
	end(&late);
	assert_int_equal(early.done, 2);
	is_let_go = true;
	finish();
}

/* The second pause counts from its own time. */
static void test_each_pause_counts_anew(void **state)
{
	struct question q[3];

	(void)state;
	begin(&shared_ops, true, 16);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ask_long(&q[i]), 0);
		assert_int_equal(given_up, i + 1);
		end(&q[i]);
		wait_for_work(i + 2);
		now_ns += PAUSE_NS + 1;
	}
	is_let_go = true;
	finish();
}

/* A short question does not end the work: the second thread answers it meanwhile. */
static void test_a_short_question_leaves_the_work(void **state)
{
	struct question q;

	(void)state;
	begin(&shared_ops, true, 16);
	assert_int_equal(ask(&q), 0);
	wait_for(&q);
	assert_string_equal(buf_text(&q.job.answer.body), "{\"labels\":[\"k\"]}");
	assert_int_equal(given_up, 0);
	assert_int_equal(works, 1);
	end(&q);
	is_let_go = true;
	finish();
}

/* A long question while nothing is worked on ends nothing, and takes no pause away from a later one. */
static void test_no_work_to_end(void **state)
{
	struct question q;

	(void)state;
	begin(&shared_ops, false, 16);
	assert_int_equal(ask_long(&q), 0);
	end(&q);
	assert_int_equal(given_up, 0);
	assert_int_equal(works, 0);
	has_work = true;
	assert_int_equal(ask(&q), 0); /* it wakes the thread, which then sees the work */
	end(&q);
	wait_for_work(1);
	assert_int_equal(ask_long(&q), 0);
	assert_int_equal(given_up, 1);
	end(&q);
	is_let_go = true;
	finish();
}

/* The end does not wait for the work. */
static void test_the_end_ends_the_work(void **state)
{
	(void)state;
	begin(&shared_ops, true, 16);
	finish();
	assert_int_equal(given_up, 1);
}

/* --- who waits --- */

static void test_too_many_wait(void **state)
{
	struct question q[4];

	(void)state;
	begin(&lone_ops, true, 2);
	assert_int_equal(ask(&q[0]), 0);
	assert_int_equal(ask(&q[1]), 0);
	assert_int_equal(ask(&q[2]), -EAGAIN);
	assert_int_equal(ask(&q[2]), -EAGAIN);
	assert_true(query_thread_cancel(thread, &q[1].job));
	assert_false(query_thread_cancel(thread, &q[1].job));
	assert_int_equal(ask(&q[2]), 0);
	assert_int_equal(ask(&q[3]), -EAGAIN);
	is_let_go = true;
	end(&q[0]);
	end(&q[2]);
	assert_int_equal(q[1].done, 0);
	assert_int_equal(q[3].done, 0);
	finish();
}

/* Answers come in the order of questions, also where the first, one in the middle and the last were taken back. */
static void test_order_of_those_that_stay(void **state)
{
	static const unsigned wanted[] = { 0, 1, 2, 0, 3, 0, 4, 5 };
	struct question q[ARRAY_LEN(wanted)];

	(void)state;
	begin(&lone_ops, true, 16);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(ask(&q[i]), 0);
	assert_true(query_thread_cancel(thread, &q[0].job));
	assert_true(query_thread_cancel(thread, &q[3].job));
	assert_true(query_thread_cancel(thread, &q[5].job));
	assert_int_equal(ask(&q[6]), 0);
	assert_int_equal(ask(&q[7]), 0);
	is_let_go = true;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		if (wanted[i])
			end(&q[i]);
		assert_int_equal(q[i].done, wanted[i]);
	}
	finish();
}

/* A question for later waits until its time, and holds nobody up. */
static void test_a_question_for_later(void **state)
{
	struct question later, q;

	(void)state;
	begin(&lone_ops, false, 16);
	prepare(&later);
	later.job.not_before_ns = now_ns + NSEC_PER_SEC;
	assert_int_equal(query_thread_ask(thread, &later.job), 0);
	assert_int_equal(ask(&q), 0);
	end(&q);
	now_ns += NSEC_PER_SEC - 1;
	assert_int_equal(ask(&q), 0);
	end(&q);
	assert_int_equal(later.done, 0);
	now_ns++;
	assert_int_equal(ask(&q), 0);
	end(&q);
	end(&later);
	assert_int_equal(later.done, 3); /* it was asked before the third */
	finish();
}

/* --- packing --- */

/* An answer of @bytes; is it packed? */
static bool is_packed(size_t bytes, bool may_pack, uint64_t *hash_ret)
{
	struct question q;
	bool ret;

	answer_bytes = bytes;
	prepare(&q);
	q.job.symbols_fd = 0;
	q.job.pack = may_pack;
	assert_int_equal(query_thread_ask(thread, &q.job), 0);
	wait_for(&q);
	ret = q.job.is_packed;
	*hash_ret = q.job.hash;
	if (ret) {
		uint8_t plain[4096];
		z_stream z = { .next_in = q.job.answer.body.data,
			       .avail_in = (unsigned)q.job.answer.body.len,
			       .next_out = plain,
			       .avail_out = sizeof(plain) };

		assert_int_equal(inflateInit2(&z, 16 + 15), Z_OK);
		assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
		assert_int_equal(z.total_out, bytes);
		for (size_t i = 0; i < bytes; i++)
			assert_int_equal(plain[i], 'a');
		inflateEnd(&z);
	} else {
		assert_int_equal(q.job.answer.body.len, bytes);
	}
	end(&q);
	return ret;
}

/* What fits into one packet is not packed, nor what nobody wants packed. */
static void test_what_is_packed(void **state)
{
	uint64_t hash;

	(void)state;
	begin(&lone_ops, false, 16);
	assert_false(is_packed(1399, true, &hash));
	assert_true(is_packed(1400, true, &hash));
	assert_true(is_packed(4000, true, &hash));
	assert_false(is_packed(4000, false, &hash));
	assert_false(is_packed(0, true, &hash));
	finish();
}

/* The hash is of what is told, packed or not. */
static void test_hashes(void **state)
{
	uint64_t packed, plain, longer, none;

	(void)state;
	begin(&lone_ops, false, 16);
	is_packed(2000, true, &packed);
	is_packed(2000, false, &plain);
	is_packed(2001, false, &longer);
	is_packed(0, false, &none);
	assert_true(packed == plain);
	assert_true(plain != longer);
	assert_true(none == 0x2d06800538d394c2); /* XXH3's of nothing */
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_long_question_ends_the_work),
		cmocka_unit_test(test_not_more_often_than_every_two_minutes),
		cmocka_unit_test(test_each_pause_counts_anew),
		cmocka_unit_test(test_a_short_question_leaves_the_work),
		cmocka_unit_test(test_no_work_to_end),
		cmocka_unit_test(test_the_end_ends_the_work),
		cmocka_unit_test(test_too_many_wait),
		cmocka_unit_test(test_order_of_those_that_stay),
		cmocka_unit_test(test_a_question_for_later),
		cmocka_unit_test(test_what_is_packed),
		cmocka_unit_test(test_hashes),
	};

	return cmocka_run_group_tests_name("query work", tests, NULL, NULL);
}
