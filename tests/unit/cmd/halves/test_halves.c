/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's side of the two halves, with this test as keeper and as backend: what is asked for starts them; readiness,
 * ends and losses come in any order, also in one step, and each is told once, as it is.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "cmd/halves/channel.h"
#include "cmd/halves/halves.h"
#include "cmd/halves/keeper.h"
#include "cmd/setup/session.h"
#include "proto/otlp/otlp.h"
#include "proto/sink.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"

static struct session session;
static struct config config;
static struct halves *halves;
static struct sink *sink;
static int backend, control; /* the other ends */

/* --- the keeper --- */

static unsigned forks;
static bool keeps_given, lenient_given;
static int fork_error;
static pid_t keeper;

pid_t keeper_fork(struct share *share, bool keeps, bool is_lenient, int *sock_ret, int *control_ret)
{
	int channel[2], line[2];

	forks++;
	keeps_given = keeps;
	lenient_given = is_lenient;
	assert_non_null(share->backend.sinks.items);
	if (fork_error)
		return fork_error;
	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel), errno);
	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line), errno);
	*sock_ret = channel[0];
	*control_ret = line[0];
	backend = channel[1];
	control = line[1];
	keeper = fork();
	if (!keeper)
		_exit(0);
	(void)waitid(P_PID, (id_t)keeper, &(siginfo_t){ 0 }, WEXITED | WNOWAIT); /* it holds no socket any more */
	return keeper;
}

static void close_end(int *end)
{
	if (*end >= 0)
		close(*end);
	*end = -1;
}

static void say(const struct wire_note *note)
{
	assert_int_equal(wire_send_note(backend, note, -1), 0);
}

static void say_end(int pid, int status, uint64_t pause_ns)
{
	const struct keeper_note note = { .pid = pid, .wait_status = status, .pause_ns = pause_ns };

	assert_int_equal(send(control, &note, sizeof(note), 0), sizeof(note));
}

static struct wire_note ready_note(int status, bool keeps, unsigned port_index, uint16_t port)
{
	struct wire_note note = { .kind = NOTE_READY, .status = status };

	if (port)
		ready_set_port(&note, port_index, port);
	if (keeps)
		note.values[2] |= READY_KEEPS;
	return note;
}

/* Whatever has come is taken. */
static void take(void)
{
	for (int i = 0; i < 4; i++)
		assert_int_equal(loop_step(session.loop, 0), 0);
}

static void mark(void)
{
	log_warn("nothing else");
}

#define assert_said(text)     assert_true(is_said_last(text))
#define assert_nothing_said() assert_said("nothing else")

static int begin(void **state)
{
	(void)state;
	forks = 0;
	fork_error = 0;
	backend = control = -1;
	halves = NULL;
	sink = NULL;
	unsetenv("DEBUGINFOD_URLS");
	config = PARSED(&cmd_run, "--metrics-address", "127.0.0.1:0");
	session = (struct session){ .config = &config, .metrics = metrics_new() };
	mark();
	return loop_new(&session.loop);
}

static int end(void **state)
{
	(void)state;
	sink_free(sink);
	close_end(&backend);
	close_end(&control);
	halves_end(halves);
	metrics_free(session.metrics);
	loop_free(session.loop);
	config_fini(&config);
	return 0;
}

static void start(void)
{
	assert_int_equal(halves_fork(&config, false, false, &halves), 0);
	assert_non_null(halves);
	assert_int_equal(halves_connect(halves, &session, &sink), 0);
	assert_non_null(sink);
}

/* --- starting --- */

