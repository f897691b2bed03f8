/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signal frames: on the stack, on an alternate one below or above it, nested, real-time, at a fault, at any instruction,
 * left by siglongjmp. Signals are sent by a system call of the program's own, so that its every frame is known.
 */
#include "turns.h"

#include <pthread.h>
#include <setjmp.h>

enum { STACK_BYTES = 256 << 10 };

static int turn_pid, turn_tid;

#define SEND(name)                                                                             \
	FRAME void name(int signal);                                                           \
	FRAME void name(int signal)                                                            \
	{                                                                                      \
		long ret = SYS_tgkill;                                                         \
                                                                                               \
		__asm__ volatile("syscall"                                                     \
				 : "+a"(ret)                                                   \
				 : "D"((long)turn_pid), "S"((long)turn_tid), "d"((long)signal) \
				 : "rcx", "r11", "memory");                                    \
		turn_sink++;                                                                   \
	}

SEND(sender)
SEND(inner_sender)

FRAME void leaf(void);
FRAME void leaf(void)
{
	burn(300);
	turn_sink++;
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	leaf();
	turn_sink++;
}

static void who(void)
{
	turn_pid = getpid();
	turn_tid = gettid();
}

/* --- on the same stack --- */

static void sig_plain(void)
{
	right("@main;sig_plain;sender;@signal;on_signal;leaf");
	right("@main;sig_plain(;sender(;@signal(;on_signal)?)?)?");
	seen(10, "sender;@signal;on_signal;leaf");
	told();
	who();
	handle(SIGUSR1, on_signal, 0);
	while (running())
		sender(SIGUSR1);
}

static void sig_rt(void)
{
	right("@main;sig_rt(;sender(;@signal(;on_signal(;leaf)?)?)?)?");
	seen(10, "sender;@signal;on_signal;leaf");
	told();
	who();
	handle(SIGRTMIN + 3, on_signal, SA_NODEFER);
	while (running())
		sender(SIGRTMIN + 3);
}

static void on_brief(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
}

/* The time goes into the kernel's making of the frame and into its return from it. */
static void sig_storm(void)
{
	right("@main;sig_storm(;sender(;@signal(;on_brief)?)?)?");
	seen(5, "sender;@signal\\|.*sigreturn");
	told();
	who();
	handle(SIGUSR1, on_brief, 0);
	while (running())
		for (int i = 0; i < 500; i++)
			sender(SIGUSR1);
}

static void on_outer(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	inner_sender(SIGUSR2);
	turn_sink++;
}

static void sig_nested(void)
{
	right("@main;sig_nested(;sender(;@signal(;on_outer(;inner_sender(;@signal(;on_signal(;leaf)?)?)?)?)?)?)?");
	seen(10, "sender;@signal;on_outer;inner_sender;@signal;on_signal;leaf");
	told();
	who();
	handle(SIGUSR1, on_outer, 0);
	handle(SIGUSR2, on_signal, 0);
	while (running())
		sender(SIGUSR1);
}

/* --- at a fault and at any instruction --- */

/* The first instruction of faulter faults: pc - 1 is another function. */
__asm__(".text\n.p2align 4\n.globl before_faulter\n.type before_faulter, @function\nbefore_faulter:\n.cfi_startproc\n"
	"push %rbx\n.cfi_adjust_cfa_offset 8\npush %rbx\n.cfi_adjust_cfa_offset 8\npop %rbx\npop %rbx\n"
	"jmp faulter\n.cfi_endproc\n.size before_faulter, . - before_faulter\n"
	".globl faulter\n.type faulter, @function\nfaulter:\n.cfi_startproc\nmov (%rdi), %rax\nret\n.cfi_endproc\n"
	".size faulter, . - faulter\n");
void faulter(void *p);

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	leaf();
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 3; /* not before: the pc below us is the instruction's */
}

static void sig_fault(void)
{
	right("@main;sig_fault(;faulter(;@signal(;on_fault(;leaf)?)?)?)?");
	seen(10, "sig_fault;faulter;@signal;on_fault;leaf");
	told();
	handle(SIGSEGV, on_fault, 0);
	while (running())
		faulter(NULL);
}

FRAME unsigned long many(unsigned long a, unsigned long b, unsigned long c);
FRAME unsigned long tiny(unsigned long a);

FRAME unsigned long tiny(unsigned long a)
{
	return a * 3;
}

FRAME unsigned long many(unsigned long a, unsigned long b, unsigned long c)
{
	volatile char room[200];

	room[a & 127] = (char)b;
	return tiny(a) + b * tiny(c) + c * tiny(a + b) + (unsigned long)room[b & 127] * a;
}

