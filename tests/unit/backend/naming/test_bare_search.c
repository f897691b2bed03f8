/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are looked for because frames came without names: which one is next, when, and what becomes of one whose
 * reading was given up. Where files are found (backend/naming/local_files.c) and what reads them (index_maker.c) are the
 * test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/naming/bare_names.h"
#include "backend/naming/index_maker.h"
#include "backend/naming/local_files.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/clock.h"
#include "tests/unit/descriptors.h"

#define FIRST  "aaaaaaaa00000001"
#define SECOND "bbbbbbbb00000002"
#define THIRD  "cccccccc00000003"

enum { REST_S = 10, AGAIN_S = 1 };

/* --- where files are --- */

static struct {
	int answer; /* 0: a file, this program */
	unsigned asked;
	char last[80]; /* the build id that was asked for last */
} places;

struct local_files *local_files_new(void)
{
	return calloc(1, 1);
}

void local_files_free(struct local_files *f)
{
	free(f);
}

int local_files_open(struct local_files *f, const char *build_id)
{
	(void)f;
	places.asked++;
	snprintf(places.last, sizeof(places.last), "%s", build_id);
	return places.answer ? places.answer : open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

/* --- what reads them --- */

static unsigned reads;

int index_make(int fd, const char *const *ids, const int *outs, size_t count, const _Atomic bool *abandon)
{
	(void)fd;
	(void)ids;
	(void)outs;
	assert_true(count > 0);
	reads++;
	return atomic_load(abandon) ? -ECANCELED : -ENODATA;
}

/* --- a store --- */

static const char *frames[8]; /* build ids */
static uint32_t frame_count;

static int bare_frames(struct store *s, uint32_t from, uint32_t *next_ret,
		       int (*fn)(void *arg, const struct store_frame *frame), void *arg)
{
	int err = 0;

	(void)s;
	for (*next_ret = from; *next_ret < frame_count && !err; *next_ret += !err) {
		struct store_frame frame = { .build_id = frames[*next_ret], .function = "", .address = *next_ret };

		err = fn(arg, &frame);
	}
	return err;
}

static int name_frames(struct store *s, const char *build_id, const struct store_name *names, size_t count)
{
	(void)s;
	(void)build_id;
	(void)names;
	(void)count;
	return 0;
}

static const struct store_read_ops read_ops = { .bare_frames = bare_frames };
static const struct store_write_ops write_ops = { .name_frames = name_frames };
static struct store store = { .read = &read_ops, .write = &write_ops };
static struct bare_names *names;
static char folder[64];

static int setup(void **state)
{
	(void)state;
	memset(&places, 0, sizeof(places));
	reads = frame_count = 0;
	strcpy(folder, "/tmp/hearth-search-XXXXXX");
	return !mkdtemp(folder) || bare_names_new(&store, folder, &names);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	bare_names_free(names);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* Frames without names of these files came. */
static void came(const char *first, const char *second, const char *third)
{
	const char *const ids[] = { first, second, third };

	for (size_t i = 0; i < 3; i++)
		if (ids[i])
			frames[frame_count++] = ids[i];
	assert_int_equal(bare_names_update(names), 0);
}

static int search(void)
{
	struct bare_names_taken taken = { .told = NULL };

	return bare_names_search(names, &taken);
}

/* --- tests --- */

static void test_nothing_is_wanted(void **state)
{
	(void)state;
	came(NULL, NULL, NULL);
	assert_true(bare_names_search_ns(names) == UINT64_MAX);
	assert_int_equal(search(), -ENOENT);
	assert_int_equal(places.asked, 0);
}

/* What is wanted is due at once, once a file, and in the order in which files came. */
static void test_each_file_once(void **state)
{
	(void)state;
	places.answer = -ENOENT;
	came(FIRST, FIRST, SECOND);
	assert_int_equal(bare_names_search_ns(names), 0);
	assert_int_equal(search(), -ENOENT);
	assert_string_equal(places.last, FIRST);
	assert_int_equal(bare_names_search_ns(names), 0);
	assert_int_equal(search(), -ENOENT);
	assert_string_equal(places.last, SECOND);
	assert_true(bare_names_search_ns(names) == UINT64_MAX);
	assert_int_equal(search(), -ENOENT);
	assert_int_equal(places.asked, 2);
	assert_int_equal(reads, 0);
}

/* A server that has not answered is asked a second later; others come first meanwhile. */
static void test_a_server_is_asked(void **state)
{
	uint64_t before_ns, again_ns;

	(void)state;
	came(FIRST, SECOND, NULL);
	places.answer = -EINPROGRESS;
	before_ns = clock_mono_ns();
	assert_int_equal(search(), -ENOENT);
	assert_string_equal(places.last, FIRST);
	assert_int_equal(bare_names_search_ns(names), 0);
	assert_int_equal(search(), -ENOENT);
	assert_string_equal(places.last, SECOND);
	again_ns = bare_names_search_ns(names);
	assert_in_range(again_ns, before_ns + AGAIN_S * NSEC_PER_SEC, clock_mono_ns() + AGAIN_S * NSEC_PER_SEC);
	places.answer = -ENOENT;
	assert_int_equal(search(), -ENOENT); /* who calls early is served */
	assert_string_equal(places.last, FIRST);
	assert_int_equal(search(), -ENOENT);
	assert_string_equal(places.last, SECOND);
	assert_true(bare_names_search_ns(names) == UINT64_MAX);
}

/* A file whose reading was given up is read again, ten seconds later. */
static void test_given_up(void **state)
{
	uint64_t before_ns, again_ns;

	(void)state;
	came(FIRST, NULL, NULL);
	bare_names_abandon(names);
	before_ns = clock_mono_ns();
	assert_int_equal(search(), -ECANCELED);
	again_ns = bare_names_search_ns(names);
	assert_in_range(again_ns, before_ns + REST_S * NSEC_PER_SEC, clock_mono_ns() + REST_S * NSEC_PER_SEC);
	assert_int_equal(search(), -ECANCELED); /* until others are read again */
	bare_names_resume(names);
	assert_int_equal(search(), -ENODATA);
	assert_string_equal(places.last, FIRST);
	assert_int_equal(reads, 3);
	assert_true(bare_names_search_ns(names) == UINT64_MAX);
}

/* It stands behind those that were not tried yet. */
static void test_given_up_comes_last(void **state)
{
	(void)state;
	came(FIRST, SECOND, THIRD);
	bare_names_abandon(names);
	assert_int_equal(search(), -ECANCELED);
	assert_string_equal(places.last, FIRST);
	bare_names_resume(names);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(bare_names_search_ns(names), 0);
		assert_int_equal(search(), -ENODATA);
		assert_string_not_equal(places.last, FIRST);
	}
	assert_true(bare_names_search_ns(names) > 0 && bare_names_search_ns(names) < UINT64_MAX);
	assert_int_equal(search(), -ENODATA);
	assert_string_equal(places.last, FIRST);
}

/* A file that is of no use is not looked for twice, and another reason than being given up is no reason to. */
static void test_of_no_use(void **state)
{
	(void)state;
	came(FIRST, NULL, NULL);
	assert_int_equal(search(), -ENODATA);
	assert_true(bare_names_search_ns(names) == UINT64_MAX);
	assert_int_equal(search(), -ENOENT);
	assert_int_equal(reads, 1);
}

/* Frames without a build id, or with one that nothing is kept under, ask for no file. */
static void test_no_build_id(void **state)
{
	static char longest[130];

	(void)state;
	memset(longest, 'a', sizeof(longest) - 1);
	came("", longest, NULL);
	assert_true(bare_names_search_ns(names) == UINT64_MAX);
}

#define SEARCH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SEARCH_TEST(test_nothing_is_wanted),   SEARCH_TEST(test_each_file_once),
		SEARCH_TEST(test_a_server_is_asked),   SEARCH_TEST(test_given_up),
		SEARCH_TEST(test_given_up_comes_last), SEARCH_TEST(test_of_no_use),
		SEARCH_TEST(test_no_build_id),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
