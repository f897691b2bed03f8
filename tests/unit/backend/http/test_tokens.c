/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: which headers show one, which file holds some, and how long who guesses must wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/http/guesses.h"
#include "backend/http/token.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/token_file.h"

#define EACH  ((uint64_t)GUESSES_EACH_S * NSEC_PER_SEC)
#define START (1000 * NSEC_PER_SEC)

static void test_files(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		int err;
	} cases[] = {
		{ "one", 3, 0 },
		{ "one\n", 4, 0 },
		{ "\r\n one \t two\n\n", 14, 0 },
		{ "", 0, -ENODATA },
		{ " \r\n\t\n", 5, -ENODATA },
		{ "a\0b", 3, -ENODATA },
	};
	static char long_text[1 << 17];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tokens *t = NULL;

		write_file(cases[i].text, cases[i].len);
		assert_int_equal(tokens_new(path, &t), cases[i].err);
		if (!cases[i].err)
			assert_true(tokens_know(t, "one"));
		assert_true(cases[i].err || !tokens_know(t, "on"));
		tokens_free(t);
	}
	memset(long_text, 'a', sizeof(long_text));
	for (int is_there = 1; is_there >= 0; is_there--) {
		struct tokens *t = NULL;

		write_file(long_text, sizeof(long_text)); /* no tokens, but some file */
		assert_int_equal(tokens_new(is_there ? path : "/no/such/file", &t), is_there ? -ENODATA : -ENOENT);
	}
	tokens_free(NULL);
}

/* The most that a file may hold; what is longer is no file of tokens, whatever its first words are. */
static void test_the_longest_file(void **state)
{
	enum { MOST = (64 << 10) - 1 };
	static char text[MOST + 2];
	struct tokens *t = NULL;

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "one\n", 4);
	write_file(text, MOST);
	assert_int_equal(tokens_new(path, &t), 0);
	assert_true(tokens_know(t, "one"));
	text[MOST] = '\0';
	assert_true(tokens_know(t, text + 4));
	tokens_free(t);
	text[MOST] = 'a';
	for (size_t more = 1; more <= 2; more++) {
		t = NULL;
		write_file(text, MOST + more);
		assert_int_equal(tokens_new(path, &t), -ENODATA);
		assert_null(t);
	}
}

/* Any number of tokens; each of them is good, and nothing that goes over a border of two. */
static void test_many_tokens(void **state)
{
	static char text[16000];
	struct tokens *t = NULL;
	size_t len = 0;
	char token[16];

	(void)state;
	for (int i = 0; i < 1000; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "token-%d%s", i, i % 2 ? "\n" : " ");
	write_file(text, len);
	assert_int_equal(tokens_new(path, &t), 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(token, sizeof(token), "token-%d", i);
		assert_true(tokens_know(t, token));
	}
	assert_false(tokens_know(t, "token-1000"));
	assert_false(tokens_know(t, "token-0 token-1"));
	assert_false(tokens_know(t, "token-"));
	assert_false(tokens_know(t, ""));
	tokens_free(t);
}

static void test_headers(void **state)
{
	static const struct {
		const char *header;
		enum token_verdict verdict;
		const char *token;
	} cases[] = {
		{ NULL, TOKEN_NONE, NULL },
		{ "Bearer one", TOKEN_GOOD, "one" },
		{ "bEARER   three", TOKEN_GOOD, "three" },
		{ "Basic eDpvbmU=", TOKEN_GOOD, "one" },     /* x:one */
		{ "basic OnRocmVl", TOKEN_GOOD, "three" },   /* :three */
		{ "Basic b25l", TOKEN_WRONG, NULL },	     /* one */
		{ "Basic eDp5Om9uZQ==", TOKEN_WRONG, NULL }, /* x:y:one, a password with a colon */
		{ "Basic ???", TOKEN_WRONG, NULL },
		{ "Bearer", TOKEN_WRONG, NULL },
		{ "Bearer on", TOKEN_WRONG, NULL },
		{ "Bearer oneone", TOKEN_WRONG, NULL },
		{ "Bearer one ", TOKEN_WRONG, NULL },
		{ "Bearerone", TOKEN_WRONG, NULL },
		{ "Digest one", TOKEN_WRONG, NULL },
		{ "one", TOKEN_WRONG, NULL },
		{ "", TOKEN_WRONG, NULL },
	};

	(void)state;
	write_file("one\nthree\n", 10);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *token = NULL;
		struct tokens *t;

		assert_int_equal(tokens_new(path, &t), 0);
		if (tokens_judge(t, cases[i].header, NULL, &token) != cases[i].verdict)
			fail_msg("'%s'", cases[i].header);
		if (cases[i].token)
			assert_string_equal(token, cases[i].token);
		else
			assert_null(token);
		tokens_free(t);
	}
}

/* --- guesses --- */

