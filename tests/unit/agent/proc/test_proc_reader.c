/* SPDX-License-Identifier: Apache-2.0 */
/* Reading files of processes: what comes back, and who lets nobody look. A pipe in the place of /proc is as silent. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/proc/proc_maps.h"
#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_root.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"

enum { SILENT = 7, HONEST = 8, LONG_BYTES = 300000 };

static char root[64];
static struct metrics *metrics;
static struct buf got;
static unsigned hooks;

static const char *below(uint32_t pid, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%u%s%s", root, pid, *name ? "/" : "", name);
	return path;
}

static void write_file(uint32_t pid, const char *name, const void *data, size_t bytes)
{
	AUTO_CLOSE int fd = open(below(pid, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, data, bytes), bytes);
}

static uint64_t count(const char *name)
{
	return atomic_load(&metrics_counter(metrics, name, NULL, "")->value);
}

static int make(void **state)
{
	(void)state;
	strcpy(root, "/tmp/hearth-proc-XXXXXX");
	metrics = metrics_new();
	hooks = 0;
	return !metrics || !mkdtemp(root) || mkdir(below(SILENT, ""), 0700) || mkdir(below(HONEST, ""), 0700) ||
	       mkfifo(below(SILENT, "mem"), 0600) || mkfifo(below(SILENT, "maps"), 0600) || proc_root_set(root) ||
	       proc_reader_start(metrics);
}

static int destroy(void **state)
{
	char command[128];

	(void)state;
	proc_reader_stop();
	buf_fini(&got);
	metrics_free(metrics);
	(void)proc_root_set(NULL);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void hook(void *arg)
{
	struct buf inner = BUF_EMPTY;

	assert_null(arg);
	hooks++;
	/* One question more may be asked meanwhile, and gets its own answer. */
	assert_int_equal(proc_read_at_once(HONEST, HONEST, "mem", 2, 3, &inner), 0);
	assert_int_equal(inner.len, 3);
	assert_memory_equal(inner.data, "cde", 3);
	buf_fini(&inner);
}

/* Bytes at an offset, fewer at the end, none of a file that is not there; and as many as do not fit into one packet. */
static void test_read(void **state)
{
	AUTO_FREE uint8_t *bytes = malloc(LONG_BYTES);

	(void)state;
	for (int i = 0; i < LONG_BYTES; i++)
		bytes[i] = (uint8_t)(i * 7 >> 3);
	write_file(HONEST, "mem", bytes, LONG_BYTES);
	assert_int_equal(proc_read(HONEST, HONEST, "mem", 100, 16, &got), 0);
	assert_int_equal(got.len, 16);
	assert_memory_equal(got.data, bytes + 100, 16);
	assert_int_equal(proc_read(HONEST, HONEST, "mem", LONG_BYTES - 5, 16, &got), 0);
	assert_int_equal(got.len, 5);
	assert_int_equal(proc_read(HONEST, HONEST, "mem", 1, LONG_BYTES, &got), 0);
	assert_int_equal(got.len, LONG_BYTES - 1);
	assert_memory_equal(got.data, bytes + 1, LONG_BYTES - 1);
	assert_int_equal(proc_read(HONEST, HONEST, "maps", 0, 16, &got), -ENOENT);
	assert_int_equal(got.len, 0);
	assert_int_equal(proc_read(HONEST, HONEST, "mem", UINT64_MAX - 5, 16, &got), -EINVAL);
}

/* The stack, and behind it where the thread is; a stack of no bytes has that too. */
static void test_stack(void **state)
{
	char where[PROC_SYSCALL_BYTES];

	(void)state;
	write_file(HONEST, "mem", "abcdefgh", 8);
	assert_int_equal(proc_read_stack(HONEST, HONEST, 2, 4, &got, where), 0);
	assert_string_equal(where, "");
	write_file(HONEST, "syscall", "34 0x1 0x2\n", 11);
	assert_int_equal(proc_read_stack(HONEST, HONEST, 2, 4, &got, where), 0);
	assert_int_equal(got.len, 4);
	assert_memory_equal(got.data, "cdef", 4);
	assert_string_equal(where, "34 0x1 0x2\n");
	assert_int_equal(proc_read_stack(HONEST, HONEST, 100, 4, &got, where), 0);
	assert_int_equal(got.len, 0);
	assert_string_equal(where, "34 0x1 0x2\n");
}

