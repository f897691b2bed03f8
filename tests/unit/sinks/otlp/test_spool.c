/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: order, bounds, restarts, and files cut or changed at every place. Each sample is found again or counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "sinks/otlp/spool.h"

enum { RECORD_HEADER_BYTES = 56 }; /* of the format, spool.c */

static char dir[] = "/tmp/hearth-spool-XXXXXX";
static struct metrics *metrics;
static struct spool_config config;

static struct metric *counter(const char *name)
{
	return metrics_counter(metrics, name, NULL, "");
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	metrics = metrics_new();
	config = (struct spool_config){ .dir = dir,
					.max_bytes = 1 << 20,
					.bytes = counter("bytes"),
					.samples = counter("samples"),
					.dropped_full = counter("full"),
					.dropped_age = counter("age"),
					.dropped_corrupt = counter("corrupt"),
					.corrupt_bytes = counter("corrupt_bytes") };
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	metrics_free(metrics);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static struct spool *open_it(void)
{
	struct spool *s = NULL;

	assert_int_equal(spool_open(&config, &s), 0);
	return s;
}

/* Record @n: @n samples, @len bytes of the letter for n. */
static int append(struct spool *s, unsigned n, size_t len)
{
	char *data = malloc(len + 1);
	struct spool_record r = {
		.data = (uint8_t *)data, .len = len, .message_bytes = n + 7, .packing = n & 3, .samples = n
	};
	int error;

	assert_non_null(data);
	memset(data, 'a' + (int)(n % 26), len);
	error = spool_append(s, &r);
	free(data);
	return error;
}

/* The oldest record's number, its content checked; 0: there is none. */
static unsigned take(struct spool *s)
{
	struct spool_record r;
	int found = spool_peek(s, &r);

	assert_in_range(found, 0, 1);
	if (!found)
		return 0;
	assert_int_equal(r.message_bytes, r.samples + 7);
	assert_int_equal(r.packing, r.samples & 3);
	for (size_t i = 0; i < r.len; i++)
		assert_int_equal(r.data[i], 'a' + (int)(r.samples % 26));
	spool_remove(s);
	return (unsigned)r.samples;
}

static void segment_path(unsigned number, char path[static 128])
{
	snprintf(path, 128, "%s/%016x.spool", dir, number);
}

static void test_order(void **state)
{
	struct spool *s = open_it();

	(void)state;
	assert_true(spool_is_empty(s));
	assert_int_equal(take(s), 0);
	for (unsigned i = 1; i <= 300; i++)
		assert_int_equal(append(s, i, 1000 + i), 0);
	assert_int_equal(spool_samples(s), 300 * 301 / 2);
	assert_int_equal(metric_get(config.samples), 300 * 301 / 2);
	for (unsigned i = 1; i <= 100; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(append(s, 301, 0), 0); /* empty, and while others are read */
	for (unsigned i = 101; i <= 301; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(take(s), 0);
	assert_int_equal(metric_get(config.bytes), 0);
	assert_int_equal(append(s, 5, 10), 0); /* it begins anew */
	assert_int_equal(take(s), 5);
	spool_close(s);
}

/* What was removed stays removed, what was not is there, with or without an orderly end. */
static void test_restart(void **state)
{
	struct spool *s = open_it();
	pid_t child;
	int status;

	(void)state;
	for (unsigned i = 1; i <= 10; i++)
		assert_int_equal(append(s, i, 100), 0);
	for (unsigned i = 1; i <= 3; i++)
		assert_int_equal(take(s), i);
	spool_close(s);
	assert_int_equal(metric_get(config.samples), 0);
	child = fork();
	if (child == 0) {
		s = open_it();
		if (take(s) != 4 || take(s) != 5 || append(s, 11, 70000) || append(s, 12, 7))
			_exit(1);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	s = open_it();
	assert_int_equal(metric_get(config.samples), 6 + 7 + 8 + 9 + 10 + 11 + 12);
	for (unsigned i = 6; i <= 12; i++)
		assert_int_equal(take(s), i);
	assert_int_equal(take(s), 0);
	spool_close(s);
	assert_int_equal(metric_get(config.corrupt_bytes), 0);
}

static void test_one_process(void **state)
{
	struct spool *s = open_it(), *second = NULL;

	(void)state;
	assert_int_equal(spool_open(&config, &second), -EBUSY);
	spool_close(s);
	spool_close(open_it());
}

/* The oldest go, and are counted; the bound holds for the files as they are. */
static void test_bound(void **state)
{
	struct spool *s;
	uint64_t sum = 0;
	unsigned first, next;

	(void)state;
	config.max_bytes = 256 << 10;
	s = open_it();
	for (unsigned i = 1; i <= 1000; i++) {
		assert_int_equal(append(s, i, 1000), 0);
		assert_true(metric_get(config.bytes) <= config.max_bytes);
	}
	assert_int_equal(append(s, 1, 300 << 10), -EFBIG);
	assert_int_equal(metric_get(config.dropped_full) + metric_get(config.samples), 1000 * 1001 / 2);
	assert_true(metric_get(config.bytes) > config.max_bytes / 2);
	first = take(s);
	assert_true(first > 1);
	for (next = first, sum = first; next; sum += next = take(s))
		assert_int_equal(next <= 1000, true);
	assert_int_equal(sum + metric_get(config.dropped_full), 1000 * 1001 / 2);
	spool_close(s);
}

static void test_age(void **state)
{
	struct spool *s = open_it();

	(void)state;
	assert_int_equal(append(s, 1, 10), 0);
	assert_int_equal(append(s, 2, 10), 0);
	spool_close(s);
	usleep(300000);
	config.max_age_ns = 200 * NSEC_PER_MSEC;
	s = open_it();
	assert_int_equal(append(s, 4, 10), 0);
	assert_int_equal(take(s), 4);
	assert_int_equal(metric_get(config.dropped_age), 3);
	spool_close(s);
}

/* Three records in one file: @change it, and see what is left. Returns the samples that are. */
static uint64_t survivors(void (*change)(int fd, uint64_t at), uint64_t at)
{
	struct spool *s = open_it();
	uint64_t sum = 0;
	char path[128];
	unsigned n;
	int fd;

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(append(s, 1u << i, 40), 0);
	spool_close(s);
	segment_path(1, path);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	change(fd, at);
	close(fd);
	s = open_it();
	while ((n = take(s)))
		sum += n;
	assert_int_equal(append(s, 9, 40), 0); /* and it goes on */
	assert_int_equal(take(s), 9);
	spool_close(s);
	return sum;
}

static void cut(int fd, uint64_t at)
{
	assert_int_equal(ftruncate(fd, (off_t)at), 0);
}

static void flip(int fd, uint64_t at)
{
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

enum { RECORD_BYTES = RECORD_HEADER_BYTES + 40 };

/* A tail is skipped and counted; what is whole before it stays. */
static void test_cut_tail(void **state)
{
	(void)state;
	for (uint64_t at = 0; at <= 3 * RECORD_BYTES; at++) {
		uint64_t whole = at / RECORD_BYTES, before = metric_get(config.corrupt_bytes);

		assert_int_equal(survivors(cut, at), (1u << whole) - 1);
		assert_int_equal(metric_get(config.corrupt_bytes) - before, at % RECORD_BYTES);
	}
}

/* A changed body costs its record, which is counted; a changed header costs the tail, whose bytes are. */
static void test_flipped_bits(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 3 * RECORD_BYTES; at++) {
		uint64_t record = at / RECORD_BYTES, in_record = at % RECORD_BYTES;
		uint64_t bytes = metric_get(config.corrupt_bytes), samples = metric_get(config.dropped_corrupt);
		uint64_t left = survivors(flip, at);

		bytes = metric_get(config.corrupt_bytes) - bytes;
		samples = metric_get(config.dropped_corrupt) - samples;
		if (in_record >= RECORD_HEADER_BYTES) {
			assert_int_equal(left, 7 - (1u << record));
			assert_int_equal(samples, 1u << record);
			assert_int_equal(bytes, RECORD_BYTES);
		} else if (in_record >= 52) { /* spare */
			assert_int_equal(left, 7);
		} else if (in_record >= 48) { /* the done mark */
			assert_int_equal(left, 7 - (1u << record));
		} else {
			assert_int_equal(left, (1u << record) - 1);
			assert_int_equal(bytes, (3 - record) * RECORD_BYTES);
		}
	}
}

/* The owner's words on the disk. Packings 0 and 1, a bit then, are in spools of all versions. */
static void test_layout(void **state)
{
	(void)state;
	for (uint8_t packing = 0; packing <= SPOOL_PACKING_MAX; packing++) {
		const struct spool_record record = { .data = (const uint8_t *)"body",
						     .len = 4,
						     .message_bytes = 9,
						     .packing = packing,
						     .kind = 5,
						     .samples = 1 };
		struct spool *s = open_it();
		struct spool_record got;
		uint8_t flags[4];
		char path[128];
		int fd;

		assert_int_equal(spool_append(s, &record), 0);
		spool_close(s);
		segment_path(1, path);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_int_equal(pread(fd, flags, sizeof(flags), 40), sizeof(flags));
		close(fd);
		assert_memory_equal(flags, ((uint8_t[]){ packing, 5, 0, 0 }), sizeof(flags));
		s = open_it();
		assert_int_equal(spool_peek(s, &got), 1);
		assert_int_equal(got.packing, packing);
		assert_int_equal(got.kind, 5);
		assert_memory_equal(got.data, "body", 4);
		spool_remove(s);
		spool_close(s);
	}
}

static void test_unusable_places(void **state)
{
	struct spool *s = NULL;

	(void)state;
	config.dir = "/proc/no/such/place";
	assert_true(spool_open(&config, &s) < 0);
	config.dir = "/dev/null";
	assert_true(spool_open(&config, &s) < 0);
	assert_null(s);
}

/* A folder right below the root has nothing above it to be made; who is not root may not make it. */
static void test_below_root(void **state)
{
	char path[64];
	struct spool *s = NULL;
	int error;

	(void)state;
	snprintf(path, sizeof(path), "/hearth-spool-test-%d", (int)getpid());
	config.dir = path;
	error = spool_open(&config, &s);
	assert_true(error == 0 || error == -EACCES || error == -EROFS);
	spool_close(s);
	config.dir = dir;
	if (!error) {
		char lock[80];

		snprintf(lock, sizeof(lock), "%s/lock", path);
		assert_int_equal(unlink(lock), 0);
		assert_int_equal(rmdir(path), 0);
	}
}

/* A disk without room: the error is told, nothing half-written stays, and it goes on when there is room. */
static void test_no_room(void **state)
{
	struct spool *s = open_it();

	(void)state;
	assert_int_equal(append(s, 1, 10), 0);
	signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < 2; i++) {
		struct rlimit limit = { i ? RLIM_INFINITY : 1000, RLIM_INFINITY };

		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		if (i)
			assert_int_equal(append(s, 2, 5000), 0);
		else
			assert_true(append(s, 2, 5000) < 0);
	}
	assert_int_equal(take(s), 1);
	assert_int_equal(take(s), 2);
	spool_close(s);
	assert_int_equal(metric_get(config.corrupt_bytes), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_order),   CASE(test_restart),	   CASE(test_one_process),  CASE(test_bound),
		CASE(test_age),	    CASE(test_cut_tail),   CASE(test_flipped_bits), CASE(test_unusable_places),
		CASE(test_no_room), CASE(test_below_root), CASE(test_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
