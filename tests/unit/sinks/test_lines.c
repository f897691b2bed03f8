/* SPDX-License-Identifier: Apache-2.0 */
/* Requests one behind the other in a file: what python's json and protobuf's framing read, torn ends, and acks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/handed.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/json/json_decode.h"
#include "sinks/sinks.h"
#include "tests/unit/sinks/counted_ack.h"
#include "tests/unit/sinks/vectors.h"

static char path[] = "/tmp/hearth-lines-XXXXXX";

static int make_file(void **state)
{
	int fd;

	(void)state;
	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_events(enum lines_format format, unsigned first, unsigned count)
{
	struct sink *s;

	assert_int_equal(sink_lines_new(path, format, &s), 0);
	for (unsigned i = 0; i < count; i++) {
		struct profiles *p = agent_profiles(first + i, first + i);

		assert_int_equal(sink_consume(s, p, NULL), 0);
		profiles_put(p);
	}
	assert_int_equal(sink_flush(s, UINT64_MAX), 0);
	sink_free(s);
}

static size_t read_all(uint8_t **ret)
{
	AUTO_FCLOSE FILE *f = fopen(path, "r");
	size_t len;

	*ret = malloc(1 << 20);
	assert_non_null(f);
	len = fread(*ret, 1, (1 << 20) - 1, f);
	(*ret)[len] = '\0';
	return len;
}

/* Requests of first, first + 1, ... events, and nothing else. */
static void assert_requests(enum lines_format format, unsigned first, unsigned count)
{
	AUTO_FREE uint8_t *data = NULL;
	size_t len = read_all(&data), at = 0;
	struct otlp_error err;
	struct profiles *p;

	for (unsigned i = 0; i < count; i++) {
		size_t end, n;

		if (format == LINES_JSON) {
			end = at + strcspn((char *)data + at, "\n");
			assert_int_equal(otlp_json_decode(data + at, end - at, &p, &err), 0);
			at = end + 1;
		} else {
			n = (size_t)data[at] << 24 | (size_t)data[at + 1] << 16 | (size_t)data[at + 2] << 8 | data[at + 3];
			assert_int_equal(otlp_decode(data + at + 4, n, false, &p, &err), 0);
			at += 4 + n;
		}
		assert_int_equal(p->sample_events, first + i);
		profiles_put(p);
	}
	assert_int_equal(at, len);
}

static void goes_on(void **state)
{
	(void)state;
	for (enum lines_format format = LINES_JSON; format <= LINES_FRAMED; format++) {
		assert_int_equal(truncate(path, 0), 0);
		write_events(format, 1, 3);
		assert_requests(format, 1, 3);
		write_events(format, 4, 2);
		assert_requests(format, 1, 5);
	}
}

/* The JSON is what others read as such. */
static void lines_are_json(void **state)
{
	char command[512];

	(void)state;
	write_events(LINES_JSON, 1, 3);
	snprintf(
		command, sizeof(command),
		"python3 -c 'import json, sys\nlines = open(sys.argv[1]).read().split(\"\\n\")\nassert lines.pop() == \"\"\n"
		"assert len(lines) == 3 and all(\"resourceProfiles\" in json.loads(l) for l in lines)' %s",
		path);
	assert_int_equal(system(command), 0);
}

/* However much of the last request a crash has left, the next run cuts it off and goes on. */
static void torn_ends_go(void **state)
{
	(void)state;
	for (enum lines_format format = LINES_JSON; format <= LINES_FRAMED; format++) {
		struct stat two, three;

		assert_int_equal(truncate(path, 0), 0);
		write_events(format, 1, 2);
		stat(path, &two);
		write_events(format, 3, 1);
		stat(path, &three);
		for (off_t len = two.st_size + 1; len < three.st_size; len += 97) {
			assert_int_equal(truncate(path, len), 0);
			write_events(format, 3, 1);
			assert_requests(format, 1, 3);
		}
	}
}

/* A last line without its end, longer than what is looked at in one go. */
static void long_torn_end_goes(void **state)
{
	FILE *f;

	(void)state;
	write_events(LINES_JSON, 1, 1);
	f = fopen(path, "a");
	assert_non_null(f);
	for (int i = 0; i < 200000; i++)
		fputc('x', f);
	assert_int_equal(fclose(f), 0);
	write_events(LINES_JSON, 2, 1);
	assert_requests(LINES_JSON, 1, 2);
}

