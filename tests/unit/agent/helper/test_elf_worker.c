/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The template and its workers, by the messages that the agent sends them: how each ends and what is said of that, the
 * limits and privileges of both, and which system calls a worker may make.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/helper/elf_wire.h"
#include "agent/helper/elf_worker.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/sanitizer.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/process_status.h"

enum { MEMORY_BYTES = 300 << 20, FILE_BYTES = 5000, CPU_SECONDS = 7, NICE = 3 };

/* --- what a worker does when it is asked --- */

enum deed {
	ECHO, /* answers with what it was sent, and the status that @addr_end is */
	OPEN,
	READLINK,
	ACCESS,
	STAT,
	MAP,
	READ,
	WRITE,
	ALLOCATE, /* @addr_end bytes */
	/* which end it */
	MAP_CODE,
	MAKE_CODE,
	SOCKET,
	FORK,
	EXECUTE,
	KILL_PARENT,
	ABORT,
	EXIT,
};

static int deed_of(enum deed deed, uint64_t number, int fd)
{
	char byte = 'x', text[64];
	struct stat st;
	void *p;

	switch (deed) {
	case OPEN:
		return open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? -errno : 0;
	case READLINK:
		return readlink("/proc/self/exe", text, sizeof(text)) < 0 ? -errno : 0;
	case ACCESS:
		return syscall(SYS_openat, AT_FDCWD, "/", O_PATH) < 0 ? -errno : 0;
	case STAT:
		return fstat(fd, &st) ? -errno : 0;
	case MAP:
	case MAP_CODE:
		p = mmap(NULL, 1, PROT_READ | (deed == MAP ? 0 : PROT_EXEC), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return p == MAP_FAILED ? -errno : 0;
	case MAKE_CODE:
		p = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return mprotect(p, 1, PROT_READ | PROT_EXEC) ? -errno : 0;
	case READ:
		return pread(fd, &byte, 1, 0) == 1 && byte == 'f' ? 0 : -EIO;
	case WRITE:
		return write(fd, &byte, 1) == 1 ? 0 : -errno;
	case ALLOCATE:
		p = malloc(number);
		free(p);
		return p ? 0 : -ENOMEM;
	case SOCKET:
		return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	case FORK:
		return fork();
	case EXECUTE:
		return execl("/bin/true", "true", NULL);
	case KILL_PARENT:
		return kill(getppid(), SIGTERM);
	case ABORT:
		abort();
	case EXIT:
		_exit(5);
	default:
		return (int)number;
	}
}

static int call(struct elf_service *s, const struct elf_request *request, int fd, const void *payload, size_t bytes,
		struct buf *reply)
{
	(void)s;
	buf_reset(reply);
	buf_append(reply, payload, bytes);
	return deed_of((enum deed)request->addr, request->addr_end, fd);
}

static void free_service(struct elf_service *s)
{
	(void)s;
}

static int make(struct elf_service **ret)
{
	static const struct elf_service_ops ops = { .call = call, .free = free_service };
	static struct elf_service service = { .ops = &ops };

	*ret = &service;
	return 0;
}

static int make_none(struct elf_service **ret)
{
	(void)ret;
	return -ENOMEM;
}

static const struct elf_worker_kind usual = {
	.name = "test-worker", .make = make, .memory_bytes = MEMORY_BYTES, .cpu_seconds = CPU_SECONDS, .nice = NICE
};

/* --- the agent --- */

static pid_t template;
static int control, sock; /* to the template, to its worker */

static void start(const struct elf_worker_kind *kind)
{
	template = elf_template_fork(kind, &control);
	assert_true(template > 0);
	assert_int_equal(fcntl(control, F_GETFD), FD_CLOEXEC);
	sock = -1;
}

static int expect(int from, enum elf_wire_kind kind)
{
	AUTO(buf_fini) struct buf body = BUF_EMPTY;
	struct elf_wire head;
	int fd;

	assert_int_equal(elf_wire_receive(from, &head, &body, &fd, NULL, NULL), 0);
	assert_int_equal(head.kind, kind);
	assert_int_equal(fd, -1);
	return head.number;
}

static void order(enum elf_wire_kind kind, int fd)
{
	const struct elf_wire head = { .kind = kind };

	assert_int_equal(elf_wire_send(control, &head, NULL, fd, NULL, NULL), 0);
}

static void close_socket(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Asks for a worker, at a socket of its own. */
static void order_worker(void)
{
	int pair[2];

	close_socket(&sock);
	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), errno);
	order(ELF_WIRE_SPAWN, pair[1]);
	close(pair[1]);
	sock = pair[0];
}

