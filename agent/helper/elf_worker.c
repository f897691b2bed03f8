/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper's processes. The template is forked from the agent before there is anything to inherit, gives up all privileges
 * and stays small and single-threaded; it forks the workers, one at a time, says how each ended, and waits for nothing else.
 * So a worker never starts as a copy of an agent with BPF objects and threads. A worker answers requests until the socket
 * closes or nobody asks for a while, and the memory that reading took goes with it. Only workers see files. Neither template
 * nor workers return into the agent's code or outlive the agent: the kernel kills them with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "agent/helper/elf_wire.h"
#include "agent/helper/elf_worker.h"
#include "base/buf.h"
#include "base/calls.h"
#include "base/cleanup.h"
#include "base/sanitizer.h"

enum {
	CONTROL_FD = 3, /* the template's socket; the agent sends a worker's */
	IDLE_SECONDS = 30,
	KILL_WAIT_MS = 100,
	NOBODY = 65534,
	MAX_FILES = 64, /* more than CODE_FILES_OPEN of agent/runtime/code/code_files.h */
};

#define SPACE_BYTES (16ull << 30)

/* --- giving up privileges --- */

static int limit(int resource, uint64_t value)
{
	const struct rlimit both = { value, value };

	return setrlimit((__rlimit_resource_t)resource, &both) ? -errno : 0;
}

/*
 * RLIMIT_DATA bounds the memory that a process allocates. RLIMIT_AS counts mapped files too; a worker has up to 48 of them,
 * some above 100 MB each, which take no memory of their own. So RLIMIT_AS only keeps absurd sparse files out. The shadow
 * memory of a sanitizer build fits into neither.
 */
static int bound_resources(const struct elf_worker_kind *kind)
{
	const struct rlimit cpu = { kind->cpu_seconds, kind->cpu_seconds + 1 }; /* SIGXCPU, before SIGKILL */
	int error = limit(RLIMIT_NOFILE, MAX_FILES);

	if (!error)
		error = limit(RLIMIT_CORE, 0);
	if (!error)
		error = limit(RLIMIT_FSIZE, kind->file_bytes);
	if (!error && kind->cpu_seconds && setrlimit(RLIMIT_CPU, &cpu))
		error = -errno;
	if (!error && !HAS_SANITIZER)
		error = limit(RLIMIT_DATA, kind->memory_bytes);
	if (!error && !HAS_SANITIZER)
		error = limit(RLIMIT_AS, SPACE_BYTES);
	return error;
}

bool elf_worker_stays_root(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[_LINUX_CAPABILITY_U32S_3] = { 0 };
	const uint32_t needed = 1u << CAP_SETUID | 1u << CAP_SETGID;

	return geteuid() == 0 && !syscall(SYS_capget, &head, have) && (have[0].effective & needed) != needed;
}

/* Does so as far as that is allowed: elf_worker_stays_root told the person who started us, and the rest of the confinement
 * holds. */
static int become_nobody(void)
{
	int error = setgroups(0, NULL) && errno != EPERM ? -errno : 0;

	if (!error && setresgid(NOBODY, NOBODY, NOBODY) && errno != EPERM)
		error = -errno;
	if (!error && setresuid(NOBODY, NOBODY, NOBODY) && errno != EPERM)
		error = -errno;
	return error;
}

