/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, the spool and what writes files, for want of memory at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <assert.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/metrics.h"
#include "proto/otlp/otlp.h"
#include "sinks/otlp/endpoint.h"
#include "sinks/sinks.h"
#include "sinks/otlp/request.h"
#include "sinks/otlp/spool.h"
#include "tests/unit/failing_memory.h"
#include "tests/unit/proto/text_profiles.h"
#include "tests/unit/sinks/vectors.h"

static char dir[] = "/tmp/hearth-memory-XXXXXX";
static struct profiles *profiles[3], *odd;
static struct metric *metric;

/* Leaves the folder empty. */
static void clear_dir(void)
{
	DIR *d = opendir(dir);

	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d));)
		unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
}

static int endpoints(struct buf *out)
{
	static const char *const texts[] = { "http://u:p@h:4318/x", "grpcs://h", "grpc://h:1", "h:4317",
					     "unix:/run/c.sock" };
	int error = 0;

	for (size_t i = 0; i < ARRAY_LEN(texts) && !error; i++) {
		struct otlp_endpoint e;

		error = otlp_endpoint_init(&e, texts[i], OTLP_BY_URL, false);
		if (error)
			break;
		buf_printf(out, "%s %s %s %s\n", e.url, e.display, e.unix_path ? e.unix_path : "",
			   e.others[OTLP_LOGS] ? e.others[OTLP_LOGS] : "");
		otlp_endpoint_fini(&e);
	}
	return error;
}

static int spool(struct buf *out)
{
	const struct spool_config config = { .dir = dir,
					     .max_bytes = 1 << 20,
					     .bytes = metric,
					     .samples = metric,
					     .dropped_full = metric,
					     .dropped_age = metric,
					     .dropped_corrupt = metric,
					     .corrupt_bytes = metric };
	const struct spool_record record = { .data = (const uint8_t *)"record", .len = 6, .samples = 3 };
	struct spool_record first;
	struct spool *s;
	int error = 0;

	for (int turn = 0; turn < 2 && !error; turn++) { /* the second finds what the first left */
		error = spool_open(&config, &s);
		if (error)
			break;
		error = spool_append(s, &record);
		if (!error)
			error = spool_peek(s, &first);
		if (error == 1) {
			buf_printf(out, "%.*s %d\n", (int)first.len, (const char *)first.data, (int)spool_samples(s));
			error = 0;
		}
		spool_close(s);
	}
	clear_dir();
	return error;
}

/* The capture as it stands then: written as one message in the best order when there is memory for that, else as it grew.
 * Never between the two: one message of three resources would be a merge that was given up. */
static void check_capture(const char *path)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct otlp_error why;
	struct profiles *p;
	ssize_t n;

	assert_true(fd >= 0);
	assert_int_equal(buf_reserve(&data, 1 << 20), 0);
	n = read(fd, data.data, 1 << 20);
	assert_true(n > 0);
	close(fd);
	assert_int_equal(otlp_decode(data.data, (size_t)n, false, &p, &why), 0);
	assert_int_equal(p->sample_events, 12);
	if (p->resource_count != 1) {
		/* as it grew: behind the first message's resource stands its dictionary, and then the next message */
		size_t at = 1, len = 0;
		unsigned shift = 0;

		for (; data.data[at] & 0x80; at++, shift += 7)
			len |= (size_t)(data.data[at] & 0x7f) << shift;
		len |= (size_t)data.data[at++] << shift;
		assert_int_equal(data.data[at + len], 2 << 3 | 2);
		assert_int_equal(p->resource_count, 3);
	}
	profiles_put(p);
}

/* All profiles into @s, which goes. */
static int feed(struct sink *s)
{
	int error = 0;

	for (size_t i = 0; i < ARRAY_LEN(profiles) && !error; i++)
		error = sink_consume(s, profiles[i], NULL);
	if (!error)
		error = sink_flush(s, 0);
	sink_free(s);
	return error;
}

static int capture(struct buf *out)
{
	char path[64];
	struct sink *s;
	int error;

	(void)out;
	snprintf(path, sizeof(path), "%s/x.otlp", dir);
	error = sink_file_new(path, FILE_END_MERGED, &s);
	if (error)
		return error;
	error = feed(s);
	memory_suffices();
	if (!error)
		check_capture(path);
	clear_dir();
	return error;
}

