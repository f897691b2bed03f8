/* SPDX-License-Identifier: Apache-2.0 */
/* Debug files that the backend fetches for the agent: each question has one answer, once it is known, with its own number.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/loop.h"
#include "cmd/halves/fetch.h"
#include "cmd/halves/wire.h"

#define ID "feedc0de01feedc0de01feedc0de01feedc0de01"

static char folder[] = "/tmp/test_fetch.XXXXXX";
static struct loop *loop;
static int socks[2];

static void run(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && %s", folder, command);
	assert_int_equal(system(line), 0);
}

static int make(void **state)
{
	char text[128];

	(void)state;
	if (!mkdtemp(folder) || loop_new(&loop) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return -1;
	run("echo 'int main(void) { return 0; }' >a.c && mkdir -p served/buildid/" ID " && gcc -g -Wl,--build-id=0x" ID
	    " -o served/buildid/" ID "/debuginfo a.c");
	snprintf(text, sizeof(text), "%s/cache", folder);
	setenv("DEBUGINFOD_CACHE_PATH", text, 1);
	snprintf(text, sizeof(text), "file://%s/served/", folder);
	setenv("DEBUGINFOD_URLS", text, 1);
	return 0;
}

static int destroy(void **state)
{
	(void)state;
	run("rm -r \"$PWD\"");
	loop_free(loop);
	close(socks[0]);
	close(socks[1]);
	return 0;
}

/* The next answer, within some seconds: its status; whether it has a file must fit. */
static int answer(uint64_t *number_ret)
{
	struct wire_note note;
	int fd = -1, err;

	for (int i = 0; i < 200; i++) {
		err = wire_receive_note(socks[1], &note, &fd);
		if (err != -EAGAIN)
			break;
		(void)loop_step(loop, 100);
	}
	assert_int_equal(err, 0);
	assert_int_equal(note.kind, NOTE_SERVED);
	assert_int_equal(fd >= 0, note.status == 0);
	if (fd >= 0)
		close(fd);
	*number_ret = note.number;
	return note.status;
}

static void test_answers(void **state)
{
	struct fetch *f = fetch_new(loop);
	uint64_t number;

	(void)state;
	assert_non_null(f);
	fetch_ask(f, socks[0], 7, ID);
	assert_int_equal(answer(&number), 0);
	assert_int_equal(number, 7);
	fetch_ask(f, socks[0], 8, ID); /* it is in the cache now */
	assert_int_equal(answer(&number), 0);
	assert_int_equal(number, 8);
	fetch_ask(f, socks[0], 9, "0123456789012345678901234567890123456789");
	assert_int_equal(answer(&number), -ENOENT);
	assert_int_equal(number, 9);
	fetch_ask(f, socks[0], 10, "no id");
	assert_int_equal(answer(&number), -EINVAL);
	assert_int_equal(number, 10);
	fetch_free(f);
}

/* Several at once, some for one file: one answer each. */
static void test_many(void **state)
{
	enum { MANY = 64 };
	struct fetch *f = fetch_new(loop);
	bool seen[MANY] = { false };
	uint64_t number;
	char id[41];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		snprintf(id, sizeof(id), "%040x", i / 2);
		fetch_ask(f, socks[0], (uint64_t)i, id);
	}
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(answer(&number), -ENOENT);
		assert_true(number < MANY && !seen[number]);
		seen[number] = true;
	}
	fetch_free(f);
}

static void test_no_server(void **state)
{
	uint64_t number;

	(void)state;
	unsetenv("DEBUGINFOD_URLS");
	assert_null(fetch_new(loop));
	fetch_ask(NULL, socks[0], 3, ID);
	assert_int_equal(answer(&number), -ENOENT);
	assert_int_equal(number, 3);
	fetch_free(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_no_server),
	};

	return cmocka_run_group_tests(tests, make, destroy);
}
