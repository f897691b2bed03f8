/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A refused call is a SIGSYS, whose handler counts it and gives the caller EPERM. No thread blocks that signal
 * (base/thread.c): where it is blocked the kernel ends the process.
 */
#include "base/calls.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/sanitizer.h"

/* One that this architecture does not have is left out by the library. */
static const int common[] = {
	/* files */
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(pread64),
	SCMP_SYS(pwrite64),
	SCMP_SYS(readv),
	SCMP_SYS(writev),
	SCMP_SYS(preadv),
	SCMP_SYS(pwritev),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(close_range),
	SCMP_SYS(open),
	SCMP_SYS(openat),
	SCMP_SYS(stat),
	SCMP_SYS(fstat),
	SCMP_SYS(lstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(statfs),
	SCMP_SYS(fstatfs),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getdents64),
	SCMP_SYS(getcwd),
	SCMP_SYS(mkdir),
	SCMP_SYS(mkdirat),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
	SCMP_SYS(rmdir),
	SCMP_SYS(rename),
	SCMP_SYS(renameat),
	SCMP_SYS(renameat2),
	SCMP_SYS(link),
	SCMP_SYS(linkat),
	SCMP_SYS(ftruncate),
	SCMP_SYS(fallocate),
	SCMP_SYS(fsync),
	SCMP_SYS(fdatasync),
	SCMP_SYS(flock),
	SCMP_SYS(fcntl),
	SCMP_SYS(fchmod),
	SCMP_SYS(fchown),
	SCMP_SYS(utimensat),
	SCMP_SYS(umask),
	SCMP_SYS(fadvise64),
	SCMP_SYS(copy_file_range),
	SCMP_SYS(sendfile),
	SCMP_SYS(memfd_create),
	SCMP_SYS(dup),
	SCMP_SYS(dup2),
	SCMP_SYS(dup3),
	SCMP_SYS(pipe),
	SCMP_SYS(pipe2),
	/* memory */
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(msync),
	SCMP_SYS(mincore),
	SCMP_SYS(brk),
	/* threads, time, signals to ourselves */
	SCMP_SYS(futex),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(get_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(getcpu),
	SCMP_SYS(membarrier),
	SCMP_SYS(set_tid_address),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	/* who we are, and what the machine is */
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(getppid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(getresuid),
	SCMP_SYS(getresgid),
	SCMP_SYS(getgroups),
	SCMP_SYS(uname),
	SCMP_SYS(sysinfo),
	SCMP_SYS(getrusage),
	SCMP_SYS(times),
	SCMP_SYS(getrlimit),
	SCMP_SYS(getrandom),
	/* waiting */
	SCMP_SYS(epoll_create),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_pwait2),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(select),
	SCMP_SYS(pselect6),
	SCMP_SYS(signalfd),
	SCMP_SYS(signalfd4),
	SCMP_SYS(eventfd),
	SCMP_SYS(eventfd2),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(timerfd_gettime),
	/* sockets that are there, or are of an allowed family */
	SCMP_SYS(bind),
	SCMP_SYS(listen),
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(connect),
	SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	SCMP_SYS(setsockopt),
	SCMP_SYS(getsockopt),
	SCMP_SYS(sendto),
	SCMP_SYS(recvfrom),
	SCMP_SYS(sendmsg),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(recvmmsg),
	SCMP_SYS(shutdown),
};

/* --- refusals --- */

struct refusals {
	_Atomic uint64_t count;
	_Atomic int last; /* number of the last one */
};

static struct refusals own, *refusals = &own;
static bool kills_us;
static uint64_t told; /* of them, in the log */

void calls_count_here(void)
{
	void *page = MAP_FAILED;

	if (refusals == &own) /* else there is one */
		page = mmap(NULL, sizeof(*refusals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED)
		refusals = page;
}

/* Async-signal-safe. */
static void say_number(int number)
{
	char text[] = "hearth: system call ..... refused\n", *at = strchr(text, '.') + 5;

	while (*--at == '.') {
		*at = (char)('0' + number % 10);
		number /= 10;
	}
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
}

static void on_refused(int signo, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	(void)signo;
	if (info->si_code != 1 /* SYS_SECCOMP */)
		return;
	atomic_fetch_add(&refusals->count, 1);
	atomic_store(&refusals->last, info->si_syscall);
	if (kills_us) {
		say_number(info->si_syscall);
		signal(SIGSYS, SIG_DFL); /* abort() takes calls that may be refused, too */
		abort();
	}
#if defined(__x86_64__)
	c->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
	c->uc_mcontext.regs[0] = (unsigned long long)-EPERM;
#else
#error "which register has a system call's result?"
#endif
}

static int catch_refusals(void)
{
	struct sigaction action = { .sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART };
	const char *wanted = getenv("HEARTH_REFUSED_CALLS");

	kills_us = wanted && !strcmp(wanted, "kill");
	return sigaction(SIGSYS, &action, NULL) ? -errno : 0;
}

struct teller {
	struct metric *metric;
	const char *process;
};

static void tell(void *arg)
{
	const uint64_t count = atomic_load(&refusals->count);
	const struct teller *t = arg;
	char *name;

	metric_set(t->metric, count);
	if (count == told)
		return;
	if (!told) {
		name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, atomic_load(&refusals->last));
		log_warn("the %s was refused the system call %s, which hearth does not let it make; others are counted as "
			 "hearth_refused_system_calls_total",
			 t->process, name ? name : "?");
		free(name);
	}
	told = count;
}

void calls_tell(struct metrics *metrics, const char *process)
{
	static struct teller teller;
	const char *labels = !strcmp(process, "agent") ? "process=\"agent\"" : "process=\"backend\"";

	teller = (struct teller){ metrics_counter(metrics, "hearth_refused_system_calls_total", labels,
						  "System calls that hearth does not let its processes make."),
				  process };
	(void)metrics_on_collect(metrics, tell, &teller);
}

/* --- the filter --- */

static int allow(scmp_filter_ctx filter, int number)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

/* @number where its argument @arg has, of the bits @mask, those of @value. */
static int allow_where(scmp_filter_ctx filter, int number, unsigned arg, uint64_t mask, uint64_t value)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1, SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, mask, value));
}

