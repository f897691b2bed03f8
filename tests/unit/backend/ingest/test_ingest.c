/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ingest alone: when done() comes and with what, for sinks of every temper; and that nothing is used after it was freed,
 * whoever ends first (run with SAN=1). The content of bodies is tested over HTTP and gRPC.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "backend/ingest/ingest.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "proto/sink.h"
#include "tests/unit/proto/otlp_bytes.h"

enum { MAX_BYTES = 10000, STEP_MS = 2000 };

/* An ExportProfilesServiceRequest with one empty profile, and a field that nobody knows to make it long. */
static const uint8_t profile_bytes[] = { 0x0a, 0x04, 0x12, 0x02, 0x12, 0x00 };

/* --- a sink that is told what to do --- */

struct told_sink {
	struct sink sink;
	int result;	       /* of consume() */
	struct ack *ack;       /* the last one */
	struct profiles *kept; /* when keep */
	bool keep;
	unsigned consumed, others;
};

static int told_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct told_sink *s = (struct told_sink *)sink;

	assert_int_equal(ack != NULL, sink->ops->durable);
	s->consumed++;
	if (s->result)
		return s->result;
	s->ack = ack;
	if (s->keep)
		s->kept = profiles_get(p);
	return 0;
}

static int told_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	struct told_sink *s = (struct told_sink *)sink;
	(void)signal;
	assert_non_null(data);
	assert_int_equal(ack != NULL, sink->ops->durable);
	s->others += (unsigned)len;
	s->ack = s->result ? NULL : ack;
	return s->result;
}

static const struct sink_ops quick_ops = { .name = "quick", .consume = told_consume, .consume_other = told_other };
static const struct sink_ops durable_ops = {
	.name = "durable", .durable = true, .consume = told_consume, .consume_other = told_other
};

/* --- the world --- */

static struct loop *loop;
static struct metrics *metrics;
static struct ingest *in;
static struct told_sink sink;

struct asked {
	struct ingest_request request; /* first */
	unsigned done;
	struct ingest_answer answer;
};

static void setup_with(const struct sink_ops *ops)
{
	const struct ingest_config config = { .max_receive_bytes = MAX_BYTES, .receive_memory = 4 * MAX_BYTES };

	sink = (struct told_sink){ .sink.ops = ops };
	assert_int_equal(loop_new(&loop), 0);
	metrics = metrics_new();
	assert_int_equal(ingest_new(&config, loop, metrics, &sink.sink, &in), 0);
}

static void end(void)
{
	ingest_free(in);
	metrics_free(metrics);
	loop_free(loop);
}

static void on_done(struct ingest_request *request, const struct ingest_answer *answer)
{
	struct asked *a = (struct asked *)request;

	assert_null(request->job);
	a->done++;
	a->answer = *answer;
}

static void ask_with(struct asked *a, const void *data, size_t len)
{
	if (a->request.encoding != ENCODING_IDENTITY)
		claim_open(&a->request.body.claim);
	assert_int_equal(body_room(&a->request.body, len), 0);
	assert_int_equal(body_append(&a->request.body, data, len), len);
	a->request.done = on_done;
	ingest_take(in, &a->request);
}

static void ask(struct asked *a)
{
	*a = (struct asked){ 0 };
	body_init(&a->request.body, ingest_budget(in), NULL);
	ask_with(a, profile_bytes, sizeof(profile_bytes));
}

static uint64_t counted(const char *name)
{
	return metric_get(metrics_counter(metrics, name, NULL, ""));
}

static void settle(void)
{
	for (int i = 0; i < 5; i++)
		assert_int_equal(loop_step(loop, 0), 0);
}

/* --- tests --- */

static void test_quick_sink_answers_at_once(void **state)
{
	struct asked a;
	(void)state;

	setup_with(&quick_ops);
	ask(&a);
	assert_int_equal(a.done, 1);
	assert_int_equal(a.answer.outcome, INGEST_OK);
	assert_string_equal(a.answer.message, "");
	assert_int_equal(counted("hearth_received_profiles_total"), 1);
	settle();
	assert_int_equal(ingest_budget(in)->used_bytes, 0);
	end();
}