/* A descriptor of the file; a pipe is none that we read. */
static void test_open(void **state)
{
	char bytes[4] = "";

	(void)state;
	write_file(HONEST, "mem", "abcdefgh", 8);
	AUTO_CLOSE int fd = proc_open(HONEST, HONEST, "mem");
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(pread(fd, bytes, 3, 1), 3);
	assert_string_equal(bytes, "bcd");
	assert_int_equal(proc_open(HONEST, HONEST, "maps"), -ENOENT);
	assert_int_equal(proc_open(SILENT, SILENT, "mem"), -EINVAL);
}

/* Links, as far as they fit, and the beginning of a text; a folder as a place to open others in. */
static void test_links(void **state)
{
	char text[8];
	struct stat st, expected;

	(void)state;
	assert_int_equal(symlink("/a/longer/path", below(HONEST, "exe")), 0);
	assert_int_equal(symlink("/tmp", below(HONEST, "root")), 0);
	write_file(HONEST, "stat", "8 (name) R", 10);
	for (int at_once = 0; at_once < 2; at_once++) {
		assert_int_equal(proc_read_link(HONEST, HONEST, "exe", at_once, text, sizeof(text)), 7);
		assert_string_equal(text, "/a/long");
	}
	assert_int_equal(proc_read_link(HONEST, HONEST, "cwd", false, text, sizeof(text)), -ENOENT);
	assert_string_equal(text, "");
	assert_int_equal(proc_read_text(HONEST, HONEST, "stat", text, sizeof(text)), 7);
	assert_string_equal(text, "8 (name");
	assert_int_equal(proc_read_text(SILENT, SILENT, "mem", text, sizeof(text)), -EBUSY);
	assert_string_equal(text, "");

	AUTO_CLOSE int folder = proc_open_folder(HONEST, "root");
	assert_int_equal(fstat(folder, &st), 0);
	assert_int_equal(stat("/tmp", &expected), 0);
	assert_true(st.st_ino == expected.st_ino && st.st_dev == expected.st_dev);
	assert_int_equal(proc_open_folder(HONEST, "stat"), -ENOTDIR);
	assert_int_equal(proc_open_folder(SILENT, "root"), -EBUSY);
}

/* Who lets nobody look is left after its time, counted, and not asked again for a moment; others have their answers. */
static void test_silent(void **state)
{
	uint64_t began_ns = clock_mono_ns(), took_ms;

	(void)state;
	write_file(HONEST, "mem", "abcdefgh", 8);
	proc_reader_on_wait((struct wait_hook){ hook, NULL });
	assert_int_equal(proc_read(SILENT, SILENT, "mem", 0, 16, &got), -EBUSY);
	took_ms = (clock_mono_ns() - began_ns) / NSEC_PER_MSEC;
	assert_in_range(took_ms, 200, 900);
	assert_true(hooks >= 1);
	assert_int_equal(count("hearth_processes_silent_total"), 1);

	began_ns = clock_mono_ns();
	for (int i = 0; i < 100; i++)
		assert_int_equal(proc_read(SILENT, SILENT, "mem", 0, 16, &got), -EBUSY);
	assert_int_equal(proc_open(SILENT, SILENT, "mem"), -EBUSY);
	assert_in_range((clock_mono_ns() - began_ns) / NSEC_PER_MSEC, 0, 50);
	assert_int_equal(count("hearth_process_reads_left_out_total"), 101);
	assert_int_equal(count("hearth_processes_silent_total"), 1);

	assert_int_equal(proc_read(HONEST, HONEST, "mem", 0, 3, &got), 0);
	assert_memory_equal(got.data, "abc", 3);
}

static int never(void *arg, const struct proc_map *map)
{
	(void)arg;
	(void)map;
	fail();
	return 0;
}

