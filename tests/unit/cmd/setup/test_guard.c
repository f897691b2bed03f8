/* SPDX-License-Identifier: Apache-2.0 */
/* Who may see profiles, by options: users by name or number, certificates and tokens that can be read, and warnings. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "cmd/setup/guard.h"
#include "cmd/setup/user.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"

/* guard_init() with @words; *@g is the caller's to end. */
static int make(struct guard *g, const char *const *words)
{
	struct config config = parse_words(&cmd_serve, words);
	struct metrics *metrics = metrics_new();
	int err;

	*g = (struct guard){ 0 };
	err = guard_init(g, &config, metrics);
	metrics_free(metrics);
	config_fini(&config);
	return err;
}

#define MAKE(g, ...) make(g, (const char *const[]){ __VA_ARGS__, NULL })

static void test_users(void **state)
{
	struct guard g;

	(void)state;
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	assert_int_equal(MAKE(&g, "--http-allow-uid", "12,root,4294967294"), 0);
	assert_int_equal(g.users.count, 3);
	assert_int_equal(g.users.readers, 0);
	assert_int_equal(g.users.uids[0], 12);
	assert_int_equal(g.users.uids[1], 0);
	assert_int_equal(g.users.uids[2], 4294967294);
	assert_false(g.users.all);
	guard_fini(&g);

	setenv("SUDO_UID", "1000", 1); /* who called sudo may read, before those that are named */
	setenv("SUDO_GID", "1000", 1);
	assert_int_equal(MAKE(&g, "--http-allow-uid", "any,12"), 0);
	assert_int_equal(g.users.count, 2);
	assert_int_equal(g.users.readers, 1);
	assert_int_equal(g.users.uids[0], 1000);
	assert_int_equal(g.users.uids[1], 12);
	assert_true(g.users.all);
	guard_fini(&g);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static void test_refused(void **state)
{
	static const struct {
		const char *words[5], *says;
		int err;
	} cases[] = {
		{ { "--http-allow-uid", "no-such-user" }, "--http-allow-uid: there is no user 'no-such-user'", -EINVAL },
		{ { "--http-allow-uid", "4294967295" }, "--http-allow-uid: there is no user '4294967295'", -EINVAL },
		{ { "--tls-key", "x" }, "--tls-key needs --tls-cert", -EINVAL },
		{ { "--tls-client-ca", "x" }, "--tls-client-ca needs --tls-cert", -EINVAL },
		{ { "--tls-cert", "/nowhere/x", "--tls-key", "/nowhere/x" }, "--tls-cert: ", -ENOENT },
		{ { "--token-file", "/nowhere/x" }, "--token-file: cannot use /nowhere/x: No such file", -ENOENT },
		{ { "--token-file", "/dev/null" }, "--token-file: cannot use /dev/null: there is no token in it", -ENODATA },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct guard g;
		int err = make(&g, cases[i].words);

		if (err != cases[i].err || !is_said_last(cases[i].says))
			fail_msg("%s: %d", cases[i].says, err);
		guard_fini(&g);
	}
}

/* Addresses with the port that was taken; who listens for others without a guard is told what is missing. */
static void test_url(void **state)
{
	static const struct {
		const char *address, *url, *says; /* NULL: there is no warning */
		bool tls, tokens, asks_clients;
	} cases[] = {
		{ "127.0.0.1:0", "http://127.0.0.1:80", NULL, false, false, false },
		{ "[::1]:0", "http://[::1]:80", NULL, false, false, false },
		{ "localhost:1", "http://localhost:80", NULL, false, false, false },
		{ "0.0.0.0:1", "http://0.0.0.0:80",
		  "http://0.0.0.0:80 is reachable from other machines, without TLS or a token", false, false, false },
		{ "0.0.0.0:2", "https://0.0.0.0:80", "without a token (--token-file)", true, false, false },
		{ "0.0.0.0:3", "http://0.0.0.0:80", "without TLS (--tls-cert)", false, true, false },
		{ "0.0.0.0:4", "http://0.0.0.0:80", "without TLS or a token", false, false, true },
		{ "0.0.0.0:5", "https://0.0.0.0:80", NULL, true, true, false },
		{ "0.0.0.0:6", "https://0.0.0.0:80", NULL, true, false, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct guard g = { .tls = cases[i].tls ? (struct tls *)&g : NULL,
					 .tokens = cases[i].tokens ? (struct tokens *)&g : NULL,
					 .asks_clients = cases[i].asks_clients };
		AUTO(buf_fini) struct buf out = BUF_EMPTY;

		log_warn("nothing yet");
		buf_puts(&out, "at ");
		guard_url(&g, "http", cases[i].address, 80, &out);
		assert_string_equal(buf_text(&out) + 3, cases[i].url);
		if (!is_said_last(cases[i].says ? cases[i].says : "nothing yet"))
			fail_msg("%s", cases[i].address);
	}
}

/* The person behind sudo is one whose numbers are right; root is nobody to give files to. */
static void test_behind_sudo(void **state)
{
	static const struct {
		const char *uid, *gid;
		bool is_one;
	} cases[] = {
		{ "1000", "1001", true },     { NULL, "1001", false },	    { "1000", NULL, false },
		{ "0", "0", false },	      { "1000", "0", true },	    { "x", "1001", false },
		{ "1000", "x", false },	      { "4294967295", "1", false }, { "4294967294", "1", true },
		{ "1", "4294967295", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct user user = { .uid = 7, .gid = 7 };

		(void)(cases[i].uid ? setenv("SUDO_UID", cases[i].uid, 1) : unsetenv("SUDO_UID"));
		(void)(cases[i].gid ? setenv("SUDO_GID", cases[i].gid, 1) : unsetenv("SUDO_GID"));
		if (user_behind_sudo(&user) != cases[i].is_one)
			fail_msg("%s %s", cases[i].uid, cases[i].gid);
		assert_int_equal(user.uid, cases[i].is_one ? (uid_t)strtoul(cases[i].uid, NULL, 10) : 7);
		assert_int_equal(user.gid, cases[i].is_one ? (gid_t)strtoul(cases[i].gid, NULL, 10) : 7);
		assert_int_equal(user_invoking(&user), cases[i].is_one && geteuid() == 0);
	}
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_url),
		cmocka_unit_test(test_behind_sudo),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
