/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's settings as options make them: names become numbers, and each wrong one is told by its option. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/proc/proc_root.h"
#include "agent/runtime/choice.h"
#include "base/clock.h"
#include "cmd/setup/agent_setup.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"

static void test_usual(void **state)
{
	struct config config = PARSED(&cmd_run, NULL);
	struct agent_setup setup;

	(void)state;
	assert_int_equal(agent_setup_init(&setup, &config), 0);
	assert_int_equal(setup.agent.freq_hz, 20);
	assert_int_equal(setup.agent.off_cpu_ns, 0);
	assert_int_equal(setup.agent.memory_bytes, 0);
	assert_int_equal(setup.agent.malloc_bytes, 0);
	assert_int_equal(setup.agent.symbols, SYMBOLS_FULL);
	assert_int_equal(setup.agent.runtimes_off, 0);
	assert_null(setup.agent.event);
	assert_int_equal(setup.agent.probe_count, 0);
	assert_int_equal(setup.agent.filter.cpu_count, 0);
	assert_int_equal(setup.agent.filter.uid_count, 0);
	assert_false(setup.agent.filter.no_kernel || setup.agent.filter.kernel_only || setup.agent.filter.idle);
	agent_setup_fini(&setup);
	assert_null(setup.agent.kinds);
	config_fini(&config);
}

