/* SPDX-License-Identifier: Apache-2.0 */
/* Text formats and framings: what each input says, told as folded stacks and sums; and what is refused, with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "base/pack/gzip.h"
#include "base/pack/zstd.h"
#include "proto/formats/otlp_capture.h"
#include "proto/otlp/stream.h"
#include "proto/formats/formats.h"
#include "proto/report/report.h"
#include "proto/sums/timeline.h"
#include "tests/unit/proto/text_profiles.h"
#include "tests/unit/proto/random_profiles.h"

enum { MAX_BYTES = 1 << 26 };

/* The line of sums and the folded stacks. */
static void tell(const struct profiles *p, struct buf *out)
{
	struct tree *tree = tree_new();

	assert_non_null(tree);
	assert_int_equal(tree_add(tree, p), 0);
	report_sum(tree_sum(tree), out);
	buf_putc(out, '\n');
	assert_int_equal(report_folded(tree, out), 0);
	tree_free(tree);
}

static const struct {
	const char *format, *text, *says;
} texts[] = {
	{ "folded stacks", "sh;main;f 2\nsh;main 1\n# a comment\n\nsh;main;f 3\r\n", "6 samples\nsh;main 1\nsh;main;f 5\n" },
	{ "folded stacks", "java;run;a b(c, d)_[j];read_[k] 10\nonly 4",
	  "14 samples\njava;run;a b(c, d);read 10\nonly 4\n" },
	{ "folded stacks", "a;libc.so.6+0x12;0x34;b_[i] 0.6\na;libc.so.6+0x12;0x34;b_[i] 1.4\n",
	  "2 samples\na;libc.so.6 (no symbols);[unknown];b 2\n" },
	{ "perf script",
	  "# captured\na b  12/13   [001] 100.000000001:   1000 cpu-clock:ppp: \n\t  401000 leaf+0x1f (/bin/x)\n\t  401100 "
	  "main (/bin/x)\n"
	  "  x.c:12\n\nsh 7/7 [000] 100.5:   1000 cpu-clock:ppp: \n\tffffffff81 do_it ([kernel.kallsyms])\n\t12 [unknown] "
	  "(/tmp/y (deleted))\n\n",
	  "2 samples, 0 ms of CPU time\na b;main;leaf 1\nsh;y (deleted) (no symbols);do_it 1\n" },
	{ "perf script",
	  "         swapper     0 [000]  1.25:     200 cycles:  ffffffff81 idle+0x1 ([kernel.kallsyms])\n"
	  "            bash   123 [001]  1.50:     300 cycles:  ffffffff82 work ([kernel.kallsyms])\n",
	  "2 samples, 500 count of cycles\nbash;work 300\nswapper;idle 200\n" },
	{ "perf script", "x 1/1 5.0: sched:sched_switch: prev=a ==> next=b\n\t12 f (/x)\n\t13 g (inlined)\n\t13 h (/x)\n",
	  "1 sample\nx;h;g;f 1\n" },
	{ "speedscope",
	  "{\"$schema\":\"https://www.speedscope.app/"
	  "file-format-schema.json\",\"shared\":{\"frames\":[{\"name\":\"main\"},{\"name\":"
	  "\"f\",\"file\":\"f.c\",\"line\":3}]},\"profiles\":[{\"type\":\"sampled\",\"name\":\"t (pid 5, tid 6)\",\"unit\":"
	  "\"milliseconds\",\"startValue\":0,\"endValue\":3,\"samples\":[[0],[0,1]],\"weights\":[1,2.5]}]}",
	  "2 samples, 4 ms of time\nt;main 1000000\nt;main;f 2500000\n" },
	{ "speedscope",
	  " {\"profiles\":[{\"type\":\"evented\",\"name\":\"e\",\"unit\":\"none\",\"startValue\":10,\"endValue\":20,"
	  "\"events\":["
	  "{\"type\":\"O\",\"at\":10,\"frame\":0},{\"type\":\"O\",\"at\":12,\"frame\":1},{\"type\":\"C\",\"at\":15,"
	  "\"frame\":1},"
	  "{\"type\":\"C\",\"at\":20,\"frame\":0}]}],\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}",
	  "10 samples\ne;a 7\ne;a;b 3\n" },
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const uint8_t *data = (const uint8_t *)texts[i].text;
		size_t len = strlen(texts[i].text);
		const struct format *format = format_by_content(data, len);
		AUTO(put_profiles) struct profiles *p = NULL;
		AUTO(buf_fini) struct buf got = BUF_EMPTY;
		struct otlp_error error = { "" };

		if (!format || strcmp(format->title, texts[i].format) != 0)
			fail_msg("%zu: taken for %s", i, format ? format->title : "nothing");
		if (format->read(data, len, &p, &error))
			fail_msg("%zu: %s", i, error.message);
		tell(p, &got);
		if (strcmp(buf_text(&got), texts[i].says) != 0)
			fail_msg("%zu: %s", i, buf_text(&got));
	}
}

