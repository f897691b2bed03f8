/* SPDX-License-Identifier: Apache-2.0 */
/* The backend's process: what it gives up, what it says when it is ready, and what it does with each message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/cmd/halves/backend_process.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/process_status.h"

static void file_is(int fd, const char *wanted)
{
	char path[64], target[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	(void)!readlink(path, target, sizeof(target) - 1);
	if (wanted)
		assert_string_equal(target, wanted);
	else
		assert_string_not_equal(target, "/dev/null");
}

/* It has a name, no signal that ends it but the agent's word, no terminal, and no way to more privileges. */
static void test_process(void **state)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE, SIGUSR1, SIGUSR2 };
	AUTO(buf_fini) struct buf name = BUF_EMPTY;
	sigset_t set, old;
	char path[64];

	(void)state;
	PREPARE("--store", ":memory:", "--page-address", "off", "--http-address", ANY, "--grpc-address", "off");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	start();
	sigprocmask(SIG_SETMASK, &old, NULL);
	expect_ready();
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	assert_int_equal(io_read_file(path, SIZE_MAX, &name), 0);
	assert_string_equal(buf_text(&name), "hearth-backend\n");
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		if (!(process_status(pid, "SigIgn:", 16) >> (ignored[i] - 1) & 1))
			fail_msg("signal %d is not ignored", ignored[i]);
	assert_int_equal(process_status(pid, "SigBlk:", 16), 0);
	assert_int_equal(process_status(pid, "NoNewPrivs:", 10), 1);
	assert_int_equal(process_status(pid, "Seccomp:", 10), 2);
	file_is(STDIN_FILENO, "/dev/null");
	file_is(STDOUT_FILENO, "/dev/null");
	welcome();
	expect_flushed(NSEC_PER_SEC, 0, 0, 0);
}

/* As the owner of a store, who is not root. */
static void test_owner(void **state)
{
	(void)state;
	if (geteuid()) {
		print_message("left out: another owner, as this is not root\n");
		return;
	}
	PREPARE("--store", ":memory:", "--http-address", ANY, "--grpc-address", "off");
	handed.owner = (struct owner){ .is_decided = true, .changes = true, .uid = 54321, .gid = 54322 };
	start();
	expect_ready();
	assert_int_equal(process_status(pid, "\nUid:", 10), 54321);
	assert_int_equal(process_status(pid, "\nGid:", 10), 54322);
	assert_int_equal(process_status(pid, "CapEff:", 16), 0);
	welcome();
	tell_profiles(1);
	expect(NOTE_ACK);
	assert_int_equal(note.status, 0);
	expect_flushed(NSEC_PER_SEC, 0, 0, 0);
}

static void test_ports(void **state)
{
	uint16_t shown, metrics, receiver;

	(void)state;
	PREPARE("--store", ":memory:", "--http-address", ANY, "--page-address", ANY, "--metrics-address", ANY,
		"--grpc-address", "off");
	start();
	expect_ready();
	shown = ready_port(&note, PAGE_PORT_SHOWN);
	receiver = ready_port(&note, PAGE_PORT_RECEIVER);
	metrics = ready_port(&note, PAGE_PORT_METRICS);
	assert_true(shown && receiver && metrics && shown != receiver && shown != metrics);
	assert_int_equal(ready_port(&note, PAGE_PORT_GRPC), 0);
	assert_true(note.values[2] & READY_KEEPS);
	page_will_say(shown, "/", "HTTP/1.1 200");
	page_will_say(metrics, "/metrics", "HTTP/1.1 200");
	welcome();
	tell(WIRE_QUIESCE, NSEC_PER_SEC, NULL, 0);
	for (int i = 0; i < LAST_MS && *page_says(shown, "/"); i++)
		usleep(1000);
	assert_string_equal(page_says(shown, "/"), ""); /* it has stopped, and the store has not */
	tell_profiles(3);
	expect(NOTE_ACK);
	assert_int_equal(note.status, 0);
	expect_flushed(NSEC_PER_SEC, 0, 0, 0);
}

/* Profiles for an earlier backend are passed over; the others are kept, or refused. */
static void test_profiles(void **state)
{
	(void)state;
	PREPARE("--store", ":memory:", "--http-address", ANY, "--grpc-address", "off");
	start();
	expect_ready();
	tell_profiles(1);
	tell(WIRE_WELCOME, (uint64_t)pid + 1, NULL, 0);
	tell_profiles(2);
	welcome();
	tell_profiles(3);
	expect(NOTE_ACK);
	assert_int_equal(note.number, 3);
	assert_int_equal(note.status, 0);
	tell(WIRE_WELCOME, (uint64_t)pid + 1, NULL, 0); /* once is for good */
	tell(WIRE_PROFILES, 4, "\xff\xff\xff", 3);
	expect(NOTE_ACK);
	assert_int_equal(note.number, 4);
	assert_true(note.status < 0);
	tell_profiles(5);
	expect(NOTE_ACK);
	assert_int_equal(note.number, 5);
	assert_int_equal(note.status, 0);
	expect_none(0);
	expect_flushed(NSEC_PER_SEC, 0, 0, 0);
}

