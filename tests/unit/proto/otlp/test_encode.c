/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encoder, streams and splits, against Google's protobuf: messages over every field come from otlp_truth.py, which also
 * judges what comes out.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "base/cleanup.h"
#include "tests/unit/proto/otlp_bytes.h"
#include "proto/otlp/otlp.h"
#include "tests/unit/proto/otlp_truth.h"

enum { MESSAGES = 16 };

static int make_messages(void **state)
{
	(void)state;
	return mkdtemp(truth_folder) && truth("make %s %d", truth_folder, MESSAGES) == 0 ? 0 : -1;
}

static void write_file(const char *name, const void *data, size_t len)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", truth_folder, name);
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static struct profiles *decoded(const struct buf *b)
{
	struct otlp_error err;
	struct profiles *p;

	if (otlp_decode(b->data, b->len, false, &p, &err))
		fail_msg("%s", err.message);
	return p;
}

static struct profiles *decoded_file(int i, const char *suffix)
{
	struct buf b = truth_read("%d.%s", i, suffix);
	struct profiles *p = decoded(&b);

	buf_fini(&b);
	return p;
}

static struct profiles *decoded_text(const char *text)
{
	struct buf b = BUF_EMPTY;
	struct profiles *p;

	bytes_fields(text, &b);
	p = decoded(&b);
	buf_fini(&b);
	return p;
}

static void assert_bytes(const struct buf *got, const struct buf *want)
{
	assert_int_equal(got->len, want->len);
	if (want->len)
		assert_memory_equal(got->data, want->data, want->len);
}

static void schema_is_the_official_one(void **state)
{
	(void)state;
	assert_int_equal(truth("schema >%s/schema && diff %s/schema %s/unit/proto/otlp_schema.txt >&2", truth_folder,
			       truth_folder, TEST_DATA),
			 0);
}

/* Whatever order fields came in, out come the bytes that protobuf writes, but for the order of three messages' fields. */
static void writes_as_protobuf_does(void **state)
{
	static const char *const suffixes[] = { "otlp", "mixed" };

	(void)state;
	for (int i = 0; i < MESSAGES; i++) {
		struct buf want = truth_read("%d.%s", i, "otlp");

		for (size_t n = 0; n < ARRAY_LEN(suffixes); n++) {
			struct profiles *p = decoded_file(i, suffixes[n]);
			struct buf out = BUF_EMPTY;

			assert_int_equal(otlp_encode(p, NULL, &out), 0);
			assert_bytes(&out, &want);
			profiles_put(p);
			buf_fini(&out);
		}
		buf_fini(&want);
	}
}

#define ZEROS "1{} 2{} 3{} 4{} 5'' 6{} 7{}"

static void golden(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "", "x12 x0e x0a x00 x12 x00 x1a x00 x22 x00 x2a x00 x32 x00 x3a x00" },
		{ "1{}", "x0a x00 2{" ZEROS "}" },
		/* types are always there, resource and scope only if they came */
		{ "1{2{2{}}}", "1{2{2{1{} 5{}}}} 2{" ZEROS "}" },
		{ "1{1{} 2{1{}}}", "1{1{} 2{1{}}} 2{" ZEROS "}" },
		/* members of a oneof are written even when 0; an unset one is not */
		{ "1{1{1{2{1''}} 1{2{2:0}} 1{2{3:0}} 1{2{4=0}} 1{2{5{}}} 1{2{6{}}} 1{2{7''}} 1{2{8:0}} 1{2{}}}}",
		  "1{1{1{2{1''}} 1{2{2:0}} 1{2{3:0}} 1{2{4=0}} 1{2{5{}}} 1{2{6{}}} 1{2{7''}} 1{2{8:0}} 1{}}} 2{" ZEROS "}" },
		{ "1{2{2{2{5=1 4:-1 3:0 2:0}}}}", "1{2{2{1{} 2{x12 x01 x00 x22 x0a xff xff xff xff xff xff xff xff xff x01 "
						  "x2a x08 x01 x00 x00 x00 x00 x00 x00"
						  " x00} 5{}}}} 2{" ZEROS "}" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct profiles *p = decoded_text(cases[i].in);
		struct buf out = BUF_EMPTY, want = BUF_EMPTY;

		bytes_fields(cases[i].out, &want);
		assert_int_equal(otlp_encode(p, NULL, &out), 0);
		assert_bytes(&out, &want);
		profiles_put(p);
		buf_fini(&out);
		buf_fini(&want);
	}
}