/* Every row: a way to write, names of its own, and all that reading takes or nothing of it. */
static void test_table(void **state)
{
#define FORMAT_ADDRESS(name) &name,
	static const struct format *const formats[] = { FORMATS(FORMAT_ADDRESS) };
	AUTO(buf_fini) struct buf names = BUF_EMPTY, suffixes = BUF_EMPTY, readers = BUF_EMPTY;

	(void)state;
	format_list_names(&names);
	format_list_suffixes(&suffixes);
	format_list_readers(&readers);
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		const struct format *f = formats[i];

		assert_ptr_equal(format_by_name(f->name), f);
		assert_non_null(strstr(buf_text(&names), f->name));
		assert_non_null(f->suffixes[0]);
		for (const char *const *s = f->suffixes; *s; s++) {
			char path[64];

			snprintf(path, sizeof(path), "x%s", *s);
			assert_ptr_equal(format_by_path(path), f);
			assert_non_null(strstr(buf_text(&suffixes), *s));
		}
		assert_true(!f->sum != !f->write);
		assert_true(!f->from_tree == (f->sum != &format_sum_tree));
		assert_true(!f->fits == !f->read && !f->fits == !f->title);
		if (f->fits)
			assert_non_null(strstr(buf_text(&readers), f->title));
	}
}

/* Of two formats that text looks like, the more telling one counts, wherever it stands in the table. */
static void test_signs(void **state)
{
	static const struct {
		const char *text;
		bool (*looks_like)(const uint8_t *data, size_t len);
		const struct format *is;
	} cases[] = {
		{ "\n{ \"shared\":{\"frames\":[{\"name\":\"main\"},{\"name\":\"a function of this name\"}]},\"profiles\":["
		  "{\"type\":\"sampled\",\"name\":\"t\",\"unit\":\"none\",\"samples\":[],\"weights\":[]}]}",
		  pprof_fits, &format_speedscope },
		{ "x 1/1 5.0: 7 cycles: 12\n", folded_fits, &format_perf_script },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const uint8_t *data = (const uint8_t *)cases[i].text;
		size_t len = strlen(cases[i].text);

		assert_true(cases[i].looks_like(data, len));
		assert_ptr_equal(format_by_content(data, len), cases[i].is);
	}
}

/* What perf script says beside names. */
static void test_perf_script_context(void **state)
{
	AUTO(put_profiles) struct profiles *p = NULL;
	struct otlp_error error = { "" };
	const struct profile *profile;
	const struct sample *s;

	(void)state;
	assert_int_equal(perf_script_read((const uint8_t *)texts[3].text, strlen(texts[3].text), &p, &error), 0);
	assert_int_equal(profiles_find_key(p, &p->resources[0].resource.attributes, "process.pid")->integer, 12);
	profile = &p->resources[0].scopes[0].profiles[0];
	assert_int_equal(profile->period, 1000);
	assert_int_equal(profile->time_unix_ns, 100000000001);
	s = &profile->samples[0];
	assert_int_equal(s->timestamps_unix_ns[0], 100000000001);
	assert_int_equal(profiles_find_attribute(p, &s->attributes, "thread.id")->integer, 13);
	assert_int_equal(profiles_find_attribute(p, &s->attributes, "cpu.logical_number")->integer, 1);
	for (uint32_t i = 0; i < p->dict.location_count; i++) {
		const struct profile_location *l = &p->dict.locations[i];

		if (l->address == 0x401100)
			assert_int_equal(l->lines[0].line, 12);
	}
}

