/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles that are sound for the most part: the input says what a builder writes, so that most messages come through
 * the decoder and reach what lies behind it. A message that is accepted must come through encoding and JSON with the same
 * sums; every report, pprof and a store must take it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_write.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "proto/formats/pprof.h"
#include "proto/otlp/json/json_decode.h"
#include "proto/report/report.h"
#include "tests/fuzz/otlp_accepted.h"
#include "tests/unit/proto/otlp_bytes.h"

#define T0 1700000040000000000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAPPINGS, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS, TABLES };

struct input {
	const uint8_t *data, *end;
	unsigned counts[TABLES];
};

/* One of @n, by the next byte; the first when the input has ended. */
static unsigned pick(struct input *in, unsigned n)
{
	return in->data < in->end ? *in->data++ % n : 0;
}

/* An index into @table, out of its range once in 256. */
static uint64_t pick_index(struct input *in, int table)
{
	uint8_t byte = (uint8_t)pick(in, 256);

	return byte == 255 ? in->counts[table] + pick(in, 4) - 1 : byte % in->counts[table];
}

static uint64_t pick_number(struct input *in)
{
	static const uint64_t odd[] = { 0,	    1,	       127, 128,	INT32_MAX, UINT32_MAX, INT64_MAX,
					UINT64_MAX, INT64_MIN, T0,  T0 + 99999, T0 - 1,	   1ull << 53, 1000000000 };
	unsigned which = pick(in, 32);

	return which < ARRAY_LEN(odd) ? odd[which] : which * 256 + pick(in, 256);
}

/* --- fields --- */

static void put_number(struct buf *out, unsigned field, uint64_t v)
{
	bytes_varint(out, field << 3);
	bytes_varint(out, v);
}

static void put_fixed(struct buf *out, unsigned field, uint64_t v)
{
	bytes_varint(out, field << 3 | 1);
	buf_append(out, &v, 8);
}

static void put_bytes(struct buf *out, unsigned field, const void *data, size_t len)
{
	bytes_varint(out, field << 3 | 2);
	bytes_wrap(out, data, len);
}

/* Appends @inner as a field, and empties it. */
static void put_message(struct buf *out, unsigned field, struct buf *inner)
{
	put_bytes(out, field, inner->len ? inner->data : (const uint8_t *)"", inner->len);
	buf_fini(inner);
}

static void put_indices(struct input *in, struct buf *out, unsigned field, int table, unsigned most)
{
	struct buf inner = BUF_EMPTY;

	for (unsigned n = pick(in, most); n > 0; n--)
		bytes_varint(&inner, pick_index(in, table));
	put_message(out, field, &inner);
}

static void put_string(struct input *in, struct buf *out, unsigned field)
{
	static const char *const known[] = {
		"",
		"samples",
		"count",
		"cpu",
		"nanoseconds",
		"off_cpu",
		"a;b|c`<d>\"\n",
		"\xc3\xa9\xe2\x80\xae",
		"process.pid",
		"thread.id",
		"thread.name",
		"cpu.logical_number",
		"profile.frame.type",
		"native",
		"kernel",
		"process.executable.build_id.gnu",
		"process.executable.build_id.htlhash",
		"00ab12cd",
		"/usr/lib/libc.so.6",
		"[kernel]",
		"service.name",
		"hearth.stack.truncated",
		"_ZN3fooI3barE3bazEv",
		"timeline",
	};
	unsigned which = pick(in, ARRAY_LEN(known) + 8);
	struct buf own = BUF_EMPTY;
	bool is_ascii;

	if (which < ARRAY_LEN(known)) {
		put_bytes(out, field, known[which], strlen(known[which]));
		return;
	}
	is_ascii = pick(in, 64) != 63;
	for (unsigned len = pick(in, 24); len > 0; len--)
		buf_putc(&own, (char)(pick(in, 256) & (is_ascii ? 0x7f : 0xff)));
	put_message(out, field, &own);
}

static void put_value(struct input *in, struct buf *out, unsigned field, unsigned depth)
{
	struct buf inner = BUF_EMPTY, list = BUF_EMPTY;
	unsigned kind = pick(in, depth < 4 ? 9 : 5);

	if (kind == 0)
		put_string(in, &inner, 1);
	else if (kind == 1)
		put_number(&inner, 2, pick(in, 2));
	else if (kind == 2)
		put_number(&inner, 3, pick_number(in));
	else if (kind == 3)
		put_fixed(&inner, 4, pick_number(in));
	else if (kind == 4)
		put_number(&inner, 8, pick_index(in, STRINGS));
	else if (kind == 5)
		put_bytes(&inner, 7, "\0\xff", pick(in, 3));
	for (unsigned n = kind == 6 ? pick(in, 4) : 0; n > 0; n--)
		put_value(in, &list, 1, depth + 1);
	for (unsigned n = kind == 7 ? pick(in, 4) : 0; n > 0; n--) {
		struct buf kv = BUF_EMPTY;

		put_string(in, &kv, 1);
		put_value(in, &kv, 2, depth + 1);
		put_message(&list, 1, &kv);
	}
	if (kind == 6 || kind == 7)
		put_message(&inner, kind - 1, &list);
	put_message(out, field, &inner);
}