/* Waiting is sampled from the usual length on, unless one is named; asking who woke implies it. */
static void test_waits(void **state)
{
	static const struct {
		const char *words[4];
		uint64_t off_cpu_ns;
		bool wakers;
	} cases[] = {
		{ { NULL }, 0, false },
		{ { "--off-cpu" }, OFF_CPU_USUAL, false },
		{ { "--off-cpu", "--off-cpu-from", "2ms" }, 2 * NSEC_PER_MSEC, false },
		{ { "--off-cpu-from", "2ms" }, 0, false },
		{ { "--wakers" }, OFF_CPU_USUAL, true },
		{ { "--wakers", "--off-cpu-from", "3ms" }, 3 * NSEC_PER_MSEC, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config config = parse_words(&cmd_run, cases[i].words);
		struct agent_setup setup;

		assert_int_equal(agent_setup_init(&setup, &config), 0);
		assert_int_equal(setup.agent.off_cpu_ns, cases[i].off_cpu_ns);
		assert_int_equal(setup.agent.wakers, cases[i].wakers);
		agent_setup_fini(&setup);
		config_fini(&config);
	}
}

static void test_values(void **state)
{
	struct config config = PARSED(&cmd_run, "--cpu", "0-2,8", "--uid", "root,4294967294,12", "--memory", "--symbols",
				      "tables", "--no-kernel", "--runtimes", "python,lua", "-e", "task-clock", "-e",
				      "kprobe:vfs_read", "-e", "fentry:do_exit");
	static const uint32_t cpus[] = { 0, 1, 2, 8 }, uids[] = { 0, 4294967294, 12 };
	struct agent_setup setup;
	uint32_t off;

	(void)state;
	assert_int_equal(agent_setup_init(&setup, &config), 0);
	assert_int_equal(setup.agent.filter.cpu_count, ARRAY_LEN(cpus));
	assert_memory_equal(setup.agent.filter.cpus, cpus, sizeof(cpus));
	assert_int_equal(setup.agent.filter.uid_count, ARRAY_LEN(uids));
	assert_memory_equal(setup.agent.filter.uids, uids, sizeof(uids));
	assert_int_equal(setup.agent.memory_bytes, 512 << 10);
	assert_int_equal(setup.agent.malloc_bytes, 0);
	assert_int_equal(setup.agent.symbols, SYMBOLS_TABLES);
	assert_true(setup.agent.filter.no_kernel);
	off = setup.agent.runtimes_off; /* all but the two, so the first of a list begins with none */
	assert_int_equal(off & (RUNTIME_BIT(RUNTIME_PYTHON) | RUNTIME_BIT(RUNTIME_LUA)), 0);
	assert_int_not_equal(off & RUNTIME_BIT(RUNTIME_PHP), 0);
	assert_string_equal(setup.agent.event, "task-clock");
	assert_int_equal(setup.agent.probe_count, 2);
	assert_string_equal(setup.agent.probes[0], "kprobe:vfs_read");
	assert_string_equal(setup.agent.probes[1], "fentry:do_exit");
	agent_setup_fini(&setup);
	config_fini(&config);
}

/* malloc is no event of perf's: it has a number of bytes, and may stand beside one. */
static void test_allocations(void **state)
{
	struct agent_setup setup;
	struct config config;
	char pid[16];

	(void)state;
	snprintf(pid, sizeof(pid), "%d", (int)getpid()); /* it has an allocator */
	config = PARSED(&cmd_run, "-e", "malloc", "-e", "cpu-clock", "-p", pid, "--memory-every", "64K", "--symbols", "off");
	assert_int_equal(agent_setup_init(&setup, &config), 0);
	assert_int_equal(setup.agent.malloc_bytes, 64 << 10);
	assert_int_equal(setup.agent.memory_bytes, 0); /* --memory was not said */
	assert_string_equal(setup.agent.event, "cpu-clock");
	assert_int_equal(setup.agent.probe_count, 0);
	assert_int_equal(setup.agent.symbols, SYMBOLS_OFF);
	assert_int_equal(setup.agent.filter.pid_count, 1);
	assert_int_equal(setup.agent.filter.pids[0], getpid());
	agent_setup_fini(&setup);
	config_fini(&config);
}

static void test_refused(void **state)
{
	static const struct {
		const char *words[5], *says; /* NULL: it is taken */
	} cases[] = {
		{ { "--cpu", "x" }, "--cpu: 'x' is no list of CPUs" },
		{ { "--cpu", "3-1" }, "--cpu: '3-1' is no list of CPUs" },
		{ { "--cpu", "0" }, NULL },
		{ { "--uid", "no-such-user" }, "--uid: there is no user 'no-such-user'" },
		{ { "--uid", "4294967295" }, "--uid: there is no user '4294967295'" },
		{ { "-e", "cycles", "-e", "instructions" }, "'cycles' and 'instructions': there may be one event" },
		{ { "--runtimes", "pythn" }, "--runtimes: there is no 'pythn'; did you mean python?" },
		{ { "--runtimes", "xyzzyx" }, "--runtimes: there is no 'xyzzyx'; 'hearth help record' has the names" },
		{ { "--runtimes", "lua,xyzzyx" }, "--runtimes: there is no 'xyzzyx'" },
		{ { "--resource-attributes", "x" }, "--resource-attributes: 'x' is not KEY=VALUE" },
		{ { "--resource-attributes", "a=b" }, NULL },
		{ { "-e", "no-such-event" }, "--event: " },
		{ { "--proc", "/no-such-folder" }, "/no-such-folder is not there" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config config = parse_words(&cmd_run, cases[i].words);
		struct agent_setup setup;
		int err = agent_setup_init(&setup, &config);

		if (!err != !cases[i].says || (err && err != -EINVAL && err != -ENOENT) ||
		    (err && !is_said_last(cases[i].says)))
			fail_msg("%s %s: %d", cases[i].words[0], cases[i].words[1], err);
		agent_setup_fini(&setup);
		config_fini(&config);
	}
}

static void test_long_proc(void **state)
{
	char path[PROC_ROOT_MAX_BYTES + 2];
	struct agent_setup setup;
	struct config config;

	(void)state;
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	config = PARSED(&cmd_run, "--proc", path);
	assert_true(agent_setup_init(&setup, &config) < 0);
	assert_true(is_said_last("--proc: '/xxxx"));
	agent_setup_fini(&setup);
	config_fini(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usual),	    cmocka_unit_test(test_waits),   cmocka_unit_test(test_values),
		cmocka_unit_test(test_allocations), cmocka_unit_test(test_refused), cmocka_unit_test(test_long_proc),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
