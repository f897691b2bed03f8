/* SPDX-License-Identifier: Apache-2.0 */
/* Files with symbols that are sent to the API: what is no such file, packed or not, is refused with a status and a reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/api/api.h"
#include "backend/ingest/unpack.h"
#include "backend/store/sqlite/sqlite.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/pack/gzip.h"
#include "tests/unit/descriptors.h"

static char folder[] = "/tmp/test_api_symbols.XXXXXX";
static struct metrics *metrics;
static struct store *store;
static struct api *api;

static int setup(void **state)
{
	const struct store_config config = { .place = folder, .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	struct api_config about = { 0 };
	struct store_error why;

	(void)state;
	metrics = metrics_new();
	if (!mkdtemp(folder) || store_sqlite_open(&config, NULL, &store, &why))
		return -1;
	about.store = store;
	about.metrics = metrics;
	return api_new(&about, &api);
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	api_free(api);
	store->close(store);
	metrics_free(metrics);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* Sends the @len bytes at @data: the answer is @status, and says @text. */
static void answers(const void *data, size_t len, enum ingest_encoding encoding, unsigned status, const char *text)
{
	struct api_answer answer = { 0 };
	int fd = api_symbols_file(api);

	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(fd, data, len), len);
	api_take_symbols(api, fd, encoding, &answer);
	if (answer.status != status || !strstr(buf_text(&answer.body), text))
		fail_msg("status %u: %s; not %u, %s", answer.status, buf_text(&answer.body), status, text);
	buf_fini(&answer.body);
	close(fd);
}

static void test_no_file(void **state)
{
	static const char text[] = "this is no such file", no_elf[] = "this is no 64-bit ELF file: send an executable",
			  broken[] = "it is not compressed as its Content-Encoding says, or broken";
	AUTO(buf_fini) struct buf packed = BUF_EMPTY, two = BUF_EMPTY;

	(void)state;
	answers("", 0, ENCODING_IDENTITY, 400, no_elf);
	answers(text, sizeof(text), ENCODING_IDENTITY, 400, no_elf);
	answers(text, sizeof(text), ENCODING_GZIP, 400, broken);
	answers(text, sizeof(text), ENCODING_ZSTD, 400, broken);
	assert_int_equal(gzip_pack(text, sizeof(text), 6, &packed), 0);
	answers(packed.data, packed.len, ENCODING_GZIP, 400, no_elf);
	answers(packed.data, packed.len, ENCODING_ZSTD, 400, broken);
	answers(packed.data, packed.len - 1, ENCODING_GZIP, 400, broken);
	answers(packed.data, packed.len, ENCODING_IDENTITY, 400, no_elf);
	buf_append(&two, packed.data, packed.len); /* members one behind the other are one file */
	buf_append(&two, packed.data, packed.len);
	answers(two.data, two.len, ENCODING_GZIP, 400, no_elf);
}

/* What was sent lies beside the store, where nobody else can read it, and is gone with its descriptor. */
static void test_place(void **state)
{
	struct stat ours, theirs;
	int fd = api_symbols_file(api);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &ours), 0);
	assert_int_equal(stat(folder, &theirs), 0);
	assert_int_equal(ours.st_dev, theirs.st_dev);
	assert_int_equal(ours.st_mode & 07777, 0600);
	assert_int_equal(ours.st_nlink, 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_file), cmocka_unit_test(test_place) };

	return run_group_of_descriptors(tests, setup, teardown);
}
