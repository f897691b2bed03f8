/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this kernel, these privileges and this host allow: `hearth check`, and the one test that start-up makes by itself.
 * Each check says what to do about its 'no'. No state.
 */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/agent_state.h"
#include "agent/cpu.h"
#include "agent/map_sizes.h"
#include "agent/perf_event.h"
#include "base/cleanup.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"
#define NO_BTF_TEXT \
	KERNEL_BTF " is not there: the kernel must be built with CONFIG_DEBUG_INFO_BTF (distributions' kernels are)"
#define UNSAFE_TEXT                                                                                                     \
	"this kernel (5.19 to 6.3 without the copy_from_user_nofault fix) can lock up when user memory is read from a " \
	"sampling "                                                                                                     \
	"interrupt."

struct checker {
	void (*fn)(void *arg, enum check_result result, const char *what, const char *detail);
	void *arg;
	int failed;
};

static void say(struct checker *c, enum check_result result, const char *what, const char *detail)
{
	c->failed += result == CHECK_FAIL;
	c->fn(c->arg, result, what, detail);
}

static unsigned kernel_version(void)
{
	unsigned major = 0, minor = 0;
	struct utsname u;

	if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return 0;
	return major * 1000 + minor;
}

/* The first line of a file of /proc or /sys, without its newline. */
static bool first_line(const char *path, char *line, size_t size)
{
	AUTO_FCLOSE FILE *f = fopen(path, "re");

	if (!f || !fgets(line, (int)size, f))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* --- copy_from_user_nofault: kernels 5.19 to 6.3 can lock up in it under hardened usercopy (fixed by "mm: Fix
 * copy_from_user_nofault()", 6.4, and its backports). The fix made it ask nmi_uaccess_okay() first, a function on some CPUs,
 * and
 * __check_object_size look at the task's pagefault_disabled before it calls find_vmap_area, which locks. --- */

static uint64_t symbol_address(const char *name)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], symbol[256];
	unsigned long long addr;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %255s", &addr, symbol) == 2 && !strcmp(symbol, name))
			return addr;
	return 0;
}

static ssize_t read_kernel_text(uint64_t addr, void *dst, size_t len)
{
	AUTO_CLOSE int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr eh;

	if (fd < 0 || pread(fd, &eh, sizeof(eh), 0) != sizeof(eh))
		return -EIO;
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph;

		if (pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) != sizeof(ph))
			return -EIO;
		if (ph.p_type == PT_LOAD && addr - ph.p_vaddr < ph.p_memsz)
			return pread(fd, dst, len, (off_t)(addr - ph.p_vaddr + ph.p_offset));
	}
	return -ENOENT;
}

/* Where a task's pagefault_disabled stands; 0 when it cannot be told. */
static uint32_t pagefault_disabled_offset(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *task = btf ? btf__type_by_id(btf, (uint32_t)btf__find_by_name_kind(btf, "task_struct",
												  BTF_KIND_STRUCT))
					  : NULL;
	uint32_t offset = 0;

	for (uint16_t i = 0; task && i < btf_vlen(task); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(task)[i].name_off), "pagefault_disabled"))
			offset = btf_member_bit_offset(task, i) / 8;
	btf__free(btf);
	return offset;
}

/* Is the running copy_from_user_nofault the fixed one (or needs no fix)? False too when it cannot be told. */
static bool nofault_is_fixed(void)
{
	uint64_t from = symbol_address("copy_from_user_nofault"), checks = symbol_address("__check_object_size");
	uint64_t asks = symbol_address("nmi_uaccess_okay"), locks = symbol_address("find_vmap_area");
	uint32_t disabled = pagefault_disabled_offset();
	uint8_t code[96], check[1024]; /* the calls stand within */

	if (from && !checks)
		return true; /* not hardened */
	if (from && asks && read_kernel_text(from, code, sizeof(code)) == (ssize_t)sizeof(code))
		return cpu_calls(code, sizeof(code), from, asks);
	return from && locks && disabled && read_kernel_text(checks, check, sizeof(check)) == (ssize_t)sizeof(check) &&
	       cpu_loads_before_call(check, sizeof(check), checks, disabled, locks);
}

static bool kernel_is_safe(void)
{
	unsigned version = kernel_version();

	return version < 5019 || version >= 6004 || nofault_is_fixed();
}

int kernel_is_supported(bool force, struct agent_error *err)
{
	struct utsname u = { 0 };

	uname(&u);
	if (kernel_version() < CPU_MIN_KERNEL)
		snprintf(err->message, sizeof(err->message),
			 "Linux %s is too old: hearth needs " CPU_MIN_KERNEL_TEXT " or newer", u.release);
	else if (access(KERNEL_BTF, R_OK))
		snprintf(err->message, sizeof(err->message), NO_BTF_TEXT);
	else if (!force && !kernel_is_safe())
		snprintf(err->message, sizeof(err->message), UNSAFE_TEXT " Update it, or start with --unsafe-kernel.");
	else
		return 0;
	return -ENOTSUP;
}

