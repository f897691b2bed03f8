/* SPDX-License-Identifier: Apache-2.0 */
/* Captures: what is on disk at each moment of a file's life, and what a full disk or an odd path does to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/stream.h"
#include "sinks/sinks.h"
#include "tests/unit/sinks/vectors.h"

static char dir[64];
static char path[80], part[96], whole[96];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test_file.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/x.otlp", dir);
	snprintf(part, sizeof(part), "%s.part", path);
	snprintf(whole, sizeof(whole), "%s.whole", path);
	return 0;
}

static int tear_down(void **state)
{
	DIR *d = opendir(dir);

	(void)state;
	for (struct dirent *e; d && (e = readdir(d));)
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	return rmdir(dir);
}

static bool exists(const char *name)
{
	return access(name, F_OK) == 0;
}

static uint64_t size_of(const char *name)
{
	struct stat st;

	return stat(name, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static struct profiles *read_capture(const char *name)
{
	AUTO_FCLOSE FILE *f = fopen(name, "r");
	AUTO_FREE uint8_t *data = malloc(1 << 20);
	struct otlp_error error = { "" };
	struct profiles *p = NULL;
	size_t len;

	assert_non_null(f);
	assert_non_null(data);
	len = fread(data, 1, 1 << 20, f);
	if (otlp_decode(data, len, false, &p, &error) != 0)
		fail_msg("%s: %s", name, error.message);
	return p;
}

static void assert_events(const char *name, uint64_t events)
{
	struct profiles *p = read_capture(name);

	assert_int_equal(p->sample_events, events);
	profiles_put(p);
}

static void consume(struct sink *s, unsigned seed, unsigned events, int expected)
{
	struct profiles *p = agent_profiles(seed, events);

	assert_int_equal(sink_consume(s, p, NULL), expected);
	profiles_put(p);
}

static void test_grows_as_part_and_is_renamed(void **state)
{
	struct sink *s;

	(void)state;
	assert_int_equal(sink_file_new(path, FILE_END_ORDERED, &s), 0);
	for (unsigned i = 1; i <= 3; i++) {
		consume(s, i, 10, 0);
		assert_events(part, i * 10); /* readable at any time */
		assert_false(exists(path));
	}
	assert_int_equal(sink_flush(s, 0), 0);
	assert_false(exists(path));
	sink_free(s);
	assert_false(exists(part));
	assert_events(path, 30);
}

/* Where the messages of capture @name end: at their dictionaries, the second field. */
static unsigned messages_of(const char *name)
{
	AUTO_FCLOSE FILE *f = fopen(name, "r");
	unsigned count = 0;

	assert_non_null(f);
	for (int tag; (tag = getc(f)) != EOF;) {
		long len = 0;
		int byte, shift = 0;

		do {
			byte = getc(f);
			len |= (long)(byte & 0x7f) << shift;
			shift += 7;
		} while (byte & 0x80);
		assert_int_equal(fseek(f, len, SEEK_CUR), 0);
		count += tag == (2 << 3 | 2);
	}
	return count;
}

/* A capture of one run ends as one message, with the mode of what grew. One that is larger, or without room, stays as it is.
 */
static void test_ends_as_one_message(void **state)
{
	static char payload[OTLP_RUN_BYTES];
	static const unsigned expected[] = { 1, 3, 3 };
	struct rlimit before;
	struct stat st;
	struct sink *s;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	memset(payload, '.', sizeof(payload));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (unsigned how = 0; how < 3; how++) {
		struct rlimit none = { how == 2 ? 10 : before.rlim_cur, before.rlim_max };

		assert_int_equal(sink_file_new(path, FILE_END_ORDERED, &s), 0);
		for (unsigned i = 1; i <= 3; i++) {
			struct profiles *p = agent_profiles(i, 10);

			if (how == 1 && i == 2)
				p->resources[0].scopes[0].profiles[0].original_payload = (struct str){ payload,
												       sizeof(payload) };
			assert_int_equal(sink_consume(s, p, NULL), 0);
			profiles_put(p);
		}
		assert_int_equal(sink_flush(s, 0), 0);
		assert_int_equal(messages_of(part), 3);
		assert_int_equal(chmod(part, 0640), 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
		sink_free(s);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_int_equal(messages_of(path), expected[how]);
		assert_false(exists(part));
		assert_false(exists(whole));
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0640);
		if (how != 1)
			assert_events(path, 30);
	}
}