/* A zero byte ends the name of an event; both passes must agree about it. */
static void test_perf_script_zero_byte(void **state)
{
	static const char text[] = "a 1/1 5.0: 7 cyc\0les:\n\t12 f (x)\n\na 1/1 6.0: 7 cyc\0les:\n\t12 f (x)\n";
	AUTO(put_profiles) struct profiles *p = NULL;
	struct otlp_error error = { "" };

	(void)state;
	assert_int_equal(perf_script_read((const uint8_t *)text, sizeof(text) - 1, &p, &error), 0);
	assert_int_equal(p->resources[0].scopes[0].profile_count, 1);
	assert_true(str_is(profiles_string(p, p->resources[0].scopes[0].profiles[0].sample_type.type_strindex), "cyc"));
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "a;b 1\na;b\n", "line 2 does not end in a count" },
		{ "a;b 1\na;b 1e5\n", "line 2" },
		{ "a 1/1 5.0: 1 cycles:\n\t12 f (x)\n\nnonsense\n", "line 4" },
		{ "{\"shared\":", "line 1, column" },
		{ "{\"shared\":{\"frames\":[]},\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[0]],"
		  "\"weights\":[1]}]}",
		  "profile 0, sample 0: a frame that is not in the table" },
		{ "{\"shared\":{\"frames\":[]},\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[[]],"
		  "\"weights\":[]}]}",
		  "not as many weights" },
		{ "{\"shared\":{\"frames\":[{}]},\"profiles\":[{\"type\":\"evented\",\"unit\":\"none\",\"events\":[{"
		  "\"type\":\"C\",\"at\":1,"
		  "\"frame\":0}]}]}",
		  "closes what is not" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const uint8_t *data = (const uint8_t *)cases[i].text;
		const struct format *format = format_by_content(data, strlen(cases[i].text));
		struct otlp_error error = { "" };
		struct profiles *p = NULL;

		assert_non_null(format);
		assert_int_equal(format->read(data, strlen(cases[i].text), &p, &error), -EBADMSG);
		if (!strstr(error.message, cases[i].says))
			fail_msg("%zu: %s", i, error.message);
	}
	assert_null(format_by_content((const uint8_t *)"root:x:0:0::/root:/bin/sh\n", 26));
	assert_null(format_by_content((const uint8_t *)"{\"resourceProfiles\":[\"shared\"]}", 31));
}

/* --- framings --- */

static void put_prefixed(struct buf *out, const struct buf *message)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_putc(out, (char)(message->len >> shift));
	buf_append(out, message->data, message->len);
}

/* Messages of their own: "one" and "two", of one and two samples. */
static void make_messages(struct buf out[2], bool as_json)
{
	static const char *const said[] = { "t;main;one 1", "t;main;two 2" };

	for (unsigned i = 0; i < 2; i++) {
		AUTO(put_profiles) struct profiles *p = text_profiles(said[i], i);

		assert_non_null(p);
		assert_int_equal(as_json ? otlp_json_encode(p, &out[i]) : otlp_encode(p, NULL, &out[i]), 0);
	}
}

static void expect_both(struct buf *data, const char *how, bool is_cut)
{
	AUTO(put_profiles) struct profiles *p = NULL;
	AUTO(buf_fini) struct buf got = BUF_EMPTY;
	struct otlp_error error = { "" };
	size_t read_bytes = 0, len = data->len;

	if (otlp_read(data, MAX_BYTES, &p, &read_bytes, &error))
		fail_msg("%s: %s", how, error.message);
	tell(p, &got);
	if (strcmp(buf_text(&got), is_cut ? "1 sample, 50 ms of CPU time\nt;main;one 1\n"
					  : "3 samples, 150 ms of CPU time\nt;main;one 1\nt;main;two 2\n") != 0)
		fail_msg("%s: %s", how, buf_text(&got));
	assert_true(is_cut ? read_bytes < len : read_bytes == len);
}

