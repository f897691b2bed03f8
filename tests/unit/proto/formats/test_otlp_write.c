/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP as files of all its forms: each holds the same message, packed as its name says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/pack/gzip.h"
#include "base/pack/xz.h"
#include "base/pack/zstd.h"
#include "proto/formats/formats.h"
#include "proto/otlp/otlp.h"
#include "tests/unit/proto/text_profiles.h"

enum { MOST = 64 << 20 };

static struct profiles *small, *large;

/* The large one has many names: of several MB, so that it is more than one message of a file of lines. */
static int setup(void **state)
{
	struct builder *b = builder_new();

	(void)state;
	small = text_profiles("app;main@app;read@libc.so.6 3\napp;main@app 2\n", 0);
	for (unsigned i = 0; i < 60000; i++) {
		char frame[160];
		int32_t location;

		snprintf(frame, sizeof(frame), "function_%u_%0*d@module_%u", i, 80, (int)(i * 2654435761u % 1000000),
			 i % 50);
		location = text_frame(b, frame);
		builder_event(b, builder_profile(b, builder_resource(b, NULL, 0), &text_cpu_spec),
			      builder_stack(b, &location, 1), NULL, 0, 0, 1000 + i, false, 0);
	}
	if (builder_freeze(b, 1000, 2000000, &large))
		return -1;
	builder_free(b);
	return !small;
}

static int teardown(void **state)
{
	(void)state;
	profiles_put(small);
	profiles_put(large);
	return 0;
}

static struct buf written(const struct format *format, const struct profiles *p)
{
	struct buf out = BUF_EMPTY;

	assert_int_equal(format->write(p, &out, NULL), 0);
	assert_false(out.failed);
	return out;
}

/* The message that @p is. */
static struct buf message(const struct profiles *p)
{
	struct buf out = BUF_EMPTY;

	assert_int_equal(otlp_encode(p, NULL, &out), 0);
	return out;
}

static void test_plain(void **state)
{
	AUTO(buf_fini) struct buf wanted = message(small);
	AUTO(buf_fini) struct buf got = written(&format_otlp, small);

	(void)state;
	assert_int_equal(got.len, wanted.len);
	assert_memory_equal(got.data, wanted.data, wanted.len);
	assert_true(format_otlp.is_capture);
}

typedef int (*unpack_fn)(const void *data, size_t len_bytes, size_t max_bytes, struct buf *out);

static void packs(const struct format *format, unpack_fn unpack, const struct profiles *p)
{
	AUTO(buf_fini) struct buf wanted = message(p);
	AUTO(buf_fini) struct buf packed = written(format, p);
	AUTO(buf_fini) struct buf got = BUF_EMPTY;

	assert_true(packed.len < wanted.len);
	assert_int_equal(unpack(packed.data, packed.len, MOST, &got), 0);
	assert_int_equal(got.len, wanted.len);
	assert_memory_equal(got.data, wanted.data, wanted.len);
}

static void test_packed(void **state)
{
	(void)state;
	packs(&format_otlp_gz, gzip_unpack, small);
	packs(&format_otlp_zst, zstd_unpack, small);
	packs(&format_otlp_xz, xz_unpack, small);
}

static void test_packed_large(void **state)
{
	(void)state;
	packs(&format_otlp_gz, gzip_unpack, large);
	packs(&format_otlp_zst, zstd_unpack, large);
}

static size_t count_lines(const struct buf *out)
{
	size_t lines = 0;

	for (size_t i = 0; i < out->len; i++)
		lines += out->data[i] == '\n';
	assert_true(out->len > 0 && out->data[out->len - 1] == '\n');
	return lines;
}

/* One document on one line. */
static void test_json(void **state)
{
	AUTO(buf_fini) struct buf small_text = written(&format_otlp_json, small);
	AUTO(buf_fini) struct buf large_text = written(&format_otlp_json, large);

	(void)state;
	assert_int_equal(count_lines(&small_text), 1);
	assert_int_equal(count_lines(&large_text), 1);
	assert_memory_equal(small_text.data, "{\"", 2);
	assert_memory_equal(small_text.data + small_text.len - 2, "}\n", 2);
}

/* A small message is one line, the same as alone; a large one is several, each whole in itself. */
static void test_json_lines(void **state)
{
	AUTO(buf_fini) struct buf alone = written(&format_otlp_json, small);
	AUTO(buf_fini) struct buf line = written(&format_otlp_jsonl, small);
	AUTO(buf_fini) struct buf lines = written(&format_otlp_jsonl, large);
	AUTO(buf_fini) struct buf whole = message(large);
	const char *at = (const char *)lines.data, *end = at + lines.len;

	(void)state;
	assert_int_equal(line.len, alone.len);
	assert_memory_equal(line.data, alone.data, alone.len);
	assert_true(whole.len > 4 << 20);
	assert_true(count_lines(&lines) >= 2);
	for (const char *next; at < end; at = next + 1) {
		next = memchr(at, '\n', (size_t)(end - at));
		assert_non_null(next);
		assert_memory_equal(at, "{\"", 2);
		assert_int_equal(next[-1], '}');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain), cmocka_unit_test(test_packed),	 cmocka_unit_test(test_packed_large),
		cmocka_unit_test(test_json),  cmocka_unit_test(test_json_lines),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