/* Names and order survive the continued dictionaries: the third interval's functions are found behind those of the first. */
static void test_continuation_names(void **state)
{
	struct profiles *p;
	const struct resource_profiles *last;
	const struct sample *sample;
	const struct profile_location *location;
	struct sink *s;

	(void)state;
	assert_int_equal(sink_file_new(path, FILE_END_MERGED, &s), 0);
	for (unsigned i = 1; i <= 3; i++)
		consume(s, i, 4, 0);
	p = read_capture(part);
	assert_int_equal(p->resource_count, 3);
	last = &p->resources[2];
	assert_int_equal(last->scopes[0].profiles[0].sample_count, 4);
	sample = &last->scopes[0].profiles[0].samples[2];
	location = &p->dict.locations[p->dict.stacks[sample->stack_index].items[0]];
	assert_true(str_is(profiles_string(p, p->dict.functions[location->lines[0].function_index].name_strindex), "f3_2"));
	profiles_put(p);
	assert_int_equal(sink_flush(s, 0), 0);
	sink_free(s);
	p = read_capture(path); /* of one process, which is said once in the end, when that is wanted */
	assert_int_equal(p->resource_count, 1);
	assert_int_equal(p->resources[0].scopes[0].profiles[0].sample_count, 12);
	profiles_put(p);
	assert_int_equal(sink_file_new(path, FILE_END_ORDERED, &s), 0);
	for (unsigned i = 1; i <= 3; i++)
		consume(s, i, 4, 0);
	assert_int_equal(sink_flush(s, 0), 0);
	sink_free(s);
	p = read_capture(path);
	assert_int_equal(p->resource_count, 3);
	profiles_put(p);
}

static void test_empty_capture(void **state)
{
	struct profiles *p;
	struct sink *s;

	(void)state;
	assert_int_equal(sink_file_new(path, FILE_END_ORDERED, &s), 0);
	assert_int_equal(sink_flush(s, 0), 0);
	sink_free(s);
	assert_true(size_of(path) > 0);
	p = read_capture(path);
	assert_int_equal(p->resource_count, 0);
	assert_int_equal(p->dict.string_count, 1);
	assert_int_equal(p->dict.stack_count, 1);
	profiles_put(p);
}

static void test_no_flush_keeps_part(void **state)
{
	struct sink *s;

	(void)state;
	assert_int_equal(sink_file_new(path, FILE_END_ORDERED, &s), 0);
	consume(s, 1, 10, 0);
	sink_free(s);
	assert_false(exists(path));
	assert_events(part, 10);

	/* what that run left is replaced; a run that wrote nothing leaves nothing */
	assert_int_equal(sink_file_new(path, FILE_END_ORDERED, &s), 0);
	assert_int_equal(size_of(part), 0);
	sink_free(s);
	assert_false(exists(part));
}

static void test_busy(void **state)
{
	struct sink *s, *other;

	(void)state;
	assert_int_equal(sink_file_new(path, FILE_END_ORDERED, &s), 0);
	consume(s, 1, 10, 0);
	assert_int_equal(sink_file_new(path, FILE_END_ORDERED, &other), -EBUSY);
	assert_int_equal(sink_flush(s, 0), 0);
	sink_free(s);
	assert_events(path, 10);
}