static void test_framings(void **state)
{
	struct buf proto[2] = { BUF_EMPTY, BUF_EMPTY }, json[2] = { BUF_EMPTY, BUF_EMPTY }, data = BUF_EMPTY;

	(void)state;
	make_messages(proto, false);
	make_messages(json, true);
	for (int i = 0; i < 2; i++)
		buf_append(&data, proto[i].data, proto[i].len);
	expect_both(&data, "one after the other", false);
	data.len = 0;
	for (int i = 0; i < 2; i++)
		put_prefixed(&data, &proto[i]);
	expect_both(&data, "with lengths", false);
	data.len = 0;
	for (int i = 0; i < 2; i++) {
		AUTO(buf_fini) struct buf packed = BUF_EMPTY;

		assert_int_equal((i ? gzip_pack : zstd_pack)(json[i].data, json[i].len, 1, &packed), 0);
		put_prefixed(&data, &packed);
	}
	expect_both(&data, "JSON, compressed one by one, with lengths", false);
	data.len = 0;
	for (int i = 0; i < 2; i++) {
		uint64_t len = proto[i].len;

		for (; len >= 0x80; len >>= 7)
			buf_putc(&data, (char)(len | 0x80));
		buf_putc(&data, (char)len);
		buf_append(&data, proto[i].data, proto[i].len);
	}
	expect_both(&data, "with protobuf's lengths", false);
	data.len = 0;
	for (int i = 0; i < 2; i++) {
		buf_append(&data, json[i].data, json[i].len);
		buf_putc(&data, '\n');
	}
	expect_both(&data, "JSON lines", false);
	data.len -= 7;
	expect_both(&data, "JSON lines, cut", true);
	data.len = 0;
	for (int i = 0; i < 2; i++)
		put_prefixed(&data, &proto[i]);
	data.len -= 7;
	expect_both(&data, "with lengths, cut", true);
	buf_fini(&data);
	for (int i = 0; i < 2; i++) {
		buf_fini(&proto[i]);
		buf_fini(&json[i]);
	}
}

/* --- parts --- */

enum { PARTS = 6, PAYLOAD_BYTES = OTLP_RUN_BYTES * 2 / 5 };

/* Makes @p large, so that two of it, but not three, are a run. */
static void make_large(struct profiles *p, uint32_t bytes)
{
	static char payload[OTLP_RUN_BYTES];

	memset(payload, '.', sizeof(payload));
	p->resources[0].scopes[0].profiles[0].original_payload = (struct str){ payload, bytes };
}

/* Adds a stream of @count messages; *@ends_ret are their ends. */
static void put_stream(struct buf *data, uint64_t seed, unsigned count, size_t *ends_ret)
{
	struct otlp_stream *stream = otlp_stream_new();

	for (unsigned i = 0; i < count; i++) {
		AUTO(put_profiles) struct profiles *p = text_profiles("t;main;one;two 1\nu;main;three 2", 0);
		AUTO(put_profiles) struct profiles *q = random_profiles(seed + i);

		make_large(p, PAYLOAD_BYTES);
		assert_int_equal(otlp_stream_encode(stream, p, data), 0);
		assert_int_equal(otlp_stream_encode(stream, q, data), 0);
		ends_ret[i] = data->len;
	}
	otlp_stream_free(stream);
}

struct seen {
	unsigned parts, stop_at;
	struct buf text;
};

/* All that a sample refers to. */
static int print_sample(void *arg, const struct stack_sample *s)
{
	struct buf *out = arg;

	struct str trace = s->profiles->dict.links[s->sample->link_index].trace_id;

	buf_printf(out, "%lld %.*s %llu ", (long long)s->pid, (int)s->comm.len, s->comm.data, (unsigned long long)s->weight);
	for (size_t i = 0; i < trace.len; i++)
		buf_printf(out, "%02x", (uint8_t)trace.data[i]);
	for (uint32_t i = 0; i < s->sample->attributes.count; i++) {
		struct str key = profiles_string(s->profiles,
						 s->profiles->dict.attributes[s->sample->attributes.items[i]].key_strindex);

		buf_printf(out, " %.*s", (int)key.len, key.data);
	}
	for (uint32_t i = 0; i < s->frame_count; i++) {
		const struct frame *f = stack_frame(s, i);

		buf_putc(out, ';');
		stack_frame_print(f, FRAME_PLACE | FRAME_INLINED, out);
		buf_printf(out, "@%.*s %.*s", (int)f->module.len, f->module.data, (int)f->type.len, f->type.data);
	}
	buf_putc(out, '\n');
	return 0;
}