static const char valid[] =
	"1{1{1{1'process.pid' 2{3:7}}} 2{1{1'hearth'} 2{1{1:1 2:2} 2{1:1 2[1] 5=1001} 2{1:2 2[2] 3:1 5=1002} 3=1000 4:3"
	" 5{1:3 2:4} 6:50000000 7'0123456789abcdef'}}}"
	"2{1{} 1{1:4096 2:8192 4:5} 2{} 2{1:1 2:5000 3{1:1 2:3} 4[3]} 2{2:6000 4[3]} 3{} 3{1:6} 4{}"
	"4{1'0123456789abcdef' 2'01234567'} 5'' 5'samples' 5'count' 5'cpu' 5'nanoseconds' 5'a.out' 5'main' 5'thread.name'"
	"5'profile.frame.type' 6{} 6{1:7 2{1'one'}} 6{1:7 2{1'two'}} 6{1:8 2{1'native'}} 7{} 7{1[1]} 7{1[2 1]}}";

static void valid_stays_valid(void **state)
{
	struct profiles *p = decoded_text(valid);
	struct buf out = BUF_EMPTY;

	(void)state;
	assert_int_equal(otlp_encode(p, NULL, &out), 0);
	write_file("valid", out.data, out.len);
	assert_int_equal(truth("check %s/valid", truth_folder), 0);
	/* and the judge can say no: a second message repeats the strings */
	assert_int_equal(otlp_encode(p, NULL, &out), 0);
	write_file("twice", out.data, out.len);
	assert_int_equal(truth("check %s/twice 2>&1 | grep -q 'duplicate strings'", truth_folder), 0);
	profiles_put(p);
	buf_fini(&out);
}

/* Messages that continue each other are, read as one, what they were alone. */
static void stream_is_one_message(void **state)
{
	struct otlp_continuation cont = { 0 };
	struct buf stream = BUF_EMPTY, again = BUF_EMPTY, names = BUF_EMPTY, first = BUF_EMPTY;
	uint64_t events = 0;
	struct profiles *p;

	(void)state;
	for (int i = 0; i < MESSAGES; i++) {
		p = decoded_file(i, "otlp");
		events += p->sample_events;
		assert_int_equal(otlp_encode(p, &cont, &stream), 0);
		if (i == 0) {
			assert_int_equal(otlp_encode(p, NULL, &first), 0);
			assert_bytes(&stream, &first);
		}
		buf_printf(&names, " %s/%d.otlp", truth_folder, i);
		profiles_put(p);
	}
	write_file("stream", stream.data, stream.len);
	assert_int_equal(truth("same %s/stream --apart%s", truth_folder, buf_text(&names)), 0);
	p = decoded(&stream);
	assert_int_equal(p->dict.string_count, cont.strings);
	assert_int_equal(p->dict.mapping_count, cont.mappings);
	assert_int_equal(p->dict.location_count, cont.locations);
	assert_int_equal(p->dict.function_count, cont.functions);
	assert_int_equal(p->dict.link_count, cont.links);
	assert_int_equal(p->dict.attribute_count, cont.attributes);
	assert_int_equal(p->dict.stack_count, cont.stacks);
	assert_int_equal(p->sample_events, events);
	assert_int_equal(otlp_encode(p, NULL, &again), 0);
	write_file("again", again.data, again.len);
	assert_int_equal(truth("same %s/stream %s/again", truth_folder, truth_folder), 0);
	cont.strings = INT32_MAX;
	assert_int_equal(otlp_encode(p, &cont, &again), -EOVERFLOW);
	profiles_put(p);
	buf_fini(&stream);
	buf_fini(&again);
	buf_fini(&names);
	buf_fini(&first);
}

/* --- splitting --- */
struct parts {
	struct buf names; /* of the files they were written to */
	struct buf bytes; /* one after the other */
	size_t max_bytes;
	unsigned count, stop_after;
	uint64_t sample_events;
};

static uint32_t samples_of(const struct profiles *p)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < p->resource_count; r++)
		for (uint32_t s = 0; s < p->resources[r].scope_count; s++)
			for (uint32_t i = 0; i < p->resources[r].scopes[s].profile_count; i++)
				n += p->resources[r].scopes[s].profiles[i].sample_count;
	return n;
}

static int keep_part(void *arg, const uint8_t *msg, size_t len, uint64_t sample_events)
{
	struct parts *parts = arg;
	struct buf b = { .data = (uint8_t *)(uintptr_t)msg, .len = len };
	struct profiles *p = decoded(&b);
	char name[32];

	assert_int_equal(p->sample_events, sample_events);
	if (len > parts->max_bytes)
		assert_true(samples_of(p) <= 1);
	profiles_put(p);

	snprintf(name, sizeof(name), "part-%u", parts->count++);
	write_file(name, msg, len);
	buf_printf(&parts->names, " %s/%s", truth_folder, name);
	buf_append(&parts->bytes, msg, len);
	parts->sample_events += sample_events;
	return parts->stop_after == parts->count ? 42 : 0;
}

