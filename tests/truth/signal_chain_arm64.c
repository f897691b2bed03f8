/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain through a signal handler (arm64, where they return to code in the vDSO): main, outer, work and, behind the code
 * that the kernel has handlers return to, on_signal, inner, leaf. Every other signal is taken on an alternate stack. work
 * signals its own thread without a call in between.
 */
#include "truth.h"

#include <signal.h>
#include <sys/syscall.h>

INLINE void signal_self(int number)
{
	long pid = getpid();

	register long x0 __asm__("x0") = pid, x1 __asm__("x1") = pid, x2 __asm__("x2") = number,
			 x8 __asm__("x8") = SYS_tgkill;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
}

FRAME unsigned long leaf(unsigned long x);
FRAME unsigned long leaf(unsigned long x)
{
	return spin(x);
}

FRAME unsigned long inner(unsigned long x);
FRAME unsigned long inner(unsigned long x)
{
	truth_sink = leaf(x + 1) ^ x;
	return truth_sink;
}

FRAME void on_signal(int number);
FRAME void on_signal(int number)
{
	truth_sink = inner((unsigned long)number) ^ 1;
}

FRAME unsigned long work(unsigned long x);
FRAME unsigned long work(unsigned long x)
{
	signal_self(x & 1 ? SIGUSR1 : SIGUSR2);
	truth_sink ^= x;
	return truth_sink;
}

FRAME unsigned long outer(unsigned long x);
FRAME unsigned long outer(unsigned long x)
{
	truth_sink = work(x) ^ x;
	return truth_sink;
}

int main(int argc, char **argv)
{
	static unsigned char stack[65536];
	const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = on_signal };
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);

	puts("chain main outer work [vdso]:__kernel_rt_sigreturn on_signal inner leaf");
	truth_told();
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	sigaltstack(&alternate, NULL);
	for (unsigned long n = 0; now_seconds(CLOCK_MONOTONIC) < end; n++)
		truth_sink ^= outer(n);
	return 0;
}
