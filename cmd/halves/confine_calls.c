/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filter is a list of what is allowed. A program is never started, another process never touched: clone makes threads
 * alone, memory is never writable and executable at once, sockets are of the network and of this machine's name services.
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sanitizer.h"
#include "cmd/halves/confine.h"

/* One that this architecture does not have is left out by the library. */
static const int allowed[] = {
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
	SCMP_SYS(eventfd),
	SCMP_SYS(eventfd2),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(timerfd_gettime),
	/* the network */
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

static int allow_some(scmp_filter_ctx filter)
{
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };
	static const unsigned long requests[] = { TCGETS, FIONREAD, FIONBIO, 0x8910 /* SIOCGIFNAME */,
						  0x8933 /* SIOCGIFINDEX */ };
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(families) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i], 0));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
	for (size_t i = 0; i < ARRAY_LEN(requests) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, requests[i], 0));
	/* Libraries that are loaded late are mapped executable, from files. */
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC | PROT_WRITE, PROT_EXEC));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(
			filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD | CLONE_NEWUSER | CLONE_NEWNS, CLONE_THREAD));
	if (!err) /* the C library then takes clone, whose flags can be looked at */
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, 15, 0)); /* a name */
	if (!err) /* limits of our own */
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_EQ, 0, 0));
	if (!err) /* abort() */
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				       SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
	return err;
}

int confine_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(HAS_SANITIZER ? SCMP_ACT_LOG : SCMP_ACT_ERRNO(EPERM));
	int err = filter ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_LEN(allowed) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (!err)
		err = allow_some(filter);
	if (!err) /* one tree, not a list: each call passes it */
		(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}
