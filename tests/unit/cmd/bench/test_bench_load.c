/* SPDX-License-Identifier: Apache-2.0 */
/* The load of `hearth bench`: a process of a name, on one CPU, which it keeps busy for as long as we live. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "cmd/bench/bench.h"
#include "tests/unit/descriptors.h"

static const char *proc(pid_t pid, const char *file)
{
	static char text[4096];
	AUTO(buf_fini) struct buf all = BUF_EMPTY;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	text[0] = '\0';
	if (!io_read_file(path, SIZE_MAX, &all))
		snprintf(text, sizeof(text), "%s", buf_text(&all));
	return text;
}

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* The last CPU that we may run on. */
static unsigned a_cpu(void)
{
	unsigned cpu = CPU_SETSIZE;
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (cpu-- && !CPU_ISSET(cpu, &set))
		;
	return cpu;
}

static void test_load(void **state)
{
	const unsigned cpu = a_cpu();
	pid_t pid = bench_load_start(cpu);
	cpu_set_t set;
	uint64_t before;
	int status;

	(void)state;
	assert_true(pid > 0);
	for (int i = 0; i < 10000 && cpu_ns(pid) < 20 * NSEC_PER_MSEC; i++)
		usleep(1000);
	assert_string_equal(proc(pid, "comm"), BENCH_LOAD "\n");
	assert_int_equal(sched_getaffinity(pid, sizeof(set), &set), 0);
	assert_int_equal(CPU_COUNT(&set), 1);
	assert_true(CPU_ISSET(cpu, &set));
	before = cpu_ns(pid);
	for (int i = 0; i < 10000 && cpu_ns(pid) < before + 20 * NSEC_PER_MSEC; i++)
		usleep(1000);
	assert_true(cpu_ns(pid) >= before + 20 * NSEC_PER_MSEC); /* and goes on */
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* It ends with who started it. */
static void test_parent_dies(void **state)
{
	int told[2];
	pid_t parent, pid = 0;

	(void)state;
	assert_int_equal(pipe(told), 0);
	parent = fork();
	if (!parent) {
		pid = bench_load_start(a_cpu());
		for (int i = 0; i < 10000 && cpu_ns(pid) < 5 * NSEC_PER_MSEC; i++)
			usleep(1000);
		_exit(write(told[1], &pid, sizeof(pid)) != sizeof(pid));
	}
	close(told[1]);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	assert_int_equal(read(told[0], &pid, sizeof(pid)), sizeof(pid));
	close(told[0]);
	for (int i = 0; i < 5000; i++) {
		const char *stat = proc(pid, "stat");

		if (!*stat || strstr(stat, ") Z "))
			return;
		usleep(1000);
	}
	kill(pid, SIGKILL);
	fail_msg("the load %d goes on", (int)pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_load), cmocka_unit_test(test_parent_dies) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