static int print_part(void *arg, struct profiles *p)
{
	struct seen *seen = arg;

	if (++seen->parts == seen->stop_at)
		return -EIO;
	return stack_walk_each(p, print_sample, &seen->text);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of @text in the order of their letters: in each part samples of time on a CPU come first. */
static char *sorted_lines(struct buf *text)
{
	AUTO(buf_fini) struct buf lines = BUF_EMPTY, out = BUF_EMPTY;
	char *rest = (char *)(uintptr_t)buf_text(text), *line;

	while ((line = strsep(&rest, "\n")))
		buf_append(&lines, &line, sizeof(line));
	qsort(lines.data, lines.len / sizeof(line), sizeof(line), by_text);
	for (size_t i = 0; i < lines.len; i += sizeof(line)) {
		memcpy(&line, lines.data + i, sizeof(line));
		buf_printf(&out, "%s\n", line);
	}
	return strdup(buf_text(&out));
}

/* The first @bytes come in parts, which have the samples that the whole of them has. */
static void expect_parts(const struct buf *data, size_t len, int err, size_t bytes)
{
	AUTO(buf_fini) struct buf copy = BUF_EMPTY;
	struct seen seen = { .text = BUF_EMPTY }, whole = { .text = BUF_EMPTY };
	AUTO(put_profiles) struct profiles *p = NULL;
	AUTO_FREE char *got_lines = NULL, *lines = NULL;
	struct otlp_error error;
	struct otlp_parts parts;
	size_t read_bytes;
	int got = otlp_read_parts(data->data, len, print_part, &seen, &parts);

	if (bytes) {
		buf_append(&copy, data->data, bytes);
		assert_int_equal(otlp_read(&copy, SIZE_MAX, &p, &read_bytes, &error), 0);
		assert_int_equal(print_part(&whole, p), 0);
		assert_true(err || seen.parts > bytes / OTLP_RUN_BYTES);
	}
	got_lines = sorted_lines(&seen.text);
	lines = sorted_lines(&whole.text);
	if (got != err || parts.bytes != bytes || strcmp(got_lines, lines) != 0)
		fail_msg("of %zu bytes: %d, not %d; %zu read, not %zu; samples:\n%.500s, not\n%.500s", len, got, err,
			 parts.bytes, bytes, got_lines, lines);
	buf_fini(&seen.text);
	buf_fini(&whole.text);
}

/* Two captures in one file, whole and cut at many places. */
static void test_parts(void **state)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct seen seen = { .text = BUF_EMPTY, .stop_at = 2 };
	struct otlp_parts parts;
	size_t ends[2 * PARTS];

	(void)state;
	put_stream(&data, 1, PARTS, ends);
	put_stream(&data, 100, PARTS, ends + PARTS);
	expect_parts(&data, data.len, 0, data.len);
	expect_parts(&data, 0, -EBADMSG, 0);
	for (unsigned i = 1; i < 2 * PARTS; i++) {
		expect_parts(&data, ends[i - 1], 0, ends[i - 1]);
		expect_parts(&data, ends[i - 1] + 1, 0, ends[i - 1]);
	}
	assert_int_equal(otlp_read_parts(data.data, data.len, print_part, &seen, &parts), -EIO);
	assert_int_equal(seen.parts, 2);
	buf_fini(&seen.text);
}