static void parts_fini(struct parts *parts)
{
	buf_fini(&parts->names);
	buf_fini(&parts->bytes);
}

static void split_loses_nothing(void **state)
{
	static const size_t shares[] = { 1, 2, 3 };

	(void)state;
	for (int i = 0; i < MESSAGES; i++) {
		struct profiles *p = decoded_file(i, "otlp");
		struct buf whole = truth_read("%d.%s", i, "otlp");

		for (size_t n = 0; n < ARRAY_LEN(shares); n++) {
			struct parts parts = { .max_bytes = whole.len / shares[n] };

			assert_int_equal(otlp_encode_split(p, parts.max_bytes, keep_part, &parts), 0);
			assert_true(shares[n] > 1 ? parts.count > 1 : parts.count == 1);
			assert_int_equal(parts.sample_events, p->sample_events);
			assert_int_equal(truth("same %s/%d.otlp --apart%s", truth_folder, i, buf_text(&parts.names)), 0);
			parts_fini(&parts);
		}
		profiles_put(p);
		buf_fini(&whole);
	}
}

/* The dictionary of a part holds what its samples reach, in the old order, and nothing else. */
static void parts_carry_what_they_need(void **state)
{
	static const char want[] =
		"1{1{1{1'process.pid' 2{3:7}}} 2{1{1'hearth'} 2{1{1:1 2:2} 2{1:1 2[1] 5'12345678'} 3=1000 4:3 5{1:3 2:4}"
		" 6:50000000 7'0123456789abcdef'}}}"
		"2{1{} 1{1:4096 2:8192 4:5} 2{} 2{3{2:3 1:1} 4[2] 1:1 2:5000} 3{} 3{1:6} 4{} 5'' 5'samples' 5'count' 5'cpu'"
		"5'nanoseconds' 5'a.out' 5'main' 5'thread.name' 5'profile.frame.type' 6{} 6{1:7 2{1'one'}} 6{1:8 "
		"2{1'native'}}"
		"7{} 7{1[1]}}";
	struct profiles *p = decoded_text(valid);
	struct parts parts = { 0 };
	struct buf first = BUF_EMPTY;

	(void)state;
	memcpy(&p->resources[0].scopes[0].profiles[0].samples[0].timestamps_unix_ns[0], "12345678", 8);
	bytes_fields(want, &first);
	assert_int_equal(otlp_encode_split(p, 1, keep_part, &parts), 0);
	assert_int_equal(parts.count, 2);
	assert_true(parts.bytes.len > first.len);
	assert_memory_equal(parts.bytes.data, first.data, first.len);
	assert_int_equal(truth("check %s/part-1", truth_folder), 0);
	profiles_put(p);
	parts_fini(&parts);
	buf_fini(&first);
}

static void split_stops_when_told(void **state)
{
	struct profiles *p = decoded_text(valid);
	struct parts parts = { .stop_after = 1 };

	(void)state;
	assert_int_equal(otlp_encode_split(p, 1, keep_part, &parts), 42);
	assert_int_equal(parts.count, 1);
	profiles_put(p);
	parts_fini(&parts);
}

static void writes_replies(void **state)
{
	struct buf out = BUF_EMPTY, want = BUF_EMPTY;

	(void)state;
	assert_int_equal(otlp_encode_status(3, "bad", &out), 0);
	assert_int_equal(otlp_encode_status(0, "", &out), 0);
	assert_int_equal(otlp_encode_partial_success(0, "", &out), 0);
	assert_int_equal(otlp_encode_partial_success(300, "no", &out), 0);
	assert_int_equal(otlp_encode_partial_success(0, "hm", &out), 0);
	bytes_fields("x08 x03 x12 x03 x62 x61 x64 x0a x07 x08 xac x02 x12 x02 x6e x6f x0a x04 x12 x02 x68 x6d", &want);
	assert_bytes(&out, &want);
	buf_fini(&out);
	buf_fini(&want);
}

static void writes_when_to_come_again(void **state)
{
	static const char want[] = "\x08\x0e\x12\x04"
				   "busy\x1a\x36\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x0a"
				   "\x0a\x08\x08\x01\x10\x80\xca\xb5\xee\x01"; /* 1 s and 500,000,000 ns */
	struct buf out = BUF_EMPTY;
	uint64_t delay_ns = 0;

	(void)state;
	assert_int_equal(otlp_encode_retry_status(14, "busy", 1500000000, &out), 0);
	assert_int_equal(out.len, sizeof(want) - 1);
	assert_memory_equal(out.data, want, out.len);
	assert_true(otlp_decode_retry_delay(out.data, out.len, &delay_ns));
	assert_int_equal(delay_ns, 1500000000);
	buf_fini(&out);
}