static void put_attributes(struct input *in, struct buf *out, unsigned field)
{
	for (unsigned n = pick(in, 4); n > 0; n--) {
		struct buf kv = BUF_EMPTY;

		if (pick(in, 4))
			put_string(in, &kv, 1);
		else
			put_number(&kv, 3, pick_index(in, STRINGS));
		put_value(in, &kv, 2, 0);
		put_message(out, field, &kv);
	}
}

/* --- the dictionary --- */

static void put_location(struct input *in, struct buf *inner)
{
	put_number(inner, 1, pick_index(in, MAPPINGS));
	put_number(inner, 2, pick_number(in));
	for (unsigned n = pick(in, 3); n > 0; n--) {
		struct buf line = BUF_EMPTY;

		put_number(&line, 1, pick_index(in, FUNCTIONS));
		put_number(&line, 2, pick_number(in));
		put_number(&line, 3, pick(in, 80));
		put_message(inner, 3, &line);
	}
	put_indices(in, inner, 4, ATTRIBUTES, 3);
}

static void put_element(struct input *in, int table, struct buf *inner)
{
	static const unsigned lengths[] = { 16, 8, 0, 15 };

	switch (table) {
	case MAPPINGS:
		for (unsigned field = 1; field <= 3; field++)
			put_number(inner, field, pick_number(in));
		put_number(inner, 4, pick_index(in, STRINGS));
		put_indices(in, inner, 5, ATTRIBUTES, 3);
		break;
	case LOCATIONS:
		put_location(in, inner);
		break;
	case FUNCTIONS:
		for (unsigned field = 1; field <= 3; field++)
			put_number(inner, field, pick_index(in, STRINGS));
		put_number(inner, 4, pick_number(in));
		break;
	case LINKS:
		put_bytes(inner, 1, "0123456789abcdef", pick(in, 32) ? 16 : lengths[pick(in, 4)]);
		put_bytes(inner, 2, "01234567", pick(in, 32) ? 8 : lengths[1 + pick(in, 2)]);
		break;
	case ATTRIBUTES:
		put_number(inner, 1, pick_index(in, STRINGS));
		put_value(in, inner, 2, 0);
		put_number(inner, 3, pick_index(in, STRINGS));
		break;
	default:
		put_indices(in, inner, 1, LOCATIONS, 12);
	}
}

static void put_dictionary(struct input *in, struct buf *out)
{
	struct buf dict = BUF_EMPTY;

	for (int table = 0; table < TABLES; table++) {
		bool is_bare = pick(in, 64) == 63; /* its element 0 is no empty one */

		for (unsigned i = 0; i < in->counts[table]; i++) {
			struct buf inner = BUF_EMPTY;

			if (table == STRINGS && (i || is_bare)) {
				put_string(in, &dict, 5);
				continue;
			}
			if (i || is_bare)
				put_element(in, table, &inner);
			put_message(&dict, (unsigned)table + 1, &inner);
		}
	}
	put_message(out, 2, &dict);
}

/* --- the profiles --- */

static void put_sample(struct input *in, struct buf *out)
{
	struct buf sample = BUF_EMPTY, values = BUF_EMPTY, times = BUF_EMPTY;
	unsigned shape = pick(in, 8), count = 1 + pick(in, 3);
	unsigned value_count = shape == 7 ? pick(in, 4) : shape == 1 ? 0 : shape == 2 ? 1 : count;

	put_number(&sample, 1, pick_index(in, STACKS));
	put_indices(in, &sample, 2, ATTRIBUTES, 4);
	put_number(&sample, 3, pick_index(in, LINKS));
	for (unsigned i = 0; i < value_count; i++)
		bytes_varint(&values, pick(in, 4) ? pick(in, 256) : pick_number(in));
	for (unsigned i = 0; i < (shape == 0 ? 0 : count); i++) {
		uint64_t at = pick(in, 16) ? T0 + pick(in, 256) * 1000 : pick_number(in);

		buf_append(&times, &at, 8);
	}
	put_message(&sample, 4, &values);
	put_message(&sample, 5, &times);
	put_message(out, 2, &sample);
}

static void put_type(struct input *in, struct buf *out, unsigned field)
{
	struct buf type = BUF_EMPTY;

	put_number(&type, 1, pick_index(in, STRINGS));
	put_number(&type, 2, pick_index(in, STRINGS));
	put_message(out, field, &type);
}