static pid_t spawn(void)
{
	pid_t worker;

	order_worker();
	worker = expect(control, ELF_WIRE_SPAWNED);
	assert_true(worker > 0 && worker != template);
	return worker;
}

static void send_request(enum deed deed, uint64_t number, int fd)
{
	const struct elf_wire head = { .kind = ELF_WIRE_REQUEST,
				       .request = { .addr = deed, .addr_end = number },
				       .body_bytes = 5 };

	assert_int_equal(elf_wire_send(sock, &head, "hello", fd, NULL, NULL), 0);
}

/* The status; the answer is "hello" or nothing, as @has_answer says. */
static int ask(enum deed deed, uint64_t number, int fd, bool has_answer)
{
	AUTO(buf_fini) struct buf body = BUF_EMPTY;
	struct elf_wire head;
	int none;

	send_request(deed, number, fd);
	assert_int_equal(elf_wire_receive(sock, &head, &body, &none, NULL, NULL), 0);
	assert_int_equal(head.kind, ELF_WIRE_REPLY);
	assert_int_equal(body.len, has_answer ? 5 : 0);
	if (has_answer)
		assert_memory_equal(body.data, "hello", 5);
	return head.number;
}

static void end(void)
{
	int status;

	close_socket(&sock);
	close_socket(&control);
	assert_int_equal(waitpid(template, &status, 0), template);
	assert_int_equal(status, 0);
}

/* /proc/PID/FILE has the line @line. */
static void has(pid_t pid, const char *file, const char *line)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	assert_int_equal(io_read_file(path, SIZE_MAX, &text), 0);
	if (!strstr(buf_text(&text), line))
		fail_msg("'%s' is not in %s: %s", line, path, buf_text(&text));
}

/* --- --- */

/* Answers go back with their status; the bytes of an error do not. */
static void test_answers(void **state)
{
	AUTO_FCLOSE FILE *f = tmpfile();

	(void)state;
	fputs("file", f);
	fflush(f);
	start(&usual);
	spawn();
	assert_int_equal(ask(ECHO, 0, -1, true), 0);
	assert_int_equal(ask(ECHO, ELF_STATUS_NEED, -1, true), ELF_STATUS_NEED);
	assert_int_equal(ask(ECHO, 1, -1, false), 1);
	assert_int_equal(ask(ECHO, (uint64_t)-ENODATA, -1, false), -ENODATA);
	assert_int_equal(ask(READ, 0, fileno(f), true), 0);
	assert_int_equal(ask(STAT, 0, fileno(f), true), 0);
	for (int i = 0; i < 100; i++) /* it keeps none of them: it may have 64 */
		assert_int_equal(ask(READ, 0, fileno(f), true), 0);
	assert_int_equal(ask(MAP, 0, -1, true), 0);
	if (!HAS_SANITIZER) {
		assert_int_equal(ask(OPEN, 0, -1, false), -EACCES);
		assert_int_equal(ask(READLINK, 0, -1, false), -EACCES);
		assert_int_equal(ask(ACCESS, 0, -1, false), -EACCES);
		assert_int_equal(ask(ALLOCATE, MEMORY_BYTES / 2, -1, true), 0);
		assert_int_equal(ask(ALLOCATE, MEMORY_BYTES, -1, false), -ENOMEM);
	}
	end();
}