static void test_refused_paths(void **state)
{
	char missing[96];
	struct sink *s;

	(void)state;
	snprintf(missing, sizeof(missing), "%s/no/x.otlp", dir);
	assert_int_equal(sink_file_new(dir, FILE_END_ORDERED, &s), -EISDIR);
	assert_int_equal(sink_file_new(missing, FILE_END_ORDERED, &s), -ENOENT);
	assert_int_equal(sink_file_new("/proc/x.otlp", FILE_END_ORDERED, &s), -ENOENT);
}

static void test_part_symlink_is_not_followed(void **state)
{
	char victim[96];
	struct sink *s;
	FILE *f;

	(void)state;
	snprintf(victim, sizeof(victim), "%s/victim", dir);
	f = fopen(victim, "w");
	assert_non_null(f);
	fputs("precious", f);
	fclose(f);
	assert_int_equal(symlink(victim, part), 0);
	assert_int_equal(sink_file_new(path, FILE_END_ORDERED, &s), 0);
	consume(s, 1, 10, 0);
	assert_int_equal(sink_flush(s, 0), 0);
	sink_free(s);
	assert_int_equal(size_of(victim), 8);
	assert_events(path, 10);
}

/* A link to a capture is followed: the file is replaced, the link stays. */
static void test_path_symlink_is_followed(void **state)
{
	char link_path[96];
	struct stat st;
	struct sink *s;
	FILE *f = fopen(path, "w");

	(void)state;
	assert_non_null(f);
	fclose(f);
	snprintf(link_path, sizeof(link_path), "%s/link", dir);
	assert_int_equal(symlink(path, link_path), 0);
	assert_int_equal(sink_file_new(link_path, FILE_END_ORDERED, &s), 0);
	consume(s, 1, 10, 0);
	assert_int_equal(sink_flush(s, 0), 0);
	sink_free(s);
	assert_int_equal(lstat(link_path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_events(path, 10);
}

static void test_devices(void **state)
{
	struct stat st;
	struct sink *s;

	(void)state;
	assert_int_equal(sink_file_new("/dev/null", FILE_END_ORDERED, &s), 0);
	consume(s, 1, 10, 0);
	assert_int_equal(sink_flush(s, 0), 0);
	sink_free(s);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));

	assert_int_equal(sink_file_new("/dev/full", FILE_END_ORDERED, &s), 0);
	consume(s, 1, 10, -ENOSPC);
	consume(s, 1, 10, -ENOSPC); /* sticks */
	assert_int_equal(sink_flush(s, 0), -ENOSPC);
	sink_free(s);
}

/* A disk that fills in the middle of a message (here: the limit on file sizes): the capture ends with the last whole one. */
static void test_disk_full(void **state)
{
	struct rlimit before, limit;
	uint64_t size;
	struct sink *s;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(sink_file_new(path, FILE_END_ORDERED, &s), 0);
	consume(s, 1, 10, 0);
	size = size_of(part);
	limit = before;
	limit.rlim_cur = size + 100;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	consume(s, 2, 1000, -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	consume(s, 3, 10, -EFBIG); /* sticks, though there is room again */
	assert_int_equal(size_of(part), size);
	assert_int_equal(sink_flush(s, 0), -EFBIG);
	sink_free(s);
	assert_false(exists(path));
	assert_events(part, 10);
}

static void test_stdout(void **state)
{
	int saved = dup(STDOUT_FILENO), fd = open(path, O_WRONLY | O_CREAT, 0600);
	struct sink *s;

	(void)state;
	assert_true(saved >= 0 && fd >= 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	assert_int_equal(sink_file_new("-", FILE_END_ORDERED, &s), 0);
	consume(s, 1, 10, 0);
	assert_int_equal(sink_flush(s, 0), 0);
	sink_free(s);
	assert_true(fcntl(STDOUT_FILENO, F_GETFD) >= 0); /* not ours to close */
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fd);
	assert_events(path, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_grows_as_part_and_is_renamed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ends_as_one_message, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_continuation_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_empty_capture, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_flush_keeps_part, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_busy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused_paths, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_part_symlink_is_not_followed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_path_symlink_is_followed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_devices, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_disk_full, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stdout, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
