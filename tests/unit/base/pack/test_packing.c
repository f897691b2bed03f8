/* SPDX-License-Identifier: Apache-2.0 */
/* gzip, zstd and xz: what other programs packed is unpacked and the other way round; cut, broken and boundless input is
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/pack/gzip.h"
#include "base/pack/packing.h"
#include "base/pack/xz.h"
#include "base/pack/zstd.h"
#include "base/sanitizer.h"
#include "tests/unit/descriptors.h"

struct packer {
	const char *tool;
	int (*pack)(const void *data, size_t len, int level, struct buf *out);
	int (*unpack)(const void *data, size_t len, size_t max, struct buf *out);
	bool (*is_packed)(const void *data, size_t len);
};

static int pack_lean(const void *data, size_t len, int level, struct buf *out)
{
	(void)level;
	return zstd_pack_lean(data, len, out);
}

/* In pieces of all sizes, none among them. */
static int pack_in_pieces(const void *data, size_t len, int level, struct buf *out)
{
	struct gzip_stream *s = gzip_stream_new(level, out);
	int error = s ? 0 : -ENOMEM;

	for (size_t at = 0, n = 0; !error && at < len; at += n, n = n * 3 + (at < len / 2)) {
		n = n < len - at ? n : len - at;
		error = gzip_stream_add(s, (const uint8_t *)data + at, n);
	}
	error = error ? error : gzip_stream_end(s);
	gzip_stream_free(s);
	return error;
}

static const struct packer packers[] = {
	{ "gzip", gzip_pack, gzip_unpack, gzip_is_packed },
	{ "gzip", pack_in_pieces, gzip_unpack, gzip_is_packed },
	{ "zstd -q", zstd_pack, zstd_unpack, zstd_is_packed },
	{ "zstd -q", pack_lean, zstd_unpack, zstd_is_packed },
	{ "xz", xz_pack, xz_unpack, xz_is_packed },
};

/* What @command, a filter, makes of @in. */
static void through(const char *command, const struct buf *in, struct buf *out)
{
	char path[] = "/tmp/hearth-test-packing-XXXXXX", line[128], piece[4096];
	int fd = mkstemp(path);
	FILE *f;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, in->data, in->len), (ssize_t)in->len);
	close(fd);
	snprintf(line, sizeof(line), "%s <%s", command, path);
	f = popen(line, "r");
	assert_non_null(f);
	for (size_t n; (n = fread(piece, 1, sizeof(piece), f)) > 0;)
		buf_append(out, piece, n);
	assert_int_equal(pclose(f), 0);
	unlink(path);
}

/* 300 KB, of which a part repeats itself. */
static void make_data(struct buf *out)
{
	uint32_t random = 1;

	for (int i = 0; i < 300000; i++) {
		random = random * 1664525 + 1013904223;
		buf_putc(out, (char)(i % 3000 < 1500 ? (uint32_t)i % 7 : random >> 24));
	}
}

static void test_both_ways(void **state)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;

	(void)state;
	make_data(&data);
	for (size_t i = 0; i < ARRAY_LEN(packers); i++) {
		const struct packer *p = &packers[i];
		AUTO(buf_fini) struct buf ours = BUF_EMPTY, theirs = BUF_EMPTY, back = BUF_EMPTY, twice = BUF_EMPTY;
		char unpack[64];

		snprintf(unpack, sizeof(unpack), "%s -dc", p->tool);
		assert_int_equal(p->pack(data.data, data.len, 3, &ours), 0);
		assert_true(p->is_packed(ours.data, ours.len) && !p->is_packed(data.data, data.len));
		assert_ptr_equal(packing_of(ours.data, ours.len)->unpack, p->unpack);
		assert_null(packing_of(data.data, data.len));
		through(unpack, &ours, &back);
		assert_int_equal(back.len, data.len);
		assert_memory_equal(back.data, data.data, data.len);
		through(p->tool, &data, &theirs);
		buf_append(&theirs, ours.data, ours.len); /* one after the other, as cat makes them */
		assert_int_equal(p->unpack(theirs.data, theirs.len, SIZE_MAX, &twice), 0);
		assert_int_equal(twice.len, 2 * data.len);
		assert_memory_equal(twice.data, data.data, data.len);
		assert_memory_equal(twice.data + data.len, data.data, data.len);
	}
}

static void test_refused(void **state)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;

	(void)state;
	make_data(&data);
	for (size_t i = 0; i < ARRAY_LEN(packers); i++) {
		const struct packer *p = &packers[i];
		AUTO(buf_fini) struct buf packed = BUF_EMPTY, out = BUF_EMPTY;

		assert_int_equal(p->pack(data.data, data.len, 3, &packed), 0);
		for (size_t len = 0; len < packed.len; len += len < 64 || len + 64 > packed.len ? 1 : packed.len / 64) {
			AUTO_FREE uint8_t *cut = malloc(len + 1);

			memcpy(cut, packed.data, len);
			assert_int_equal(p->unpack(cut, len, SIZE_MAX, &out), -EBADMSG);
		}
		assert_int_equal(p->unpack(data.data, data.len, SIZE_MAX, &out), -EBADMSG);
		buf_append(&packed, "rest", 4);
		assert_int_equal(p->unpack(packed.data, packed.len, SIZE_MAX, &out), -EBADMSG);
		buf_reset(&out);
		assert_int_equal(p->unpack(packed.data, packed.len, data.len / 2, &out), -E2BIG);
		assert_true(out.len < data.len);
	}
}

static void test_empty(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(packers); i++) {
		AUTO(buf_fini) struct buf packed = BUF_EMPTY, out = BUF_EMPTY;

		buf_puts(&packed, "before");
		assert_int_equal(packers[i].pack("", 0, 3, &packed), 0);
		assert_memory_equal(packed.data, "before", 6);
		assert_true(packers[i].is_packed(packed.data + 6, packed.len - 6));
		assert_int_equal(packers[i].unpack(packed.data + 6, packed.len - 6, 0, &out), 0);
		assert_int_equal(out.len, 0);
		out.failed = true;
		assert_int_equal(packers[i].pack("x", 1, 3, &out), -ENOMEM);
	}
}

/* Packs @data in a process that may have @more bytes of memory than it has, with room for the result. The error, less its
 * sign. */
static int pack_within(size_t more, const struct buf *data)
{
	struct buf out = BUF_EMPTY;
	int status;
	pid_t child;

	assert_int_equal(buf_reserve(&out, data->len + (data->len >> 4)), 0);
	malloc_trim(0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct rlimit limit = { 0, RLIM_INFINITY };
		unsigned long pages = 0;
		FILE *f = fopen("/proc/self/statm", "re");

		if (!f || fscanf(f, "%lu", &pages) != 1)
			_exit(1);
		fclose(f);
		limit.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE) + more;
		if (setrlimit(RLIMIT_AS, &limit))
			_exit(1);
		_exit(-zstd_pack_lean(data->data, data->len, &out));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	buf_fini(&out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* However much there is to pack, the tables stay small; and without room for them it says so. */
static void test_lean_memory(void **state)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;

	(void)state;
	if (HAS_SANITIZER)
		return; /* whose own memory has no bounds */
	for (int i = 0; i < 60; i++)
		make_data(&data);
	assert_int_equal(pack_within(3 << 20, &data), 0);
	assert_int_equal(pack_within(0, &data), ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_lean_memory),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
