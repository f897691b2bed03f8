/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets between the halves: what is taken for a note and what is not, whose descriptor none is left of; messages in
 * pieces, at the limits of a piece and of a message; series, cut anywhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd_pass.h"
#include "base/metrics.h"
#include "cmd/halves/wire.h"
#include "tests/unit/descriptors.h"

static int socks[2];
static struct wire_message message;

static int begin(void **state)
{
	(void)state;
	message = (struct wire_message){ 0 };
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks);
}

static int end(void **state)
{
	(void)state;
	buf_fini(&message.body);
	if (socks[0] >= 0)
		close(socks[0]);
	close(socks[1]);
	return 0;
}

/* --- notes --- */

static void test_notes(void **state)
{
	const struct wire_note sent = { .kind = NOTE_SERVED, .status = -5, .number = 1ull << 60, .values = { 1, 2, 3 } };
	struct wire_note note;
	struct stat is, wanted;
	int fd = 77;

	(void)state;
	assert_int_equal(wire_receive_note(socks[1], &note, &fd), -EAGAIN);
	assert_int_equal(fd, -1);
	assert_int_equal(wire_send_note(socks[0], &sent, -1), 0);
	assert_int_equal(wire_receive_note(socks[1], &note, &fd), 0);
	assert_memory_equal(&note, &sent, sizeof(note));
	assert_int_equal(fd, -1);
	assert_int_equal(wire_send_note(socks[0], &sent, 0), 0); /* 0 is a descriptor, too */
	assert_int_equal(wire_receive_note(socks[1], &note, &fd), 0);
	assert_memory_equal(&note, &sent, sizeof(note));
	assert_true(fd > 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_return_code(fstat(0, &wanted), errno);
	assert_return_code(fstat(fd, &is), errno);
	assert_int_equal(is.st_ino, wanted.st_ino);
	close(fd);
	assert_int_equal(wire_send_note(socks[0], &sent, 1 << 20), -EBADF);
	close(socks[0]);
	socks[0] = -1;
	assert_int_equal(wire_receive_note(socks[1], &note, &fd), -EPIPE);
	assert_int_equal(wire_send_note(socks[1], &sent, -1), -EPIPE);
}

/* What is no note is dropped, with the files that came with it. */
static void test_no_notes(void **state)
{
	static const struct {
		size_t len;
		size_t fds;
		int err;
	} rows[] = {
		{ sizeof(struct wire_note), 1, 0 },
		{ sizeof(struct wire_note) - 1, 0, -EBADMSG },
		{ sizeof(struct wire_note) + 1, 0, -EBADMSG },
		{ 1, 1, -EBADMSG },
		{ sizeof(struct wire_note) - 1, 1, -EBADMSG },
		{ sizeof(struct wire_note) + 1, 1, -EBADMSG },
		{ sizeof(struct wire_note), 2, -EBADMSG },
		{ sizeof(struct wire_note), 3, -EBADMSG },
	};
	static const char bytes[sizeof(struct wire_note) + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = rows[i].len };
		const int fds[3] = { 0, 0, 0 }, before = open_descriptors();
		struct wire_note note;
		int fd;

		assert_int_equal(fd_pass_send(socks[0], &part, 1, fds, rows[i].fds, 0), rows[i].len);
		if (wire_receive_note(socks[1], &note, &fd) != rows[i].err)
			fail_msg("row %zu", i);
		assert_int_equal(fd >= 0, !rows[i].err);
		if (fd >= 0)
			close(fd);
		assert_int_equal(open_descriptors(), before);
	}
}

/* --- messages --- */

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 7 >> 3);
}

/* Sends @len bytes as one message; how many packets that took. */
static unsigned send_message(uint64_t number, const struct buf *body, size_t len)
{
	const struct wire_head head = { .kind = WIRE_LOG, .total_bytes = (uint32_t)len, .number = number };
	unsigned packets = 0;
	size_t sent = 0;

	do {
		ptrdiff_t n = wire_send_piece(socks[0], &head, body->data, sent);

		assert_true(n >= 0 && (n > 0 || !len));
		assert_true((size_t)n == WIRE_PIECE_BYTES || sent + (size_t)n == len);
		sent += (size_t)n;
		packets++;
		assert_int_equal(wire_receive(socks[1], &message), 0);
		assert_int_equal(message.is_whole, sent == len);
		assert_int_equal(message.body.len, sent);
	} while (sent < len);
	assert_int_equal(message.head.number, number);
	assert_int_equal(message.head.kind, WIRE_LOG);
	assert_true(!len || !memcmp(message.body.data, body->data, len));
	return packets;
}

static void test_sizes(void **state)
{
	static const struct {
		size_t len;
		unsigned packets;
	} rows[] = { { 0, 1 },
		     { 1, 1 },
		     { WIRE_PIECE_BYTES - 1, 1 },
		     { WIRE_PIECE_BYTES, 1 },
		     { WIRE_PIECE_BYTES + 1, 2 },
		     { 2 * WIRE_PIECE_BYTES, 2 },
		     { 2 * WIRE_PIECE_BYTES + 1, 3 },
		     { 5, 1 } };
	struct buf body = BUF_EMPTY;

	(void)state;
	for (size_t i = 0; i < 3 * WIRE_PIECE_BYTES; i++)
		buf_putc(&body, (char)byte_at(i));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(send_message(i, &body, rows[i].len), rows[i].packets);
	buf_fini(&body);
}

/* A packet with a head as it should not be, and @len bytes behind it. */
static int receive_packet(const struct wire_head *head, size_t len)
{
	static uint8_t packet[sizeof(*head) + WIRE_PIECE_BYTES + 1];

	memcpy(packet, head, sizeof(*head));
	for (size_t i = 0; i < len; i++)
		packet[sizeof(*head) + i] = byte_at(head->offset + i);
	assert_int_equal(send(socks[0], packet, sizeof(*head) + len, 0), sizeof(*head) + len);
	return wire_receive(socks[1], &message);
}

