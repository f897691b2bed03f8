/* SPDX-License-Identifier: Apache-2.0 */
/* Who hearth's processes are: children of children, of any thread, by a real /proc; and what is remembered of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ourselves.h"

/* A child that has a child, which tells its pid; both end with this process. */
static pid_t fork_two(pid_t *grandchild_ret)
{
	int pair[2];
	pid_t child;

	assert_int_equal(pipe(pair), 0);
	child = fork();
	if (!child) {
		pid_t own;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			own = getpid();
			(void)!write(pair[1], &own, sizeof(own));
		}
		for (;;)
			pause();
	}
	assert_true(child > 0);
	assert_int_equal(read(pair[0], grandchild_ret, sizeof(*grandchild_ret)), sizeof(*grandchild_ret));
	close(pair[0]);
	close(pair[1]);
	return child;
}

static void end(pid_t child, pid_t grandchild)
{
	kill(grandchild, SIGKILL);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

struct forked {
	pid_t child, grandchild;
	int done[2]; /* the thread lives until it is closed: children are listed by the thread that forked them */
};

static void *fork_in_thread(void *arg)
{
	struct forked *f = arg;
	char byte = 0;

	f->child = fork_two(&f->grandchild);
	(void)!write(f->done[1], &byte, 1);
	(void)!read(f->done[1], &byte, 1);
	return NULL;
}

static void test_read(void **state)
{
	struct ourselves us, other;
	pid_t grandchild, child;

	(void)state;
	if (access("/proc/self/task", F_OK) || access("/proc/thread-self/children", F_OK))
		skip(); /* a kernel without lists of children */
	child = fork_two(&grandchild);
	ourselves_read("/proc", (uint32_t)getpid(), &us);
	assert_int_equal(us.pids[0], getpid());
	assert_true(ourselves_has(&us, (uint32_t)child));
	assert_true(ourselves_has(&us, (uint32_t)grandchild));
	assert_int_equal(us.count, 3);
	assert_false(ourselves_has(&us, (uint32_t)getppid()));
	ourselves_read("/proc", (uint32_t)child, &other);
	assert_int_equal(other.count, 2);
	end(child, grandchild);
	ourselves_read("/proc", (uint32_t)getpid(), &us);
	assert_int_equal(us.count, 1);
	ourselves_read("/nowhere", (uint32_t)getpid(), &us); /* without lists it is that process alone */
	assert_int_equal(us.count, 1);
}

static void test_read_of_threads(void **state)
{
	struct forked f;
	struct ourselves us;
	pthread_t thread;
	char byte;

	(void)state;
	if (access("/proc/thread-self/children", F_OK))
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, f.done), 0);
	assert_int_equal(pthread_create(&thread, NULL, fork_in_thread, &f), 0);
	assert_int_equal(read(f.done[0], &byte, 1), 1);
	ourselves_read("/proc", (uint32_t)getpid(), &us);
	assert_true(ourselves_has(&us, (uint32_t)f.child));
	assert_true(ourselves_has(&us, (uint32_t)f.grandchild));
	end(f.child, f.grandchild);
	close(f.done[0]);
	pthread_join(thread, NULL);
	close(f.done[1]);
}

/* What was seen stays, once, and the oldest goes where there is no more room. */
static void test_known(void **state)
{
	struct ourselves known, one = { .count = 1 };

	(void)state;
	ourselves_known(&known);
	assert_int_equal(known.count, 1);
	assert_int_equal(known.pids[0], getpid());
	for (uint32_t i = 0; i < OURSELVES_MAX; i++) {
		one.pids[0] = 4100000 + i;
		ourselves_saw(&one);
		ourselves_saw(&one);
	}
	ourselves_known(&known);
	assert_int_equal(known.count, OURSELVES_MAX);
	assert_true(ourselves_has(&known, (uint32_t)getpid()));
	assert_true(ourselves_has(&known, 4100000));
	one.pids[0] = 4200000;
	ourselves_saw(&one);
	ourselves_known(&known);
	assert_false(ourselves_has(&known, 4100000));
	assert_true(ourselves_has(&known, 4200000));
}

static void test_name(void **state)
{
	(void)state;
	assert_string_equal(ourselves_name(), "test_ourselves");
}

static int find_loader(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char **loader_ret = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_INTERP)
			*loader_ret = (const char *)(uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return 1;
}

static void copy(const char *from, const char *to)
{
	static char bytes[1 << 16];
	FILE *in = fopen(from, "re"), *out = fopen(to, "we");
	size_t n;

	assert_non_null(in);
	assert_non_null(out);
	while ((n = fread(bytes, 1, sizeof(bytes), in)))
		assert_int_equal(fwrite(bytes, 1, n, out), n);
	fclose(in);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(to, 0755), 0);
}

/* This program as a bundle has hearth, started by the loader there; its output is @said_ret. */
static int run_as_bundle(const char *folder, char *said_ret, size_t size)
{
	char loader[PATH_MAX], own[PATH_MAX];
	int fds[2], status;
	ssize_t n;
	pid_t child;

	snprintf(loader, sizeof(loader), "%s/lib/ld.so", folder);
	snprintf(own, sizeof(own), "%s/lib/hearth", folder);
	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (!child) {
		dup2(fds[1], STDOUT_FILENO);
		execl(loader, loader, own, "paths", (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	n = read(fds[0], said_ret, size - 1);
	said_ret[n > 0 ? n : 0] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Whom the kernel started is the loader in a bundle, and hearth itself elsewhere. */
static void test_paths(void **state)
{
	char folder[] = "/tmp/test_ourselves.XXXXXX", lib[64], path[PATH_MAX], want[PATH_MAX], said[PATH_MAX];
	const char *loader = NULL;
	int status;

	(void)state;
	assert_string_equal(ourselves_program(), "/proc/self/exe");
	assert_string_equal(ourselves_file(), "/proc/self/exe");
	dl_iterate_phdr(find_loader, &loader);
	if (!loader)
		skip();
	assert_non_null(mkdtemp(folder));
	snprintf(lib, sizeof(lib), "%s/lib", folder);
	assert_int_equal(mkdir(lib, 0700), 0);
	snprintf(path, sizeof(path), "%s/hearth", lib);
	copy("/proc/self/exe", path);
	snprintf(want, sizeof(want), "%s/bin/hearth %s/lib/hearth\n", folder, folder);
	snprintf(path, sizeof(path), "%s/ld.so", lib);
	copy(loader, path);
	status = run_as_bundle(folder, said, sizeof(said));
	unlink(path);
	snprintf(path, sizeof(path), "%s/hearth", lib);
	unlink(path);
	rmdir(lib);
	rmdir(folder);
	if (status == 127)
		skip(); /* under an emulator, which the kernel does not know */
	assert_int_equal(status, 0);
	assert_string_equal(said, want);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read), cmocka_unit_test(test_read_of_threads), cmocka_unit_test(test_known),
		cmocka_unit_test(test_name), cmocka_unit_test(test_paths),
	};

	if (argc == 2 && !strcmp(argv[1], "paths")) /* test_paths() started it */
		return printf("%s %s\n", ourselves_program(), ourselves_file()) < 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
