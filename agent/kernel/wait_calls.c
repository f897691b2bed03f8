/* SPDX-License-Identifier: Apache-2.0 */
/* Their numbers come from libseccomp, which knows those of each architecture. */
#include <seccomp.h>
#include <string.h>

#include "agent/kernel/wait_calls.h"
#include "base/cleanup.h"

static const char *const of_descriptors[] = {
	"read",		"write",	  "readv",     "writev",     "pread64",	       "pwrite64",   "preadv",
	"pwritev",	"preadv2",	  "pwritev2",  "accept",     "accept4",	       "connect",    "recvfrom",
	"recvmsg",	"recvmmsg",	  "sendto",    "sendmsg",    "sendmmsg",       "epoll_wait", "epoll_pwait",
	"epoll_pwait2", "fsync",	  "fdatasync", "ftruncate",  "fallocate",      "flock",	     "fcntl",
	"ioctl",	"splice",	  "tee",       "getdents64", "io_uring_enter", "syncfs",     "copy_file_range",
	"close",	"sync_file_range"
};
static const char *const of_polls[] = { "poll", "ppoll" };
static const char *const of_futexes[] = { "futex", "futex_wait" };

static void note(uint8_t ret[WAIT_CALLS], const char *const *names, size_t count, enum wait_call what)
{
	for (size_t i = 0; i < count; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);

		if (number >= 0 && number < WAIT_CALLS)
			ret[number] = what;
	}
}

void wait_calls_fill(uint8_t ret[WAIT_CALLS])
{
	memset(ret, WAIT_CALL_NONE, WAIT_CALLS);
	note(ret, of_descriptors, ARRAY_LEN(of_descriptors), WAIT_CALL_FD);
	note(ret, of_polls, ARRAY_LEN(of_polls), WAIT_CALL_POLL);
	note(ret, of_futexes, ARRAY_LEN(of_futexes), WAIT_CALL_FUTEX);
}
