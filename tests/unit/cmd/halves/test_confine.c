/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend can do no harm, whoever's code runs in it: a child takes the user, the files and the calls from itself as the
 * backend does, and then tries what foreign code would. Root only, as nobody else has anything to give up.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sanitizer.h"
#include "cmd/halves/confine.h"
#include "cmd/halves/owner.h"
#include "cmd/setup/tcp_ports.h"

enum { A_USER = 1879048200 };

static char folder[] = "/tmp/test_confine-XXXXXX";
static int folder_fd;
static bool has_landlock;

/* Each returns 0 where it worked. */

static int read_shadow(void)
{
	return open("/etc/shadow", O_RDONLY);
}

static int write_outside(void)
{
	return open("/tmp/test_confine-outside", O_WRONLY | O_CREAT, 0600);
}

static int read_outside(void) /* a file that everybody may read */
{
	return open("/proc/1/status", O_RDONLY);
}

static int open_event(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK };

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static int make_map(void)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1 };

	return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}

static int signal_parent(void)
{
	return kill(getppid(), 0);
}

static int trace_parent(void)
{
	return (int)ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
}

static int run_program(void)
{
	return execl("/bin/true", "true", NULL);
}

static int fork_again(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	return pid;
}

static int become_root(void)
{
	return (int)syscall(SYS_setresuid, 0, 0, 0);
}

static int open_raw_socket(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0);
}

static int make_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1
														      : 0;
}

static int write_inside(void)
{
	int fd = openat(folder_fd, "kept", O_WRONLY | O_CREAT, 0600);

	return fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) || renameat(folder_fd, "kept", folder_fd, "moved") ? -1 : 0;
}

static int read_hosts(void)
{
	return open("/etc/hosts", O_RDONLY);
}

static void *nothing(void *arg)
{
	return arg;
}

static int start_thread(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL) ? -1 : 0;
}

static int listen_on_loopback(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? fd : listen(fd, 1);
}

/* A listener whose port is allowed, and one whose is not. */
static struct listener {
	int fd;
	uint16_t port;
} allowed, other;

static void open_listener(struct listener *l)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(l->fd >= 0);
	assert_return_code(listen(l->fd, 1), errno);
	assert_return_code(getsockname(l->fd, (struct sockaddr *)&address, &len), errno);
	l->port = ntohs(address.sin_port);
}

static int connect_to(const struct listener *l)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					     .sin_port = htons(l->port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? fd : connect(fd, (const struct sockaddr *)&address, sizeof(address));
}

static int connect_where_allowed(void)
{
	return connect_to(&allowed);
}

static int connect_elsewhere(void)
{
	return connect_to(&other);
}

static const struct attempt {
	int (*fn)(void);
	bool works;
	int landlock; /* the version that refuses it; 0: another does */
} attempts[] = {
	{ read_shadow, false, 0 },	 { write_outside, false, 1 },	  { read_outside, false, 1 },
	{ open_event, false, 0 },	 { make_map, false, 0 },	  { signal_parent, false, 0 },
	{ trace_parent, false, 0 },	 { run_program, false, 0 },	  { fork_again, true, 0 },
	{ become_root, false, 0 },	 { open_raw_socket, false, 0 },	  { make_code, false, 0 },
	{ write_inside, true, 0 },	 { read_hosts, true, 0 },	  { start_thread, true, 0 },
	{ listen_on_loopback, true, 0 }, { connect_elsewhere, false, 4 }, { connect_where_allowed, true, 0 },
};

/* The number of the first attempt that came out otherwise, counted from 1; 100 and more: it could not be confined. */
static int try_all(const struct owner *owner)
{
	const struct tcp_ports ports = { .items = { allowed.port }, .count = 1 };
	int err = owner_become(owner), version = 0;

	if (err)
		return 100;
	if (has_landlock)
		version = confine_by_landlock(&folder_fd, 1, NULL, &ports);
	if (version < 0 || confine_calls())
		return 101;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(*attempts); i++)
		if (attempts[i].landlock <= version && (attempts[i].fn() >= 0) != attempts[i].works)
			return (int)i + 1;
	return 0;
}

static int in_child(const struct owner *owner)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(try_all(owner));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int set_up(void **state)
{
	(void)state;
	unsetenv("HEARTH_REFUSED_CALLS");
	open_listener(&allowed);
	open_listener(&other);
	has_landlock = syscall(444, NULL, 0, 1) > 0;
	return mkdtemp(folder) && (folder_fd = open(folder, O_RDONLY | O_DIRECTORY)) >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	unlinkat(folder_fd, "moved", 0);
	close(folder_fd);
	close(allowed.fd);
	close(other.fd);
	unlink("/tmp/test_confine-outside");
	return rmdir(folder);
}

static void test_another_user(void **state)
{
	const struct owner owner = { .is_decided = true, .changes = true, .uid = A_USER, .gid = A_USER };

	(void)state;
	if (HAS_SANITIZER || !owner_may_change())
		skip(); /* a sanitizer's reports take system calls that are refused */
	assert_return_code(fchown(folder_fd, A_USER, A_USER), errno);
	assert_int_equal(in_child(&owner), 0);
	assert_return_code(fchown(folder_fd, 0, 0), errno);
	assert_return_code(unlinkat(folder_fd, "moved", 0), errno);
}

/* Without SETUID the user stays, and Landlock alone keeps root's own files from it. */
static void test_same_user(void **state)
{
	const struct owner owner = { .is_decided = true, .uid = geteuid(), .gid = getegid() };

	(void)state;
	if (HAS_SANITIZER || geteuid() || !has_landlock)
		skip();
	assert_int_equal(in_child(&owner), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_another_user), cmocka_unit_test(test_same_user) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
