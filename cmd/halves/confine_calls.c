/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program is never started, another process never touched; sockets are of the network and of this machine's name services.
 * A child of its own reads files with symbols that were sent (backend/naming/index_maker.c).
 */
#include <net/if.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/calls.h"
#include "base/cleanup.h"
#include "cmd/halves/confine.h"

int confine_calls(void)
{
	static const unsigned long requests[] = { SIOCGIFNAME, SIOCGIFINDEX };
	static const int more[] = { SCMP_SYS(wait4), SCMP_SYS(waitid), SCMP_SYS(pidfd_open), SCMP_SYS(setpriority) };

	return calls_filter(&(struct calls){ .more = more,
					     .more_count = ARRAY_LEN(more),
					     .requests = requests,
					     .request_count = ARRAY_LEN(requests),
					     .network = true,
					     .forks = true,
					     .kills = geteuid() != 0 });
}
