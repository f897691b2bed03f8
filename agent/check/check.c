/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hearth check` tells what the kernel, its settings, the privileges and the surroundings of this process allow. It looks at
 * each requirement without starting anything; facts that an unprivileged user cannot see are shown as unknown, or as not
 * allowed. No state.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/check/check_host.h"
#include "agent/cpu/cpu.h"
#include "agent/kernel/kernel_version.h"
#include "agent/kernel/map_sizes.h"
#include "agent/kernel/perf_event.h"
#include "agent/kernel/probe_ways.h"
#include "base/buf.h"
#include "base/cleanup.h"

static void check_kernel(struct checker *c)
{
	bool is_new = kernel_version() >= CPU_MIN_KERNEL;
	struct utsname u = { 0 };

	uname(&u);
	checker_say(c, "kernel " CPU_MIN_KERNEL_TEXT " or newer",
		    is_new	     ? CHECK_YES
		    : c->any_version ? CHECK_PARTLY
				     : CHECK_NO,
		    u.release, "older kernels lack what the BPF programs call",
		    "run a newer kernel; one that its distribution brought up to date may do: try --no-version-check");
	checker_say(c, CPU_NAME, strcmp(u.machine, CPU_MACHINE) ? CHECK_NO : CHECK_YES, u.machine,
		    "the walk knows this CPU's registers and stacks", "take the hearth that was built for this machine");
	checker_say(c, "safe reads of user memory",
		    kernel_is_safe() ? CHECK_YES
		    : geteuid()	     ? CHECK_UNKNOWN
				     : CHECK_NO,
		    "", UNSAFE_KERNEL_TEXT,
		    geteuid() ? "ask as root, who can read the kernel's code"
			      : "update the kernel, or start with --unsafe-kernel");
	checker_say(c, "kernel BTF", access(KERNEL_BTF, R_OK) ? CHECK_NO : CHECK_YES,
		    access(KERNEL_BTF, R_OK) ? KERNEL_BTF " is not there" : KERNEL_BTF,
		    "the BPF programs find the kernel's structures by it",
		    "run a kernel with CONFIG_DEBUG_INFO_BTF, as distributions' kernels are");
}

/* --- BPF --- */

static void check_bpf(struct checker *c)
{
	int program = libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_PERF_EVENT, NULL);
	bool may = program == 1;
	char line[16] = "";

	checker_say(c, "BPF programs on perf events", may ? CHECK_YES : CHECK_NO,
		    may				     ? ""
		    : geteuid() || program == -EPERM ? "permission denied"
						     : "this kernel refuses them",
		    "hearth's sampler is one",
		    "run it as root (sudo hearth check); in a container with --cap-add SYS_ADMIN, or --privileged");
	if (may && libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) != 1)
		checker_say(c, "BPF ring buffers", CHECK_NO, "", "samples come through them",
			    "run a kernel of 5.8 or newer");
	if (may)
		checker_say(c, "bpf_loop",
			    libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1 ? CHECK_YES
													: CHECK_PARTLY,
			    "", "stacks are walked up to 1024 frames in one program; without it by tail calls, up to 256",
			    "run a kernel of 5.17 or newer for deeper stacks");
	if (checker_first_line("/proc/sys/net/core/bpf_jit_enable", line, sizeof(line)))
		checker_say(c, "BPF JIT", line[0] == '0' ? CHECK_PARTLY : CHECK_YES, line,
			    "programs that are interpreted cost several times more", "set net.core.bpf_jit_enable=1");
	if (checker_first_line("/proc/sys/kernel/unprivileged_bpf_disabled", line, sizeof(line)))
		checker_say(c, "kernel.unprivileged_bpf_disabled", CHECK_YES, line,
			    "is about users without CAP_BPF; hearth needs that anyway", "");
}

static void check_memory(struct checker *c)
{
	bool is_charged = kernel_version() < 5011;
	struct map_sizes sizes;
	struct map_host host;
	struct rlimit lock;
	char text[128];

	map_host_read(&host);
	sizes = map_sizes_choose(&host, 0);
	snprintf(text, sizeof(text), "%.1f MB for %u processes, %u mappings, %u blocks of unwind rows",
		 (double)map_sizes_bytes(&sizes) / 1e6, sizes.procs, sizes.mappings, sizes.blocks);
	checker_say(c, "kernel caches", CHECK_YES, text, "what the kernel will hold for hearth; doubled by each --map-scale",
		    "");
	if (getrlimit(RLIMIT_MEMLOCK, &lock))
		return;
	if (lock.rlim_cur == RLIM_INFINITY)
		snprintf(text, sizeof(text), "unlimited");
	else
		snprintf(text, sizeof(text), "%llu KB", (unsigned long long)lock.rlim_cur >> 10);
	checker_say(c, "locked memory", !is_charged || lock.rlim_max == RLIM_INFINITY || !geteuid() ? CHECK_YES : CHECK_NO,
		    text,
		    is_charged ? "kernels before 5.11 count BPF maps to this limit" : "does not limit BPF maps since 5.11",
		    "raise it: ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit");
}

/* --- perf --- */

/* Every event that opens, by its name. */
static const char *list_events(char *text, size_t size, bool hardware)
{
	static const char *const software[] = { "task-clock", "page-faults", "context-switches", "cpu-migrations" };
	static const char *const counters[] = { "cycles",   "instructions",  "cache-references", "cache-misses",
						"branches", "branch-misses", "ref-cycles" };
	const char *const *names = hardware ? counters : software;
	size_t count = hardware ? ARRAY_LEN(counters) : ARRAY_LEN(software), len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		struct perf_event_attr attr = { 0 };
		struct agent_error ignored;
		AUTO_CLOSE int fd = -1;

		(void)perf_event_parse(names[i], &attr, &ignored);
		fd = perf_event_open_cpu(&attr, 0, 99, 0);
		if (fd >= 0 && len < size)
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "", names[i]);
	}
	return text;
}

static void check_perf(struct checker *c)
{
	struct perf_event_attr clock = { 0 };
	struct agent_error ignored;
	AUTO_CLOSE int fd = -1;
	char text[256];

	(void)perf_event_parse("cpu-clock", &clock, &ignored);
	fd = perf_event_open_cpu(&clock, 0, 99, 0);
	checker_say(c, "perf event cpu-clock", fd < 0 ? CHECK_NO : CHECK_YES, fd < 0 ? strerror(-fd) : "",
		    "what is sampled on by default",
		    fd == -EACCES || fd == -EPERM ? "run it as root" : "run a kernel with CONFIG_PERF_EVENTS");
	if (fd < 0)
		return;
	list_events(text, sizeof(text), false);
	checker_say(c, "other software events", text[0] ? CHECK_YES : CHECK_PARTLY, text, "for --event", "");
	list_events(text, sizeof(text), true);
	checker_say(c, "hardware events", text[0] ? CHECK_YES : CHECK_PARTLY, text[0] ? text : "none",
		    "for --event cycles and its like; the default event does not need them",
		    "virtual machines often have none: nothing to do, or ask the host for a virtual PMU");
}

/* --- probes --- */

static void check_probes(struct checker *c)
{
	bool has_uprobes = probe_way_is_there(PROBE_WAY_UPROBE), has_kprobes = probe_way_is_there(PROBE_WAY_KPROBE);
	bool has_trampolines = probe_way_is_there(PROBE_WAY_TRAMPOLINE);

	checker_say(c, "uprobes", has_uprobes ? CHECK_YES : CHECK_PARTLY,
		    !has_uprobes					? "none"
		    : !geteuid() && probe_way_is_there(PROBE_WAY_MULTI) ? "many at once by one link"
									: "one by one",
		    "for --event uprobe:FILE:FUNCTION, uretprobe, usdt", "run a kernel with CONFIG_UPROBE_EVENTS");
	checker_say(c, "kprobes", has_kprobes ? CHECK_YES : CHECK_PARTLY, has_kprobes ? "" : "none",
		    "for --event kprobe:FUNCTION, kretprobe",
		    "run a kernel with CONFIG_KPROBE_EVENTS, as distributions' are");
	checker_say(c, "trampolines", has_trampolines ? CHECK_YES : CHECK_PARTLY, has_trampolines ? "" : "none",
		    "for --event fentry:FUNCTION, fexit",
		    "run a kernel with CONFIG_FUNCTION_TRACER and BTF; kprobe does the same");
}

int agent_check(bool any_version, const char *proc, void (*fn)(void *arg, const struct check *check), void *arg)
{
	struct checker c = { .fn = fn, .arg = arg, .any_version = any_version };

	libbpf_set_print(NULL);
	check_kernel(&c);
	check_kernel_config(&c);
	check_privileges(&c);
	check_security(&c);
	check_bpf(&c);
	check_memory(&c);
	check_perf(&c);
	check_probes(&c);
	check_settings(&c);
	check_pids(&c, proc);
	check_surroundings(&c);
	check_runtimes(&c);
	return c.failed;
}
