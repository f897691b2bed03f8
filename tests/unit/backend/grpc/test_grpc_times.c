/* SPDX-License-Identifier: Apache-2.0 */
/* When the gRPC server loses patience with a connection, to the nanosecond: it is looked at with times of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/grpc/grpc.h"
#include "backend/grpc/grpc_internal.h"
#include "backend/ingest/ingest.h"
#include "backend/http/server.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "tests/unit/backend/recorder.h"

#define SECONDS NSEC_PER_SEC

static const uint8_t preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
				 "\0\0\0\4\0\0\0\0"; /* SETTINGS; the literal's own NUL ends its stream id */

struct fixture {
	struct loop *loop;
	struct metrics *metrics;
	struct sink_recorder sink;
	struct ingest *ingest;
	struct grpc *g;
	struct grpc_connection *c;
	int client;
};

static int setup(void **state)
{
	const struct ingest_config ingest = { .max_receive_bytes = 1 << 20, .receive_memory = 4 << 20 };
	const struct grpc_config config = { .address = "127.0.0.1:0", .idle_timeout_ns = 300 * SECONDS };
	static struct fixture f;
	struct server_error err = { "" };
	int fds[2];

	f = (struct fixture){ .sink.sink.ops = &recorder_ops };
	assert_int_equal(loop_new(&f.loop), 0);
	f.metrics = metrics_new();
	assert_int_equal(ingest_new(&ingest, f.loop, f.metrics, &f.sink.sink, &f.ingest), 0);
	assert_int_equal(grpc_new(&config, f.loop, f.metrics, f.ingest, &f.g, &err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(grpc_connection_new(f.g, fds[0]), 0);
	f.c = f.g->connections;
	f.client = fds[1];
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->client);
	grpc_free(f->g);
	ingest_free(f->ingest);
	metrics_free(f->metrics);
	loop_free(f->loop);
	return 0;
}

/* Alive one nanosecond before @at_ns, cut at it, and counted as @why. */
static void check_cut(struct fixture *f, uint64_t at_ns, enum grpc_cut why)
{
	assert_int_equal(grpc_connection_check(f->c, at_ns - 1), at_ns);
	assert_int_equal(f->g->connection_count, 1);
	assert_int_equal(metric_get(f->g->stats.cut[why]), 0);
	(void)grpc_connection_check(f->c, at_ns);
	assert_int_equal(f->g->connection_count, 0);
	assert_int_equal(metric_get(f->g->stats.cut[why]), 1);
	for (int other = 0; other < GRPC_CUT_COUNT; other++)
		assert_true(other == (int)why || metric_get(f->g->stats.cut[other]) == 0);
}

static void open_session(struct fixture *f)
{
	assert_int_equal(write(f->client, preface, 24 + 9), 24 + 9);
	for (int i = 0; i < 100 && f->c->phase == GRPC_OPENING; i++)
		assert_int_equal(loop_step(f->loop, 50), 0);
	assert_int_equal(f->c->phase, GRPC_OPEN);
}

static void test_opening(void **state)
{
	struct fixture *f = *state;

	check_cut(f, f->c->since_ns + 10 * SECONDS, GRPC_CUT_SLOW);
}

/* Who has said nothing for a second gives way to others, not before. */
static void test_room(void **state)
{
	struct fixture *f = *state;
	const uint64_t silent_ns = f->c->since_ns;

	assert_false(grpc_connection_make_room(f->g, silent_ns + SECONDS - 1));
	assert_int_equal(f->g->connection_count, 1);
	open_session(f);
	assert_false(grpc_connection_make_room(f->g, f->c->heard_ns + SECONDS - 1));
	assert_true(grpc_connection_make_room(f->g, f->c->heard_ns + SECONDS));
	assert_int_equal(f->g->connection_count, 0);
	assert_int_equal(metric_get(f->g->stats.cut[GRPC_CUT_ROOM]), 1);
	assert_false(grpc_connection_make_room(f->g, silent_ns + 100 * SECONDS)); /* there is nobody */
}

/* Calls give way as well where they wait for nobody but their client, those that wait for us do not. */
static void test_room_of_calls(void **state)
{
	struct fixture *f = *state;
	struct grpc_call *call;
	uint64_t begun_ns;

	open_session(f);
	call = grpc_call_new(f->c, 1);
	assert_non_null(call);
	begun_ns = call->reading_ns;
	call->phase = GRPC_CALL_TAKEN;
	assert_false(grpc_connection_make_room(f->g, begun_ns + 100 * SECONDS));
	call->phase = GRPC_CALL_RECEIVING;
	assert_false(grpc_connection_make_room(f->g, begun_ns + 2 * SECONDS - 1));
	call->received_bytes = 32 << 10;
	assert_false(grpc_connection_make_room(f->g, begun_ns + 2 * SECONDS));
	call->received_bytes--;
	call->is_waiting = true; /* for memory */
	assert_false(grpc_connection_make_room(f->g, begun_ns + 100 * SECONDS));
	call->is_waiting = false;
	call->has_ended = true;
	assert_false(grpc_connection_make_room(f->g, begun_ns + 100 * SECONDS));
	call->has_ended = false;
	assert_true(grpc_connection_make_room(f->g, begun_ns + 2 * SECONDS));
	assert_int_equal(f->g->connection_count, 0);
	assert_int_equal(f->g->call_count, 0);
	assert_int_equal(metric_get(f->g->stats.cut[GRPC_CUT_ROOM]), 1);
}

/* Of several the one without a call goes first, and one with a single call that is worked on not at all. */
static void test_room_of_watchers(void **state)
{
	struct fixture *f = *state;
	struct grpc_connection *watching = f->c;
	struct grpc_call *call, *taken;
	uint64_t now_ns;
	int fds[2];

	open_session(f);
	call = grpc_call_new(watching, 1);
	taken = grpc_call_new(watching, 3);
	assert_true(call && taken);
	call->phase = GRPC_CALL_WATCHING;
	taken->phase = GRPC_CALL_TAKEN;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(grpc_connection_new(f->g, fds[0]), 0);
	now_ns = f->g->connections->since_ns + SECONDS;
	assert_true(grpc_connection_make_room(f->g, now_ns)); /* the one that said nothing */
	assert_ptr_equal(f->g->connections, watching);
	assert_false(grpc_connection_make_room(f->g, now_ns + 100 * SECONDS));
	grpc_call_free(taken);
	assert_false(grpc_connection_make_room(f->g, call->reading_ns + SECONDS - 1));
	assert_true(grpc_connection_make_room(f->g, call->reading_ns + SECONDS));
	assert_int_equal(f->g->connection_count, 0);
	close(fds[1]);
}

/* After a minute of silence it is asked whether it lives, and has 20 seconds to say so. */
static void test_silence(void **state)
{
	struct fixture *f = *state;
	uint64_t asked_ns;

	open_session(f);
	asked_ns = f->c->heard_ns + 60 * SECONDS;
	assert_int_equal(grpc_connection_check(f->c, asked_ns - 1), asked_ns);
	assert_int_equal(f->c->pinged_ns, 0);
	assert_int_equal(grpc_connection_check(f->c, asked_ns), asked_ns + 20 * SECONDS);
	assert_int_equal(f->c->pinged_ns, asked_ns);
	check_cut(f, asked_ns + 20 * SECONDS, GRPC_CUT_DEAD);
}

static void test_stuck(void **state)
{
	struct fixture *f = *state;

	open_session(f);
	f->c->stuck_ns = f->c->heard_ns;
	check_cut(f, f->c->stuck_ns + 30 * SECONDS, GRPC_CUT_SLOW);
}

/* Without a call for as long as it may: it is told, a second later it is drained, and that is no fault of its own. */
static void test_idle(void **state)
{
	struct fixture *f = *state;
	uint64_t idle_ns;

	open_session(f);
	idle_ns = f->c->since_ns + 300 * SECONDS;
	f->c->heard_ns = idle_ns;
	assert_int_equal(grpc_connection_check(f->c, idle_ns - 1), idle_ns);
	assert_int_equal(f->c->drain, GRPC_SERVING);
	(void)grpc_connection_check(f->c, idle_ns);
	assert_int_equal(f->c->drain, GRPC_NOTICED);
	f->c->drained_ns = idle_ns;
	(void)grpc_connection_check(f->c, idle_ns + SECONDS - 1);
	assert_int_equal(f->c->drain, GRPC_NOTICED);
	(void)grpc_connection_check(f->c, idle_ns + SECONDS);
	for (int why = 0; why < GRPC_CUT_COUNT; why++)
		assert_int_equal(metric_get(f->g->stats.cut[why]), 0);
	assert_true(f->g->connection_count == 0 || f->g->connections->drain == GRPC_DRAINED);
}

/* The server says nothing to a client that has not said that it speaks HTTP/2, however often it looks at it; so one of
 * HTTP/1.1 that takes its time reads an answer of its own kind. */
static void test_foreign(void **state)
{
	struct fixture *f = *state;
	char answer[512] = "";

	(void)grpc_connection_check(f->c, f->c->since_ns + SECONDS);
	assert_int_equal(recv(f->client, answer, sizeof(answer), 0), -1);
	assert_int_equal(write(f->client, "P", 1), 1);
	assert_int_equal(loop_step(f->loop, 1000), 0);
	assert_int_equal(f->c->read_bytes, 1);
	(void)grpc_connection_check(f->c, f->c->since_ns + 2 * SECONDS);
	assert_int_equal(recv(f->client, answer, sizeof(answer), 0), -1);
	assert_int_equal(write(f->client, "OST / HTTP/1.1\r\n\r\n", 18), 18);
	assert_int_equal(loop_step(f->loop, 1000), 0);
	assert_true(recv(f->client, answer, sizeof(answer) - 1, 0) > 0);
	assert_true(strncmp(answer, "HTTP/1.1 400 Bad Request\r\n", 26) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_opening, setup, teardown),
		cmocka_unit_test_setup_teardown(test_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_room_of_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_room_of_watchers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stuck, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_foreign, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