/* --- the checks --- */

static void check_kernel(struct checker *c)
{
	unsigned version = kernel_version();
	bool safe = kernel_is_safe();
	struct utsname u = { 0 };

	uname(&u);
	say(c, version >= CPU_MIN_KERNEL ? CHECK_OK : CHECK_FAIL, "kernel " CPU_MIN_KERNEL_TEXT " or newer", u.release);
	say(c, strcmp(u.machine, CPU_MACHINE) ? CHECK_FAIL : CHECK_OK, CPU_NAME, u.machine);
	say(c, safe ? CHECK_OK : CHECK_FAIL, "safe reads of user memory", safe ? "" : UNSAFE_TEXT);
	if (access(KERNEL_BTF, R_OK))
		say(c, CHECK_FAIL, "kernel BTF", NO_BTF_TEXT);
	else
		say(c, CHECK_OK, "kernel BTF", KERNEL_BTF);
}

static void check_privileges(struct checker *c)
{
	char line[256];

	if (geteuid())
		say(c, CHECK_WARN, "root",
		    "not root: CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_SYSLOG must be there; try sudo");
	else
		say(c, CHECK_OK, "root", "");
	if (first_line("/sys/kernel/security/lockdown", line, sizeof(line)) && strstr(line, "[confidentiality]"))
		say(c, CHECK_FAIL, "lockdown", "the kernel is locked down for confidentiality: BPF may not read memory");
	if (first_line("/proc/sys/kernel/kptr_restrict", line, sizeof(line)))
		say(c, line[0] == '2' ? CHECK_WARN : CHECK_OK, "kernel symbol addresses",
		    line[0] == '2' ? "kernel.kptr_restrict=2 hides them from everybody: kernel frames stay without names; "
				     "set it to 1"
				   : "");
}

static void check_bpf(struct checker *c)
{
	int program = libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_PERF_EVENT, NULL);
	char line[16];

	if (program != 1) {
		say(c, CHECK_FAIL, "BPF programs on perf events",
		    program == -EPERM ? "permission denied: run it with sudo" : "this kernel refuses them");
		return;
	}
	say(c, CHECK_OK, "BPF programs on perf events", "");
	if (libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) != 1)
		say(c, CHECK_FAIL, "BPF ring buffers", "this kernel has none (5.8)");
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1)
		say(c, CHECK_OK, "bpf_loop", "stacks up to 1024 frames in one program");
	else
		say(c, CHECK_WARN, "bpf_loop", "not here (5.17): stacks are walked by tail calls, up to 264 frames");
	if (first_line("/proc/sys/net/core/bpf_jit_enable", line, sizeof(line)) && line[0] == '0')
		say(c, CHECK_WARN, "BPF JIT",
		    "off: the programs are interpreted and cost more; set net.core.bpf_jit_enable=1");
}

static void check_memory(struct checker *c)
{
	struct map_sizes sizes;
	struct map_host host;
	char text[128];

	map_host_read(&host);
	sizes = map_sizes_choose(&host, 0);
	snprintf(text, sizeof(text),
		 "%.1f MB for %u processes, %u mappings, %u blocks of unwind rows; doubled by each --map-scale",
		 (double)map_sizes_bytes(&sizes) / 1e6, sizes.procs, sizes.mappings, sizes.blocks);
	say(c, CHECK_OK, "kernel caches", text);
}

static void check_perf(struct checker *c)
{
	struct perf_event_attr clock = { 0 }, cycles = { 0 };
	struct agent_error ignored;
	int fd;

	(void)perf_event_parse("cpu-clock", &clock, &ignored);
	(void)perf_event_parse("cycles", &cycles, &ignored);
	fd = perf_event_open_cpu(&clock, 0, 99, 0);
	say(c, fd < 0 ? CHECK_FAIL : CHECK_OK, "perf event cpu-clock", fd < 0 ? strerror(-fd) : "");
	if (fd >= 0)
		close(fd);
	fd = perf_event_open_cpu(&cycles, 0, 99, 0);
	say(c, fd < 0 ? CHECK_WARN : CHECK_OK, "perf event cycles",
	    fd < 0 ? "no hardware counters here (usual in virtual machines); the default event does not need them" : "");
	if (fd >= 0)
		close(fd);
}

int agent_check(void (*fn)(void *arg, enum check_result result, const char *what, const char *detail), void *arg)
{
	struct checker c = { .fn = fn, .arg = arg };

	libbpf_set_print(NULL);
	check_kernel(&c);
	check_privileges(&c);
	check_bpf(&c);
	check_memory(&c);
	check_perf(&c);
	return c.failed;
}