static struct sockaddr_storage peer_of(const char *text)
{
	struct sockaddr_storage ret = { .ss_family = strchr(text, ':') ? AF_INET6 : AF_INET };
	void *to = ret.ss_family == AF_INET ? (void *)&((struct sockaddr_in *)&ret)->sin_addr
					    : (void *)&((struct sockaddr_in6 *)&ret)->sin6_addr;

	assert_int_equal(inet_pton(ret.ss_family, text, to), 1);
	return ret;
}

static uint64_t wait_ns(const struct guesses *g, const char *peer, uint64_t now_ns)
{
	struct sockaddr_storage from = peer_of(peer);

	return guesses_wait_ns(g, (const struct sockaddr *)&from, now_ns);
}

static void guess(struct guesses *g, const char *peer, unsigned number, uint64_t now_ns)
{
	struct sockaddr_storage from = peer_of(peer);
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	guesses_wrong(g, (const struct sockaddr *)&from, text, strlen(text), now_ns);
}

static void test_guesses(void **state)
{
	static const char me[] = "10.0.0.1", other[] = "10.0.0.2";
	static struct guesses g;

	(void)state;
	for (unsigned i = 0; i < GUESSES_AT_ONCE; i++) {
		assert_int_equal(wait_ns(&g, me, START), 0);
		guess(&g, me, i, START);
		guess(&g, me, i, START); /* the same one counts once */
	}
	assert_int_equal(wait_ns(&g, me, START), EACH);
	assert_int_equal(wait_ns(&g, me, START + EACH - 1), 1);
	assert_int_equal(wait_ns(&g, me, START + EACH), 0);
	assert_int_equal(wait_ns(&g, other, START), 0);
	assert_int_equal(wait_ns(&g, "::ffff:10.0.0.1", START), EACH); /* the same address */
	guess(&g, me, 100, START + EACH);
	assert_int_equal(wait_ns(&g, me, START + EACH), EACH);
	/* Of those of long ago so many are known again. */
	guess(&g, other, 1, START);
	for (unsigned i = 2; i <= GUESSES_KEPT; i++)
		guess(&g, other, i, START);
	for (unsigned i = 1; i <= GUESSES_KEPT; i++)
		guess(&g, other, i, START);
	for (unsigned i = GUESSES_KEPT + 1; i < GUESSES_AT_ONCE; i++)
		guess(&g, other, i, START);
	assert_int_equal(wait_ns(&g, other, START), 0);
	guess(&g, other, 1, START);
	assert_int_equal(wait_ns(&g, other, START), EACH);
}

/* Of IPv6 the network counts; one peer too many takes the place of the one not heard of for longest. */
static void test_peers(void **state)
{
	static struct guesses g;

	(void)state;
	for (unsigned i = 0; i < GUESSES_AT_ONCE; i++) {
		char host[32];

		snprintf(host, sizeof(host), "2001:db8:0:1::%x", i + 1);
		guess(&g, host, i, START);
	}
	assert_int_equal(wait_ns(&g, "2001:db8:0:1:ffff::", START), EACH);
	assert_int_equal(wait_ns(&g, "2001:db8:0:2::1", START), 0);
	memset(&g, 0, sizeof(g));
	for (unsigned i = 0; i < GUESSES_AT_ONCE; i++)
		guess(&g, "10.0.0.1", i, START);
	for (unsigned i = 0; i < GUESSES_PEERS - 1; i++) {
		char host[32];

		snprintf(host, sizeof(host), "10.1.%u.%u", i / 250, i % 250 + 1);
		guess(&g, host, i, START);
	}
	assert_int_equal(wait_ns(&g, "10.0.0.1", START), EACH);
	guess(&g, "10.2.0.1", 1, START); /* in place of one with a single guess */
	assert_int_equal(wait_ns(&g, "10.0.0.1", START), EACH);
}

static void test_too_many(void **state)
{
	struct sockaddr_storage me = peer_of("10.0.0.1"), other = peer_of("10.0.0.2");
	struct tokens *t;

	(void)state;
	write_file("one\n", 4);
	assert_int_equal(tokens_new(path, &t), 0);
	for (unsigned i = 0; i < GUESSES_AT_ONCE; i++) {
		char text[32];

		snprintf(text, sizeof(text), "Bearer wrong%u", i);
		assert_int_equal(tokens_judge(t, text, (struct sockaddr *)&me, NULL), TOKEN_WRONG);
	}
	assert_int_equal(tokens_judge(t, "Bearer one", (struct sockaddr *)&me, NULL), TOKEN_TOO_MANY);
	assert_int_equal(tokens_judge(t, "Bearer one", (struct sockaddr *)&other, NULL), TOKEN_GOOD);
	tokens_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_longest_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_tokens, setup, teardown),
		cmocka_unit_test_setup_teardown(test_headers, setup, teardown),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_peers),
		cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