static void sig_async(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	struct itimerspec every = { { 0, 400000 }, { 0, 400000 } };
	timer_t timer;

	right("@main;sig_async(;many(;tiny)?)?(;@signal(;on_signal(;leaf)?)?)?");
	right("@main;sig_async(;@libs|;signals\\w*\\+|;__syscall_ret)+;@signal;on_signal(;leaf)?");
	seen(4, "sig_async;many;tiny;@signal;on_signal;leaf");
	told();
	handle(SIGALRM, on_signal, 0);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &every, NULL);
	while (running())
		for (unsigned long i = 0; i < 5000; i++)
			turn_sink += many(turn_sink, i, turn_sink >> 3);
	timer_delete(timer);
}

/* --- on an alternate stack --- */

INLINE void use_stack(void *at)
{
	stack_t ss = { .ss_sp = at, .ss_size = STACK_BYTES };

	if (sigaltstack(&ss, NULL))
		abort();
}

static void alt_told(const char *name, const char *root)
{
	printf("stack %s;%s(;sender(;@signal(;on_signal(;leaf)?)?)?)?\n", root, name);
	printf("seen 10 %s;sender;@signal;on_signal;leaf\n", name);
	told();
}

/* Memory from mmap stands below the main thread's stack. */
static void alt_main(void)
{
	alt_told("alt_main", "@main");
	who();
	use_stack(must_map(STACK_BYTES, PROT_READ | PROT_WRITE, 0));
	handle(SIGUSR1, on_signal, SA_ONSTACK);
	while (running())
		sender(SIGUSR1);
}

struct areas {
	char *thread, *handler;
};

static void *alt_thread(void *arg)
{
	struct areas *areas = arg;

	who();
	use_stack(areas->handler);
	handle(SIGUSR1, on_signal, SA_ONSTACK);
	while (running())
		sender(SIGUSR1);
	return NULL;
}

static void in_thread(void *(*fn)(void *), struct areas *areas)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, areas->thread, STACK_BYTES);
	pthread_create(&thread, &attr, fn, areas);
	pthread_join(thread, NULL);
}

/* The handler's stack above the thread's, with a page between that nobody may touch, and below it. */
static void alt_above(void)
{
	char *all = must_map(3 * STACK_BYTES, PROT_READ | PROT_WRITE, 0);
	struct areas areas = { all, all + 2 * STACK_BYTES };

	mprotect(all + STACK_BYTES, STACK_BYTES, PROT_NONE);
	alt_told("alt_thread", "@thread");
	in_thread(alt_thread, &areas);
}

static void alt_below(void)
{
	char *all = must_map(3 * STACK_BYTES, PROT_READ | PROT_WRITE, 0);
	struct areas areas = { all + 2 * STACK_BYTES, all };

	mprotect(all + STACK_BYTES, STACK_BYTES, PROT_NONE);
	alt_told("alt_thread", "@thread");
	in_thread(alt_thread, &areas);
}

/* From the alternate stack on to it again (the kernel stays on it), and from it to a handler that has none. */
static void alt_nested(void)
{
	right("@main;alt_nested(;sender(;@signal(;on_outer(;inner_sender(;@signal(;on_signal(;leaf)?)?)?)?)?)?)?");
	seen(10, "sender;@signal;on_outer;inner_sender;@signal;on_signal;leaf");
	told();
	who();
	use_stack(must_map(STACK_BYTES, PROT_READ | PROT_WRITE, 0));
	handle(SIGUSR1, on_outer, SA_ONSTACK);
	for (int i = 0; running(); i++) {
		handle(SIGUSR2, on_signal, i & 1 ? SA_ONSTACK : 0);
		sender(SIGUSR1);
	}
}

static sigjmp_buf back;

static void on_leave(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	leaf();
	siglongjmp(back, 1);
}

static void alt_leave(void)
{
	right("@main;alt_leave(;sender(;@signal(;on_leave(;leaf)?)?)?)?");
	right("@main;alt_leave(;sender;@signal;on_leave)?(;@libs)*");
	seen(10, "alt_leave;sender;@signal;on_leave;leaf");
	told();
	who();
	use_stack(must_map(STACK_BYTES, PROT_READ | PROT_WRITE, 0));
	handle(SIGUSR1, on_leave, SA_ONSTACK | SA_NODEFER);
	while (running())
		if (!sigsetjmp(back, 1))
			sender(SIGUSR1);
}

TURNS({ "sig_plain", sig_plain }, { "sig_rt", sig_rt }, { "sig_storm", sig_storm }, { "sig_nested", sig_nested },
      { "sig_fault", sig_fault }, { "sig_async", sig_async }, { "alt_main", alt_main }, { "alt_above", alt_above },
      { "alt_below", alt_below }, { "alt_nested", alt_nested }, { "alt_leave", alt_leave })