/* The agent's state, counts and messages are the page's. */
static void test_agent_seen(void **state)
{
	static const char series[] = "hearth_told_total\0What was told.\0part=\"a\"\0counter\0\0\x2a\0\0\0\0\0\0";
	struct wire_state agent = { .cpu_ns = 5000 * NSEC_PER_SEC, .resident_bytes = 1, .pid = 1, .log_level = LOG_DEBUG };
	struct log_message log[2] = { { .unix_ns = 1, .level = LOG_WARN, .text = "the agent says so" },
				      { .unix_ns = 2, .level = LOG_WARN, .text = "and more" } };
	uint16_t port;

	(void)state;
	PREPARE("--store", ":memory:", "--http-address", ANY, "--grpc-address", "off");
	start();
	expect_ready();
	port = ready_port(&note, PAGE_PORT_SHOWN);
	welcome();
	page_will_say(port, "/readyz", "HTTP/1.1 503");
	tell(WIRE_STATE, 0, &agent, sizeof(agent) - 1); /* of another version: left out */
	tell(WIRE_METRICS, 0, series, sizeof(series));
	page_will_say(port, "/metrics", "hearth_told_total{part=\"a\"} 42\n");
	assert_null(strstr(page_says(port, "/metrics"), "process_cpu_seconds_total 500"));
	page_will_say(port, "/readyz", "HTTP/1.1 503");
	tell(WIRE_STATE, 0, &agent, sizeof(agent));
	page_will_say(port, "/readyz", "HTTP/1.1 200");
	page_will_say(port, "/metrics", "process_cpu_seconds_total 5000");
	memset(log[1].text + 8, 'e', sizeof(log[1].text) - 8); /* no end of a text */
	tell(WIRE_LOG, 0, log, sizeof(log));
	page_will_say(port, "/api/v1/status", "the agent says so");
	page_will_say(port, "/api/v1/status", "and moree");
	expect_flushed(NSEC_PER_SEC, 0, 0, 0);
}

/* While a screen is drawn, messages wait. */
static void test_held(void **state)
{
	struct wire_state agent = { .pid = 1, .log_level = LOG_WARN, .holds_log = 1 };

	(void)state;
	PREPARE("--store", ":memory:", "--http-address", ANY, "--grpc-address", "off");
	start();
	expect_ready();
	welcome();
	tell(WIRE_STATE, 0, &agent, sizeof(agent));
	page_will_say(ready_port(&note, PAGE_PORT_SHOWN), "/readyz", "HTTP/1.1 200");
	assert_int_equal(ftruncate(fileno(messages), 0), 0);
	close(sock); /* of which it says something */
	sock = -1;
	assert_int_equal(ended(), BACKEND_DONE);
	assert_true(said("the half of hearth that samples has ended"));
}

/* --- senders --- */

static const struct http_answer takes_all[] = { { "POST /", 200, "" }, { 0 } };

static void test_senders(void **state)
{
	struct http_answers collector;

	(void)state;
	http_answers_begin(&collector, takes_all);
	PREPARE("--collector", collector.url);
	start();
	expect_ready();
	assert_int_equal(note.values[0] | note.values[1], 0);
	assert_int_equal(note.values[2], READY_KEEPS);
	welcome();
	tell_profiles(9);
	expect(NOTE_ACK); /* of who takes them to send them */
	assert_int_equal(note.number, 9);
	assert_int_equal(note.status, 0);
	expect_flushed(5 * NSEC_PER_SEC, 0, 0, 0);
	assert_int_equal(collector.count, 1);
	assert_true(collector.body_bytes > 100);
	http_answers_end(&collector);

	/* what a collector refuses is told at the end, and a store beside it keeps it all the same */
	http_answers_begin(&collector, takes_nothing);
	PREPARE("--collector", collector.url, "--store", ":memory:", "--http-address", ANY, "--grpc-address", "off");
	start();
	expect_ready();
	welcome();
	tell_profiles(10);
	expect(NOTE_ACK);
	assert_int_equal(note.number, 10);
	assert_int_equal(note.status, 0);
	expect_none(50);
	tell(WIRE_FLUSH, 5 * NSEC_PER_SEC, NULL, 0);
	expect(NOTE_FLUSHED);
	assert_true(note.values[0] > 0);
	assert_int_equal(note.values[1], 0);
	assert_int_equal(ended(), BACKEND_DONE);
	assert_true(collector.count > 0);
	http_answers_end(&collector);
}

/* What is printed stays on standard output. */
static void test_prints(void **state)
{
	int out = dup(STDOUT_FILENO);
	AUTO_FCLOSE FILE *printed = tmpfile();

	(void)state;
	PREPARE("--store", ":memory:", "--http-address", ANY, "--grpc-address", "off");
	share.senders.print = true;
	fflush(stdout);
	dup2(fileno(printed), STDOUT_FILENO);
	start();
	dup2(out, STDOUT_FILENO);
	close(out);
	expect_ready();
	file_is(STDIN_FILENO, "/dev/null");
	file_is(STDOUT_FILENO, NULL);
	welcome();
	expect_flushed(NSEC_PER_SEC, 0, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process),	 cmocka_unit_test(test_owner),	    cmocka_unit_test(test_ports),
		cmocka_unit_test(test_profiles), cmocka_unit_test(test_agent_seen), cmocka_unit_test(test_held),
		cmocka_unit_test(test_senders),	 cmocka_unit_test(test_prints),
	};

	setenv("HEARTH_CONFIG", "/dev/null", 1);
	unsetenv("DEBUGINFOD_URLS");
	return run_group_of_descriptors(tests, set_up, tear_down);
}