static void test_errors_of_sinks(void **state)
{
	static const struct {
		int error;
		enum ingest_outcome outcome;
	} table[] = { { -EAGAIN, INGEST_BUSY },
		      { -EIO, INGEST_NO_ROOM },
		      { -EPERM, INGEST_FAILED },
		      { -ENOSPC, INGEST_NO_ROOM },
		      { -ENOMEM, INGEST_FAILED } };
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		for (int durable = 0; durable < 2; durable++) {
			struct asked a;

			setup_with(durable ? &durable_ops : &quick_ops);
			sink.result = table[i].error;
			ask(&a);
			assert_int_equal(a.done, 1);
			assert_int_equal(a.answer.outcome, table[i].outcome);
			assert_int_equal(counted("hearth_received_profiles_total"), 0);
			settle();
			assert_int_equal(ingest_budget(in)->used_bytes, 0);
			end();
		}
	}
}

static void *ack_on_thread(void *arg)
{
	int *error = arg;
	sink.ack->done(sink.ack, *error);
	return NULL;
}

static void test_ack_from_another_thread(void **state)
{
	int errors[] = { 0, -EIO, -EAGAIN };
	static const enum ingest_outcome outcomes[] = { INGEST_OK, INGEST_NO_ROOM, INGEST_BUSY };
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		struct asked a;
		pthread_t thread;

		setup_with(&durable_ops);
		ask(&a);
		settle();
		assert_int_equal(a.done, 0);
		assert_int_equal(ingest_pending(in), 1);
		pthread_create(&thread, NULL, ack_on_thread, &errors[i]);
		while (!a.done)
			assert_int_equal(loop_step(loop, STEP_MS), 0);
		pthread_join(thread, NULL);
		settle();
		assert_int_equal(a.done, 1);
		assert_int_equal(a.answer.outcome, outcomes[i]);
		assert_int_equal(ingest_pending(in), 0);
		end();
	}
}

/* Memory is given back when the last sink lets go of the profiles, be that before or after the answer. */
static void test_memory_is_held_as_long_as_profiles(void **state)
{
	struct asked a;
	(void)state;

	for (int freed_first = 0; freed_first < 2; freed_first++) {
		setup_with(&durable_ops);
		sink.keep = true;
		ask(&a);
		settle();
		assert_int_equal(ingest_budget(in)->used_bytes, profiles_memory_bytes(sink.kept));
		if (freed_first)
			profiles_put(sink.kept);
		else
			sink.ack->done(sink.ack, 0);
		settle();
		assert_int_equal(a.done, !freed_first);
		assert_int_equal(ingest_budget(in)->used_bytes == 0, freed_first);
		if (freed_first)
			sink.ack->done(sink.ack, 0);
		else
			profiles_put(sink.kept);
		settle();
		assert_int_equal(a.done, 1);
		assert_int_equal(ingest_budget(in)->used_bytes, 0);
		end();
	}
}

/* Sinks may pass on the bytes that came, unless something of these was taken out. */
static void test_message_is_what_came(void **state)
{
	static const struct {
		const char *profiles;
		bool is_whole;
	} table[] = {
		{ "1{2{2{}}}", true },
		{ "1{2{2{} 2{2{4[1 2 3] 5'0123456789abcdef'}}}}", false }, /* three values for two times */
	};
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		AUTO(buf_fini) struct buf data = BUF_EMPTY;
		struct asked a = { 0 };

		bytes_fields(table[i].profiles, &data);
		bytes_fields("2{1{} 2{} 3{} 4{} 5'' 6{} 7{}}", &data);
		setup_with(&quick_ops);
		sink.keep = true;
		body_init(&a.request.body, ingest_budget(in), NULL);
		ask_with(&a, data.data, data.len);
		assert_int_equal(a.answer.outcome, table[i].is_whole ? INGEST_OK : INGEST_PARTIAL);
		assert_int_equal(sink.kept->message.len, table[i].is_whole ? data.len : 0);
		assert_memory_equal(sink.kept->message.data, data.data, sink.kept->message.len);
		profiles_put(sink.kept);
		settle();
		end();
	}
}

