/* SPDX-License-Identifier: Apache-2.0 */
/* Reads facts about the host from /proc and /sys. No state. */
#include "agent/check/check_host.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/proc/proc_root.h"
#include "agent/kernel/tracepoints.h"
#include "base/buf.h"
#include "base/capabilities.h"
#include "base/cleanup.h"
#include "base/pack/gzip.h"
#include "base/io.h"

enum { CONFIG_MAX_BYTES = 4 << 20 };

void checker_say(struct checker *c, const char *name, enum check_result result, const char *found, const char *means,
		 const char *advice)
{
	struct check check = {
		.name = name, .result = result, .found = found, .means = means, .advice = result == CHECK_YES ? "" : advice
	};

	c->failed += result == CHECK_NO;
	c->fn(c->arg, &check);
}

bool checker_first_line(const char *path, char *line, size_t size)
{
	AUTO_FCLOSE FILE *f = fopen(path, "re");

	if (!f || !fgets(line, (int)size, f))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* --- the kernel's configuration --- */

void check_config_value(const char *config, const char *key, char *value, size_t size)
{
	size_t len = strlen(key);

	value[0] = '\0';
	for (const char *line = config; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, key, len) || line[len] != '=')
			continue;
		snprintf(value, size, "%.*s", (int)strcspn(line + len + 1, "\n"), line + len + 1);
		return;
	}
}

static bool read_whole(const char *path, struct buf *out)
{
	(void)io_read_file(path, CONFIG_MAX_BYTES, out);
	return out->len && !out->failed;
}

/* Returns the path where it was found, or NULL. */
static const char *read_config(struct buf *out, char *path, size_t size)
{
	AUTO(buf_fini) struct buf packed = BUF_EMPTY;
	struct utsname u;

	if (read_whole("/proc/config.gz", &packed) && !gzip_unpack(packed.data, packed.len, CONFIG_MAX_BYTES, out))
		return "/proc/config.gz";
	buf_reset(out);
	if (uname(&u))
		return NULL;
	snprintf(path, size, "/boot/config-%s", u.release);
	if (read_whole(path, out))
		return path;
	snprintf(path, size, "/lib/modules/%s/config", u.release);
	return read_whole(path, out) ? path : NULL;
}

void check_kernel_config(struct checker *c)
{
	static const struct {
		const char *key;
		bool is_needed;
	} options[] = {
		{ "CONFIG_BPF_SYSCALL", true },	   { "CONFIG_PERF_EVENTS", true },	   { "CONFIG_BPF_EVENTS", true },
		{ "CONFIG_DEBUG_INFO_BTF", true }, { "CONFIG_KALLSYMS", false },	   { "CONFIG_BPF_JIT", false },
		{ "CONFIG_CGROUPS", false },	   { "CONFIG_CHECKPOINT_RESTORE", false },
	};
	AUTO(buf_fini) struct buf config = BUF_EMPTY;
	enum check_result result = CHECK_YES;
	char path[300], value[64], missing[256] = "";
	const char *from = read_config(&config, path, sizeof(path));

	for (size_t i = 0; from && i < ARRAY_LEN(options); i++) {
		size_t len = strlen(missing);

		check_config_value(buf_text(&config), options[i].key, value, sizeof(value));
		if (value[0] == 'y')
			continue;
		snprintf(missing + len, sizeof(missing) - len, "%s%s is not set", len ? ", " : "", options[i].key);
		result = options[i].is_needed ? CHECK_NO : result == CHECK_NO ? CHECK_NO : CHECK_PARTLY;
	}
	checker_say(c, "kernel configuration", from ? result : CHECK_UNKNOWN,
		    !from	 ? "not to be found"
		    : missing[0] ? missing
				 : from,
		    "BPF, perf events and BTF must be built in; symbols, JIT and control groups are for names, speed and "
		    "filters",
		    from ? "run a kernel with these options" : "nothing: the checks below find out by trying");
}

/* --- privileges --- */

enum check_result check_capabilities_missing(uint64_t effective, bool is_root, char *text, size_t size)
{
	const struct capability *all;
	enum check_result result = CHECK_YES;
	size_t len = 0, count;

