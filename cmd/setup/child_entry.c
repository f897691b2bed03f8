/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets a command run up to the entry point of its program, where it stops: the dynamic linker has mapped all libraries then,
 * and neither the program's constructors nor main have run. Done by a breakpoint, as a debugger does it; nobody traces the
 * command afterwards, it waits for SIGCONT.
 */
#include "cmd/setup/child.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/proc/proc_root.h"
#include "base/cleanup.h"
#include "base/log.h"

#if defined(__aarch64__)
#define TRAP	    0xd4200000ul /* brk #0 */
#define TRAP_MASK   0xfffffffful
#define PC_OF(regs) ((regs)->pc)
enum { TRAP_PC = 0 }; /* how far behind the trap's address the pc is, where it stops the thread */
#else
#define TRAP	    0xccul
#define TRAP_MASK   0xfful
#define PC_OF(regs) ((regs)->rip)
enum { TRAP_PC = 1 };
#endif

/* Waits for the next stop of the child: of the event @event, or of a signal when @event is 0. Other signals reach the
 * command. 0, -ECHILD: it has ended, -errno. */
static int wait_stop(struct child *c, unsigned event, int signal)
{
	for (;;) {
		int status;

		if (waitpid(c->pid, &status, 0) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!WIFSTOPPED(status)) {
			c->is_reaped = true;
			c->wait_status = status;
			return -ECHILD;
		}
		if ((unsigned)status >> 16 == event && (event || WSTOPSIG(status) == signal))
			return 0;
		if (ptrace(PTRACE_CONT, c->pid, NULL, (void *)(uintptr_t)((unsigned)status >> 16 ? 0 : WSTOPSIG(status))))
			return -errno;
	}
}

/* The address where the program begins; 0: it is not known. */
static unsigned long entry_of(pid_t pid)
{
	ElfW(auxv_t) words[64];
	char path[PROC_PATH_BYTES];
	AUTO_CLOSE int fd = open(proc_path(path, (uint32_t)pid, "auxv"), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, words, sizeof(words));

	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(*words); i++)
		if (words[i].a_type == AT_ENTRY)
			return words[i].a_un.a_val;
	return 0;
}

/* Is the program one of our own width? */
static bool read_regs(pid_t pid, struct user_regs_struct *ret)
{
	struct iovec vec = { ret, sizeof(*ret) };

	return !ptrace(PTRACE_GETREGSET, pid, (void *)(uintptr_t)NT_PRSTATUS, &vec) && vec.iov_len == sizeof(*ret);
}

static int set_pc(pid_t pid, struct user_regs_struct *regs, unsigned long pc)
{
	struct iovec vec = { regs, sizeof(*regs) };

	PC_OF(regs) = pc;
	return ptrace(PTRACE_SETREGSET, pid, (void *)(uintptr_t)NT_PRSTATUS, &vec) ? -errno : 0;
}

static int put_word(pid_t pid, unsigned long addr, unsigned long word)
{
	return ptrace(PTRACE_POKETEXT, pid, (void *)addr, (void *)word) ? -errno : 0;
}

/* From its execve() on to the entry point. What is no 64-bit program stays where it is. */
static int run_to_entry(struct child *c)
{
	unsigned long entry = entry_of(c->pid), word;
	struct user_regs_struct regs;
	int err;

	if (!entry || !read_regs(c->pid, &regs))
		return 0;
	errno = 0;
	word = (unsigned long)ptrace(PTRACE_PEEKTEXT, c->pid, (void *)entry, NULL);
	err = errno ? -errno : put_word(c->pid, entry, (word & ~TRAP_MASK) | TRAP);
	if (!err && ptrace(PTRACE_CONT, c->pid, NULL, NULL))
		err = -errno;
	do {
		if (!err)
			err = wait_stop(c, 0, SIGTRAP);
		if (!err && !read_regs(c->pid, &regs))
			err = -EIO;
		if (err || PC_OF(&regs) == entry + TRAP_PC)
			break;
		err = ptrace(PTRACE_CONT, c->pid, NULL, (void *)(uintptr_t)SIGTRAP) ? -errno : 0; /* one of its own */
	} while (true);
	if (!err)
		err = put_word(c->pid, entry, word);
	return err ? err : set_pc(c->pid, &regs, entry);
}

int child_stop_at_entry(struct child *c)
{
	int status, err = 0;

	if (ptrace(PTRACE_SEIZE, c->pid, NULL, (void *)(uintptr_t)(PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)))
		err = -errno;
	if (!err && write(c->go_fd, "", 1) != 1)
		err = -errno;
	close(MOVE_FD(c->go_fd));
	if (!err)
		err = wait_stop(c, PTRACE_EVENT_EXEC, 0);
	if (!err)
		err = run_to_entry(c);
	if (!err && ptrace(PTRACE_DETACH, c->pid, NULL, (void *)(uintptr_t)SIGSTOP))
		err = -errno;
	while (!err && waitpid(c->pid, &status, WUNTRACED) < 0)
		err = errno == EINTR ? 0 : -errno;
	if (!err && !WIFSTOPPED(status)) {
		c->is_reaped = true;
		c->wait_status = status;
		err = -ECHILD;
	}
	c->is_stopped = !err;
	if (err && err != -ECHILD)
		log_error("cannot stop the command before its main, to find its allocator: %s; run it, and take -p PID",
			  strerror(-err));
	return err;
}
