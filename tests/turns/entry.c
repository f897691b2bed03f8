/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways into the kernel: system call, the 32-bit system call of a 64-bit program, page fault, interrupt; and text that was
 * moved onto a huge page by mremap. Compat code: a 64-bit program in a 32-bit code segment.
 */
#include "turns.h"

#include <sys/mman.h>

FRAME void leaf(void);
FRAME void leaf(void)
{
	burn(300);
	turn_sink++;
}

FRAME void calls(void);
FRAME void calls(void)
{
	for (int i = 0; i < 500; i++) {
		long ret = SYS_getppid;

		__asm__ volatile("syscall" : "+a"(ret) : : "rcx", "r11", "memory");
		turn_sink += (unsigned long)ret;
	}
}

static void by_syscall(void)
{
	right("@main;by_syscall(;calls|(;@libs)*)?");
	seen(4, "by_syscall;calls\\|.*do_syscall_64");
	told();
	while (running())
		calls();
}

FRAME void old_calls(void);
FRAME void old_calls(void)
{
	for (int i = 0; i < 500; i++) {
		long ret = 20; /* getpid of the 32-bit table */

		__asm__ volatile("int $0x80" : "+a"(ret) : : "r8", "r9", "r10", "r11", "memory");
		turn_sink += (unsigned long)ret;
	}
}

static void by_int80(void)
{
	long ret = 20;

	__asm__ volatile("int $0x80" : "+a"(ret) : : "r8", "r9", "r10", "r11", "memory");
	if (ret != getpid())
		leave_out("no 32-bit system calls");
	right("@main;by_int80(;old_calls|(;@libs)*)?");
	seen(4, "by_int80;old_calls\\|.*int80");
	told();
	while (running())
		old_calls();
}

FRAME void touch(volatile char *p, size_t bytes);
FRAME void touch(volatile char *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 4096)
		p[i] = 1;
	turn_sink++;
}

static void by_fault(void)
{
	enum { BYTES = 4 << 20 };
	char *p = must_map(BYTES, PROT_READ | PROT_WRITE, 0);

	right("@main;by_fault(;touch|(;@libs|;entry\\+)*)?");
	seen(4, "by_fault;touch\\|.*exc_page_fault");
	told();
	while (running()) {
		touch(p, BYTES);
		madvise(p, BYTES, MADV_DONTNEED);
	}
}

/* The timer's interrupts, and what the kernel does behind them: freeing the inodes of these pipes. */
FRAME void interrupted(void);
FRAME void interrupted(void)
{
	for (int i = 0; i < 200; i++) {
		int fds[2];

		if (syscall(SYS_pipe2, fds, 0) == 0) {
			syscall(SYS_close, fds[0]);
			syscall(SYS_close, fds[1]);
		}
	}
	burn(3000);
	turn_sink++;
}

static void by_interrupt(void)
{
	right("@main;by_interrupt(;interrupted(;@libs|;entry\\+)?|(;@libs)*)?");
	told();
	while (running())
		interrupted();
}

/* --- text on a huge page --- */

#define MOVED_NAME(n) __attribute__((noipa, section("moved"))) unsigned long moved##n(unsigned long x)
#define MOVED(n, inner)                        \
	MOVED_NAME(n);                         \
	MOVED_NAME(n)                          \
	{                                      \
		turn_sink += inner(x + 1) ^ x; \
		return turn_sink;              \
	}
__attribute__((noipa, section("moved"))) unsigned long moved_leaf(unsigned long x);
__attribute__((noipa, section("moved"))) unsigned long moved_leaf(unsigned long x)
{
	burn(300);
	return turn_sink + x;
}
MOVED(3, moved_leaf)
MOVED(2, moved3)
MOVED(1, moved2)

/* What a program does to have its text on huge pages: copy it elsewhere, move the copy over it. */
static void huge_text(void)
{
	extern char __start_moved[], __stop_moved[];
	char *from = (char *)((uintptr_t)__start_moved & ~4095ul);
	size_t bytes = ((uintptr_t)__stop_moved - (uintptr_t)from + 4095) & ~4095ul;
	char *copy = must_map(bytes, PROT_READ | PROT_WRITE, 0);

	right("@main;huge_text(;moved1(;moved2(;moved3(;moved_leaf)?)?)?|(;@libs|;entry\\+)*)?");
	seen(10, "huge_text;moved1;moved2;moved3;moved_leaf");
	told();
	memcpy(copy, from, bytes);
	mprotect(copy, bytes, PROT_READ | PROT_EXEC);
	if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, from) != from)
		abort();
	if (getenv("TURNS_REREAD")) /* makes the profiler look into /proc/PID/maps */
		must_map(4096, PROT_READ | PROT_EXEC, 0);
	while (running())
		turn_sink += moved1(turn_sink);
}

TURNS({ "by_syscall", by_syscall }, { "by_int80", by_int80 }, { "by_fault", by_fault }, { "by_interrupt", by_interrupt },
      { "huge_text", huge_text })