static int allow_lists(scmp_filter_ctx filter, const struct calls *calls)
{
	static const unsigned long requests[] = { TCGETS, FIONREAD, FIONBIO };
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(common) && !err; i++)
		err = allow(filter, common[i]);
	for (size_t i = 0; i < calls->more_count && !err; i++)
		err = allow(filter, calls->more[i]);
	for (size_t i = 0; i < ARRAY_LEN(requests) && !err; i++)
		err = allow_where(filter, SCMP_SYS(ioctl), 1, UINT32_MAX, requests[i]);
	for (size_t i = 0; i < calls->request_count && !err; i++)
		err = allow_where(filter, SCMP_SYS(ioctl), 1, UINT32_MAX, calls->requests[i]);
	return err;
}

static int allow_sockets(scmp_filter_ctx filter, bool network)
{
	static const unsigned families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
	const size_t count = network ? ARRAY_LEN(families) : 1;
	int err = allow_where(filter, SCMP_SYS(socketpair), 0, UINT32_MAX, AF_UNIX);

	for (size_t i = 0; i < count && !err; i++)
		err = allow_where(filter, SCMP_SYS(socket), 0, UINT32_MAX, families[i]);
	return err;
}

/* Libraries that are loaded late are mapped executable, from files. */
static int allow_memory(scmp_filter_ctx filter)
{
	int err = allow_where(filter, SCMP_SYS(mmap), 2, PROT_EXEC, 0);

	if (!err)
		err = allow_where(filter, SCMP_SYS(mmap), 2, PROT_EXEC | PROT_WRITE, PROT_EXEC);
	return err ? err : allow_where(filter, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);
}

static int allow_processes(scmp_filter_ctx filter, const struct calls *calls)
{
	static const unsigned of_children[] = { PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_DUMPABLE };
	const uint64_t spaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
				CLONE_NEWCGROUP,
		       self = (uint64_t)getpid();
	int err = calls->forks ? allow_where(filter, SCMP_SYS(clone), 0, spaces, 0)
			       : allow_where(filter, SCMP_SYS(clone), 0, spaces | CLONE_THREAD, CLONE_THREAD);

	if (!err) /* the C library then takes clone, whose flags can be looked at */
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!err)
		err = allow_where(filter, SCMP_SYS(prctl), 0, UINT32_MAX, PR_SET_NAME);
	if (!err) /* libcap asks when it is loaded, as a part of libnss_systemd */
		err = allow_where(filter, SCMP_SYS(prctl), 0, UINT32_MAX, PR_CAPBSET_READ);
	for (size_t i = 0; i < ARRAY_LEN(of_children) && calls->forks && !err; i++)
		err = allow_where(filter, SCMP_SYS(prctl), 0, UINT32_MAX, of_children[i]);
	if (!err) /* limits of our own */
		err = allow_where(filter, SCMP_SYS(prlimit64), 0, UINT32_MAX, 0);
	if (!err) /* abort() */
		err = allow_where(filter, SCMP_SYS(tgkill), 0, UINT32_MAX, self);
	if (!err)
		err = allow_where(filter, SCMP_SYS(kill), 0, UINT32_MAX, self);
	if (!err && calls->kills)
		err = allow_where(filter, SCMP_SYS(kill), 1, UINT32_MAX, SIGKILL);
	if (!err && calls->command)
		err = allow_where(filter, SCMP_SYS(kill), 0, UINT32_MAX, (uint64_t)calls->command);
	return err;
}

int calls_filter(const struct calls *calls)
{
	scmp_filter_ctx filter = seccomp_init(HAS_SANITIZER ? SCMP_ACT_LOG : SCMP_ACT_TRAP);
	int err = filter ? catch_refusals() : -ENOMEM;

	if (!err)
		err = allow_lists(filter, calls);
	if (!err)
		err = allow_sockets(filter, calls->network);
	if (!err)
		err = allow_memory(filter);
	if (!err)
		err = allow_processes(filter, calls);
	if (!err) /* one tree, not a list: each call passes it */
		(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}
