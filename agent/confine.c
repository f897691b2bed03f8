/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for the kernel are loaded, and events opened, as long as the agent lives: CPUs come back. */
#include "agent/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/perf_event.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "agent/agent.h"
#include "agent/kernel/kernel_version.h"
#include "agent/kernel/sampler.h"
#include "agent/readers.h"
#include "base/calls.h"
#include "base/capabilities.h"
#include "base/cleanup.h"
#include "base/io.h"

int agent_prepare(struct agent_config *config, struct metrics *metrics, struct agent_error *err)
{
	int error = kernel_is_supported(config->unsafe_kernel, config->no_version_check, err);

	if (error)
		return error;
	config->readers = calloc(1, sizeof(*config->readers));
	if (!config->readers)
		return -ENOMEM;
	sampler_raise_limits();
	return readers_start(config, metrics, config->readers, err);
}

static int filter_calls(const struct agent_duties *duties)
{
	static const int more[] = {
		/* the kernel's side */
		SCMP_SYS(bpf),
		SCMP_SYS(perf_event_open),
		SCMP_SYS(fsopen), /* tracefs */
		SCMP_SYS(fsconfig),
		SCMP_SYS(fsmount),
		/* other processes */
		SCMP_SYS(pidfd_open),
		SCMP_SYS(openat2),
		SCMP_SYS(wait4),
		SCMP_SYS(waitid),
		SCMP_SYS(getpriority),
		SCMP_SYS(setpriority),
		/* ourselves */
		SCMP_SYS(capget),
		SCMP_SYS(getpgrp),
		SCMP_SYS(getpgid),
		/* files that are written for a user */
		SCMP_SYS(chmod),
		SCMP_SYS(fchmodat),
	};
	static const unsigned long requests[] = {
		PERF_EVENT_IOC_RESET,
		PERF_EVENT_IOC_ENABLE,
		PERF_EVENT_IOC_DISABLE,
		PERF_EVENT_IOC_SET_BPF,
		FS_IOC_GETVERSION,
		TIOCGWINSZ,
		TIOCGPGRP,
		TCSETS,
		TCSETSW,
		TCSETSF,
	};

	return calls_filter(&(struct calls){ .more = more,
					     .more_count = ARRAY_LEN(more),
					     .requests = requests,
					     .request_count = ARRAY_LEN(requests),
					     .network = duties->has_network,
					     .kills = true,
					     .command = duties->command });
}

/* Probes and tracepoints are looked up as SYS_ADMIN; and distributions whose kernels know stricter settings of
 * kernel.perf_event_paranoid than 2 ask for that, whatever the event is. */
static bool needs_admin(const struct agent_config *config)
{
	char text[16];
	const ssize_t len = io_read_text(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", text, sizeof(text));

	return config->probe_count || config->malloc_bytes || config->heap ||
	       (config->event && strchr(config->event, ':')) || (len > 0 && atoi(text) > 2);
}

int agent_confine(const struct agent_config *config, const struct agent_duties *duties, struct metrics *metrics)
{
	const unsigned kept = CAPABILITY_AGENT | (needs_admin(config) ? CAPABILITY_EVENTS : 0) |
			      (duties->writes_files ? CAPABILITY_FILES : 0);
	int error = capabilities_keep(capabilities_of(kept, capabilities_effective()));

	if (!error)
		error = filter_calls(duties);
	if (!error)
		calls_tell(metrics, "agent");
	return error;
}