static int text(struct buf *out)
{
	print_profiles(profiles[0], NULL, out);
	return 0;
}

/* In each form, of frames whose type is no text. */
static int forms(struct buf *out)
{
	static const enum print_form all[] = { PRINT_PLAIN, PRINT_TYPED, PRINT_DEBUG, PRINT_2025_09, PRINT_2025_08 };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		print_profiles(odd, &(struct print_options){ .form = all[i] }, out);
	return 0;
}

static int lines(struct buf *out)
{
	char path[64];
	struct sink *s;
	int error;

	(void)out;
	snprintf(path, sizeof(path), "%s/x.jsonl", dir);
	error = sink_lines_new(path, LINES_JSON, &s);
	if (error)
		return error;
	error = feed(s);
	clear_dir();
	return error;
}

/* Each request is made, sent in another form, read from a spool and split, with each packing. */
static int requests(struct buf *out)
{
	AUTO(buf_fini) struct buf message = BUF_EMPTY;
	int error = otlp_encode(profiles[2], NULL, &message);

	for (enum otlp_packing kept = OTLP_GZIP; kept <= OTLP_UNPACKED && !error; kept++) {
		enum otlp_packing sent = (kept + 1) % (OTLP_UNPACKED + 1);
		AUTO(buf_fini) struct buf scratch = BUF_EMPTY;
		struct otlp_request *r, *again = NULL, *part;
		struct otlp_requests parts;
		size_t len = 0, json;
		uint8_t *body;

		otlp_requests_init(&parts);
		error = otlp_request_new(message.data, message.len, 4, kept, NULL, &r);
		if (error)
			break;
		error = otlp_request_body(r, OTLP_HTTP_PROTOBUF, sent, &scratch, &body, &len);
		if (!error)
			error = otlp_request_of(body, len, 4, sent, &again);
		if (!error)
			error = otlp_request_split(again, 1, &parts);
		json = error ? 0 : otlp_request_json_bytes(again);
		if (!error && !json)
			error = -ENOMEM;
		buf_printf(out, "%zu %zu\n", len, json);
		while ((part = otlp_requests_pop(&parts)))
			otlp_request_settle(part, 0);
		otlp_request_settle(r, 0);
		if (again)
			otlp_request_settle(again, 0);
	}
	return error;
}

static const struct memory_scenario scenarios[] = {
	{ "addresses", endpoints, true }, { "spool", spool, false }, { "capture", capture, false },  { "text", text, false },
	{ "lines", lines, false },	  { "forms", forms, false }, { "requests", requests, true },
};

static void test_scenarios(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++)
		memory_fails_everywhere(&scenarios[i]);
}

/* A sample whose frame has a number for its type. */
static struct profiles *odd_profiles(void)
{
	struct builder *b = builder_new();
	int32_t type = builder_attribute_int(b, "profile.frame.type", 7);
	const struct profile_line line = { .function_index = builder_function(b, builder_string_z(b, "odd"), 0, 0, 0) };
	int32_t location = builder_location(b, 0, 0x10, &line, 1, &type, 1);
	uint32_t profile = builder_profile(b, builder_resource(b, NULL, 0), &text_cpu_spec);
	struct profiles *p = NULL;

	builder_event(b, profile, builder_stack(b, &location, 1), NULL, 0, 0, 1000000000, false, 0);
	assert(!builder_freeze(b, 1000000000, 2000000000, &p));
	builder_free(b);
	return p;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scenarios) };
	struct metrics *metrics = metrics_new();
	int failed;

	if (!metrics || !mkdtemp(dir))
		return 1;
	metric = metrics_counter(metrics, "any", NULL, "");
	for (unsigned i = 0; i < ARRAY_LEN(profiles); i++)
		profiles[i] = agent_profiles(i + 1, 4);
	odd = odd_profiles();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	profiles_put(odd);
	for (unsigned i = 0; i < ARRAY_LEN(profiles); i++)
		profiles_put(profiles[i]);
	metrics_free(metrics);
	rmdir(dir);
	return failed;
}