static void test_whether(void **state)
{
	static const struct {
		const char *words[3];
		bool keeps, forks;
	} rows[] = {
		{ { "--metrics-address", "127.0.0.1:0" }, false, true },
		{ { "--store", ":memory:" }, false, true },
		{ { NULL }, true, true },
		{ { NULL }, false, false },
		{ { "--one-process", "--store", ":memory:" }, true, false },
		{ { "--sink", "file=/dev/null" }, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *words[4] = { rows[i].words[0], rows[i].words[1], rows[i].words[2], NULL };
		const bool is_lenient = i % 2;
		int err;

		config_fini(&config);
		config = parse_words(&cmd_run, words);
		forks = 0;
		err = halves_fork(&config, rows[i].keeps, is_lenient, &halves);
		assert_int_equal(err, 0);
		assert_int_equal(forks, rows[i].forks);
		assert_int_equal(halves != NULL, rows[i].forks);
		if (halves) {
			assert_int_equal(keeps_given, rows[i].keeps);
			assert_int_equal(lenient_given, is_lenient);
			assert_null(halves_config(halves)->store);
			assert_null(halves_config(halves)->metrics_address);
		}
		assert_int_equal(halves_leave_agent_alone(halves, &config, rows[i].keeps), i != 4);
		halves_end(halves);
		halves = NULL;
		close_end(&backend);
		close_end(&control);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
		assert_int_equal(errno, ECHILD);
	}
	fork_error = -EAGAIN;
	config_fini(&config);
	config = PARSED(&cmd_run, "--store", ":memory:");
	assert_int_equal(halves_fork(&config, false, false, &halves), -EAGAIN);
	assert_null(halves);
	assert_said("cannot start the half of hearth that listens: Resource temporarily unavailable");
}

/* Functions that accept no halves. */
static void test_none(void **state)
{
	(void)state;
	assert_null(halves_page_url(NULL));
	halves_hold_log(NULL, true);
	halves_quiesce(NULL, 0);
	halves_end(NULL);
}

static void test_statuses(void **state)
{
	static const struct {
		int said, status;
	} rows[] = { { 0, 0 },
		     { STATUS_FAILED, STATUS_FAILED },
		     { STATUS_USAGE, STATUS_USAGE },
		     { STATUS_CHANGED, STATUS_FAILED },
		     { -1, STATUS_FAILED },
		     { 77, STATUS_FAILED } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct wire_note note = ready_note(rows[i].said, true, PAGE_PORT_METRICS, 9);

		if (i)
			assert_int_equal(begin(state), 0);
		start();
		say(&note);
		assert_int_equal(halves_wait(halves), rows[i].status);
		assert_null(halves_page_url(halves));
		assert_nothing_said();
		if (i + 1 < sizeof(rows) / sizeof(*rows))
			assert_int_equal(end(state), 0);
	}
}

/* Ports go to the keeper, for the backends that follow, and the page's into its address; later ones change nothing. */
static void test_ports(void **state)
{
	struct wire_note note = { .kind = NOTE_READY };
	struct keeper_ports ports;

	(void)state;
	config_fini(&config);
	config = PARSED(&cmd_run, "--http-address", "127.0.0.2:0", "--store", ":memory:");
	for (unsigned i = 0; i < PAGE_PORTS; i++)
		ready_set_port(&note, i, (uint16_t)(4000 + i));
	start();
	say(&note);
	assert_int_equal(halves_wait(halves), 0);
	assert_int_equal(recv(control, &ports, sizeof(ports), MSG_DONTWAIT), sizeof(ports));
	for (unsigned i = 0; i < PAGE_PORTS; i++)
		assert_int_equal(ports.ports[i], 4000 + i);
	assert_string_equal(halves_page_url(halves), "http://127.0.0.2:4000/");
	note = ready_note(STATUS_FAILED, false, PAGE_PORT_SHOWN, 5000);
	say(&note);
	take();
	assert_string_equal(halves_page_url(halves), "http://127.0.0.2:4000/");
	assert_true(recv(control, &ports, sizeof(ports), MSG_DONTWAIT) < 0);
	assert_nothing_said();
	close_end(&backend); /* it is not over, so this is a loss */
	take();
	assert_said("nobody keeps or sends profiles any more");
}

/* A signal ends the waiting. */
static void test_signalled(void **state)
{
	(void)state;
	start();
	session.is_signalled = true;
	assert_int_equal(halves_wait(halves), STATUS_FAILED);
	assert_nothing_said();
}

/* --- ends --- */

/* One that had nothing to do is ready and gone in one step: that is no loss. */
static void test_nothing_to_do(void **state)
{
	const struct wire_note note = ready_note(0, false, 0, 0);

	(void)state;
	start();
	say(&note);
	say_end(77, 2 << 8, UINT64_MAX);
	close_end(&backend);
	close_end(&control);
	assert_int_equal(halves_wait(halves), 0);
	take();
	assert_nothing_said();
}

/* One that refused is over in the same way: it has said why. */
static void test_refused(void **state)
{
	const struct wire_note note = ready_note(STATUS_USAGE, false, 0, 0);

	(void)state;
	start();
	say(&note);
	close_end(&backend);
	close_end(&control);
	assert_int_equal(halves_wait(halves), STATUS_USAGE);
	take();
	assert_nothing_said();
}

static void test_lost(void **state)
{
	static const struct {
		bool keeps;
		uint16_t port;
		bool is_loss;
	} rows[] = { { true, 0, true }, { false, 1, true }, { false, 0, false }, { true, 1, true } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct wire_note note = ready_note(0, rows[i].keeps, PAGE_PORT_METRICS, rows[i].port);

		if (i)
			assert_int_equal(begin(state), 0);
		start();
		say(&note);
		close_end(&backend);
		assert_int_equal(halves_wait(halves), 0);
		take();
		assert_said(rows[i].is_loss ? "nobody keeps or sends profiles any more: start hearth again"
					    : "nothing else");
		if (i + 1 < sizeof(rows) / sizeof(*rows))
			assert_int_equal(end(state), 0);
	}
}

/* The keeper's note of an end may be read before the note that says why. */
static void test_end_at_start(void **state)
{
	const struct wire_note note = ready_note(STATUS_USAGE, false, 0, 0);

	(void)state;
	start();
	say_end(77, 2 << 8, UINT64_MAX);
	take();
	say(&note);
	assert_int_equal(halves_wait(halves), STATUS_USAGE);
	assert_nothing_said();
	assert_int_equal(end(state), 0);

	assert_int_equal(begin(state), 0);
	start();
	say_end(77, SIGSEGV, 100 * NSEC_PER_MSEC);
	assert_int_equal(halves_wait(halves), STATUS_FAILED);
	assert_said("the half of hearth that listens has ended at its start; --one-process goes without it");
	mark();
	close_end(&control);
	close_end(&backend);
	take();
	assert_nothing_said(); /* it has been said */
}

static uint64_t restarts(void)
{
	return metric_get(metrics_counter(session.metrics, "hearth_backend_restarts_total", NULL,
					  "How often the half that listens was started again after its death."));
}

static void test_restarts(void **state)
{
	const struct wire_note note = ready_note(0, true, 0, 0);

	(void)state;
	start();
	say(&note);
	assert_int_equal(halves_wait(halves), 0);
	say_end(77, SIGKILL, 1500 * NSEC_PER_MSEC);
	take();
	assert_said(
		"the half of hearth that listens (process 77) was ended by signal 9 (Killed); it is started again in 1.5 s, "
		"samples wait meanwhile");
	assert_int_equal(restarts(), 1);
	say_end(78, 3 << 8, 30 * NSEC_PER_SEC);
	take();
	assert_said("(process 78) ended with status 3; it is started again in 30.0 s");
	assert_int_equal(restarts(), 2);
	mark();
	say_end(79, 1 << 8, UINT64_MAX); /* not started again */
	assert_int_equal(send(control, "x", 1, 0), 1);
	take();
	assert_nothing_said();
	assert_int_equal(restarts(), 2);
	close_end(&control);
	take();
	assert_said("the process that starts the half of hearth that listens has gone");
	mark();
	take();
	assert_nothing_said();
}

/* At the end nothing of this is news. */
static void test_ending(void **state)
{
	const struct wire_note note = ready_note(0, true, 0, 0);
	struct wire_message message = { 0 };

	(void)state;
	start();
	say(&(struct wire_note){ .kind = NOTE_HELLO, .number = 77 });
	say(&note);
	assert_int_equal(halves_wait(halves), 0);
	halves_hold_log(halves, true);
	halves_quiesce(halves, clock_mono_ns() + NSEC_PER_SEC);
	for (unsigned held = 0, kind = WIRE_KINDS; kind != WIRE_QUIESCE; kind = message.head.kind) {
		const struct wire_state *said;

		assert_int_equal(wire_receive(backend, &message), 0);
		said = (const struct wire_state *)(const void *)message.body.data;
		if (message.head.kind == WIRE_STATE)
			held = said->holds_log;
		if (message.head.kind == WIRE_QUIESCE) {
			assert_int_equal(held, 1);
			assert_in_range(message.head.number, 1, NSEC_PER_SEC);
		}
	}
	say_end(77, 0, UINT64_MAX - 1);
	take();
	assert_int_equal(restarts(), 0);
	close_end(&control);
	take();
	close_end(&backend);
	take();
	assert_nothing_said();
	buf_fini(&message.body);
}

/* Profiles go to who keeps some, and nowhere else. */
static void test_profiles(void **state)
{
	for (int keeps = 0; keeps < 2; keeps++) {
		const struct wire_note note = ready_note(0, keeps, PAGE_PORT_METRICS, 9);
		struct profiles *p = NULL;
		struct otlp_error why;
		struct wire_message message = { 0 };
		unsigned profiles = 0;
		char byte;

		if (keeps)
			assert_int_equal(begin(state), 0);
		start();
		say(&(struct wire_note){ .kind = NOTE_HELLO, .number = 77 });
		say(&note);
		assert_int_equal(halves_wait(halves), 0);
		assert_int_equal(otlp_decode((uint8_t *)"", 0, false, &p, &why), 0);
		assert_int_equal(sink_consume(sink, p, NULL), 0);
		profiles_put(p);
		while (recv(backend, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
			assert_int_equal(wire_receive(backend, &message), 0);
			profiles += message.head.kind == WIRE_PROFILES;
		}
		assert_int_equal(profiles, keeps);
		buf_fini(&message.body);
		if (!keeps)
			assert_int_equal(end(state), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whether, begin, end),
		cmocka_unit_test_setup_teardown(test_none, begin, end),
		cmocka_unit_test_setup_teardown(test_statuses, begin, end),
		cmocka_unit_test_setup_teardown(test_ports, begin, end),
		cmocka_unit_test_setup_teardown(test_signalled, begin, end),
		cmocka_unit_test_setup_teardown(test_nothing_to_do, begin, end),
		cmocka_unit_test_setup_teardown(test_refused, begin, end),
		cmocka_unit_test_setup_teardown(test_lost, begin, end),
		cmocka_unit_test_setup_teardown(test_end_at_start, begin, end),
		cmocka_unit_test_setup_teardown(test_restarts, begin, end),
		cmocka_unit_test_setup_teardown(test_ending, begin, end),
		cmocka_unit_test_setup_teardown(test_profiles, begin, end),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
