/* SPDX-License-Identifier: Apache-2.0 */
/* hearth's own profile of what passes: whose samples, of which time and kind, when it is whole, and how much it may take. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/compat/own_profiles.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/ourselves.h"
#include "base/pack/gzip.h"
#include "proto/formats/formats.h"
#include "proto/otlp/json/json_decode.h"

enum { CPU = 1, OFF_CPU = 2, HELPER = 4300000 };

/* --- what passes --- */

struct counter {
	struct sink sink;
	uint64_t events, others, flushes;
};

static int count(struct sink *sink, struct profiles *p, struct ack *ack)
{
	(void)ack;
	((struct counter *)sink)->events += p->sample_events;
	return -EAGAIN;
}

static int count_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	(void)signal;
	(void)data;
	(void)ack;
	((struct counter *)sink)->others += len;
	return 0;
}

static int count_flush(struct sink *sink, uint64_t deadline_ns)
{
	((struct counter *)sink)->flushes += deadline_ns;
	return 0;
}

static void count_free(struct sink *sink)
{
	(void)sink;
}

static const struct sink_ops counter_ops = { .name = "counter",
					     .durable = true,
					     .consume = count,
					     .consume_other = count_other,
					     .flush = count_flush,
					     .free = count_free };

static struct counter counter;
static struct own_profiles *own;
static struct sink *sink;

static void begin(size_t most_bytes)
{
	counter = (struct counter){ .sink.ops = &counter_ops };
	own = own_profiles_new(most_bytes);
	assert_non_null(own);
	assert_int_equal(own_profiles_sink_new(own, &counter.sink, &sink), 0);
}

static void end(void)
{
	sink_free(sink);
	own_profiles_free(own);
}

/* Appends one resource with one profile, of @from_ns and 100 ns on, with a sample at each of @times. */
static void put(struct buf *out, uint32_t pid, const char *name, int type, unsigned from_ns, const char *times)
{
	buf_printf(out,
		   "%s{\"resource\":{\"attributes\":[{\"key\":\"process.pid\",\"value\":{\"intValue\":%u}},"
		   "{\"key\":\"process.executable.name\",\"value\":{\"stringValue\":\"%s\"}}]},"
		   "\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":{\"typeStrindex\":%d,\"unitStrindex\":3},"
		   "\"periodType\":{\"typeStrindex\":%d},\"period\":10,"
		   "\"timeUnixNano\":%u,\"durationNano\":100,"
		   "\"samples\":[{\"stackIndex\":1,\"timestampsUnixNano\":[%s]}]}]}]}",
		   out->len ? "," : "", pid, name, type == CPU ? 1 : 2, type == CPU ? 4 : 0, from_ns, times);
}

static void pass(struct buf *resources)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct profiles *p;
	struct otlp_error err;

	buf_printf(
		&text,
		"{\"resourceProfiles\":[%s],\"dictionary\":{\"stringTable\":[\"\",\"samples\",\"off_cpu\",\"count\",\"cpu\","
		"\"main\"],\"attributeTable\":[{}],\"functionTable\":[{},{\"nameStrindex\":5}],"
		"\"locationTable\":[{},{\"address\":\"18446744071562067968\",\"lines\":[{\"functionIndex\":1}]}],"
		"\"stackTable\":[{},{\"locationIndices\":[1]}]}}",
		buf_text(resources));
	if (otlp_json_decode(text.data, text.len, &p, &err))
		fail_msg("%s in %s", err.message, buf_text(&text));
	assert_int_equal(sink_consume(sink, p, NULL), -EAGAIN);
	profiles_put(p);
	buf_fini(resources);
}

static void pass_one(uint32_t pid, const char *name, int type, unsigned from_ns, const char *times)
{
	struct buf resource = BUF_EMPTY;

	put(&resource, pid, name, type, from_ns, times);
	pass(&resource);
}

/* --- what is answered --- */

static struct profiles *close_window(struct own_window *w)
{
	AUTO(buf_fini) struct buf packed = BUF_EMPTY, plain = BUF_EMPTY;
	struct profiles *p = NULL;
	struct otlp_error why;

	assert_int_equal(own_profiles_close(own, w, &packed), 0);
	assert_int_equal(gzip_unpack(packed.data, packed.len, 1 << 20, &plain), 0);
	if (pprof_read(plain.data, plain.len, &p, &why))
		fail_msg("%s", why.message);
	return p;
}

/* The sum of the column of counts. */
static int64_t samples_of(const struct profiles *p)
{
	int64_t sum = 0;

	for (uint32_t r = 0; r < p->resource_count; r++)
		for (uint32_t s = 0; s < p->resources[r].scope_count; s++)
			for (uint32_t i = 0; i < p->resources[r].scopes[s].profile_count; i++) {
				const struct profile *profile = &p->resources[r].scopes[s].profiles[i];

				if (!str_is(profiles_string(p, profile->sample_type.type_strindex), "samples"))
					continue;
				for (uint32_t k = 0; k < profile->sample_count; k++)
					for (uint32_t n = 0; n < profile->samples[k].value_count; n++)
						sum += profile->samples[k].values[n];
			}
	return sum;
}

