/* SPDX-License-Identifier: Apache-2.0 */
/* elfutils' own unwinder over the stopped program: the same registers and bytes of memory as hearth's walk gets. */
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/judge/judge.h"

struct libdwfl {
	Dwfl *dwfl;
	int fd; /* a file for this CPU */
	Elf *elf;
	pid_t pid;
	struct memory *memory;
	const uint64_t *regs;
	struct chain *chain; /* being filled */
};

/* Separate debug files would only slow the judge down, and asking for them over the network more so. */
static int find_no_debuginfo(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base, const char *file,
			     const char *link, GElf_Word crc, char **path_ret)
{
	(void)mod, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)path_ret;
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	struct libdwfl *d = arg;
	bool is_first = *thread_arg == NULL;

	(void)dwfl;
	*thread_arg = arg;
	return is_first ? d->pid : 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	(void)dwfl, (void)tid;
	*thread_arg = arg;
	return true;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	struct libdwfl *d = arg;

	(void)dwfl;
	return memory_read(d->memory, addr, result, sizeof(*result)) == 0;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	struct libdwfl *d = arg;

	return dwfl_thread_state_registers(thread, 0, USER_REGS, d->regs);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_word,
	.set_initial_registers = set_registers,
};

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = find_no_debuginfo,
};

struct libdwfl *libdwfl_new(pid_t pid, struct memory *m)
{
	struct libdwfl *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->pid = pid;
	d->memory = m;
	d->dwfl = dwfl_begin(&callbacks);
	if (!d->dwfl)
		abort();
	libdwfl_reread(d);
	/* Without a file of ours it would keep to one of the program's, which the next reread may forget. */
	d->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	d->elf = elf_begin(d->fd, ELF_C_READ_MMAP, NULL);
	if (!d->elf || !dwfl_attach_state(d->dwfl, d->elf, pid, &thread_callbacks, d))
		abort();
	return d;
}

void libdwfl_free(struct libdwfl *d)
{
	if (!d)
		return;
	dwfl_end(d->dwfl);
	elf_end(d->elf);
	close(d->fd);
	free(d);
}

void libdwfl_reread(struct libdwfl *d)
{
	dwfl_report_begin(d->dwfl);
	(void)dwfl_linux_proc_report(d->dwfl, d->pid);
	dwfl_report_end(d->dwfl, NULL, NULL);
}

/* Is @pc where a signal handler returns to (mov $15,%rax; syscall)? libdwfl calls that frame itself an exact one, but what
 * it knows of it is a return address like others. */
static bool is_restorer(struct libdwfl *d, uint64_t pc)
{
	static const uint8_t restorer[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	uint8_t code[sizeof(restorer)];

	return memory_read(d->memory, pc, code, sizeof(code)) == 0 && memcmp(code, restorer, sizeof(code)) == 0;
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct libdwfl *d = arg;
	struct chain *chain = d->chain;
	bool is_exact;
	Dwarf_Addr pc;

	if (chain->count == MAX_USER_FRAMES || !dwfl_frame_pc(frame, &pc, &is_exact))
		return DWARF_CB_ABORT;
	is_exact &= chain->count == 0 || !is_restorer(d, pc);
	chain->pcs[chain->count++] = pc | (is_exact ? FRAME_EXACT : 0);
	return DWARF_CB_OK;
}

void libdwfl_walk(struct libdwfl *d, const uint64_t *regs, struct chain *chain)
{
	int r;

	d->regs = regs;
	d->chain = chain;
	chain->count = 0;
	r = dwfl_getthread_frames(d->dwfl, d->pid, take_frame, d);
	chain->end = r == 0 ? "root" : r > 0 ? "depth" : dwfl_errmsg(-1);
}

const char *libdwfl_name(struct libdwfl *d, uint64_t addr, uint64_t *off_ret)
{
	Dwfl_Module *mod = dwfl_addrmodule(d->dwfl, addr);
	GElf_Off off = 0;
	GElf_Sym sym;
	const char *name = mod ? dwfl_module_addrinfo(mod, addr, &off, &sym, NULL, NULL, NULL) : NULL;

	*off_ret = name ? off : 0;
	return name ? name : "?";
}
