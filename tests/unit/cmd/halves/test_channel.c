/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel from the agent's side, with this test as its backend: profiles come whole, stay until they are acknowledged,
 * come again to another backend, in order and after its welcome; the series of two processes are one; notes that lie change
 * nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/ourselves.h"
#include "cmd/halves/channel.h"
#include "proto/otlp/otlp.h"
#include "symbols/find/debuginfod.h"

static struct loop *loop;
static struct metrics *metrics;
static struct channel *channel;
static int backend; /* the other end */
static struct wire_message message;

static uint64_t window_ns;

static void on_window(void *arg, uint64_t at_ns)
{
	assert_ptr_equal(arg, &window_ns);
	window_ns = at_ns;
}

static int set_up(void **state)
{
	int pair[2];

	(void)state;
	metrics = metrics_new();
	if (!metrics || loop_new(&loop) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	backend = pair[1];
	return channel_new(
		&(struct channel_config){
			.sock = pair[0], .loop = loop, .metrics = metrics, .window = on_window, .arg = &window_ns },
		&channel);
}

static int tear_down(void **state)
{
	(void)state;
	sink_free(channel_sink(channel));
	close(backend);
	buf_fini(&message.body);
	message = (struct wire_message){ 0 };
	metrics_free(metrics);
	loop_free(loop);
	return 0;
}

/* Profiles whose one attribute-free resource tells @events samples. */
static struct profiles *some_profiles(uint8_t *bytes, size_t len, uint64_t events)
{
	struct profiles *p = NULL;
	struct otlp_error why;

	assert_int_equal(otlp_decode(bytes, len, false, &p, &why), 0);
	p->sample_events = events;
	return p;
}

static void consume(uint64_t events)
{
	struct profiles *p = some_profiles((uint8_t *)"", 0, events);

	assert_int_equal(sink_consume(channel_sink(channel), p, NULL), 0);
	profiles_put(p);
}

static void say(enum note_kind kind, uint64_t number, int status)
{
	const struct wire_note note = { .kind = kind, .number = number, .status = status };

	assert_int_equal(wire_send_note(backend, &note, -1), 0);
	assert_int_equal(loop_step(loop, 1000), 0);
}

/* The next message of @kind that waits, or 0: its number. */
static uint64_t next(enum wire_kind kind)
{
	char byte;

	while (recv(backend, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
		assert_int_equal(wire_receive(backend, &message), 0);
		if (message.is_whole && message.head.kind == kind)
			return message.head.number;
	}
	return 0;
}

static uint64_t dropped(const char *reason)
{
	return metric_get(metrics_counter(metrics, "hearth_channel_dropped_samples_total", reason,
					  "Samples that did not get from the agent to the backend."));
}

static uint64_t bad_notes(void)
{
	return metric_get(metrics_counter(metrics, "hearth_channel_bad_notes_total", NULL,
					  "Notes from the backend that made no sense."));
}

static void test_sent_again(void **state)
{
	uint64_t first, second;

	(void)state;
	consume(1);
	assert_int_equal(next(WIRE_PROFILES), 0); /* nobody said hello */
	say(NOTE_HELLO, 77, 0);
	assert_int_equal(next(WIRE_WELCOME), 77);
	consume(2);
	first = next(WIRE_PROFILES);
	second = next(WIRE_PROFILES);
	assert_true(first && second > first);
	say(NOTE_ACK, first, 0);
	channel_went_down(channel, 77);
	consume(3);
	assert_int_equal(next(WIRE_PROFILES), 0);
	say(NOTE_HELLO, 78, 0);
	assert_int_equal(next(WIRE_WELCOME), 78);
	assert_int_equal(next(WIRE_PROFILES), second);
	assert_int_equal(next(WIRE_PROFILES), second + 1);
	say(NOTE_ACK, second, -ENOSPC);
	assert_int_equal(dropped("reason=\"error\""), 2);
}

/* What a backend acknowledged before its death, and nobody has read yet, is not sent again; and one that has come before its
 * predecessor's death is told stays. */
static void test_told_late(void **state)
{
	uint64_t first;

	(void)state;
	say(NOTE_HELLO, 77, 0);
	consume(1);
	consume(2);
	first = next(WIRE_PROFILES);
	assert_true(first);
	assert_int_equal(next(WIRE_PROFILES), first + 1);
	assert_int_equal(wire_send_note(backend, &(struct wire_note){ .kind = NOTE_ACK, .number = first }, -1), 0);
	channel_went_down(channel, 77);
	say(NOTE_HELLO, 78, 0);
	assert_int_equal(next(WIRE_PROFILES), first + 1);
	assert_int_equal(next(WIRE_PROFILES), 0);
	assert_int_equal(bad_notes(), 0);
	say(NOTE_HELLO, 79, 0);
	assert_int_equal(next(WIRE_PROFILES), first + 1);
	channel_went_down(channel, 78);
	consume(3);
	assert_int_equal(next(WIRE_PROFILES), first + 2);
}

static void test_few_under_way(void **state)
{
	uint64_t count = 0, number, last = 0;

	(void)state;
	say(NOTE_HELLO, 1, 0);
	for (int i = 0; i < 50; i++)
		consume(1);
	for (; (number = next(WIRE_PROFILES)); count++)
		last = number;
	assert_in_range(count, 2, 16);
	say(NOTE_ACK, last, 0);
	assert_true(next(WIRE_PROFILES) > last);
}

static void test_lies(void **state)
{
	(void)state;
	say(NOTE_HELLO, 1, 0);
	consume(5);
	assert_true(next(WIRE_PROFILES));
	say(NOTE_ACK, 999, 0);
	say(NOTE_SERVED, 0, 0);
	say(NOTE_SERVED, 12345, -1);
	say(NOTE_WINDOW, UINT64_MAX, 0);
	say((enum note_kind)4711, 1, 1);
	assert_int_equal(bad_notes(), 5);
	assert_int_equal(send(backend, "short", 5, 0), 5);
	assert_int_equal(loop_step(loop, 1000), 0);
	assert_int_equal(bad_notes(), 6);
}

static void test_large(void **state)
{
	const struct wire_head head = { .kind = WIRE_LOG, .total_bytes = 3 * WIRE_PIECE_BYTES + 7, .number = 9 };
	struct buf body = BUF_EMPTY;
	int pair[2], pieces = 0;

	(void)state;
	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), errno);
	for (uint32_t i = 0; i < head.total_bytes; i++)
		buf_putc(&body, (char)(i * 7 >> 3));
	for (size_t sent = WIRE_PIECE_BYTES; sent < head.total_bytes;) /* without its beginning */
		sent += (size_t)wire_send_piece(pair[0], &head, body.data, sent), pieces++;
	for (; pieces; pieces--) {
		assert_int_equal(wire_receive(pair[1], &message), 0);
		assert_false(message.is_whole);
	}
	for (size_t sent = 0; sent < head.total_bytes;) {
		sent += (size_t)wire_send_piece(pair[0], &head, body.data, sent);
		assert_int_equal(wire_receive(pair[1], &message), 0);
	}
	assert_true(message.is_whole);
	assert_int_equal(message.body.len, body.len);
	assert_memory_equal(message.body.data, body.data, body.len);
	buf_fini(&body);
	close(pair[0]);
	assert_int_equal(wire_receive(pair[1], &message), -EPIPE);
	close(pair[1]);
}

