/* SPDX-License-Identifier: Apache-2.0 */
/* How the backend's process ends: with its agent, for want of anything to do, and where something cannot be opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store.h"
#include "tests/unit/cmd/halves/backend_process.h"
#include "tests/unit/descriptors.h"

static void test_agent_ends(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	AUTO_CLOSE int deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* connections come, and no answer */
	char url[64];
	uint64_t began;

	(void)state;
	assert_return_code(bind(deaf, (struct sockaddr *)&at, len), errno);
	assert_return_code(listen(deaf, 8), errno);
	assert_return_code(getsockname(deaf, (struct sockaddr *)&at, &len), errno);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", ntohs(at.sin_port));
	for (int i = 0; i < 3; i++) {
		if (i == 2)
			PREPARE("--collector", url, "--drain-timeout", "300ms");
		else
			PREPARE("--collector", url);
		start();
		expect_ready();
		welcome();
		tell_profiles(1);
		expect(NOTE_ACK);
		if (!i) {
			tell(WIRE_FLUSH, 60 * NSEC_PER_SEC, NULL, 0);
			expect_none(100);
		}
		began = clock_mono_ns();
		close(sock);
		sock = -1;
		assert_int_equal(ended(), BACKEND_DONE);
		if (i == 0) /* the agent was told to hurry: at once */
			assert_in_range(clock_mono_ns() - began, 0, 1400 * NSEC_PER_MSEC);
		else if (i == 1) /* it tries for a second and a half */
			assert_in_range(clock_mono_ns() - began, 1400 * NSEC_PER_MSEC, 4 * NSEC_PER_SEC);
		else
			assert_in_range(clock_mono_ns() - began, 250 * NSEC_PER_MSEC, 1300 * NSEC_PER_MSEC);
		assert_int_equal(said("the half of hearth that samples has ended"), i > 0);
	}
}

/* Nothing that a backend is for: it says so, and goes. */
static void test_not_needed(void **state)
{
	(void)state;
	PREPARE("--sink", "null");
	start();
	expect(NOTE_READY);
	assert_int_equal(note.status, 0);
	assert_int_equal(note.values[0] | note.values[1] | note.values[2], 0);
	expect_end();
	assert_int_equal(ended(), BACKEND_REFUSED);
}

/* --- what cannot be opened --- */

static void test_refused(void **state)
{
	static const struct {
		int store_errno;
		bool is_first, is_lenient, keeps, is_named;
		int ready, status;
		const char *says;
	} rows[] = {
		{ -EACCES, true, false, false, true, STATUS_FAILED, BACKEND_REFUSED, "error: no store here\n" },
		{ -EINVAL, true, false, false, true, STATUS_USAGE, BACKEND_REFUSED, "error: no store here\n" },
		{ -EACCES, false, false, false, true, -1, BACKEND_FAILED, "error: no store here\n" },
		{ -EACCES, true, true, true, true, STATUS_FAILED, BACKEND_REFUSED, "error: no store here\n" },
		{ -EACCES, true, true, true, false, 0, BACKEND_REFUSED,
		  "warning: profiles are not kept, and there is no page: no store here\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].is_named)
			PREPARE("--store", ":memory:", "--http-address", ANY, "--grpc-address", "off");
		else
			PREPARE("--http-address", ANY, "--grpc-address", "off");
		handed.store_errno = rows[i].store_errno;
		strcpy(handed.store_error, "no store here");
		task.is_first = rows[i].is_first;
		task.is_lenient = rows[i].is_lenient;
		task.keeps = rows[i].keeps;
		start();
		if (rows[i].ready >= 0) {
			expect(NOTE_READY);
			assert_int_equal(note.status, rows[i].ready);
			assert_int_equal(note.values[2] & READY_KEEPS, 0);
		}
		expect_end();
		assert_int_equal(ended(), rows[i].status);
		if (!said(rows[i].says))
			fail_msg("row %zu does not say '%s'", i, rows[i].says);
	}
}

/* An address that is taken is refused, unless hearth may go on without it; and wrong senders are. */
static void test_taken(void **state)
{
	struct http_answers taker;
	const char *address;

	(void)state;
	http_answers_begin(&taker, takes_nothing);
	address = taker.url + strlen("http://");
	for (int i = 0; i < 2; i++) {
		PREPARE("--store", ":memory:", "--http-address", ANY, "--metrics-address", address, "--grpc-address", "off");
		task.is_lenient = i;
		start();
		if (i) {
			expect_ready();
			welcome();
			expect_flushed(NSEC_PER_SEC, 0, 0, 0);
			continue;
		}
		expect(NOTE_READY);
		assert_int_equal(note.status, STATUS_FAILED);
		expect_end();
		assert_int_equal(ended(), BACKEND_REFUSED);
		assert_true(said("Address already in use"));
	}
	http_answers_end(&taker);
	PREPARE("--collector", "ftp://h");
	start();
	expect(NOTE_READY);
	assert_true(note.status == STATUS_USAGE || note.status == STATUS_FAILED);
	expect_end();
	assert_int_equal(ended(), BACKEND_REFUSED);
	assert_true(said("ftp"));
}

/* A process that has the store in @folder open, until it is killed. */
static pid_t keep_store(const char *folder)
{
	const struct store_config other = { .place = folder, .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	struct store_error why;
	struct store *store;
	int told[2];
	char c;
	pid_t keeper;

	assert_int_equal(pipe(told), 0);
	fflush(NULL);
	keeper = fork();
	if (!keeper) {
		c = store_sqlite_open(&other, NULL, &store, &why) ? 'n' : 'y';
		(void)!write(told[1], &c, 1);
		for (;;)
			pause();
	}
	close(told[1]);
	assert_int_equal(read(told[0], &c, 1), 1);
	close(told[0]);
	assert_int_equal(c, 'y');
	return keeper;
}

static void end_keeper(pid_t keeper)
{
	kill(keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
}

/* A backend that has just died may have the store for a moment. */
static void test_busy(void **state)
{
	char folder[] = "/tmp/test_backend_half.XXXXXX", command[96];
	uint64_t began;
	pid_t keeper;

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (int i = 0; i < 2; i++) {
		keeper = keep_store(folder);
		PREPARE("--store", folder, "--http-address", ANY, "--grpc-address", "off");
		hand_over(&share, false, &handed);
		began = clock_mono_ns();
		start();
		expect_none(i ? 0 : 400);
		if (i) {
			expect(NOTE_READY);
			assert_int_equal(note.status, STATUS_FAILED);
			assert_in_range(clock_mono_ns() - began, 2900 * NSEC_PER_MSEC, 30 * NSEC_PER_SEC);
			expect_end();
			assert_int_equal(ended(), BACKEND_REFUSED);
			assert_true(said("another process writes there"));
		}
		end_keeper(keeper);
		if (!i) {
			expect_ready();
			welcome();
			tell_profiles(1);
			expect(NOTE_ACK);
			assert_int_equal(note.status, 0);
			expect_flushed(NSEC_PER_SEC, 0, 0, 0);
			assert_false(said("another process"));
		}
	}
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agent_ends), cmocka_unit_test(test_not_needed), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_taken),	   cmocka_unit_test(test_busy),
	};

	setenv("HEARTH_CONFIG", "/dev/null", 1);
	unsetenv("DEBUGINFOD_URLS");
	return run_group_of_descriptors(tests, set_up, tear_down);
}