	text[0] = '\0';
	all = capabilities(&count);
	for (const struct capability *c = all; c < all + count; c++) {
		if (c->need == CAPABILITY_SPARE || effective >> c->number & 1 ||
		    (c->need & CAPABILITY_BY_ADMIN && effective >> CAP_SYS_ADMIN & 1) ||
		    (c->need & CAPABILITY_ROOTS && !is_root))
			continue;
		result = c->need & CAPABILITY_NEEDED || result == CHECK_NO ? CHECK_NO : CHECK_PARTLY;
		if (len < size)
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "", c->name);
	}
	return result;
}

static bool status_field(const char *key, char *value, size_t size)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	size_t len = strlen(key);

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, len) || line[len] != ':')
			continue;
		snprintf(value, size, "%s", line + len + 1 + strspn(line + len + 1, " \t"));
		value[strcspn(value, "\n")] = '\0';
		return true;
	}
	return false;
}

void check_privileges(struct checker *c)
{
	char value[64] = "", missing[256], text[300];
	enum check_result result;

	if (!status_field("CapEff", value, sizeof(value)))
		return;
	result = check_capabilities_missing(strtoull(value, NULL, 16), geteuid() == 0, missing, sizeof(missing));
	snprintf(text, sizeof(text), "%s%s", missing, missing[0] ? " missing" : geteuid() ? "all of them" : "root");
	checker_say(
		c, "capabilities", result, text,
		"to load BPF programs, to sample all CPUs, to read programs' files and memory, and the kernel's symbols; "
		"SETUID and SETGID let the processes that parse those files become nobody, with CHOWN the half that listens "
		"the store's owner",
		"run it with sudo; in a container --cap-add for each (SYS_ADMIN where it does not know BPF and PERFMON), "
		"or --privileged");
}

/* --- settings that may forbid it all the same --- */

static const char *chosen_word(char *line)
{
	char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;

	if (!close)
		return line;
	*close = '\0';
	return open + 1;
}

void check_security(struct checker *c)
{
	char line[512] = "none", label[256];
	const char *word;

	(void)checker_first_line("/sys/kernel/security/lockdown", line, sizeof(line));
	word = chosen_word(line);
	checker_say(c, "kernel lockdown", !strcmp(word, "confidentiality") ? CHECK_NO : CHECK_YES, word,
		    "under 'confidentiality' BPF programs may not read memory",
		    "start the kernel with lockdown=integrity, or without Secure Boot");

	snprintf(line, sizeof(line), "none");
	(void)checker_first_line("/sys/kernel/security/lsm", line, sizeof(line));
	if (checker_first_line("/proc/self/attr/current", label, sizeof(label)) && label[0]) {
		bool is_free = strstr(label, "unconfined") || !strcmp(label, "kernel");
		size_t len = strlen(line);

		snprintf(line + len, sizeof(line) - len, "; this process is %s", label);
		checker_say(
			c, "security modules", is_free ? CHECK_YES : CHECK_PARTLY, line,
			"AppArmor, SELinux and others may forbid a confined process to use BPF, or to read others' files",
			"run it unconfined, as with docker --security-opt apparmor=unconfined or label=disable");
	} else {
		checker_say(c, "security modules", CHECK_YES, line, "none of them confines this process", "");
	}
	if (status_field("Seccomp", line, sizeof(line)))
		checker_say(c, "seccomp", line[0] == '0' ? CHECK_YES : CHECK_PARTLY,
			    line[0] == '0' ? "no filter" : "a filter is on",
			    "container runtimes filter bpf() and perf_event_open() away by default",
			    "if loading fails: docker --security-opt seccomp=unconfined, or --privileged");
}

/* --- settings --- */