static void test_series(void **state)
{
	struct metrics *other = metrics_new();
	struct buf text = BUF_EMPTY, out = BUF_EMPTY;

	(void)state;
	metric_add(metrics_counter(metrics, "a_total", "x=\"1\"", "Both."), 3);
	metric_add(metrics_seconds(metrics, "t_seconds_total", NULL, "Time."), 1500000000);
	metric_add(metrics_counter(other, "a_total", "x=\"1\"", "Both."), 4);
	metric_set(metrics_gauge(other, "b", NULL, "Here alone."), 5);
	wire_put_series(metrics, &text);
	assert_int_equal(wire_take_series(other, &text), 0);
	assert_int_equal(wire_take_series(other, &text), 0); /* told again, not added again */
	metrics_write(other, &out);
	assert_non_null(strstr(buf_text(&out), "\na_total{x=\"1\"} 7\n"));
	assert_non_null(strstr(buf_text(&out), "\nt_seconds_total 1.500000000\n"));
	assert_non_null(strstr(buf_text(&out), "\nb 5\n"));
	for (size_t cut = 1; cut < 20; cut++) {
		text.len -= cut;
		(void)wire_take_series(other, &text);
		text.len += cut;
	}
	text.len--;
	assert_int_equal(wire_take_series(other, &text), -EBADMSG);
	buf_fini(&text);
	buf_fini(&out);
	metrics_free(other);
}

/* Answers the question @number: with the file @fd, or with @status. */
static void serve(uint64_t number, int status, int fd)
{
	const struct wire_note note = { .kind = NOTE_SERVED, .number = number, .status = status };

	assert_int_equal(wire_send_note(backend, &note, fd), 0);
	assert_int_equal(loop_step(loop, 1000), 0);
}

