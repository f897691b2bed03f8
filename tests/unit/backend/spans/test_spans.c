/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that came in: found by trace, cut, and replaced by newer ones; and the API's list of a trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/spans/spans.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "proto/otlp/signals.h"

/* A request of one span, as OTLP/JSON. */
static void keep(struct spans *s, unsigned trace, unsigned span, unsigned parent, const char *name)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct otlp_error err;
	struct otlp_other other;

	buf_printf(&text,
		   "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":"
		   "\"shop\"}}]},\"scopeSpans\":[{\"spans\":[{\"traceId\":\"%032x\",\"spanId\":\"%016x\"",
		   trace, span);
	if (parent)
		buf_printf(&text, ",\"parentSpanId\":\"%016x\"", parent);
	buf_printf(&text,
		   ",\"name\":\"%s\",\"kind\":2,\"startTimeUnixNano\":\"1000\",\"endTimeUnixNano\":\"3000\",\"status\":{"
		   "\"code\":2}}]}]}]}",
		   name);
	assert_int_equal(otlp_other_decode(OTLP_TRACES, true, (const uint8_t *)buf_text(&text), text.len, &other, &err), 0);
	spans_keep(s, &other);
	otlp_other_fini(&other);
}

static int add(void *arg, const struct kept_span *span)
{
	struct buf *out = arg;

	buf_printf(out, "%u<%u %s/%s %llu %u %u; ", span->span[7], span->parent[7], span->service, span->name,
		   (unsigned long long)(span->end_ns - span->start_ns), span->kind, span->status);
	return 0;
}

static void check(struct spans *s, unsigned trace, const char *wanted)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	uint8_t id[16] = { 0 };

	id[14] = (uint8_t)(trace >> 8);
	id[15] = (uint8_t)trace;
	assert_int_equal(spans_of_trace(s, id, add, &out), 0);
	assert_string_equal(buf_text(&out), wanted);
}

static void test_spans(void **state)
{
	struct metrics *m = metrics_new();
	struct spans *s;
	char name[200];

	(void)state;
	assert_int_equal(spans_new(1, m, &s), 0); /* 64 of them */
	keep(s, 1, 5, 0, "GET /");
	keep(s, 2, 6, 0, "other");
	keep(s, 1, 7, 5, "select");
	check(s, 1, "7<5 shop/select 2000 2 2; 5<0 shop/GET / 2000 2 2; ");
	check(s, 2, "6<0 shop/other 2000 2 2; ");
	check(s, 3, "");
	memset(name, 'x', sizeof(name));
	memcpy(name + sizeof(name) - 3, "\xc3\xa9", 3);
	memcpy(name + SPAN_NAME_BYTES - 2, "\xc3\xa9", 2); /* a character that would be cut */
	keep(s, 4, 8, 0, name);
	name[SPAN_NAME_BYTES - 2] = '\0';
	{
		AUTO(buf_fini) struct buf wanted = BUF_EMPTY;

		buf_printf(&wanted, "8<0 shop/%s 2000 2 2; ", name);
		check(s, 4, buf_text(&wanted));
	}
	for (unsigned i = 0; i < 61; i++) /* the oldest makes place */
		keep(s, 100 + i, 9, 0, "n");
	check(s, 1, "7<5 shop/select 2000 2 2; ");
	check(s, 2, "6<0 shop/other 2000 2 2; ");
	for (unsigned i = 0; i < 1000; i++)
		keep(s, 200 + i % 3, i, 0, "n");
	check(s, 1, "");
	check(s, 160, "");
	spans_free(s);
	metrics_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