/* Each of the other calls ends the worker, of which the template tells how, and the next worker works. */
static void test_calls(void **state)
{
	static const struct {
		enum deed deed;
		int signal;
	} rows[] = { { MAP_CODE, SIGSYS }, { MAKE_CODE, SIGSYS },   { SOCKET, SIGSYS }, { FORK, SIGSYS },
		     { EXECUTE, SIGSYS },  { KILL_PARENT, SIGSYS }, { WRITE, SIGSYS },	{ ABORT, SIGABRT } };

	(void)state;
	if (HAS_SANITIZER)
		return; /* whose own calls are let through */
	start(&usual);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int status;

		spawn();
		send_request(rows[i].deed, 0, STDERR_FILENO);
		status = expect(control, ELF_WIRE_ENDED);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != rows[i].signal)
			fail_msg("row %zu: status %x", i, (unsigned)status);
	}
	spawn();
	assert_int_equal(ask(ECHO, 0, -1, true), 0);
	send_request(EXIT, 0, -1);
	assert_int_equal(expect(control, ELF_WIRE_ENDED), 5 << 8);
	end();
}

/* A worker that may write files writes so much and no more. */
static void test_writes(void **state)
{
	struct elf_worker_kind writer = usual;
	AUTO_FCLOSE FILE *f = tmpfile();

	(void)state;
	writer.file_bytes = FILE_BYTES;
	start(&writer);
	has(spawn(), "limits", "Max file size             5000                 5000");
	assert_int_equal(ask(WRITE, 0, fileno(f), true), 0);
	assert_int_equal(fseek(f, FILE_BYTES - 1, SEEK_SET), 0);
	assert_int_equal(ask(WRITE, 0, fileno(f), true), 0);
	send_request(WRITE, 0, fileno(f));
	assert_int_equal(expect(control, ELF_WIRE_ENDED) & 0x7f, SIGXFSZ);
	end();
}

/* One worker at a time, which ends when it is told to, when nobody will ask it any more, or cannot begin. */
static void test_orders(void **state)
{
	struct elf_worker_kind unfit = usual;
	int kept;

	(void)state;
	start(&usual);
	order(ELF_WIRE_KILL, -1); /* there is none: nothing is said */
	order(ELF_WIRE_SPAWN, -1);
	spawn();
	assert_int_equal(ask(ECHO, 0, -1, true), 0);
	order(ELF_WIRE_KILL, -1);
	assert_int_equal(expect(control, ELF_WIRE_ENDED), SIGKILL);
	spawn();
	assert_int_equal(ask(ECHO, 0, -1, true), 0);
	close_socket(&sock);
	assert_int_equal(expect(control, ELF_WIRE_ENDED), 0);
	spawn();
	kept = dup(sock); /* it would end by itself */
	order_worker();	  /* a second one is none: the first is ended */
	assert_int_equal(expect(control, ELF_WIRE_ENDED), SIGKILL);
	close(kept);
	spawn();
	assert_int_equal(ask(ECHO, 0, -1, true), 0);
	end();
	unfit.make = make_none;
	start(&unfit);
	order_worker();
	(void)expect(control, ELF_WIRE_SPAWNED);
	assert_int_equal(expect(control, ELF_WIRE_ENDED), ELF_WORKER_UNFIT << 8);
	end();
}

static void limits_are(pid_t pid)
{
	has(pid, "limits", "Max open files            64                   64 ");
	has(pid, "limits", "Max core file size        0                    0 ");
	has(pid, "limits", "Max file size             0                    0 ");
	has(pid, "limits", "Max cpu time              7                    8 ");
	if (HAS_SANITIZER)
		return;
	has(pid, "limits", "Max data size             314572800            314572800 ");
	has(pid, "limits", "Max address space         17179869184          17179869184 ");
}