static void test_limits(void **state)
{
	const struct wire_head head = { .kind = WIRE_LOG, .total_bytes = 1 << 30, .number = 1 };
	struct wire_head large = head;

	(void)state;
	large.total_bytes++;
	assert_int_equal(receive_packet(&head, 0), 0);
	assert_int_equal(receive_packet(&large, 0), -EBADMSG);
	assert_int_equal(receive_packet(&head, WIRE_PIECE_BYTES), 0);
	assert_int_equal(message.body.len, WIRE_PIECE_BYTES);
	assert_int_equal(receive_packet(&head, WIRE_PIECE_BYTES + 1), -EBADMSG);
	assert_int_equal(send(socks[0], &head, sizeof(head) - 1, 0), sizeof(head) - 1);
	assert_int_equal(wire_receive(socks[1], &message), -EBADMSG);
	close(socks[0]);
	socks[0] = -1;
	assert_int_equal(wire_receive(socks[1], &message), -EPIPE);
}

/* A piece counts where it belongs to what has come; a beginning begins anew. */
static void test_pieces(void **state)
{
	static const struct {
		uint32_t kind, offset;
		uint64_t number;
		size_t len, whole_len; /* then so much is there */
	} rows[] = {
		{ WIRE_LOG, 0, 1, 10, 10 },   { WIRE_STATE, 10, 1, 10, 10 }, { WIRE_LOG, 10, 2, 10, 10 },
		{ WIRE_LOG, 9, 1, 10, 10 },   { WIRE_LOG, 11, 1, 9, 10 },    { WIRE_LOG, 10, 1, 5, 15 },
		{ WIRE_METRICS, 0, 4, 3, 3 }, { WIRE_LOG, 15, 1, 5, 3 },     { WIRE_METRICS, 3, 4, 17, 20 },
	};
	const size_t count = sizeof(rows) / sizeof(*rows);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct wire_head head = {
			.kind = rows[i].kind, .total_bytes = 20, .offset = rows[i].offset, .number = rows[i].number
		};

		assert_int_equal(receive_packet(&head, rows[i].len), 0);
		if (message.body.len != rows[i].whole_len)
			fail_msg("row %zu: %zu bytes", i, message.body.len);
		assert_int_equal(message.is_whole, i + 1 == count);
		for (size_t at = 0; at < message.body.len; at++)
			assert_int_equal(message.body.data[at], byte_at(at));
	}
	assert_int_equal(message.head.kind, WIRE_METRICS);
	assert_int_equal(message.head.number, 4);
}

/* A socket without room says so, and takes the piece later. */
static void test_no_room(void **state)
{
	const struct wire_head head = { .kind = WIRE_LOG, .total_bytes = 100 };
	static const uint8_t body[100];
	ptrdiff_t n;
	unsigned sent = 0, taken = 0;

	(void)state;
	while ((n = wire_send_piece(socks[0], &head, body, 0)) == 100)
		sent++;
	assert_int_equal(n, -EAGAIN);
	for (; taken < sent; taken++)
		assert_int_equal(wire_receive(socks[1], &message), 0);
	assert_int_equal(wire_send_piece(socks[0], &head, body, 60), 40);
	assert_int_equal(wire_receive(socks[1], &message), 0);
	close(socks[1]);
	socks[1] = dup(0);
	assert_int_equal(wire_send_piece(socks[0], &head, body, 0), -EPIPE);
}

/* --- series --- */

/* A text that ends anywhere but behind a series is none, and says so. */
static void test_series(void **state)
{
	struct metrics *metrics = metrics_new();
	struct buf text = BUF_EMPTY, out = BUF_EMPTY;
	size_t whole, whole_count = 0;

	(void)state;
	metric_add(metrics_counter(metrics, "a_total", "x=\"1\"", "One."), 3);
	metric_add(metrics_seconds(metrics, "t_seconds_total", NULL, "Time."), 2500000000);
	metric_set(metrics_gauge(metrics, "b", NULL, "Here."), 5);
	wire_put_series(metrics, &text);
	whole = text.len;
	for (text.len = 0; text.len <= whole; text.len++) {
		struct metrics *other = metrics_new();
		int err = wire_take_series(other, &text);

		assert_true(err == 0 || err == -EBADMSG);
		whole_count += !err;
		if (text.len == whole) {
			assert_int_equal(err, 0);
			metrics_write(other, &out);
		}
		metrics_free(other);
	}
	assert_int_equal(whole_count, 4); /* after none, one, two, three */
	assert_non_null(strstr(buf_text(&out), "# HELP a_total One.\n# TYPE a_total counter\na_total{x=\"1\"} 3\n"));
	assert_non_null(strstr(buf_text(&out), "# TYPE t_seconds_total counter\nt_seconds_total 2.500000000\n"));
	assert_non_null(strstr(buf_text(&out), "# HELP b Here.\n# TYPE b gauge\nb 5\n"));
	text.len = whole;
	buf_fini(&text);
	buf_fini(&out);
	metrics_free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_notes, begin, end),
		cmocka_unit_test_setup_teardown(test_no_notes, begin, end),
		cmocka_unit_test_setup_teardown(test_sizes, begin, end),
		cmocka_unit_test_setup_teardown(test_limits, begin, end),
		cmocka_unit_test_setup_teardown(test_pieces, begin, end),
		cmocka_unit_test_setup_teardown(test_no_room, begin, end),
		cmocka_unit_test(test_series),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
