/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign code in a process of hearth's, as after a bug in a parser: a library that is loaded before the others
 * (LD_PRELOAD). In whichever process reads the bytes "FOREIGN-CODE pid=PID path=PATH" from a socket it tries what an
 * intruder would, and writes a line for each to standard error: "foreign: NAME: refused (WHY)" or "foreign: NAME: WORKED".
 * PID is the agent's, PATH a file outside of the store. Never part of what is shipped.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pid_t agent;
static char path[256], magic[] = "FOREIGN-CODE ";

/* --- what it tries: each returns a negative number where it did not work --- */

static int read_shadow(void)
{
	return open("/etc/shadow", O_RDONLY);
}

static int write_outside(void)
{
	return open(path, O_WRONLY | O_CREAT, 0600);
}

static int read_memory(void) /* the agent's */
{
	char file[64], byte;
	struct iovec here = { &byte, 1 }, there = { magic, 1 };

	snprintf(file, sizeof(file), "/proc/%d/mem", (int)agent);
	return open(file, O_RDONLY) >= 0 ? 0 : (int)process_vm_readv(agent, &here, 1, &there, 1, 0);
}

static int open_event(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK };

	return (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
}

static int load_bpf(void)
{
	static const struct bpf_insn nothing[] = { { .code = 0xb7 }, { .code = 0x95 } }; /* r0 = 0; exit */
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2 };

	attr.insns = (uintptr_t)nothing;
	attr.license = (uintptr_t) "GPL";
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int signal_agent(void)
{
	return kill(agent, SIGTERM);
}

static int end_agent(void)
{
	return kill(agent, SIGKILL);
}

static int trace_agent(void)
{
	return (int)ptrace(PTRACE_SEIZE, agent, NULL, NULL);
}

static int become_root(void)
{
	return setresuid(0, 0, 0) ? -1 : geteuid() != 0 ? -1 : open("/etc/shadow", O_RDONLY);
}

static int run_program(void)
{
	return execl("/bin/true", "true", NULL);
}

static int load_module(void)
{
	return (int)syscall(SYS_finit_module, 0, "", 0);
}

static int open_packets(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0);
}

static int make_namespace(void)
{
	return (int)syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */);
}

static int make_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1
														      : 0;
}

static int read_log(void)
{
	char text[64];

	return (int)syscall(SYS_syslog, 3, text, sizeof(text));
}

static int connect_elsewhere(void) /* nobody listens there, which only who may connect finds out */
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					     .sin_port = htons(1) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 || (connect(fd, (const struct sockaddr *)&address, sizeof(address)) && errno == EACCES) ? -1 : 0;
}

static const struct {
	const char *name;
	int (*fn)(void);
} attempts[] = {
	{ "read-shadow", read_shadow },
	{ "write-outside", write_outside },
	{ "read-agent", read_memory },
	{ "perf-event", open_event },
	{ "load-bpf", load_bpf },
	{ "signal-agent", signal_agent },
	{ "kill-agent", end_agent },
	{ "trace-agent", trace_agent },
	{ "become-root", become_root },
	{ "run-program", run_program },
	{ "load-module", load_module },
	{ "packet-socket", open_packets },
	{ "user-namespace", make_namespace },
	{ "writable-code", make_code },
	{ "kernel-log", read_log },
	{ "connect-elsewhere", connect_elsewhere },
};

static void try_all(void)
{
	for (size_t i = 0; i < sizeof(attempts) / sizeof(*attempts); i++) {
		errno = 0;
		if (attempts[i].fn() >= 0)
			dprintf(STDERR_FILENO, "foreign: %s: WORKED\n", attempts[i].name);
		else
			dprintf(STDERR_FILENO, "foreign: %s: refused (%s)\n", attempts[i].name, strerror(errno));
	}
	dprintf(STDERR_FILENO, "foreign: done in process %d as user %d\n", (int)getpid(), (int)geteuid());
}

/* --- the bug --- */

static void look(const char *bytes, ssize_t len)
{
	static _Atomic int is_done;
	const char *found = len > 0 ? memmem(bytes, (size_t)len, magic, sizeof(magic) - 1) : NULL;
	char text[512];
	size_t left;

	if (!found || is_done++)
		return;
	left = (size_t)(bytes + len - found);
	snprintf(text, sizeof(text), "%.*s", (int)(left < 500 ? left : 500), found);
	if (sscanf(text + sizeof(magic) - 1, "pid=%d path=%255s", &agent, path) == 2)
		try_all();
}

/* Every way in which hearth and its libraries read from a socket, with and without _FORTIFY_SOURCE. */

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	ssize_t (*real)(int, void *, size_t, int) = (ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
	ssize_t n = real(fd, buf, len, flags);

	look(buf, n);
	return n;
}

ssize_t __recv_chk(int fd, void *buf, size_t len, size_t size, int flags)
{
	(void)size;
	return recv(fd, buf, len, flags);
}

ssize_t read(int fd, void *buf, size_t len)
{
	ssize_t (*real)(int, void *, size_t) = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	ssize_t n = real(fd, buf, len);
	struct stat st;

	if (n > 0 && !fstat(fd, &st) && S_ISSOCK(st.st_mode))
		look(buf, n);
	return n;
}

ssize_t __read_chk(int fd, void *buf, size_t len, size_t size)
{
	(void)size;
	return read(fd, buf, len);
}
