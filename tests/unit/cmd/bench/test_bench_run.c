/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that `hearth bench` runs: their files, their ends, and what is measured of them and their children. The test
 * itself stands for hearth: argv[1] says what it does then. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
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

enum { MEMORY_BYTES = 48 << 20 };

static char folder[64], in[96], out[96], messages[96];

/* --- as hearth --- */

static void spin(uint64_t ns)
{
	struct timespec t;

	do {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while ((uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec < ns);
}

/* Has the memory, touched, until it is told to end; with a child that has as much. */
static int remember(void)
{
	const pid_t child = fork();
	char *memory = malloc(MEMORY_BYTES);

	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(memory, 1, MEMORY_BYTES);
	spin(50 * NSEC_PER_MSEC);
	signal(SIGINT, SIG_DFL);
	if (child)
		puts("ready");
	fflush(stdout);
	pause();
	return memory[0];
}

static void on_interrupt(int signo)
{
	(void)signo;
	_exit(0);
}

static int hearth(const char *does)
{
	if (!strcmp(does, "spin"))
		spin(150 * NSEC_PER_MSEC);
	else if (!strcmp(does, "child-spins") && !fork())
		spin(150 * NSEC_PER_MSEC);
	else if (!strcmp(does, "child-spins"))
		wait(NULL);
	else if (!strcmp(does, "remember"))
		return remember();
	else if (!strcmp(does, "sleep"))
		usleep(150000);
	else if (!strcmp(does, "wait")) {
		signal(SIGINT, on_interrupt);
		puts("ready");
		fflush(stdout);
		pause();
	} else
		return 7;
	return 0;
}

/* --- --- */

static void wait_for_line(const char *path)
{
	struct stat st;

	for (int i = 0; i < 10000 && (stat(path, &st) || !st.st_size); i++)
		usleep(1000);
}

static void begin(struct bench_run *r, const char *does)
{
	unlink(out);
	assert_int_equal(bench_start(r, (const char *const[]){ "hearth", does, NULL }, NULL, out, NULL), 0);
	assert_true(r->pid > 0);
}

static void file_says(const char *path, const char *wanted)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	assert_int_equal(io_read_file(path, SIZE_MAX, &text), 0);
	assert_string_equal(buf_text(&text), wanted);
}

static int shell(const char *script, const char *from, const char *to, const char *errors)
{
	struct bench_run r;

	assert_int_equal(bench_start(&r, (const char *const[]){ "sh", "-c", script, NULL }, from, to, errors), 0);
	return bench_wait(&r);
}

static void test_files(void **state)
{
	AUTO_FCLOSE FILE *f = fopen(in, "we");
	struct stat st;
	char count[16];

	(void)state;
	fputs("a\nb\n", f);
	fflush(f);
	unlink(out);
	unlink(messages);
	assert_int_equal(shell("cat; echo e >&2", in, out, messages), 0);
	file_says(out, "a\nb\n");
	file_says(messages, "e\n");
	assert_int_equal(stat(out, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(shell("cat", NULL, out, NULL), 0); /* of nothing; what was there goes */
	file_says(out, "");
	assert_int_equal(shell("exec 1>&2; test \"$(readlink /proc/self/fd/0)\" = /dev/null", NULL, NULL, NULL), 0);
	assert_int_equal(shell("ls /proc/self/fd | wc -l", NULL, out, NULL), 0);
	snprintf(count, sizeof(count), "%d\n", open_descriptors());
	file_says(out, count); /* ours but @f, and the folder that is read */
	assert_int_equal(shell("true", "/nowhere/x", NULL, NULL), -EPROTO);
	assert_int_equal(shell("true", NULL, "/nowhere/x", NULL), -EPROTO);
	assert_int_equal(shell("true", NULL, NULL, "/nowhere/x"), -EPROTO);
}

static void test_ends(void **state)
{
	struct bench_run r;

	(void)state;
	assert_int_equal(shell("exit 0", NULL, NULL, NULL), 0);
	assert_int_equal(shell("exit 1", NULL, NULL, NULL), -EPROTO);
	assert_int_equal(shell("kill -9 $$", NULL, NULL, NULL), -EPROTO);
	assert_int_equal(bench_start(&r, (const char *const[]){ "no-such-program", NULL }, NULL, NULL, NULL), 0);
	assert_int_equal(bench_wait(&r), -EPROTO);
	assert_int_equal(WEXITSTATUS(r.status), 127);
	assert_int_equal(bench_wait(&r), -ECHILD); /* it has ended already */
	begin(&r, "nothing");
	assert_int_equal(bench_wait(&r), -EPROTO);
	assert_int_equal(WEXITSTATUS(r.status), 7);
	begin(&r, "wait");
	wait_for_line(out);
	assert_int_equal(bench_end(&r), 0);
	assert_true(WIFEXITED(r.status));
	begin(&r, "remember");
	wait_for_line(out);
	assert_int_equal(bench_end(&r), -EPROTO); /* which knows nothing of Ctrl-C */
	assert_true(WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGINT);
}

/* A program does not outlive us. */
static void test_parent_dies(void **state)
{
	pid_t parent, pid = 0;
	int told[2];

	(void)state;
	assert_int_equal(pipe(told), 0);
	parent = fork();
	if (!parent) {
		struct bench_run r;

		begin(&r, "remember");
		wait_for_line(out);
		(void)!write(told[1], &r.pid, sizeof(r.pid));
		_exit(0);
	}
	close(told[1]);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	assert_int_equal(read(told[0], &pid, sizeof(pid)), sizeof(pid));
	close(told[0]);
	for (int i = 0; i < 5000 && kill(pid, 0) == 0; i++) {
		AUTO(buf_fini) struct buf stat = BUF_EMPTY;
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		if (io_read_file(path, SIZE_MAX, &stat) || strstr(buf_text(&stat), ") Z "))
			return;
		usleep(1000);
	}
	assert_int_equal(kill(pid, 0), -1);
}

static void test_time(void **state)
{
	const uint64_t began = clock_mono_ns();
	struct bench_run r;

	(void)state;
	begin(&r, "spin");
	assert_in_range(r.began_ns, began, clock_mono_ns());
	assert_int_equal(bench_wait(&r), 0);
	assert_in_range(r.cpu_ns, 150 * NSEC_PER_MSEC, 600 * NSEC_PER_MSEC);
	assert_in_range(r.wall_ns, 150 * NSEC_PER_MSEC, clock_mono_ns() - began);
	begin(&r, "child-spins");
	assert_int_equal(bench_wait(&r), 0);
	assert_in_range(r.cpu_ns, 150 * NSEC_PER_MSEC, 600 * NSEC_PER_MSEC);
	begin(&r, "sleep");
	assert_int_equal(bench_wait(&r), 0);
	assert_in_range(r.cpu_ns, 1, 100 * NSEC_PER_MSEC);
	assert_true(r.wall_ns >= 150 * NSEC_PER_MSEC);
}

/* While it runs: of it and of its child. */
static void test_looks(void **state)
{
	struct bench_run r, unseen;
	uint64_t memory, cpu = 0;

	(void)state;
	begin(&r, "remember");
	wait_for_line(out);
	for (int i = 0; i < 5000 && cpu < 100 * NSEC_PER_MSEC; i++) {
		usleep(1000);
		cpu = bench_cpu_ns(&r);
	}
	assert_in_range(cpu, 100 * NSEC_PER_MSEC, 600 * NSEC_PER_MSEC); /* each took 50 ms and more */
	assert_int_equal(r.memory_bytes, 0);
	bench_look(&r);
	memory = r.memory_bytes;
	assert_in_range(memory, 2ull * MEMORY_BYTES, 4ull * MEMORY_BYTES);
	r.memory_bytes = memory * 2; /* the most counts */
	bench_look(&r);
	assert_int_equal(r.memory_bytes, memory * 2);
	(void)bench_end(&r);
	assert_int_equal(bench_cpu_ns(&r), 0);
	unseen = r;
	unseen.memory_bytes = 0;
	bench_look(&unseen);
	assert_int_equal(unseen.memory_bytes, 0);
	begin(&r, "sleep"); /* waiting looks, too */
	assert_int_equal(bench_wait(&r), 0);
	assert_true(r.memory_bytes > 0);
}

static void test_has(void **state)
{
	const char *before = strdup(getenv("PATH"));
	char path[256], file[96];

	(void)state;
	snprintf(file, sizeof(file), "%s/a-program", folder);
	fclose(fopen(file, "we"));
	setenv("PATH", "/nowhere", 1);
	assert_false(bench_has("a-program"));
	snprintf(path, sizeof(path), "/nowhere:%s:/nowhere/too", folder);
	setenv("PATH", path, 1);
	assert_false(bench_has("a-program")); /* it may not be run */
	assert_int_equal(chmod(file, 0755), 0);
	assert_true(bench_has("a-program"));
	assert_false(bench_has("a-progra"));
	setenv("PATH", folder, 1);
	assert_true(bench_has("a-program"));
	unsetenv("PATH");
	assert_false(bench_has("a-program"));
	setenv("PATH", before, 1);
	free((char *)(uintptr_t)before);
	unlink(file);
}

static void on_alarm(int signo)
{
	(void)signo;
}

static void test_sleep(void **state)
{
	struct sigaction act = { .sa_handler = on_alarm };
	uint64_t began = clock_mono_ns();

	(void)state;
	sigaction(SIGALRM, &act, NULL);
	ualarm(20000, 0);
	bench_sleep(60 * NSEC_PER_MSEC); /* a signal does not end it */
	assert_in_range(clock_mono_ns() - began, 60 * NSEC_PER_MSEC, 5 * NSEC_PER_SEC);
	began = clock_mono_ns();
	bench_sleep(NSEC_PER_SEC + NSEC_PER_MSEC);
	assert_in_range(clock_mono_ns() - began, NSEC_PER_SEC + NSEC_PER_MSEC, 5 * NSEC_PER_SEC);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_bench_run.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(in, sizeof(in), "%s/in", folder);
	snprintf(out, sizeof(out), "%s/out", folder);
	snprintf(messages, sizeof(messages), "%s/messages", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(in);
	unlink(out);
	unlink(messages);
	return rmdir(folder);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files), cmocka_unit_test(test_ends),  cmocka_unit_test(test_parent_dies),
		cmocka_unit_test(test_time),  cmocka_unit_test(test_looks), cmocka_unit_test(test_has),
		cmocka_unit_test(test_sleep),
	};

	if (argc > 1 && !strcmp(argv[0], "hearth"))
		return hearth(argv[1]);
	return run_group_of_descriptors(tests, setup, teardown);
}