/* Writes @data as a receiver would; it must be @want then. */
static void assert_framed(const struct buf *data, const char *more, size_t more_len, bool is_kept)
{
	AUTO_FREE uint8_t *got = NULL;
	uint8_t *owned = malloc(data->len + more_len);
	size_t want = data->len + (is_kept ? more_len : 0);
	struct otlp_error err;
	struct profiles *p;
	struct sink *s;

	memcpy(owned, data->data, data->len);
	memcpy(owned + data->len, more, more_len);
	assert_int_equal(otlp_decode(owned, data->len + more_len, true, &p, &err), 0);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(sink_lines_new(path, LINES_FRAMED, &s), 0);
	assert_int_equal(sink_consume(s, p, NULL), 0);
	assert_int_equal(sink_flush(s, UINT64_MAX), 0);
	sink_free(s);
	profiles_put(p);
	assert_int_equal(read_all(&got), 4 + want);
	assert_int_equal((size_t)got[2] << 8 | got[3], want);
	assert_memory_equal(got + 4, data->data, data->len);
	if (is_kept)
		assert_memory_equal(got + 4 + data->len, more, more_len);
}

/* A request is written as it came, unless it says more than the profiles that were made of it. */
static void requests_stay_as_they_came(void **state)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct profiles *p = agent_profiles(1, 3);

	(void)state;
	assert_int_equal(otlp_encode(p, NULL, &data), 0);
	profiles_put(p);
	assert_framed(&data, "", 0, true);
	assert_framed(&data, "\x12\x00", 2, true);	/* a dictionary once more, with nothing in it */
	assert_framed(&data, "\xf8\x01\x01", 3, false); /* an unknown field */
}

static void wait_for(struct counted_ack *ack)
{
	for (int i = 0; i < 5000 && !ack->done; i++)
		usleep(1000);
	assert_int_equal(ack->done, 1);
}

static void acks_come_once(void **state)
{
	static struct counted_ack acks[200];
	struct profiles *p = agent_profiles(1, 1);
	struct sink *s;

	(void)state;
	assert_int_equal(sink_lines_new(path, LINES_FRAMED, &s), 0);
	assert_true(s->ops->durable);
	for (size_t i = 0; i < ARRAY_LEN(acks); i++) {
		acks[i] = (struct counted_ack){ .ack.done = counted_done, .error = 1 };
		assert_int_equal(sink_consume(s, p, &acks[i].ack), 0);
	}
	wait_for(&acks[0]);
	sink_free(s); /* completes the others */
	for (size_t i = 0; i < ARRAY_LEN(acks); i++) {
		assert_int_equal(acks[i].done, 1);
		assert_int_equal(acks[i].error, 0);
	}
	profiles_put(p);
}

static void captures_ack_too(void **state)
{
	struct counted_ack ack = { .ack.done = counted_done };
	struct profiles *p = agent_profiles(1, 1);
	struct sink *s;

	(void)state;
	assert_int_equal(sink_file_new(path, FILE_END_ORDERED, &s), 0);
	assert_int_equal(sink_consume(s, p, &ack.ack), 0);
	wait_for(&ack);
	assert_int_equal(ack.error, 0);
	assert_int_equal(sink_flush(s, UINT64_MAX), 0);
	sink_free(s);
	assert_int_equal(ack.done, 1);
	profiles_put(p);
}

/* Logs and their like stand in files of their own, acknowledged once they are there. */
static void other_signals(void **state)
{
	static const uint8_t logs[] = { 0x0a, 0x04, 0x12, 0x02, 0x12, 0x00 };

	(void)state;
	for (enum lines_format format = LINES_JSON; format <= LINES_FRAMED; format++) {
		struct counted_ack ack = { .ack.done = counted_done };
		char other[64], text[256] = "";
		AUTO_FCLOSE FILE *f = NULL;
		struct sink *s;
		size_t len;

		assert_int_equal(truncate(path, 0), 0);
		snprintf(other, sizeof(other), "%s.logs", path);
		assert_int_equal(sink_lines_new(path, format, &s), 0);
		assert_int_not_equal(access(other, F_OK), 0);
		assert_int_equal(sink_consume_other(s, OTLP_LOGS, logs, sizeof(logs), &ack.ack), 0);
		wait_for(&ack);
		assert_int_equal(ack.error, 0);
		f = fopen(other, "r");
		assert_non_null(f);
		len = fread(text, 1, sizeof(text), f);
		if (format == LINES_JSON) {
			assert_string_equal(text, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{}]}]}]}\n");
		} else {
			assert_int_equal(len, 4 + sizeof(logs));
			assert_memory_equal(text, "\0\0\0\6", 4);
			assert_memory_equal(text + 4, logs, sizeof(logs));
		}
		assert_int_equal(sink_flush(s, UINT64_MAX), 0);
		sink_free(s);
		assert_int_equal(truncate(other, 0), 0);
		assert_requests(format, 1, 0);
		/* What cannot be written is not taken. */
		assert_int_equal(sink_lines_new(path, format, &s), 0);
		unlink(other);
		assert_int_equal(mkdir(other, 0755), 0);
		assert_int_equal(sink_consume_other(s, OTLP_LOGS, logs, sizeof(logs), &ack.ack), -EISDIR);
		assert_int_equal(rmdir(other), 0);
		assert_int_equal(sink_consume_other(s, OTLP_LOGS, logs, sizeof(logs), NULL), 0);
		sink_free(s);
		unlink(other);
		assert_int_equal(sink_lines_new("/dev/null", format, &s), 0);
		assert_int_equal(sink_consume_other(s, OTLP_LOGS, logs, sizeof(logs), &ack.ack), -EOPNOTSUPP);
		sink_free(s);
		assert_int_equal(ack.done, 1);
	}
}