static void test_cancelled(void **state)
{
	struct asked *a = malloc(sizeof(*a));
	(void)state;

	setup_with(&durable_ops);
	ask(a);
	ingest_cancel(&a->request);
	assert_int_equal(ingest_pending(in), 0);
	ingest_cancel(&a->request);
	assert_int_equal(a->done, 0);
	free(a);
	sink.ack->done(sink.ack, 0);
	settle();
	assert_int_equal(ingest_budget(in)->used_bytes, 0);
	end();
}

/* Acks and profiles that outlive ingest. */
static void test_freed_first(void **state)
{
	struct asked a, cancelled;
	(void)state;

	setup_with(&durable_ops);
	sink.keep = true;
	ask(&cancelled);
	ingest_cancel(&cancelled.request);
	struct ack *first_ack = sink.ack;
	struct profiles *first_kept = sink.kept;
	ask(&a);
	end();
	assert_int_equal(a.done, 1);
	assert_int_equal(a.answer.outcome, INGEST_BUSY);
	assert_int_equal(cancelled.done, 0);
	first_ack->done(first_ack, 0);
	profiles_put(first_kept);
	profiles_put(sink.kept);
	sink.ack->done(sink.ack, 0);
}

/* What has come but cannot be worked on yet, in either way, when it is cancelled or ingest freed. */
static void test_waiting_for_memory(void **state)
{
	uint8_t packed[200], plain[5000] = { 0 };
	(void)state;

	for (int how = 0; how < 3; how++) {
		struct asked waiting[2] = { 0 };
		struct claim others;
		z_stream z = {
			.next_in = plain, .avail_in = sizeof(plain), .next_out = packed, .avail_out = sizeof(packed)
		};

		assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
		assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
		setup_with(&quick_ops);
		for (int i = 0; i < 2; i++)
			body_init(&waiting[i].request.body, ingest_budget(in), NULL);
		claim_init(&others, ingest_budget(in), NULL);
		waiting[0].request.encoding = ENCODING_GZIP;
		claim_open(&waiting[0].request.body.claim);
		assert_int_equal(body_room(&waiting[0].request.body, z.total_out), 0);
		assert_int_equal(body_room(&waiting[1].request.body, sizeof(profile_bytes)), 0);
		claim_set(&others, 4 * MAX_BYTES);
		ask_with(&waiting[0], packed, z.total_out);
		ask_with(&waiting[1], profile_bytes, sizeof(profile_bytes));
		settle();
		assert_int_equal(waiting[0].done + waiting[1].done, 0);
		if (how == 0) {
			claim_fini(&others);
			settle();
			assert_int_equal(waiting[0].answer.outcome, INGEST_MALFORMED);
			assert_int_equal(waiting[1].answer.outcome, INGEST_OK);
		} else if (how == 1) {
			ingest_cancel(&waiting[0].request);
			ingest_cancel(&waiting[1].request);
			claim_fini(&others);
			settle();
		}
		if (how < 2)
			assert_int_equal(ingest_budget(in)->used_bytes, 0);
		end();
		assert_int_equal(waiting[0].done, how != 1);
		assert_int_equal(waiting[1].done, how != 1);
		deflateEnd(&z);
	}
}