/* A message that brings nothing new has no dictionary to speak of, until a run begins, which has all it needs. */
static void test_stream_repeats_nothing(void **state)
{
	AUTO(put_profiles) struct profiles *p = text_profiles("t;main;one;two 1\nu;main;three 2", 0);
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct otlp_stream *stream = otlp_stream_new();
	size_t sizes[4], before = 0;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		make_large(p, i == 2 ? OTLP_RUN_BYTES : 0);
		assert_int_equal(otlp_stream_encode(stream, p, &data), 0);
		sizes[i] = data.len - before;
		before = data.len;
	}
	otlp_stream_free(stream);
	assert_true(sizes[1] < sizes[0] && sizes[0] - sizes[1] > sizeof("maintwothree"));
	assert_true(sizes[2] > OTLP_RUN_BYTES + sizes[1] + sizeof("maintwothree"));
	assert_true(sizes[3] > sizes[1] + sizeof("maintwothree"));
	expect_parts(&data, data.len, 0, data.len);
}

/* What refers to a run before it, and what begins with its dictionary, is not for reading in parts. */
static void test_no_parts(void **state)
{
	struct otlp_continuation cont = { 0 };
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	size_t first = 0;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		AUTO(put_profiles) struct profiles *p = text_profiles("t;main;one 1", 0);

		make_large(p, OTLP_RUN_BYTES);
		cont.locations -= i;
		assert_int_equal(otlp_encode(p, &cont, &data), 0);
		first = i ? first : data.len;
	}
	expect_parts(&data, data.len, -EBADMSG, first);
	data.len = 0;
	buf_append(&data, "\x12\x00\x0a\x00\x12\x00", 6);
	expect_parts(&data, data.len, -EBADMSG, 0);
}

/* Events come back from perf script with their times, threads, CPUs and modules. */
static void test_perf_script_comes_back(void **state)
{
	AUTO(put_profiles)
	struct profiles *p = text_profiles("t;main@app;@libfoo.so;read@libc.so.6;vfs_read@[kernel] 3\nu;x@app 2", 0);
	AUTO(put_profiles) struct profiles *q = NULL;
	AUTO(buf_fini) struct buf once = BUF_EMPTY, twice = BUF_EMPTY;
	struct otlp_error error = { "" };
	struct timeline *t = NULL;

	(void)state;
	assert_int_equal(timeline_new(p, &t), 0);
	timeline_sort_by_time(t);
	assert_int_equal(timeline_write_perf_script(t, &once), 0);
	timeline_free(t);
	assert_int_equal(perf_script_read(once.data, once.len, &q, &error), 0);
	assert_int_equal(timeline_new(q, &t), 0);
	timeline_sort_by_time(t);
	assert_int_equal(timeline_write_perf_script(t, &twice), 0);
	timeline_free(t);
	assert_string_equal(buf_text(&once), buf_text(&twice));
	assert_int_equal(q->sample_events, 5);
}

/* Keys count in the outermost object alone, and a quote behind a backslash ends no text. */
static void test_json_key(void **state)
{
	static const char *const keys[] = { "shared", "profiles", NULL };
	static const struct {
		const char *text;
		int place;
	} cases[] = {
		{ "{\"profiles\": [], \"shared\": 1}", 1 },
		{ " \t\r\n{\"a\": {\"profiles\": 1}, \"shared\": 1}", 0 },
		{ "{\"a\": [\"profiles\", {\"profiles\": 1}]}", -1 },
		{ "{\"a\\\"b\": 1, \"shared\": 1}", 0 },
		{ "{\"a\": \"x\\\\\", \"profiles\": 1}", 1 },
		{ "{\"a\": \"\\\"shared\\\"\", \"profiles\": 1}", 1 },
		{ "{\"a\": \"x\\\\\\\"shared\"}", -1 },
		{ "{\"a\": \"}\", \"shared\": 1}", 0 },
		{ "{} {\"shared\": 1}", -1 },
		{ "{\"share", -1 },
		{ "[\"shared\"]", -1 },
		{ "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(read_json_key((const uint8_t *)cases[i].text, strlen(cases[i].text), keys), cases[i].place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_key),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_signs),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_perf_script_context),
		cmocka_unit_test(test_perf_script_zero_byte),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_framings),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_stream_repeats_nothing),
		cmocka_unit_test(test_no_parts),
		cmocka_unit_test(test_perf_script_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
