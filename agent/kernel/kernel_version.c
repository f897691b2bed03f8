/* SPDX-License-Identifier: Apache-2.0 */
/* The one test that every start makes: can hearth work on the running kernel, and is that safe? No state. */
#include <bpf/btf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/cpu/cpu.h"
#include "agent/kernel/kernel_version.h"
#include "base/cleanup.h"

#define NO_BTF_TEXT \
	KERNEL_BTF " is not there: the kernel must be built with CONFIG_DEBUG_INFO_BTF (distributions' kernels are)"

unsigned kernel_version(void)
{
	unsigned major = 0, minor = 0;
	struct utsname u;

	if (uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return 0;
	return major * 1000 + minor;
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

/* The offset of a task's pagefault_disabled; 0 when it cannot be told. */
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

bool kernel_is_safe(void)
{
	unsigned version = kernel_version();

	return version < 5019 || version >= 6004 || nofault_is_fixed();
}

int kernel_is_supported(bool force, bool any_version, struct agent_error *err)
{
	struct utsname u = { 0 };

	uname(&u);
	if (!any_version && kernel_version() < CPU_MIN_KERNEL)
		snprintf(err->message, sizeof(err->message),
			 "Linux %s is too old: hearth needs " CPU_MIN_KERNEL_TEXT
			 " or newer; --no-version-check tries all the same",
			 u.release);
	else if (access(KERNEL_BTF, R_OK))
		snprintf(err->message, sizeof(err->message), NO_BTF_TEXT);
	else if (!force && !kernel_is_safe())
		snprintf(err->message, sizeof(err->message),
			 UNSAFE_KERNEL_TEXT " Update it, or start with --unsafe-kernel.");
	else
		return 0;
	return -ENOTSUP;
}