/* Both have nothing of the agent's: neither time, nor memory, nor files, nor signals, nor privileges. */
static void test_process(void **state)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2 };
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGCHLD, SIGXCPU, SIGXFSZ };
	const int own = getpriority(PRIO_PROCESS, 0);
	sigset_t set, old;
	pid_t pids[2];

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_BLOCK, &set, &old);
	for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
		signal(fatal[i], SIG_IGN);
	start(&usual);
	for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
		signal(fatal[i], SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	pids[0] = template;
	pids[1] = spawn();
	assert_int_equal(ask(ECHO, 0, -1, true), 0);
	for (int i = 0; i < 2; i++) {
		has(pids[i], "status", "Name:\ttest-worker\n");
		has(pids[i], "status", "NoNewPrivs:\t1\n");
		has(pids[i], "status", "Seccomp:\t2\n");
		has(pids[i], "status", "CapPrm:\t0000000000000000\n");
		limits_are(pids[i]);
		assert_int_equal(getpriority(PRIO_PROCESS, (id_t)pids[i]), own > NICE ? own : NICE);
		assert_int_equal(process_status(pids[i], "SigBlk:", 16), 0);
		for (size_t k = 0; k < ARRAY_LEN(ignored); k++)
			assert_true(process_status(pids[i], "SigIgn:", 16) >> (ignored[k] - 1) & 1);
		for (size_t k = 0; k < ARRAY_LEN(fatal); k++)
			assert_false(process_status(pids[i], "SigIgn:", 16) >> (fatal[k] - 1) & 1);
		kill(pids[i], SIGTERM); /* for all of a group: theirs is to go on */
	}
	assert_int_equal(ask(ECHO, 0, -1, true), 0);
	end();
}

/* A zombie has gone, too. */
static void wait_gone(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int i = 0; i < 5000; i++) {
		AUTO(buf_fini) struct buf stat = BUF_EMPTY;

		if (io_read_file(path, SIZE_MAX, &stat) || strstr(buf_text(&stat), ") Z "))
			return;
		usleep(1000);
	}
	fail_msg("%d goes on", (int)pid);
}

/* A worker does not outlive the template, nor the template the agent. */
static void test_ends_together(void **state)
{
	int told[2], status;
	pid_t pid = 0, agent;

	(void)state;
	start(&usual);
	pid = spawn();
	kill(template, SIGKILL);
	assert_int_equal(waitpid(template, &status, 0), template);
	wait_gone(pid);
	close_socket(&sock);
	close_socket(&control);

	assert_int_equal(pipe(told), 0);
	agent = fork();
	if (!agent) {
		start(&usual);
		close(told[0]);
		_exit(write(told[1], &template, sizeof(template)) != sizeof(template));
	}
	close(told[1]);
	assert_int_equal(waitpid(agent, &status, 0), agent);
	assert_int_equal(status, 0);
	assert_int_equal(read(told[0], &pid, sizeof(pid)), sizeof(pid));
	close(told[0]);
	wait_gone(pid);
}

/* --- who may not change its user --- */

static void drop(unsigned capability)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, have))
		_exit(99);
	have[0].effective &= ~(1u << capability);
	have[0].permitted &= ~(1u << capability);
	if (syscall(SYS_capset, &head, have))
		_exit(98);
}

static int in_child(void (*fn)(void))
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		fn();
		_exit(elf_worker_stays_root());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void nothing(void)
{
}

static void drop_setuid(void)
{
	drop(CAP_SETUID);
}

static void drop_setgid(void)
{
	drop(CAP_SETGID);
}

static void drop_chown(void)
{
	drop(CAP_CHOWN);
}

static void change_user(void)
{
	if (setuid(65534))
		_exit(97);
}

/* It stays root then, with no capability. */
static void start_as_root(void)
{
	drop_setuid();
	start(&usual);
	(void)spawn();
	if (ask(ECHO, 0, -1, true))
		_exit(96);
	has(template, "status", "CapPrm:\t0000000000000000\n");
	has(template, "status", "Uid:\t0\t0\t0\t0\n");
	has(template, "status", "Gid:\t65534\t65534\t65534\t65534\n");
	end();
}

static void test_stays_root(void **state)
{
	(void)state;
	if (geteuid()) {
		print_message("left out: root without capabilities, as this is not root\n");
		return;
	}
	assert_int_equal(in_child(nothing), 0);
	assert_int_equal(in_child(drop_chown), 0);
	assert_int_equal(in_child(drop_setuid), 1 << 8);
	assert_int_equal(in_child(drop_setgid), 1 << 8);
	assert_int_equal(in_child(change_user), 0);
	assert_int_equal(in_child(start_as_root), 1 << 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),	   cmocka_unit_test(test_calls),   cmocka_unit_test(test_writes),
		cmocka_unit_test(test_orders),	   cmocka_unit_test(test_process), cmocka_unit_test(test_ends_together),
		cmocka_unit_test(test_stays_root),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