static void put_profile(struct input *in, struct buf *out)
{
	struct buf profile = BUF_EMPTY;

	put_type(in, &profile, 1);
	for (unsigned n = pick(in, 8); n > 0; n--)
		put_sample(in, &profile);
	put_fixed(&profile, 3, pick(in, 8) ? T0 : pick_number(in));
	put_number(&profile, 4, pick(in, 8) ? 1000000 : pick_number(in));
	put_type(in, &profile, 5);
	put_number(&profile, 6, pick_number(in));
	put_bytes(&profile, 7, "0123456789abcdef", pick(in, 4) ? 16 : 0);
	put_number(&profile, 8, pick(in, 4));
	put_indices(in, &profile, 11, ATTRIBUTES, 3);
	put_message(out, 2, &profile);
}

static void put_resource(struct input *in, struct buf *out)
{
	struct buf all = BUF_EMPTY, resource = BUF_EMPTY;

	put_attributes(in, &resource, 1);
	put_message(&all, 1, &resource);
	for (unsigned n = pick(in, 3); n > 0; n--) {
		struct buf scope = BUF_EMPTY, name = BUF_EMPTY;

		put_string(in, &name, 1);
		put_string(in, &name, 2);
		put_attributes(in, &name, 3);
		put_message(&scope, 1, &name);
		for (unsigned k = pick(in, 4); k > 0; k--)
			put_profile(in, &scope);
		put_string(in, &scope, 3);
		put_message(&all, 2, &scope);
	}
	put_message(out, 1, &all);
}

static void build(struct input *in, struct buf *out)
{
	for (int table = 0; table < TABLES; table++)
		in->counts[table] = 1 + pick(in, table == STRINGS ? 24 : 8);
	put_dictionary(in, out);
	for (unsigned n = 1 + pick(in, 3); n > 0; n--)
		put_resource(in, out);
}

/* --- what becomes of them --- */

/* Everything that reports say of @p. */
static void report_all(const struct profiles *p, struct buf *out)
{
	static const struct report_style style = { .columns = 80, .max_rows = 20, .min_percent = 0.5 };
	struct activity *processes = activity_new(ACTIVITY_PROCESSES, NULL);
	struct tree *tree = tree_new();
	struct top *top = top_new();

	REQUIRE(top && tree && processes);
	REQUIRE(!top_add(top, p) && !tree_add(tree, p) && !activity_add(processes, p));
	REQUIRE(!report_csv(top, out) && !report_top(top, &style, out));
	REQUIRE(!report_folded(tree, out) && !report_tree(tree, &style, out));
	REQUIRE(!report_activity(processes, true, &style, out) && !report_json(top, processes, tree, out));
	top_free(top);
	tree_free(tree);
	activity_free(processes);
}

static void check_reports(const struct profiles *p, const struct profiles *again)
{
	AUTO(buf_fini) struct buf first = BUF_EMPTY, second = BUF_EMPTY;

	report_all(p, &first);
	report_all(again, &second);
	REQUIRE(!strcmp(buf_text(&first), buf_text(&second)));
}

static void check_formats(const struct profiles *p)
{
	AUTO(buf_fini) struct buf once = BUF_EMPTY, twice = BUF_EMPTY, packed = BUF_EMPTY;
	struct pprof *pp = pprof_new();
	struct profiles *again;
	struct otlp_error err;

	REQUIRE(otlp_json_encode(p, &once) == 0);
	REQUIRE(otlp_json_decode(once.data, once.len, &again, &err) == 0);
	REQUIRE(otlp_json_encode(again, &twice) == 0);
	REQUIRE(again->sample_events == p->sample_events && !strcmp(buf_text(&once), buf_text(&twice)));
	profiles_put(again);
	REQUIRE(pp && pprof_add(pp, p) == 0 && pprof_write(pp, &packed) == 0);
	pprof_free(pp);
}

static void store(struct profiles *p)
{
	struct store_config config = { .place = ":memory:", .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	struct store_error err;
	struct store *s;
	struct sink *sink;

	REQUIRE(store_sqlite_open(&config, NULL, &s, &err) == 0);
	REQUIRE(s->write->writer(s, &sink) == 0);
	REQUIRE(sink_consume(sink, p, NULL) == 0);
	REQUIRE(sink_flush(sink, clock_mono_ns() + 8 * NSEC_PER_SEC) == 0);
	sink_free(sink);
	s->close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .end = data + size };
	unsigned sum = 0;
	AUTO(buf_fini) struct buf message = BUF_EMPTY;
	struct otlp_decode_options options = { .no_guess = pick(&in, 4) };
	struct profiles *p, *again;
	struct otlp_error err;
	int r;

	for (size_t i = 0; i < size; i++)
		sum += data[i];
	build(&in, &message);
	r = otlp_decode_with(message.data, message.len, false, &options, &p, &err);
	REQUIRE(r == 0 || (r == -EBADMSG && err.message[0]));
	if (r)
		return 0;
	again = check_accepted(p);
	check_reports(p, again);
	check_formats(p);
	if (sum % 32 == 0) /* whatever the input is like: a store takes its time */
		store(p);
	profiles_put(again);
	profiles_put(p);
	return 0;
}