/* Debug files are asked for, each question with a number of its own, until too many wait; an answer makes room. What a dead
 * backend was asked has failed. */
static void test_wants(void **state)
{
	enum { MOST = 256 };
	static const char first[] = "00000000000000000000000000000000000000ff";
	struct debuginfod *servers;
	uint64_t numbers[MOST];
	char id[41];
	FILE *file = tmpfile();
	int fd, pair[2];

	(void)state;
	servers = channel_debuginfod(channel);
	assert_non_null(servers);
	assert_ptr_equal(channel_debuginfod(channel), servers);
	assert_int_equal(debuginfod_find(servers, first), -EAGAIN); /* nobody is there */
	say(NOTE_HELLO, 77, 0);
	assert_int_equal(next(WIRE_WELCOME), 77);
	for (int i = 0; i < MOST; i++) {
		snprintf(id, sizeof(id), "%040x", i + 1);
		assert_int_equal(debuginfod_find(servers, id), -EINPROGRESS);
		numbers[i] = next(WIRE_WANT);
		assert_true(numbers[i] > (i ? numbers[i - 1] : 0));
		assert_int_equal(message.body.len, sizeof(id));
		assert_memory_equal(message.body.data, id, sizeof(id));
	}
	assert_int_equal(debuginfod_find(servers, first), -EINPROGRESS); /* asked for before */
	assert_int_equal(next(WIRE_WANT), 0);
	assert_int_equal(debuginfod_find(servers, "aa0000"), -EAGAIN);
	serve(numbers[254], 0, fileno(file));
	fd = debuginfod_find(servers, first);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(debuginfod_find(servers, "aa0000"), -EINPROGRESS);
	assert_true(next(WIRE_WANT) > numbers[MOST - 1]);
	assert_int_equal(bad_notes(), 0);
	serve(numbers[254], 0, fileno(file)); /* once more */
	assert_int_equal(bad_notes(), 1);
	serve(numbers[0], -ENOENT, -1);
	assert_int_equal(debuginfod_find(servers, "0000000000000000000000000000000000000001"), -ENOENT);
	assert_int_equal(pipe(pair), 0);
	serve(numbers[1], 0, pair[0]); /* reading that does not end */
	assert_int_equal(debuginfod_find(servers, "0000000000000000000000000000000000000002"), -EIO);
	channel_went_down(channel, 77);
	assert_int_equal(debuginfod_find(servers, "0000000000000000000000000000000000000003"), -EIO);
	close(pair[0]);
	close(pair[1]);
	fclose(file);
	debuginfod_free(servers);
}

/* A window ends within an hour; one that is over ends now; two at once are one too many. */
static void test_windows(void **state)
{
	static const struct {
		int64_t from_now_s;
		bool is_heard;
	} rows[] = { { -1000, true }, { 0, true }, { 5, true }, { 3590, true }, { 3620, false } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const uint64_t now = clock_mono_ns(), at = now + (uint64_t)(rows[i].from_now_s * (int64_t)NSEC_PER_SEC);

		if (i)
			assert_int_equal(set_up(state), 0);
		window_ns = 0;
		say(NOTE_WINDOW, rows[i].from_now_s < -10 ? 1 : at, 0);
		assert_int_equal(bad_notes(), !rows[i].is_heard);
		if (!rows[i].is_heard)
			assert_int_equal(window_ns, 0);
		else if (rows[i].from_now_s > 0)
			assert_int_equal(window_ns, at);
		else
			assert_in_range(window_ns, now, clock_mono_ns());
		if (rows[i].is_heard) {
			say(NOTE_WINDOW, now, 0);
			if (clock_mono_ns() - now < 100 * NSEC_PER_MSEC) /* else it comes late enough */
				assert_int_equal(bad_notes(), 1);
		}
		if (i + 1 < sizeof(rows) / sizeof(*rows))
			assert_int_equal(tear_down(state), 0);
	}
}

/* The end: the backend is told how long it has, and what it says of its sinks is passed on; samples that it did not
 * acknowledge are counted. */
