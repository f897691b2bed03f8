/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of browsers: when they begin and end, and which one gives way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/http/sessions.h"
#include "backend/http/token.h"
#include "base/clock.h"

#define START (100 * NSEC_PER_SEC)
#define KEPT  (SESSIONS_KEPT_S * NSEC_PER_SEC)

static char path[64];
static struct tokens *tokens; /* "one" and "two" */
static struct sessions sessions;

static int setup(void **state)
{
	FILE *f;
	int fd;

	(void)state;
	strcpy(path, "/tmp/hearth-session-XXXXXX");
	fd = mkstemp(path);
	f = fdopen(fd, "w");
	fputs("one\ntwo\n", f);
	fclose(f);
	memset(&sessions, 0, sizeof(sessions));
	return tokens_new(path, &tokens);
}

static int teardown(void **state)
{
	(void)state;
	sessions_fini(&sessions);
	tokens_free(tokens);
	return unlink(path);
}

static void open_at(const char *token, uint64_t now_ns, char id[SESSION_ID_SIZE])
{
	const char *told = sessions_open(&sessions, token, now_ns);

	assert_non_null(told);
	assert_int_equal(strlen(told), SESSION_ID_SIZE - 1);
	strcpy(id, told);
}

static bool is_allowed(const char *id, uint64_t now_ns)
{
	return sessions_allow(&sessions, id, strlen(id), tokens, now_ns);
}

/* 256 bits as hexadecimal digits, other ones each time. */
static void test_ids(void **state)
{
	char first[SESSION_ID_SIZE], second[SESSION_ID_SIZE];

	(void)state;
	open_at("one", START, first);
	open_at("one", START, second);
	assert_int_equal(strspn(first, "0123456789abcdef"), 64);
	assert_string_not_equal(first, second);
	assert_string_not_equal(first + 32, second + 32);
	assert_true(is_allowed(first, START));
	assert_true(is_allowed(second, START));
}

static void test_ends_in_its_time(void **state)
{
	char id[SESSION_ID_SIZE];

	(void)state;
	open_at("one", START, id);
	assert_true(is_allowed(id, START + KEPT - 1));
	assert_false(is_allowed(id, START + KEPT));
	assert_false(is_allowed(id, START)); /* it has ended for ever */
}

static void test_ends_with_its_token(void **state)
{
	char id[SESSION_ID_SIZE];

	(void)state;
	open_at("three", START, id);
	assert_false(is_allowed(id, START + 1));
}

static void test_ends_by_its_browser(void **state)
{
	char id[SESSION_ID_SIZE], other[SESSION_ID_SIZE];

	(void)state;
	open_at("one", START, id);
	open_at("two", START, other);
	sessions_close(&sessions, "nonsense", 8);
	sessions_close(&sessions, id, strlen(id) - 1);
	assert_true(is_allowed(id, START));
	sessions_close(&sessions, id, strlen(id));
	assert_false(is_allowed(id, START));
	assert_true(is_allowed(other, START));
	sessions_close(&sessions, id, strlen(id));
}

/* A part of an id is none, nor is one with a digit more or another one, and nothing at all is none. */
static void test_what_is_no_id(void **state)
{
	char id[SESSION_ID_SIZE + 1];

	(void)state;
	open_at("one", START, id);
	assert_false(sessions_allow(&sessions, id, 63, tokens, START));
	assert_false(is_allowed("", START));
	id[63] = id[63] == '0' ? '1' : '0';
	assert_false(is_allowed(id, START));
	strcpy(id + 64, "0");
	assert_false(is_allowed(id, START));
	memset(id, 0, sizeof(id)); /* what is in the places of no session */
	assert_false(sessions_allow(&sessions, id, 64, tokens, START));
}

/* As many are kept as there is room for; then the one that would end first gives way, and no other. */
static void test_the_oldest_gives_way(void **state)
{
	static char ids[SESSIONS_MAX + 1][SESSION_ID_SIZE];

	(void)state;
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		open_at("one", START + (i == 20 ? 0 : i + 1), ids[i]);
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		assert_true(is_allowed(ids[i], START));
	open_at("one", START + 1000, ids[SESSIONS_MAX]);
	for (size_t i = 0; i <= SESSIONS_MAX; i++)
		assert_int_equal(is_allowed(ids[i], START), i != 20);
}

/* A place that was given back is taken before a session is ended. */
static void test_free_places_come_first(void **state)
{
	static char ids[SESSIONS_MAX][SESSION_ID_SIZE];
	char id[SESSION_ID_SIZE];

	(void)state;
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		open_at("one", START + i, ids[i]);
	sessions_close(&sessions, ids[SESSIONS_MAX - 1], SESSION_ID_SIZE - 1);
	open_at("two", START, id);
	for (size_t i = 0; i + 1 < SESSIONS_MAX; i++)
		assert_true(is_allowed(ids[i], START));
	assert_true(is_allowed(id, START));
}

#define SESSION_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSION_TEST(test_ids),
		SESSION_TEST(test_ends_in_its_time),
		SESSION_TEST(test_ends_with_its_token),
		SESSION_TEST(test_ends_by_its_browser),
		SESSION_TEST(test_what_is_no_id),
		SESSION_TEST(test_the_oldest_gives_way),
		SESSION_TEST(test_free_places_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
