/* SPDX-License-Identifier: Apache-2.0 */
/* All of a file or a pipe: over signals and a reader that comes later, exact limits, and what is told of failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

enum { FILE_BYTES = 40000, PIPE_BYTES = 1 << 20 };

static uint8_t content[PIPE_BYTES];
static char folder[] = "/tmp/hearth-test-io-XXXXXX", path[64];

static int make_content(void **state)
{
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * 7 + i / 251);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(io_write_all(fd, content, FILE_BYTES), 0);
	close(fd);
	return 0;
}

static int remove_content(void **state)
{
	(void)state;
	return unlink(path) | rmdir(folder);
}

static void on_alarm(int number)
{
	(void)number;
}

/* Signals interrupt each read and write for a while. */
static void ring(bool is_on)
{
	struct sigaction action = { .sa_handler = on_alarm }; /* no SA_RESTART */
	struct itimerval each = { { 0, is_on ? 500 : 0 }, { 0, is_on ? 500 : 0 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
}

struct reader {
	int fd, error;
	struct buf out;
};

static void *read_later(void *arg)
{
	struct reader *r = arg;

	usleep(5000); /* the pipe fills up first */
	r->error = io_read_all(r->fd, PIPE_BYTES, &r->out);
	close(r->fd); /* the writer does not wait for a reader that failed */
	return NULL;
}

static void check_pipe(int flags)
{
	struct reader r = { .out = BUF_EMPTY };
	pthread_t thread;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, flags), 0);
	r.fd = fds[0];
	assert_int_equal(pthread_create(&thread, NULL, read_later, &r), 0);
	ring(true);
	assert_int_equal(io_write_all(fds[1], content, PIPE_BYTES), 0);
	ring(false);
	close(fds[1]);
	pthread_join(thread, NULL);
	assert_int_equal(r.error, 0);
	assert_int_equal(r.out.len, PIPE_BYTES);
	assert_memory_equal(r.out.data, content, PIPE_BYTES);
	buf_fini(&r.out);
}

static void test_pipe(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	check_pipe(0);
	check_pipe(O_NONBLOCK);
}

static void test_write_fails(void **state)
{
	AUTO_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	AUTO_CLOSE int read_only = open(path, O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(io_write_all(full, "x", 1), -ENOSPC);
	assert_int_equal(io_write_all(full, "", 0), 0);
	assert_int_equal(io_write_all(read_only, "x", 1), -EBADF);
}

static void test_read(void **state)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	buf_puts(&out, "before");
	assert_int_equal(io_read_file(path, FILE_BYTES, &out), 0);
	assert_int_equal(out.len, 6 + FILE_BYTES);
	assert_memory_equal(out.data, "before", 6);
	assert_memory_equal(out.data + 6, content, FILE_BYTES);
	buf_reset(&out);
	assert_int_equal(io_read_file(path, FILE_BYTES - 1, &out), -EFBIG);
	assert_int_equal(out.len, FILE_BYTES - 1);
	assert_memory_equal(out.data, content, FILE_BYTES - 1);
	buf_reset(&out);
	assert_int_equal(io_read_file(path, 0, &out), -EFBIG);
	assert_int_equal(io_read_file("/dev/null", 0, &out), 0);
	assert_int_equal(io_read_file("/dev/zero", 100000, &out), -EFBIG);
	assert_int_equal(out.len, 100000);
	buf_reset(&out);
	assert_int_equal(io_read_file(folder, SIZE_MAX, &out), -EISDIR);
	assert_int_equal(io_read_file("/nowhere/at/all", SIZE_MAX, &out), -ENOENT);
	assert_int_equal(out.len, 0);
	out.failed = true;
	assert_int_equal(io_read_file(path, SIZE_MAX, &out), -ENOMEM);
}

static void test_pread(void **state)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t bytes[100];

	(void)state;
	assert_int_equal(io_pread_all(fd, bytes, sizeof(bytes), 300), 0);
	assert_memory_equal(bytes, content + 300, sizeof(bytes));
	assert_int_equal(io_pread_all(fd, bytes, sizeof(bytes), FILE_BYTES - sizeof(bytes)), 0);
	assert_memory_equal(bytes, content + FILE_BYTES - sizeof(bytes), sizeof(bytes));
	assert_int_equal(io_pread_all(fd, bytes, sizeof(bytes), FILE_BYTES - sizeof(bytes) + 1), -EIO);
	assert_int_equal(io_pread_all(fd, bytes, 0, FILE_BYTES), 0);
	assert_int_equal(io_pread_all(-1, bytes, 1, 0), -EBADF);
}

static void check_text(const char *name, int folder_fd, size_t size)
{
	char text[64];
	size_t expected = size - 1 < 10 ? size - 1 : 10;

	memset(text, 'x', sizeof(text));
	assert_int_equal(io_read_text(folder_fd, name, text, size), expected);
	assert_memory_equal(text, "0123456789", expected);
	assert_int_equal(text[expected], '\0');
	for (size_t i = expected + 1; i < sizeof(text); i++)
		assert_int_equal(text[i], 'x');
}

static void test_text(void **state)
{
	AUTO_CLOSE int folder_fd = open(folder, O_PATH | O_CLOEXEC);
	AUTO_CLOSE int fd = openat(folder_fd, "text", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char name[80], text[8];

	(void)state;
	snprintf(name, sizeof(name), "%s/text", folder);
	assert_int_equal(io_write_all(fd, "0123456789", 10), 0);
	for (size_t size = 1; size < 14; size++) {
		check_text(name, AT_FDCWD, size);
		check_text("text", folder_fd, size);
	}
	assert_int_equal(unlink(name), 0);
	assert_int_equal(io_read_text(folder_fd, "text", text, sizeof(text)), -ENOENT);
	assert_int_equal(io_read_text(AT_FDCWD, folder, text, sizeof(text)), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipe),  cmocka_unit_test(test_write_fails), cmocka_unit_test(test_read),
		cmocka_unit_test(test_pread), cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, make_content, remove_content);
}