static void test_flush(void **state)
{
	static const struct {
		int said, err;
	} rows[] = { { 0, 0 }, { -ENOSPC, -ENOSPC }, { 7, 0 }, { -4096, 0 }, { -4095, -4095 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct wire_note note = { .kind = NOTE_FLUSHED, .status = rows[i].said, .values = { 11, 22 } };
		const uint64_t now = clock_mono_ns();
		uint64_t left;

		if (i)
			assert_int_equal(set_up(state), 0);
		say(NOTE_HELLO, 1, 0);
		assert_int_equal(wire_send_note(backend, &note, -1), 0);
		assert_int_equal(sink_flush(channel_sink(channel), now + NSEC_PER_SEC), rows[i].err);
		left = next(WIRE_FLUSH);
		assert_in_range(left, 1, NSEC_PER_SEC);
		assert_int_equal(metric_get(metrics_counter(metrics, "hearth_backend_dropped_samples_total", NULL,
							    "Samples that the backend's sinks dropped.")),
				 11);
		assert_int_equal(
			metric_get(metrics_gauge(metrics, "hearth_spool_samples", NULL, "Samples that wait in the spool.")),
			22);
		assert_int_equal(dropped("reason=\"shutdown\""), 0);
		if (i + 1 < sizeof(rows) / sizeof(*rows))
			assert_int_equal(tear_down(state), 0);
	}
}

/* A backend that has gone is not waited for; its samples are lost, and those that come later, too. */
static void test_flush_lost(void **state)
{
	(void)state;
	say(NOTE_HELLO, 1, 0);
	consume(5);
	for (int i = 0; i < 12; i++) /* some are not even sent */
		consume(1);
	while (next(WIRE_PROFILES))
		;
	assert_int_equal(shutdown(backend, SHUT_RDWR), 0);
	assert_int_equal(sink_flush(channel_sink(channel), clock_mono_ns() + 60 * NSEC_PER_SEC), -ECONNRESET);
	assert_int_equal(dropped("reason=\"shutdown\""), 17);
	consume(3);
	assert_int_equal(dropped("reason=\"error\""), 3);
}

/* Where nothing is kept nothing is sent, and nobody is waited for. */
static void test_none_kept(void **state)
{
	(void)state;
	channel_send_none(channel);
	consume(3);
	assert_int_equal(sink_flush(channel_sink(channel), clock_mono_ns() + 60 * NSEC_PER_SEC), 0);
	say(NOTE_HELLO, 1, 0);
	consume(3);
	assert_int_equal(next(WIRE_PROFILES), 0);
	assert_int_equal(dropped("reason=\"error\"") + dropped("reason=\"shutdown\""), 0);
}

/* A backend that keeps none gets profiles while it waits for some, and hears at once which processes are hearth. */
static void test_none_kept_but_wanted(void **state)
{
	static const struct ourselves two = { .count = 2, .pids = { 4000001, 4000002 } };
	struct wire_state said;
	bool is_told = false;

	(void)state;
	channel_send_none(channel);
	say(NOTE_HELLO, 1, 0);
	ourselves_saw(&two);
	consume(3);
	assert_int_equal(next(WIRE_PROFILES), 0);
	say(NOTE_WINDOW, clock_mono_ns() + 60 * NSEC_PER_SEC, 0);
	while (!is_told) {
		assert_int_equal(wire_receive(backend, &message), 0);
		if (message.head.kind != WIRE_STATE || !message.is_whole)
			continue;
		assert_int_equal(message.body.len, sizeof(said));
		memcpy(&said, message.body.data, sizeof(said));
		is_told = ourselves_has(&said.processes, 4000001) && ourselves_has(&said.processes, 4000002);
	}
	assert_true(ourselves_has(&said.processes, (uint32_t)getpid()));
	consume(3);
	assert_int_not_equal(next(WIRE_PROFILES), 0);
}

/* Each port comes out where it was put, and whether anything is kept stands beside them. */
static void test_ports(void **state)
{
	enum { PORTS = 2 * READY_VALUES };
	struct wire_note note = { .kind = NOTE_READY };

	(void)state;
	for (unsigned i = 0; i < PORTS; i++)
		assert_int_equal(ready_port(&note, i), 0);
	for (unsigned i = 0; i < PORTS; i++)
		ready_set_port(&note, i, (uint16_t)(0xfff0 + i));
	assert_int_equal(note.values[READY_VALUES - 1] & READY_KEEPS, 0);
	note.values[READY_VALUES - 1] |= READY_KEEPS;
	for (unsigned i = 0; i < PORTS; i++)
		assert_int_equal(ready_port(&note, i), 0xfff0 + i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_wants, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sent_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_told_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_few_under_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_large, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_series, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_windows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_flush, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_flush_lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_none_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_none_kept_but_wanted, set_up, tear_down),
		cmocka_unit_test(test_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