static int drop_privileges(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	bool may_stay = elf_worker_stays_root();
	int error = geteuid() == 0 ? become_nobody() : 0;

	if (error)
		return error;
	if (geteuid() == 0 && !may_stay)
		return -EPERM;
	if (syscall(SYS_capset, &head, none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -errno;
	return 0;
}

/* Called after the change of user, which would undo it. @parent may have gone before. */
static int end_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

/* Leaves no descriptor but @sock, as CONTROL_FD, and a null device where libraries expect the standard streams. */
static int keep_only(int sock)
{
	int null = -1;

	if (dup2(sock, CONTROL_FD) >= 0) /* done first, or the null device might get that number */
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	for (int fd = 0; fd < CONTROL_FD; fd++)
		if (!(HAS_SANITIZER && fd == STDERR_FILENO) && dup2(null, fd) < 0)
			return -errno;
	return close_range(CONTROL_FD + 1, ~0u, 0) ? -errno : 0;
}

/*
 * Ctrl-C, and a SIGTERM to the whole group or service, are for the agent, which still has questions then. A crash just ends
 * the process; no handler of the agent runs.
 */
static void reset_signals(void)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2 };
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGCHLD, SIGXCPU, SIGXFSZ };
	sigset_t none;

	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
		signal(fatal[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Allows the system calls that reading mapped files takes. Opening fails as if the file was not there; every other call
 * kills the process (but a sanitizer must be able to tell what it found). */
static int filter_calls(const struct elf_worker_kind *kind)
{
	static const int allowed[] = {
		SCMP_SYS(recvmsg),	SCMP_SYS(sendmsg),	   SCMP_SYS(close),
		SCMP_SYS(read),		SCMP_SYS(pread64),	   SCMP_SYS(lseek),
		SCMP_SYS(fstat),	SCMP_SYS(newfstatat),	   SCMP_SYS(fcntl),
		SCMP_SYS(munmap),	SCMP_SYS(mremap),	   SCMP_SYS(madvise),
		SCMP_SYS(brk),		SCMP_SYS(futex),	   SCMP_SYS(clock_gettime),
		SCMP_SYS(getrandom),	SCMP_SYS(sysinfo), /* qsort */
		SCMP_SYS(getrusage),	SCMP_SYS(rt_sigaction),	   SCMP_SYS(rt_sigprocmask),
		SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall), SCMP_SYS(exit),
		SCMP_SYS(exit_group),	SCMP_SYS(getpid),	   SCMP_SYS(gettid),
	};
	static const int refused[] = { SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
				       SCMP_SYS(stat), SCMP_SYS(lstat),	 SCMP_SYS(access) };
	static const int executable[] = { SCMP_SYS(mmap), SCMP_SYS(mprotect) }; /* allowed only without PROT_EXEC */
	scmp_filter_ctx filter = seccomp_init(HAS_SANITIZER ? SCMP_ACT_LOG : SCMP_ACT_KILL_PROCESS);
	int error = filter ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < ARRAY_LEN(allowed); i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; !error && !HAS_SANITIZER && i < ARRAY_LEN(refused); i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), refused[i], 0);
	for (size_t i = 0; !error && i < ARRAY_LEN(executable); i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, executable[i], 1,
					 SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!error && kind->file_bytes)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 0);
	if (!error) /* abort() */
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
					 SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
	if (!error)
		error = seccomp_load(filter);
	seccomp_release(filter);
	return error;
}

/* The template's: what it and workers before their own filter need. */
static int filter_template(void)
{
	static const int more[] = { SCMP_SYS(wait4),   SCMP_SYS(waitid), SCMP_SYS(pidfd_open),
				    SCMP_SYS(seccomp), SCMP_SYS(prctl),	 SCMP_SYS(tgkill) };

	return calls_filter(&(struct calls){ .more = more, .more_count = ARRAY_LEN(more), .forks = true, .kills = true });
}

/* --- a worker --- */

static int answer(struct elf_service *service, int sock, struct buf *payload, struct buf *reply)
{
	struct elf_wire head;
	AUTO_CLOSE int fd = -1;
	int error = elf_wire_receive(sock, &head, payload, &fd, NULL, NULL);

	if (error)
		return error;
	head.kind = ELF_WIRE_REPLY;
	head.number = elf_service_call(service, &head.request, fd, payload->data, payload->len, reply);
	head.body_bytes = head.number && head.number != ELF_STATUS_NEED ? 0 : reply->len;
	return elf_wire_send(sock, &head, reply->data, -1, NULL, NULL);
}