static int64_t close_and_count(struct own_window *w)
{
	struct profiles *p = close_window(w);
	const int64_t n = samples_of(p);

	profiles_put(p);
	return n;
}

static void test_whose(void **state)
{
	static const struct ourselves helper = { .count = 1, .pids = { HELPER } };
	const uint32_t us = (uint32_t)getpid();
	struct own_window w = { .from_ns = 1000, .to_ns = 2000 };
	struct buf all = BUF_EMPTY;

	(void)state;
	begin(0);
	pass_one(us, ourselves_name(), CPU, 1000, "1001"); /* nobody asked yet */
	assert_int_equal(own_profiles_open(own, &w), 0);
	ourselves_saw(&helper);
	put(&all, us, ourselves_name(), CPU, 1000, "1001,1002");
	put(&all, us, "another", CPU, 1000, "1003");
	put(&all, us + 1, ourselves_name(), CPU, 1000, "1004");
	put(&all, us, ourselves_name(), OFF_CPU, 1000, "1005");
	put(&all, HELPER, ourselves_name(), CPU, 1000, "1006");
	pass(&all);
	assert_int_equal(counter.events, 7);
	assert_int_equal(close_and_count(&w), 3);
	pass_one(us, ourselves_name(), CPU, 1000, "1007");
	assert_int_equal(counter.events, 8);
	end();
}

/* Of several windows each has its own time; each is whole when a report up to its end has come. */
static void test_when(void **state)
{
	const uint32_t us = (uint32_t)getpid();
	const uint64_t ms = 1000 * 1000;
	AUTO(buf_fini) struct buf empty = BUF_EMPTY;
	struct own_window early = { .from_ns = 1000, .to_ns = 1050 }, late = { .from_ns = 1050, .to_ns = 1000 * ms };

	(void)state;
	begin(0);
	assert_int_equal(own_profiles_open(own, &early), 0);
	assert_int_equal(own_profiles_open(own, &late), 0);
	assert_false(own_profiles_is_whole(own, &late));
	pass_one(us, ourselves_name(), CPU, 950, "999,1000,1049");
	assert_true(own_profiles_is_whole(own, &early));
	assert_false(own_profiles_is_whole(own, &late));
	pass_one(us, ourselves_name(), CPU, 1050, "1050,1051");
	pass_one(us, ourselves_name(), CPU, 999999950, "999999999,1000000000");
	assert_true(own_profiles_is_whole(own, &late));
	assert_int_equal(close_and_count(&early), 2);
	assert_int_equal(close_and_count(&late), 3);

	early = (struct own_window){ .from_ns = 2000 * ms, .to_ns = 3000 * ms }; /* what came for others does not count */
	assert_int_equal(own_profiles_open(own, &early), 0);
	assert_false(own_profiles_is_whole(own, &early));
	assert_int_equal(own_profiles_close(own, &early, &empty), 0);
	assert_true(gzip_is_packed(empty.data, empty.len));
	end();
}

static bool has_address(const struct profiles *p)
{
	for (uint32_t i = 0; i < p->dict.location_count; i++)
		if (p->dict.locations[i].address >> 63)
			return true;
	return false;
}

static void test_hidden(void **state)
{
	(void)state;
	for (int hides = 0; hides < 2; hides++) {
		struct own_window w = { .from_ns = 1000, .to_ns = 2000, .hides_addresses = hides };
		struct profiles *p;

		begin(0);
		assert_int_equal(own_profiles_open(own, &w), 0);
		pass_one((uint32_t)getpid(), ourselves_name(), CPU, 1000, "1001");
		p = close_window(&w);
		assert_int_equal(samples_of(p), 1);
		assert_int_equal(has_address(p), !hides);
		profiles_put(p);
		end();
	}
}

/* Windows are few, and what they take is bounded. */
static void test_bounds(void **state)
{
	enum { MOST = 8 };
	struct own_window w[MOST + 1];
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	(void)state;
	begin(1);
	for (size_t i = 0; i <= MOST; i++) {
		w[i] = (struct own_window){ .from_ns = 1000, .to_ns = 2000 };
		assert_int_equal(own_profiles_open(own, &w[i]), i < MOST ? 0 : -EAGAIN);
	}
	pass_one((uint32_t)getpid(), ourselves_name(), CPU, 1000, "1001");
	assert_true(own_profiles_is_whole(own, &w[3]));
	assert_int_equal(own_profiles_close(own, &w[3], &out), -E2BIG);
	assert_int_equal(out.len, 0);
	assert_int_equal(own_profiles_open(own, &w[MOST]), 0);
	for (size_t i = 0; i <= MOST; i++)
		if (i != 3)
			(void)own_profiles_close(own, &w[i], NULL);
	end();
}

static void test_passed_on(void **state)
{
	(void)state;
	begin(0);
	assert_true(sink->ops->durable);
	assert_string_equal(sink->ops->name, "counter");
	assert_int_equal(sink_consume_other(sink, OTLP_LOGS, (const uint8_t *)"abc", 3, NULL), 0);
	assert_int_equal(sink_flush(sink, 5), 0);
	assert_int_equal(counter.others, 3);
	assert_int_equal(counter.flushes, 5);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whose),  cmocka_unit_test(test_when),	 cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