static void refuses(void **state)
{
	struct counted_ack ack = { .ack.done = counted_done };
	struct profiles *p = agent_profiles(1, 1);
	struct sink *s, *other;
	char command[64];

	(void)state;
	assert_int_equal(sink_lines_new("/tmp", LINES_JSON, &s), -EISDIR);
	assert_int_equal(sink_lines_new("/nowhere/x.jsonl", LINES_JSON, &s), -ENOENT);
	assert_int_equal(sink_lines_new(path, LINES_JSON, &s), 0);
	assert_int_equal(sink_lines_new(path, LINES_JSON, &other), -EBUSY);
	sink_free(s);
	assert_int_equal(sink_lines_new("/proc/self/exe", LINES_JSON, &s), -ETXTBSY);
	snprintf(command, sizeof(command), "echo some text of mine >%s", path);
	assert_int_equal(system(command), 0);
	assert_int_equal(sink_lines_new(path, LINES_JSON, &s), -EBADMSG);
	assert_int_equal(sink_lines_new(path, LINES_FRAMED, &s), -EBADMSG);
	assert_int_equal(sink_lines_new("/dev/null", LINES_JSON, &s), 0);
	assert_int_equal(sink_consume(s, p, &ack.ack), 0);
	sink_free(s);
	assert_true(ack.done == 1 && ack.error == 0);
	assert_int_equal(sink_lines_new("/dev/full", LINES_FRAMED, &s), 0);
	assert_int_equal(sink_consume(s, p, &ack.ack), -ENOSPC);
	assert_int_equal(sink_flush(s, UINT64_MAX), -ENOSPC);
	sink_free(s);
	assert_int_equal(ack.done, 1);
	profiles_put(p);
}

/* A file that was opened before is written to, by the name that there may be no right to. */
static void handed_over(void **state)
{
	int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	struct stat st;
	const char *name;
	struct sink *s;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(sink_lines_new("/nowhere/at-all.jsonl", LINES_JSON, &s), -ENOENT);
	assert_int_equal(handed_add(fd, "/nowhere/at-all.jsonl", &name), 0);
	for (int i = 0; i < 2; i++) { /* as by a half that was started again */
		struct profiles *p = agent_profiles(1, 1);

		assert_int_equal(sink_lines_new("/nowhere/at-all.jsonl", LINES_JSON, &s), 0);
		assert_int_equal(sink_consume(s, p, NULL), 0);
		profiles_put(p);
		assert_int_equal(sink_flush(s, UINT64_MAX), 0);
		sink_free(s);
		assert_int_equal(stat(path, &st), 0);
		assert_true(st.st_size > i * 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(handed_over, make_file, remove_file),
		cmocka_unit_test_setup_teardown(goes_on, make_file, remove_file),
		cmocka_unit_test_setup_teardown(lines_are_json, make_file, remove_file),
		cmocka_unit_test_setup_teardown(requests_stay_as_they_came, make_file, remove_file),
		cmocka_unit_test_setup_teardown(torn_ends_go, make_file, remove_file),
		cmocka_unit_test_setup_teardown(long_torn_end_goes, make_file, remove_file),
		cmocka_unit_test_setup_teardown(acks_come_once, make_file, remove_file),
		cmocka_unit_test_setup_teardown(captures_ack_too, make_file, remove_file),
		cmocka_unit_test_setup_teardown(other_signals, make_file, remove_file),
		cmocka_unit_test_setup_teardown(refuses, make_file, remove_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
