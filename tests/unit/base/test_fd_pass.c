/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors with packets: as many as were sent arrive, close-on-exec, and of one packet all or none; whatever a peer
 * sends, and however little room there is, none stays behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/fd_pass.h"
#include "tests/unit/descriptors.h"

static int socks[2];

static int begin(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks);
}

static int end(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		if (socks[i] >= 0)
			close(socks[i]);
	return 0;
}

static ssize_t send_text(const char *text, size_t len, const int *fds, size_t count)
{
	const struct iovec part = { (void *)(uintptr_t)text, len };

	return fd_pass_send(socks[0], &part, 1, fds, count, 0);
}

static ssize_t receive_text(char *text, size_t room, int *fds, size_t count)
{
	const struct iovec part = { text, room };

	return fd_pass_receive(socks[1], &part, 1, fds, count, MSG_DONTWAIT);
}

static bool is_same_file(int one, int other)
{
	struct stat a, b;

	assert_return_code(fstat(one, &a), errno);
	assert_return_code(fstat(other, &b), errno);
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* All numbers of descriptors into all rooms. */
static void test_counts(void **state)
{
	int ends[FD_PASS_MOST];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ends + 2, O_CLOEXEC), 0);
	for (size_t sent = 0; sent <= FD_PASS_MOST; sent++) {
		for (size_t room = 0; room <= FD_PASS_MOST; room++) {
			const bool fits = sent <= room;
			int fds[FD_PASS_MOST + 1] = { 77, 77, 77, 77, 77 }, before = open_descriptors();
			char text[8] = "";

			assert_int_equal(send_text("abc", 3, ends, sent), 3);
			assert_int_equal(receive_text(text, sizeof(text), fds, room), fits ? 3 : -EBADMSG);
			assert_int_equal(open_descriptors() - before, fits ? sent : 0);
			for (size_t i = 0; i <= FD_PASS_MOST; i++) {
				if (i >= room || !fits || i >= sent) {
					assert_int_equal(fds[i], i < room ? -1 : 77);
					continue;
				}
				assert_true(is_same_file(fds[i], ends[i]));
				assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
				close(fds[i]);
			}
			assert_true(!fits || !memcmp(text, "abc", 4));
			assert_int_equal(receive_text(text, sizeof(text), fds, 0), -EAGAIN); /* the packet has gone */
		}
	}
	for (size_t i = 0; i < FD_PASS_MOST; i++)
		close(ends[i]);
}

/* More bytes than there is room for: descriptors that came along are closed. Several parts; none at all. */
static void test_bytes(void **state)
{
	int fds[2], before = open_descriptors();
	char one[3], other[4];
	const struct iovec parts[] = { { one, sizeof(one) }, { other, sizeof(other) } };

	(void)state;
	assert_int_equal(send_text("12345678", 8, &(int){ 0 }, 1), 8);
	assert_int_equal(fd_pass_receive(socks[1], parts, 2, fds, 2, 0), -EBADMSG);
	assert_true(fds[0] == -1 && fds[1] == -1);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(send_text("1234567", 7, &(int){ 0 }, 1), 7);
	assert_int_equal(fd_pass_receive(socks[1], parts, 2, fds, 2, 0), 7);
	assert_memory_equal(one, "123", 3);
	assert_memory_equal(other, "4567", 4);
	assert_true(is_same_file(fds[0], 0) && fds[1] == -1);
	close(fds[0]);
	assert_int_equal(fd_pass_send(socks[0], parts, 2, NULL, 0, 0), 7);
	assert_int_equal(fd_pass_receive(socks[1], parts, 1, NULL, 0, 0), -EBADMSG);
	assert_int_equal(send_text("", 0, &(int){ 0 }, 1), 0); /* an empty packet may carry one, too */
	assert_int_equal(receive_text(one, sizeof(one), fds, 1), 0);
	assert_int_equal(open_descriptors(), before + 1);
	close(fds[0]);
}