static void writes_json_as_protobuf_does(void **state)
{
	(void)state;
	for (int i = 0; i < MESSAGES; i++) {
		struct profiles *p = decoded_file(i, "otlp");
		struct buf out = BUF_EMPTY;
		char name[32];

		assert_int_equal(otlp_json_encode(p, &out), 0);
		snprintf(name, sizeof(name), "%d.json", i);
		write_file(name, out.data, out.len);
		buf_fini(&out);
		profiles_put(p);
	}
	assert_int_equal(truth("json %s %d", truth_folder, MESSAGES), 0);
}

/* The deepest value that is decoded, and what JSON has no number for. */
static void writes_deep_json(void **state)
{
	struct any_value values[32] = { [31] = { .kind = VALUE_DOUBLE, .real = NAN } };
	struct profile_attribute attributes[1] = { 0 };
	struct profiles *p = profiles_new();
	struct buf out = BUF_EMPTY;

	(void)state;
	for (size_t i = 31; i > 0; i--)
		values[i - 1] = (struct any_value){ .kind = VALUE_ARRAY, .array = { &values[i], 1 } };
	attributes[0].value = values[0];
	p->dict.attributes = attributes;
	p->dict.attribute_count = 1;
	assert_int_equal(otlp_json_encode(p, &out), 0);
	assert_non_null(strstr(buf_text(&out), "[{\"arrayValue\":{\"values\":[{\"doubleValue\":\"NaN\"}]}}]"));
	buf_fini(&out);
	profiles_put(p);
}

static const struct {
	const char *text;
	int64_t rejected;
	const char *message;
} answers[] = {
	{ "", 0, "" },
	{ "{}", 0, "" },
	{ "{\"partialSuccess\":{\"rejectedProfiles\":\"12\",\"errorMessage\":\"too old\"}}", 12, "too old" },
	{ "{ \"partialSuccess\" : { \"rejectedProfiles\" : 3 } }", 3, "" },
	{ "{\"code\":3,\"message\":\"a \\\"b\\\" \\u00e9\\ud83d\\ude00\\n\",\"details\":[{\"message2\":1}]}", 0,
	  "a \"b\" \u00e9\U0001f600\n" },
	{ "{\"message\":\"half \\ud83d\"}", 0, "half \xef\xbf\xbd" },
	{ "{\"message\":\"cut", 0, "" },
	{ "{\"message\":\"bad \\x\"}", 0, "" },
	{ "[\"message\",\"x\"]", 0, "" },
	{ "<html>", 0, "" },
};

static void reads_json_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		int64_t rejected = -1;
		char message[64] = "?";

		otlp_json_decode_answer(answers[i].text, strlen(answers[i].text), &rejected, message, sizeof(message));
		assert_int_equal(rejected, answers[i].rejected);
		assert_string_equal(message, answers[i].message);
	}
}

/* Values of every kind stay what they are within a list, those that are none, too. */
static void test_values(void **state)
{
	static const enum value_kind kinds[] = { VALUE_NONE, VALUE_STRING, VALUE_BOOL, VALUE_INT, VALUE_NONE };
	struct profiles *p = decoded_text("1{1{1{1'list' 2{5{1{} 1{1''} 1{2:0} 1{3:7} 1{}}}}}}"), *again;
	struct buf out = BUF_EMPTY;
	const struct any_value *list;

	(void)state;
	assert_int_equal(otlp_encode(p, NULL, &out), 0);
	again = decoded(&out);
	list = &again->resources[0].resource.attributes.items[0].value;
	assert_int_equal(list->kind, VALUE_ARRAY);
	assert_int_equal(list->array.count, ARRAY_LEN(kinds));
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		assert_int_equal(list->array.items[i].kind, kinds[i]);
	assert_int_equal(list->array.items[3].integer, 7);
	profiles_put(again);
	profiles_put(p);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(schema_is_the_official_one),
		cmocka_unit_test(writes_as_protobuf_does),
		cmocka_unit_test(writes_json_as_protobuf_does),
		cmocka_unit_test(writes_deep_json),
		cmocka_unit_test(reads_json_answers),
		cmocka_unit_test(golden),
		cmocka_unit_test(valid_stays_valid),
		cmocka_unit_test(stream_is_one_message),
		cmocka_unit_test(split_loses_nothing),
		cmocka_unit_test(parts_carry_what_they_need),
		cmocka_unit_test(split_stops_when_told),
		cmocka_unit_test(writes_replies),
		cmocka_unit_test(writes_when_to_come_again),
	};

	return cmocka_run_group_tests(tests, make_messages, truth_remove);
}
