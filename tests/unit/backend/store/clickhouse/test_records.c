/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of other signals in a ClickHouse that is none (fake_clickhouse.h): what is sent when, what is tried again, every
 * field of rows that come back, and answers that end anywhere.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/clickhouse/clickhouse.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/backend/store/clickhouse/fake_clickhouse.h"

static const char labels[] = "host.name\0box\0process.pid\0"
			     "77";

#define RESOURCE                               \
	{                                      \
		"shop", labels, sizeof(labels) \
	}

static const struct kept_span span = { { 1 }, { 2 }, { 3 }, 5, 7, 2, 1, "GET /", 12, "worker", RESOURCE };
static const struct kept_log log_line = { 9, 5, { 1 }, { 2 }, 17, "out of memory", RESOURCE };
static const struct kept_exemplar exemplar = { 5, { 1 }, { 2 }, 0.25, "duration", "s", RESOURCE };

static struct fake_clickhouse fake;
static struct store *store;
static _Atomic bool is_ending;

static int begin(void **state)
{
	(void)state;
	is_ending = false;
	return fake_store(&fake, &store);
}

static int end(void **state)
{
	(void)state;
	store->close(store);
	fake_end(&fake);
	return 0;
}

static int commit(void)
{
	return store->records->commit(store, 0, &is_ending);
}

static void test_sent(void **state)
{
	(void)state;
	assert_int_equal(commit(), 0);
	fake_check_said(&fake, "");
	assert_int_equal(store->records->add_span(store, &span), 0);
	assert_int_equal(store->records->add_exemplar(store, &exemplar), 0);
	assert_int_equal(commit(), 0);
	fake_check_said(&fake, "INSERT hearth_spans INSERT hearth_exemplars ");
	assert_int_equal(commit(), 0); /* they are gone */
	fake_check_said(&fake, "");

	assert_int_equal(store->records->add_span(store, &span), 0);
	assert_int_equal(store->records->add_log(store, &log_line), 0);
	fake_refuse(&fake, 1, 400); /* it makes no sense to the server: lost */
	assert_int_equal(commit(), -EINVAL);
	fake_check_said(&fake, "INSERT hearth_spans ");
	assert_int_equal(commit(), 0);
	fake_check_said(&fake, "");

	assert_int_equal(store->records->add_span(store, &span), 0);
	assert_int_equal(store->records->add_log(store, &log_line), 0);
	fake_refuse(&fake, 1, 503);
	assert_int_equal(commit(), 0);
	fake_check_said(&fake, "INSERT hearth_spans INSERT hearth_spans INSERT hearth_logs ");

	is_ending = true;
	assert_int_equal(store->records->add_log(store, &log_line), 0);
	fake_refuse(&fake, 9, 503);
	assert_int_equal(commit(), -EBUSY);
	fake_check_said(&fake, "INSERT hearth_logs ");
	assert_int_equal(store->records->clear(store), 0);
}

/* --- answers --- */

static void put_string(struct buf *b, const char *text)
{
	put_text(b, text, strlen(text));
}

/* What rows of all tables begin with. */
static void put_common(struct buf *b)
{
	put_text(b, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\4", 16);
	put_text(b, "\2\0\0\0\0\0\0\5", 8);
	put_string(b, "shop");
	varint_append(b, 2);
	put_string(b, "host.name");
	put_string(b, "process.pid");
	varint_append(b, 2);
	put_string(b, "box");
	put_string(b, "77");
}

static void put_span_row(struct buf *b)
{
	put_common(b);
	put_number(b, 5, 8);
	put_number(b, 7, 8);
	put_text(b, "\3\0\0\0\0\0\0\6", 8);
	put_number(b, 2, 1);
	put_number(b, 1, 1);
	put_number(b, 12, 8);
	put_string(b, "GET /");
	put_string(b, "worker");
}

static void check_labels(const struct kept_resource *r)
{
	assert_string_equal(r->service, "shop");
	assert_int_equal(r->len, sizeof(labels));
	assert_memory_equal(r->labels, labels, sizeof(labels));
}

static int check_span(void *arg, const struct kept_span *s)
{
	assert_int_equal(s->trace[0] * 1000 + s->trace[15] * 100 + s->span[0] * 10 + s->span[7], 1425);
	assert_int_equal(s->parent[0] * 10 + s->parent[7], 36);
	assert_int_equal(s->start_ns * 10 + s->end_ns, 57);
	assert_int_equal(s->kind * 10 + s->status, 21);
	assert_int_equal(s->thread_id, 12);
	assert_string_equal(s->name, "GET /");
	assert_string_equal(s->thread_name, "worker");
	check_labels(&s->resource);
	return ++*(int *)arg == 2 ? 5 : 0;
}

static int check_log(void *arg, const struct kept_log *l)
{
	assert_int_equal(l->id * 10 + (int64_t)l->time_ns, 95);
	assert_int_equal(l->severity, 17);
	assert_string_equal(l->body, "out of memory");
	check_labels(&l->resource);
	++*(int *)arg;
	return 0;
}

static int check_exemplar(void *arg, const struct kept_exemplar *e)
{
	assert_int_equal(e->time_ns, 5);
	assert_true(e->value > 0.24 && e->value < 0.26);
	assert_string_equal(e->metric, "duration");
	assert_string_equal(e->unit, "s");
	check_labels(&e->resource);
	++*(int *)arg;
	return 0;
}

static void test_answers(void **state)
{
	static const struct signals_question all = { .to_ns = UINT64_MAX };
	const double value = 0.25;
	struct buf *spans = fake_answer_to(&fake, "FROM hearth_spans"), *logs = fake_answer_to(&fake, "FROM hearth_logs"),
		   *exemplars = fake_answer_to(&fake, "FROM hearth_exemplars");
	uint64_t bits;
	int count = 0;
	size_t len;

	(void)state;
	assert_int_equal(store->records->spans(store, &all, check_span, &count), 0);
	assert_int_equal(count, 0);
	put_span_row(spans);
	len = spans->len;
	put_span_row(spans);
	put_span_row(spans);
	assert_int_equal(store->records->spans(store, &all, check_span, &count), 5);
	assert_int_equal(count, 2); /* it asked for no more */

	for (spans->len = 1; spans->len < len; spans->len++)
		assert_int_equal(store->records->spans(store, &all, check_span, &count), -EBADMSG);
	assert_int_equal(count, 2);

	put_common(logs);
	put_number(logs, 9, 8);
	put_number(logs, 5, 8);
	put_number(logs, 17, 1);
	put_string(logs, "out of memory");
	count = 0;
	assert_int_equal(store->records->logs(store, &all, check_log, &count), 0);
	assert_int_equal(count, 1);

	memcpy(&bits, &value, sizeof(bits));
	put_common(exemplars);
	put_number(exemplars, 5, 8);
	put_number(exemplars, bits, 8);
	put_string(exemplars, "duration");
	put_string(exemplars, "s");
	count = 0;
	assert_int_equal(store->records->exemplars(store, &all, check_exemplar, &count), 0);
	assert_int_equal(count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sent, begin, end),
		cmocka_unit_test_setup_teardown(test_answers, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