/* It is asked again after a second, and then rests for longer. One that answers then is believed. */
static void test_rest(void **state)
{
	(void)state;
	assert_int_equal(proc_maps_each(SILENT, never, NULL), -EBUSY);
	usleep(1100000);
	assert_int_equal(proc_maps_each(SILENT, never, NULL), -EBUSY);
	assert_int_equal(count("hearth_processes_silent_total"), 2);
	usleep(1100000);
	assert_int_equal(proc_maps_each(SILENT, never, NULL), -EBUSY);
	assert_int_equal(count("hearth_processes_silent_total"), 2);
	usleep(1000000);
	assert_int_equal(unlink(below(SILENT, "maps")), 0);
	write_file(SILENT, "maps", "", 0);
	assert_int_equal(proc_maps_each(SILENT, never, NULL), 0);
	assert_int_equal(proc_read(SILENT, SILENT, "mem", 0, 16, &got), -EBUSY);
	assert_int_equal(count("hearth_processes_silent_total"), 3);
}

/* However many are silent: when they have had their part of the time each has less. */
static void test_many(void **state)
{
	uint64_t began_ns = clock_mono_ns();

	(void)state;
	for (uint32_t pid = 100; pid < 150; pid++) {
		assert_int_equal(mkdir(below(pid, ""), 0700), 0);
		assert_int_equal(mkfifo(below(pid, "mem"), 0600), 0);
		assert_int_equal(proc_read(pid, pid, "mem", 0, 16, &got), -EBUSY);
	}
	assert_int_equal(count("hearth_processes_silent_total"), 50);
	assert_in_range((clock_mono_ns() - began_ns) / NSEC_PER_MSEC, 0,
			2500); /* 50 times 250 ms would be five times that */
}

/* The first child of @pid, which has one or is about to. */
static pid_t child_of(pid_t pid)
{
	char path[64];
	int child = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	for (int i = 0; i < 1000 && !child; i++) {
		AUTO_FCLOSE FILE *f = fopen(path, "re");

		if (!f || fscanf(f, "%d", &child) != 1)
			usleep(1000);
	}
	assert_true(child > 0);
	return child;
}

/* A worker that somebody killed has a successor; without the keeper there is none, and nothing is read here instead. */
static void test_killed(void **state)
{
	pid_t keeper = child_of(getpid());

	(void)state;
	write_file(HONEST, "mem", "abcdefgh", 8);
	for (int i = 0; i < 3; i++) {
		kill(child_of(keeper), SIGKILL);
		usleep(20000);
		assert_int_equal(proc_read(HONEST, HONEST, "mem", 0, 3, &got), 0);
	}
	kill(keeper, SIGKILL);
	usleep(100000);
	assert_int_equal(proc_read(HONEST, HONEST, "mem", 0, 3, &got), -ECHILD);
	assert_int_equal(proc_read(SILENT, SILENT, "mem", 0, 3, &got), -ECHILD);
	assert_int_equal(proc_open(HONEST, HONEST, "mem"), -ECHILD);
}

/* Does it run? One that has ended waits for a parent that may look after nobody. */
static bool is_alive(pid_t pid)
{
	char path[64], state = 'Z';

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	return f && fscanf(f, "%*d %*s %c", &state) == 1 && state != 'Z' && state != 'X';
}

/* Nobody is left behind: neither the keeper nor a worker that hangs. */
static void test_stop(void **state)
{
	pid_t keeper = child_of(getpid()), worker;

	(void)state;
	assert_int_equal(proc_read(SILENT, SILENT, "mem", 0, 16, &got), -EBUSY);
	worker = child_of(keeper);
	proc_reader_stop();
	assert_false(is_alive(keeper));
	for (int i = 0; i < 100 && is_alive(worker); i++)
		usleep(10000);
	assert_false(is_alive(worker));
	proc_reader_stop();
	/* From here on the caller reads. */
	write_file(HONEST, "mem", "abcdefgh", 8);
	assert_int_equal(proc_read(HONEST, HONEST, "mem", 0, 3, &got), 0);
	assert_memory_equal(got.data, "abc", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_read, make, destroy),
		cmocka_unit_test_setup_teardown(test_stack, make, destroy),
		cmocka_unit_test_setup_teardown(test_open, make, destroy),
		cmocka_unit_test_setup_teardown(test_links, make, destroy),
		cmocka_unit_test_setup_teardown(test_silent, make, destroy),
		cmocka_unit_test_setup_teardown(test_rest, make, destroy),
		cmocka_unit_test_setup_teardown(test_many, make, destroy),
		cmocka_unit_test_setup_teardown(test_killed, make, destroy),
		cmocka_unit_test_setup_teardown(test_stop, make, destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