static void test_other_signals(void **state)
{
	struct asked a = { 0 };
	(void)state;

	setup_with(&quick_ops);
	body_init(&a.request.body, ingest_budget(in), NULL);
	a.request.signal = INGEST_LOGS;
	ask_with(&a, "\x0a", 2);
	assert_int_equal(a.done, 1);
	assert_int_equal(a.answer.outcome, INGEST_OK);
	assert_int_equal(sink.others, 2);
	a.request.format = FORMAT_JSON; /* passed on as protobuf */
	ask_with(&a, "{\"resourceLogs\":[{}]}", 21);
	assert_int_equal(a.done, 2);
	assert_int_equal(a.answer.outcome, INGEST_OK);
	assert_int_equal(sink.others, 2 + 2);
	ask_with(&a, "{\"resourceLogs\":1}", 18);
	assert_int_equal(a.answer.outcome, INGEST_MALFORMED);
	a.request.format = FORMAT_PROTOBUF;
	ask_with(&a, "\x0a\x01", 2);
	assert_int_equal(a.answer.outcome, INGEST_MALFORMED);
	assert_int_equal(sink.others, 2 + 2);
	end();
}

static uint64_t counted_logs(const char *name)
{
	return metric_get(metrics_counter(metrics, name, "signal=\"logs\"", ""));
}

/* A request with one log record, taken by a sink that keeps what it acknowledges. */
static void ask_logs(struct asked *a, const struct sink_ops *ops, int result)
{
	static const uint8_t one_record[] = { 0x0a, 0x04, 0x12, 0x02, 0x12, 0x00 };

	setup_with(ops);
	sink.result = result;
	*a = (struct asked){ .request.signal = INGEST_LOGS };
	body_init(&a->request.body, ingest_budget(in), NULL);
	ask_with(a, one_record, sizeof(one_record));
	settle();
}

static void test_other_signals_are_kept(void **state)
{
	int errors[] = { 0, -EIO, -EAGAIN };
	static const enum ingest_outcome outcomes[] = { INGEST_OK, INGEST_NO_ROOM, INGEST_BUSY };
	struct asked a;
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		pthread_t thread;

		ask_logs(&a, &durable_ops, 0);
		assert_int_equal(a.done, 0); /* not before the sink says so */
		assert_int_equal(ingest_pending(in), 1);
		pthread_create(&thread, NULL, ack_on_thread, &errors[i]);
		while (!a.done)
			assert_int_equal(loop_step(loop, STEP_MS), 0);
		pthread_join(thread, NULL);
		settle();
		assert_int_equal(a.done, 1);
		assert_int_equal(a.answer.outcome, outcomes[i]);
		assert_int_equal(ingest_budget(in)->used_bytes, 0);
		assert_int_equal(counted_logs("hearth_received_items_total"), 1);
		end();
	}
	for (int durable = 0; durable < 2; durable++) {
		for (size_t i = 1; i < ARRAY_LEN(errors); i++) {
			ask_logs(&a, durable ? &durable_ops : &quick_ops, errors[i]);
			assert_int_equal(a.done, 1);
			assert_int_equal(a.answer.outcome, outcomes[i]);
			assert_int_equal(counted_logs("hearth_received_items_total"), 0);
			end();
		}
		/* No sink has a use for it: taken, and counted as forgotten. */
		ask_logs(&a, durable ? &durable_ops : &quick_ops, -EOPNOTSUPP);
		assert_int_equal(a.done, 1);
		assert_int_equal(a.answer.outcome, INGEST_OK);
		assert_int_equal(counted_logs("hearth_unkept_items_total"), 1);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quick_sink_answers_at_once),
		cmocka_unit_test(test_errors_of_sinks),
		cmocka_unit_test(test_ack_from_another_thread),
		cmocka_unit_test(test_memory_is_held_as_long_as_profiles),
		cmocka_unit_test(test_message_is_what_came),
		cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_freed_first),
		cmocka_unit_test(test_waiting_for_memory),
		cmocka_unit_test(test_other_signals),
		cmocka_unit_test(test_other_signals_are_kept),
	};
	return cmocka_run_group_tests_name("ingest", tests, NULL, NULL);
}