static void test_errors(void **state)
{
	int fds[FD_PASS_MOST + 1] = { 0 }, closed = dup(0);
	char text[8];

	(void)state;
	close(closed);
	assert_int_equal(send_text("x", 1, &closed, 1), -EBADF);
	assert_int_equal(send_text("x", 1, fds, FD_PASS_MOST + 1), -EINVAL);
	assert_int_equal(receive_text(text, sizeof(text), fds, FD_PASS_MOST + 1), -EINVAL);
	assert_int_equal(receive_text(text, sizeof(text), fds, 1), -EAGAIN);
	assert_int_equal(fds[0], -1);
	close(MOVE_FD(socks[0]));
	assert_int_equal(receive_text(text, sizeof(text), fds, 1), 0);
	socks[0] = MOVE_FD(socks[1]);
	assert_int_equal(send_text("x", 1, NULL, 0), -EPIPE); /* and no signal */
}

/* A process that may open no more is told so, and has no half of them. */
static void test_no_more_descriptors(void **state)
{
	const int three[3] = { 0 }, before = open_descriptors();
	struct rlimit limit, low;
	int fds[4], highest = dup(0);
	char text[8];

	(void)state;
	close(highest);
	assert_return_code(getrlimit(RLIMIT_NOFILE, &limit), errno);
	low = (struct rlimit){ (rlim_t)highest + 2, limit.rlim_max };
	assert_int_equal(send_text("abc", 3, three, 3), 3);
	assert_return_code(setrlimit(RLIMIT_NOFILE, &low), errno);
	assert_int_equal(receive_text(text, sizeof(text), fds, 4), -EMFILE);
	assert_return_code(setrlimit(RLIMIT_NOFILE, &limit), errno);
	for (int i = 0; i < 4; i++)
		assert_int_equal(fds[i], -1);
	assert_int_equal(open_descriptors(), before);
}

/* --- signals --- */

static void on_alarm(int number)
{
	(void)number;
}

static void *send_late(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	usleep(20000);
	*(ssize_t *)arg = send_text("late", 4, &(int){ 0 }, 1);
	return NULL;
}

static void *read_late(void *arg)
{
	char text[8];
	sigset_t all;
	int fd;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	usleep(20000);
	for (unsigned left = *(unsigned *)arg + 1; left; left--) {
		const struct iovec part = { text, sizeof(text) };

		if (fd_pass_receive(socks[1], &part, 1, &fd, 1, 0) == 4)
			close(fd);
	}
	return NULL;
}

/* Who waits for a packet, or for room, waits on after signals. */
static void test_signals(void **state)
{
	const struct sigaction action = { .sa_handler = on_alarm }; /* no SA_RESTART */
	const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	const struct iovec sent = { (void *)(uintptr_t) "full", 4 };
	struct iovec part;
	pthread_t thread;
	ssize_t result = -1;
	unsigned count = 0;
	char text[8];
	int fd;

	(void)state;
	part = (struct iovec){ text, sizeof(text) };
	sigaction(SIGALRM, &action, NULL);
	assert_int_equal(pthread_create(&thread, NULL, send_late, &result), 0);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_int_equal(fd_pass_receive(socks[1], &part, 1, &fd, 1, 0), 4);
	setitimer(ITIMER_REAL, &never, NULL);
	pthread_join(thread, NULL);
	assert_int_equal(result, 4);
	close(fd);
	while (fd_pass_send(socks[0], &sent, 1, NULL, 0, MSG_DONTWAIT) == 4)
		count++;
	assert_int_equal(pthread_create(&thread, NULL, read_late, &count), 0);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_int_equal(fd_pass_send(socks[0], &sent, 1, &(int){ 0 }, 1, 0), 4);
	setitimer(ITIMER_REAL, &never, NULL);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counts, begin, end),
		cmocka_unit_test_setup_teardown(test_bytes, begin, end),
		cmocka_unit_test_setup_teardown(test_errors, begin, end),
		cmocka_unit_test_setup_teardown(test_no_more_descriptors, begin, end),
		cmocka_unit_test_setup_teardown(test_signals, begin, end),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