__attribute__((noreturn)) static void work(const struct elf_worker_kind *kind, int sock, pid_t template_pid)
{
	const struct timeval idle = { .tv_sec = IDLE_SECONDS };
	struct buf payload = BUF_EMPTY, reply = BUF_EMPTY;
	struct elf_service *service;

	close(CONTROL_FD);
	if (end_with(template_pid) || kind->make(&service) ||
	    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof(idle)) || filter_calls(kind))
		_exit(ELF_WORKER_UNFIT);
	while (!answer(service, sock, &payload, &reply))
		;
	_exit(0);
}

/* --- the template --- */

struct elf_template {
	const struct elf_worker_kind *kind;
	pid_t pid, worker; /* worker: 0 when there is none */
	int worker_fd;	   /* pidfd */
};

static int tell(enum elf_wire_kind kind, int32_t number)
{
	const struct elf_wire head = { .kind = kind, .number = number };

	return elf_wire_send(CONTROL_FD, &head, NULL, -1, NULL, NULL);
}

static int spawn(struct elf_template *t, int sock)
{
	t->worker = fork();
	if (!t->worker)
		work(t->kind, sock, t->pid);
	t->worker_fd = t->worker > 0 ? pidfd_open(t->worker, 0) : -1;
	return t->worker_fd < 0 ? -errno : tell(ELF_WIRE_SPAWNED, t->worker);
}

/* The worker has ended, or was killed; in the latter case it may hang in a read for which even SIGKILL waits, and then
 * nobody waits for it. */
static int reap(struct elf_template *t)
{
	int status = SIGKILL;

	(void)waitpid(t->worker, &status, WNOHANG);
	close(t->worker_fd);
	t->worker = 0;
	t->worker_fd = -1;
	return tell(ELF_WIRE_ENDED, status);
}

static int kill_worker(struct elf_template *t)
{
	struct pollfd ended = { .fd = t->worker_fd, .events = POLLIN };

	if (!t->worker)
		return 0;
	kill(t->worker, SIGKILL);
	(void)poll(&ended, 1, KILL_WAIT_MS);
	return reap(t);
}

static int obey(struct elf_template *t, struct buf *body)
{
	struct elf_wire head;
	AUTO_CLOSE int fd = -1;
	int error = elf_wire_receive(CONTROL_FD, &head, body, &fd, NULL, NULL);

	if (!error && head.kind == ELF_WIRE_SPAWN && !t->worker && fd >= 0)
		return spawn(t, fd);
	return error ? error : kill_worker(t);
}

__attribute__((noreturn)) static void serve(const struct elf_worker_kind *kind, int control, pid_t agent)
{
	struct elf_template t = { .kind = kind, .pid = getpid(), .worker_fd = -1 };
	struct buf body = BUF_EMPTY;
	int error;

	(void)prctl(PR_SET_NAME, kind->name);
	reset_signals();
	error = keep_only(control);
	if (!error && getpriority(PRIO_PROCESS, 0) < kind->nice && setpriority(PRIO_PROCESS, 0, kind->nice))
		error = -errno;
	if (!error)
		error = bound_resources(kind);
	if (!error)
		error = drop_privileges();
	if (!error)
		error = end_with(agent);
	if (!error)
		error = filter_template();
	while (!error) {
		struct pollfd fds[] = { { .fd = CONTROL_FD, .events = POLLIN }, { .fd = t.worker_fd, .events = POLLIN } };

		if (poll(fds, ARRAY_LEN(fds), -1) < 0)
			continue;
		if (fds[1].revents)
			error = reap(&t);
		else
			error = obey(&t, &body);
	}
	(void)kill_worker(&t);
	_exit(0);
}

int elf_template_fork(const struct elf_worker_kind *kind, int *control_ret)
{
	pid_t agent = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (!pid)
		serve(kind, pair[1], agent);
	if (pid < 0) {
		pid = -errno;
		close(pair[0]);
	} else {
		*control_ret = pair[0];
	}
	close(pair[1]);
	return pid;
}