void check_settings(struct checker *c)
{
	char line[64];
	int error;

	if (checker_first_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line)))
		checker_say(c, "kernel.perf_event_paranoid", CHECK_YES, line,
			    "is about users without CAP_PERFMON; hearth needs that anyway", "");
	if (checker_first_line("/proc/sys/kernel/kptr_restrict", line, sizeof(line)))
		checker_say(c, "kernel symbol addresses", line[0] == '2' ? CHECK_PARTLY : CHECK_YES, line,
			    "kernel.kptr_restrict=2 hides them from everybody, and kernel frames stay without names",
			    "sysctl kernel.kptr_restrict=1");
	if (checker_first_line("/proc/sys/kernel/perf_event_max_sample_rate", line, sizeof(line)))
		checker_say(c, "samples a second", CHECK_YES, line,
			    "what --freq max takes, and the most for events other than clocks", "");
	if (checker_first_line("/proc/sys/kernel/perf_event_max_stack", line, sizeof(line)))
		checker_say(c, "kernel stack frames", atoi(line) < 127 ? CHECK_PARTLY : CHECK_YES, line,
			    "kernel stacks are cut at kernel.perf_event_max_stack, 127 by default",
			    "sysctl kernel.perf_event_max_stack=127");
	error = tracepoints_check();
	checker_say(c, "tracefs", error ? CHECK_PARTLY : CHECK_YES,
		    error					 ? strerror(-error)
		    : access("/sys/kernel/tracing/events", F_OK) ? "not mounted, but can be read"
								 : "/sys/kernel/tracing",
		    "for --event SYSTEM:EVENT (tracepoints); nothing else needs it",
		    "run it as root, on a kernel with CONFIG_TRACING that is not locked down");
}

/* --- where we run --- */

/* PROC_PID_INIT_INO (include/linux/proc_ns.h), the inode of the initial namespace. */
static bool is_initial_namespace(const char *path, uint64_t inode)
{
	struct stat st;

	return !stat(path, &st) && st.st_ino == inode;
}

static const char *container_kind(void)
{
	const char *variable = getenv("container");

	if (!access("/.dockerenv", F_OK))
		return "docker";
	if (!access("/run/.containerenv", F_OK))
		return "podman";
	if (getenv("KUBERNETES_SERVICE_HOST"))
		return "kubernetes";
	return variable && *variable ? variable : "none";
}

static bool has_cgroup2(void)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/self/mounts", "re");
	char line[1024];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, " cgroup2 "))
			return true;
	return false;
}

void check_pids(struct checker *c, const char *proc)
{
	struct agent_error error = { "" };
	struct pid_space pids = { 0 };
	int unusable = proc_root_set(proc) ? -ENAMETOOLONG : proc_root_space(&pids, &error);
	char text[PROC_PATH_BYTES + 64];

	if (!unusable && pids.ns)
		snprintf(text, sizeof(text), "%s shows a pid namespace of its own", proc_root());
	else if (!unusable && !pids.is_ours)
		snprintf(text, sizeof(text), "%s has them, though hearth is in a pid namespace of its own", proc_root());
	checker_say(
		c, "the host's processes",
		unusable  ? CHECK_NO
		: pids.ns ? CHECK_PARTLY
			  : CHECK_YES,
		unusable		   ? error.message
		: pids.ns || !pids.is_ours ? text
					   : "",
		"processes outside of it are counted as [not in /proc], without names and stacks",
		"docker --pid=host, in Kubernetes hostPID: true; or mount the host's /proc, and give its place as --proc or "
		"HOST_PROC");
}

void check_surroundings(struct checker *c)
{
	bool host_users = is_initial_namespace("/proc/self/ns/user", 0xEFFFFFFDul);

	checker_say(c, "container", CHECK_YES, container_kind(), "tells what the lines around it come from", "");
	checker_say(c, "the host's users", host_users ? CHECK_YES : CHECK_NO, host_users ? "" : "another user namespace",
		    "capabilities count for the kernel only in the initial user namespace",
		    "run it outside of rootless containers");
	checker_say(c, "control groups of version 2", has_cgroup2() ? CHECK_YES : CHECK_PARTLY, "",
		    "for --cgroup and --container",
		    "mount -t cgroup2 none /sys/fs/cgroup/unified, or start with systemd.unified_cgroup_hierarchy=1");
}
