/* SPDX-License-Identifier: Apache-2.0 */
/* A file with symbols on its way: how many at a time, what is refused and why, and that nothing of it stays. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/api/api.h"
#include "backend/api/query_thread.h"
#include "backend/routes/handlers.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

static struct server server;
static struct query_thread *const a_thread = (struct query_thread *)&server;
static int file = -1; /* that uploads go to; or an error */
static char said[256];
static unsigned status;
static enum rejection why;
static bool is_refused, has_encoding;
static enum ingest_encoding handed_encoding;

/* --- what is around it --- */

int query_thread_symbols_file(const struct query_thread *t)
{
	assert_ptr_equal(t, a_thread);
	return file < 0 ? file : fcntl(file, F_DUPFD_CLOEXEC, 0);
}

bool request_encoding(struct request *r, enum ingest_encoding *ret)
{
	assert_ptr_equal(r->server, &server);
	*ret = ENCODING_GZIP;
	return has_encoding;
}

void reply_refuse(struct request *r, unsigned code, enum rejection reason, const char *fmt, ...)
{
	va_list args;

	assert_ptr_equal(r->server, &server);
	status = code;
	why = reason;
	is_refused = true;
	va_start(args, fmt);
	vsnprintf(said, sizeof(said), fmt, args);
	va_end(args);
}

void reply_text(struct request *r, unsigned code, const char *text)
{
	assert_ptr_equal(r->server, &server);
	status = code;
	snprintf(said, sizeof(said), "%s", text);
}

void page_api_symbols(struct request *r, int *fd, enum ingest_encoding encoding)
{
	assert_ptr_equal(r->server, &server);
	handed_encoding = encoding;
	close(*fd);
	*fd = -1;
}

/* --- --- */

static struct request begin(void)
{
	struct request r = { .server = &server };

	status = 0;
	said[0] = '\0';
	is_refused = false;
	page_symbols_begin(&r);
	return r;
}

static void is(unsigned code, const char *text)
{
	assert_int_equal(status, code);
	assert_string_equal(said, text);
}

static int setup(void **state)
{
	AUTO_FCLOSE FILE *f = tmpfile();

	(void)state;
	server = (struct server){ .queries = a_thread };
	has_encoding = true;
	file = fcntl(fileno(f), F_DUPFD_CLOEXEC, 0);
	return file < 0;
}

static int teardown(void **state)
{
	(void)state;
	if (file >= 0)
		close(file);
	return 0;
}

static void test_taken(void **state)
{
	const int before = open_descriptors();
	struct request r = begin();
	char text[32] = "";

	(void)state;
	is(0, "");
	assert_non_null(r.upload);
	assert_int_equal(server.uploads, 1);
	assert_int_equal(open_descriptors(), before + 1);
	page_symbols_write(&r, "one", 3);
	page_symbols_write(&r, " two", 4);
	is(0, "");
	assert_int_equal(pread(file, text, sizeof(text), 0), 7);
	assert_string_equal(text, "one two");
	page_symbols(&r);
	assert_int_equal(handed_encoding, ENCODING_GZIP);
	page_symbols_end(&r);
	assert_null(r.upload);
	assert_int_equal(server.uploads, 0);
	assert_int_equal(open_descriptors(), before);
	page_symbols_end(&r); /* of one that has none */
	assert_int_equal(server.uploads, 0);
}

/* Two at a time; one that ends half way makes room for the next. */
static void test_many(void **state)
{
	const int before = open_descriptors();
	struct request first = begin(), second = begin(), third;

	(void)state;
	assert_true(first.upload && second.upload);
	third = begin();
	assert_null(third.upload);
	is(503, "other files with symbols are on their way: try again");
	assert_int_equal(why, REJECTED_BUSY);
	assert_int_equal(third.reply.retry_after_s, 2);
	assert_int_equal(server.uploads, 2);
	page_symbols_end(&third);
	page_symbols_end(&first);
	assert_int_equal(server.uploads, 1);
	third = begin();
	assert_non_null(third.upload);
	assert_int_equal(third.reply.retry_after_s, 0);
	page_symbols_end(&second);
	page_symbols_end(&third);
	assert_int_equal(server.uploads, 0);
	assert_int_equal(open_descriptors(), before);
}

static void test_refused(void **state)
{
	struct request r;

	(void)state;
	has_encoding = false; /* which has been refused by then */
	r = begin();
	assert_null(r.upload);
	is(0, "");
	has_encoding = true;
	close(file);
	file = -ENOENT;
	r = begin();
	is(404, "there is no store here that takes symbols: start hearth with --store DIR\n");
	assert_false(is_refused);
	file = -ENOSPC;
	r = begin();
	is(500, "no file for the symbols can be made: No space left on device");
	assert_int_equal(why, REJECTED_SINK);
	server.queries = NULL;
	r = begin();
	is(404, "there is no store here that takes symbols: start hearth with --store DIR\n");
	assert_null(r.upload);
	assert_int_equal(server.uploads, 0);
}

/* One byte more than may be is refused, and not written. */
static void test_large(void **state)
{
	static const char zeros[1 << 16];
	struct request r;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_return_code(dup2(null, file), errno);
	close(null);
	r = begin();
	for (uint64_t i = 0; i < API_SYMBOLS_MAX_BYTES; i += sizeof(zeros))
		page_symbols_write(&r, zeros, sizeof(zeros));
	is(0, "");
	page_symbols_write(&r, zeros, 1);
	is(413, "a file with symbols may have 1073741824 bytes");
	assert_int_equal(why, REJECTED_TOO_LARGE);
	page_symbols_end(&r);
}

static void test_no_room(void **state)
{
	struct request r;
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), ends[2];

	(void)state;
	assert_return_code(dup2(full, file), errno);
	close(full);
	r = begin();
	page_symbols_write(&r, "x", 1);
	is(507, "the symbols cannot be kept: No space left on device");
	assert_int_equal(why, REJECTED_SINK);
	page_symbols_end(&r);
	assert_int_equal(pipe(ends), 0);
	assert_return_code(dup2(ends[0], file), errno); /* nothing can be written there */
	r = begin();
	page_symbols_write(&r, "x", 1);
	is(500, "the symbols cannot be kept: Bad file descriptor");
	page_symbols_end(&r);
	close(ends[0]);
	close(ends[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_taken), TEST(test_many), TEST(test_refused), TEST(test_large),
					    TEST(test_no_room) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
