/* SPDX-License-Identifier: Apache-2.0 */
/* How long a collector asks to wait, out of google.rpc.Status as protobuf's encoding has it; and what tells of no wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/varint.h"
#include "proto/otlp/otlp.h"

#define TYPE "type.googleapis.com/google.rpc.RetryInfo"

enum { STATUS_DETAILS = 3, ANY_TYPE = 1, ANY_VALUE = 2, RETRY_DELAY = 1, SECONDS = 1, NANOS = 2, MOST_S = 315576000 };

static void put_number(struct buf *out, unsigned field, uint64_t value)
{
	varint_append(out, field << 3);
	varint_append(out, value);
}

static void put_bytes(struct buf *out, unsigned field, const void *data, size_t len)
{
	varint_append(out, field << 3 | 2);
	varint_append(out, len);
	buf_append(out, data, len);
}

/* A detail of @type with @value. */
static void put_detail(struct buf *out, const char *type, const struct buf *value)
{
	AUTO(buf_fini) struct buf any = BUF_EMPTY;

	if (type)
		put_bytes(&any, ANY_TYPE, type, strlen(type));
	if (value)
		put_bytes(&any, ANY_VALUE, value->data, value->len);
	put_bytes(out, STATUS_DETAILS, any.data, any.len);
}

/* The value of a RetryInfo. */
static struct buf retry_of(int64_t seconds, int32_t nanos)
{
	AUTO(buf_fini) struct buf duration = BUF_EMPTY;
	struct buf ret = BUF_EMPTY;

	if (seconds)
		put_number(&duration, SECONDS, (uint64_t)seconds);
	if (nanos)
		put_number(&duration, NANOS, (uint64_t)(int64_t)nanos);
	put_bytes(&ret, RETRY_DELAY, duration.data, duration.len);
	return ret;
}

/* What a status with this one detail tells; false: no wait. */
static bool told(const char *type, int64_t seconds, int32_t nanos, uint64_t *ns)
{
	AUTO(buf_fini) struct buf status = BUF_EMPTY;
	AUTO(buf_fini) struct buf retry = retry_of(seconds, nanos);

	*ns = 77;
	put_detail(&status, type, &retry);
	return otlp_decode_retry_delay(status.data, status.len, ns);
}

static void test_durations(void **state)
{
	uint64_t ns;

	(void)state;
	assert_true(told(TYPE, 5, 0, &ns));
	assert_int_equal(ns, 5 * NSEC_PER_SEC);
	assert_true(told(TYPE, 0, 250000000, &ns));
	assert_int_equal(ns, NSEC_PER_SEC / 4);
	assert_true(told(TYPE, 2, 999999999, &ns));
	assert_int_equal(ns, 2999999999);
	assert_true(told(TYPE, 0, 0, &ns));
	assert_int_equal(ns, 0);
}

/* Ten years are the most, and what nobody can mean is nothing. */
static void test_odd_durations(void **state)
{
	uint64_t ns;

	(void)state;
	assert_true(told(TYPE, MOST_S, 0, &ns));
	assert_int_equal(ns, MOST_S * NSEC_PER_SEC);
	assert_true(told(TYPE, MOST_S + 1, 0, &ns));
	assert_int_equal(ns, MOST_S * NSEC_PER_SEC);
	assert_true(told(TYPE, INT64_MAX, 7, &ns));
	assert_int_equal(ns, MOST_S * NSEC_PER_SEC + 7);
	assert_false(told(TYPE, -1, 0, &ns));
	assert_false(told(TYPE, 1, -1, &ns));
	assert_false(told(TYPE, 1, 1000000000, &ns));
	assert_int_equal(ns, 77);
}

static void test_types(void **state)
{
	static const char *const others[] = { "google.rpc.RetryInfo",
					      "type.googleapis.com/google.rpc.RetryInfo2",
					      "type.googleapis.com/xgoogle.rpc.RetryInfo",
					      "type.googleapis.com/google.rpc.Help",
					      "",
					      NULL };
	uint64_t ns;

	(void)state;
	assert_true(told("/google.rpc.RetryInfo", 1, 0, &ns));
	assert_true(told("anything/at/all/google.rpc.RetryInfo", 1, 0, &ns));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(told(others[i], 1, 0, &ns));
}

/* Other details and fields are stepped over; of two the first that tells of a wait counts. */
static void test_among_others(void **state)
{
	AUTO(buf_fini) struct buf status = BUF_EMPTY;
	AUTO(buf_fini) struct buf first = retry_of(3, 0);
	AUTO(buf_fini) struct buf second = retry_of(4, 0);
	uint64_t ns = 77;

	(void)state;
	put_number(&status, 1, 8);
	put_bytes(&status, 2, "too much", 8);
	put_detail(&status, "type.googleapis.com/google.rpc.Help", &second);
	put_detail(&status, TYPE, NULL);
	assert_false(otlp_decode_retry_delay(status.data, status.len, &ns));
	put_detail(&status, TYPE, &first);
	put_detail(&status, TYPE, &second);
	put_bytes(&status, 15, "x", 1);
	assert_true(otlp_decode_retry_delay(status.data, status.len, &ns));
	assert_int_equal(ns, 3 * NSEC_PER_SEC);
}

static void test_nothing(void **state)
{
	uint64_t ns = 77;

	(void)state;
	assert_false(otlp_decode_retry_delay(NULL, 0, &ns));
	assert_false(otlp_decode_retry_delay((const uint8_t *)"\x08\x08", 2, &ns));
	assert_int_equal(ns, 77);
}

/* Cut anywhere it tells the whole wait, or none. */
static void test_cut(void **state)
{
	AUTO(buf_fini) struct buf status = BUF_EMPTY;
	AUTO(buf_fini) struct buf retry = retry_of(3, 5);

	(void)state;
	put_number(&status, 1, 8);
	put_detail(&status, TYPE, &retry);
	for (size_t len = 0; len <= status.len; len++) {
		uint8_t *exact = malloc(len ? len : 1);
		uint64_t ns = 77;

		memcpy(exact, status.data, len);
		assert_int_equal(otlp_decode_retry_delay(exact, len, &ns), len == status.len);
		assert_int_equal(ns, len == status.len ? 3000000005 : 77);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),    cmocka_unit_test(test_odd_durations), cmocka_unit_test(test_types),
		cmocka_unit_test(test_among_others), cmocka_unit_test(test_nothing),	   cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
