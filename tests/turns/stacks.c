/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that move: ucontexts and coroutines of the kind boost makes, longjmp, realigned frames, alloca, the red zone. The
 * cases named step_* run each instruction of the turn below a trap.
 */
#include "step.h"

#include <alloca.h>
#include <setjmp.h>
#include <ucontext.h>

enum { STACK_BYTES = 32 << 10, COROUTINES = 4 };

FRAME void leaf(void);
FRAME void leaf(void)
{
	burn(300);
	turn_sink++;
}

/* Stacks at every second STACK_BYTES, between them memory that nobody may touch. Neighbours stand in turn above and below
 * one another. */
static char *stack_area(void)
{
	char *area = must_map((size_t)2 * COROUTINES * STACK_BYTES, PROT_NONE, 0);

	for (int i = 0; i < COROUTINES; i++)
		mprotect(area + (size_t)2 * i * STACK_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE);
	return area;
}

/* --- swapcontext --- */

static ucontext_t main_context, contexts[COROUTINES];
static int is_over, works;

FRAME void ctx_work(int n);
FRAME void ctx_work(int n)
{
	if (n)
		ctx_work(n - 1);
	else if (works)
		leaf();
	turn_sink++;
}

/* Gives way to the next; the last one to the main context. */
static void ctx_body(int self)
{
	ucontext_t *next = self + 1 < COROUTINES ? &contexts[self + 1] : &main_context;

	while (!is_over) {
		ctx_work(3);
		swapcontext(&contexts[self], next);
	}
}

static void ctx_make(void)
{
	char *area = stack_area();

	for (int i = 0; i < COROUTINES; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = area + (size_t)(i ^ 1) * 2 * STACK_BYTES;
		contexts[i].uc_stack.ss_size = STACK_BYTES;
		contexts[i].uc_link = NULL;
		makecontext(&contexts[i], (void (*)(void))ctx_body, 1, i);
	}
}

static void context(void)
{
	right("(libc:|__start_context);ctx_body((;ctx_work){1,4}|(;ctx_work){4};leaf|;@libs|;stacks\\+)?");
	right("@main;context(;@libs|;stacks\\+)*");
	seen(10, "^[^;]*;ctx_body(;ctx_work){4};leaf");
	told();
	works = 1;
	ctx_make();
	while (running())
		swapcontext(&main_context, &contexts[0]);
}

/* Nothing but switches. */
static void ctx_storm(void)
{
	right("(libc:|__start_context);ctx_body((;ctx_work){1,4}|;@libs|;stacks\\+)?");
	right("@main;ctx_storm(;@libs|;stacks\\+)*");
	printf("odd 10 ^libc:swapcontext\\|\n"); /* see step_ctx */
	seen(10, "^[^;]*;ctx_body;libc:swapcontext");
	told();
	ctx_make();
	while (running())
		swapcontext(&main_context, &contexts[0]);
}

static void step_ctx(void)
{
	right("(@main;step_ctx|(libc:|__start_context);ctx_body)(;(ctx_work;)*@libs|;stacks\\+|(;ctx_work){1,4})?@trap");
	right("(libc:|__start_context)@trap");
	/* Its tables are wrong from where it has loaded rsp to where it pushes the address it goes to. */
	printf("odd 150 ^libc:swapcontext(\\||;@signal(;on_trap|\\|))\n");
	seen(10, ";ctx_body;libc:swapcontext;@signal;on_trap");
	seen(4, "@main;step_ctx;libc:swapcontext;@signal;on_trap");
	told();
	step_begin(0);
	step_us = 1200;
	ctx_make();
	swapcontext(&main_context, &contexts[0]);
	while (running()) {
		step_on();
		swapcontext(&main_context, &contexts[0]);
		step_off();
	}
}

/* --- coroutines by a switch of our own --- */

/*
 * coro_switch(void **save, void *to): callee-saved registers onto the old stack, off the new one, jump. A new coroutine's
 * stack holds six words for the registers, the entry's address and what the entry returns to: coro_end, which no call ever
 * led to, or 0. The two differ only in whether tables describe them.
 */
#define SWITCH(name, start, frame, end)                                                                                \
	__asm__(".text\n.p2align 4\n.globl " name "\n.type " name ", @function\n" name ":\n" start "push %rbp\n" frame \
		"push %rbx\n" frame "push %r15\n" frame "push %r14\n" frame "push %r13\n" frame "push %r12\n" frame    \
		"mov %rsp, (%rdi)\n mov %rsi, %rsp\n"                                                                  \
		"pop %r12\n" end "pop %r13\n" end "pop %r14\n" end "pop %r15\n" end "pop %rbx\n" end "pop %rbp\n" end  \
		"ret\n")
SWITCH("coro_switch_cfi", ".cfi_startproc\n", ".cfi_adjust_cfa_offset 8\n", ".cfi_adjust_cfa_offset -8\n");
__asm__(".cfi_endproc\n.size coro_switch_cfi, . - coro_switch_cfi\n");
SWITCH("coro_switch_bare", "", "", "");
__asm__(".size coro_switch_bare, . - coro_switch_bare\n");
__asm__(".p2align 4\n.globl coro_end\n.type coro_end, @function\ncoro_end: xor %edi, %edi\n mov $60, %eax\n syscall\n hlt\n"
	".size coro_end, . - coro_end\n");
void coro_switch_cfi(void **save, void *to);
void coro_switch_bare(void **save, void *to);
void coro_end(void);

static void *coro_main, *coro_at[COROUTINES];
static int coro_started;
static void (*coro_switch)(void **save, void *to);

FRAME void coro_work(int n);
FRAME void coro_work(int n)
{
	if (n)
		coro_work(n - 1);
	else if (works)
		leaf();
	turn_sink++;
}

static void coro_body(void)
{
	int self = coro_started++;

	for (;;) {
		coro_work(3);
		if (self + 1 < COROUTINES)
			coro_switch(&coro_at[self], coro_at[self + 1]);
		else
			coro_switch(&coro_at[self], coro_main);
	}
}

static void coro_make(void *end)
{
	char *area = stack_area();

	for (int i = 0; i < COROUTINES; i++) {
		void **top = (void **)(area + (size_t)(i ^ 1) * 2 * STACK_BYTES + STACK_BYTES) - 8;

		for (int n = 0; n < 8; n++) /* whoever goes on behind the end finds no zero */
			top[n] = area + n;
		top[0] = end;
		*--top = (void *)coro_body;
		coro_at[i] = top - 6;
	}
}

static void coro_run(const char *name, const char *root, void *end)
{
	printf("stack %scoro_body((;coro_work){1,4}|(;coro_work){4};leaf|;coro_switch_\\w+)?\n", root);
	printf("stack @main;%s;coro_run(;coro_switch_\\w+|(;@libs)*)?\n", name);
	printf("stack @main(;%s)?\n", name);
	printf("seen %d ^%scoro_body%s\n", works ? 10 : 2, root, works ? "(;coro_work){4};leaf" : ";coro_switch_");
	told();
	coro_make(end);
	while (running())
		for (int i = works ? 1 : 1000; i; i--)
			coro_switch(&coro_main, coro_at[0]);
}

static void coro_cfi(void)
{
	works = 1;
	coro_switch = coro_switch_cfi;
	coro_run("coro_cfi", "", NULL);
	turn_sink++;
}

static void coro_bare(void)
{
	works = 1;
	coro_switch = coro_switch_bare;
	coro_run("coro_bare", "", NULL);
	turn_sink++;
}

/* The first return address was put there by hand, into code that no table describes. */
static void coro_boost(void)
{
	works = 1;
	coro_switch = coro_switch_bare;
	coro_run("coro_boost", "(coro_end|stacks\\+);", (char *)coro_end);
	turn_sink++;
}

static void coro_storm(void)
{
	coro_switch = coro_switch_bare;
	coro_run("coro_storm", "", NULL);
	turn_sink++;
}

static void step_coro(void)
{
	right("@main;step_coro(;coro_switch_bare)?@trap");
	right("(coro_end;)?coro_body((;coro_work){1,4}|;coro_switch_bare)?@trap");
	right("@main;step_coro(;@libs)+");
	seen(10, "^coro_body;coro_switch_bare;@signal;on_trap");
	told();
	coro_switch = coro_switch_bare;
	coro_make(NULL);
	coro_switch(&coro_main, coro_at[0]);
	step_begin(0);
	while (running()) {
		step_on();
		coro_switch_bare(&coro_main, coro_at[0]);
		step_off();
	}
}

/* --- longjmp --- */

static jmp_buf back;

FRAME void jump_down(int n);
FRAME void jump_down(int n)
{
	if (n)
		jump_down(n - 1);
	else
		longjmp(back, 1);
	turn_sink++;
}

static void jumps(void)
{
	right("@main;jumps(;jump_down){0,9}(;@libs|;stacks\\+)*");
	seen(4, "jumps(;jump_down){9};libc:");
	told();
	while (running())
		for (volatile int i = 0; i < 1000; i++)
			if (!setjmp(back))
				jump_down(8);
}

static void step_jump(void)
{
	right("@main;step_jump(;jump_down){0,3}(;@libs|;stacks\\+)*@trap");
	seen(4, "step_jump(;jump_down){3};libc:[^;]*(;libc:[^;]*)?;@signal;on_trap");
	told();
	if (!setjmp(back)) /* bind */
		jump_down(2);
	step_begin(0);
	while (running()) {
		step_on();
		if (!setjmp(back))
			jump_down(2);
		step_off();
	}
}

/* --- frames of unusual shape --- */

struct wide {
	_Alignas(64) unsigned char bytes[192];
};

FRAME unsigned long use(void *p, unsigned long n);
FRAME unsigned long use(void *p, unsigned long n)
{
	((unsigned char *)p)[n & 127]++;
	if (works)
		leaf();
	return ((unsigned char *)p)[(n + 1) & 127];
}

/* gcc keeps the old stack pointer in r10 (the dynamic realign argument pointer) and finds the CFA through it. */
FRAME unsigned long realigned(unsigned long n);
FRAME unsigned long realigned(unsigned long n)
{
	struct wide w;

	w.bytes[5] = (unsigned char)n;
	return use(&w, n) + w.bytes[5];
}

/* Both at once, and all callee-saved registers in use. */
FRAME unsigned long realigned_more(unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e);
FRAME unsigned long realigned_more(unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e)
{
	struct wide w;
	unsigned char *more = alloca(160 + (a & 255));

	w.bytes[a & 63] = (unsigned char)b;
	more[a & 15] = (unsigned char)c;
	a += use(&w, a) * b;
	b += use(more, a) * c + realigned(d);
	return a * b + c * use(&w, e) + d * e + w.bytes[b & 63] + more[a & 15];
}

FRAME unsigned long with_alloca(unsigned long n);
FRAME unsigned long with_alloca(unsigned long n)
{
	unsigned char *p = alloca(128 + (n & 1023));

	p[n & 127] = 1;
	return use(p, n) + p[1];
}

/* Locals below the stack pointer. */
FRAME unsigned long red_zone(unsigned long n);
FRAME unsigned long red_zone(unsigned long n)
{
	volatile unsigned long room[12];

	for (int i = 0; i < 12; i++)
		room[i] = n + (unsigned long)i;
	for (int i = 0; i < 40; i++)
		n += room[n % 12];
	return n;
}

/* Its own frame is found by rbp, which what it calls has saved where its own then points. */
FRAME unsigned long around(unsigned long n, unsigned long x);
FRAME unsigned long around(unsigned long n, unsigned long x)
{
	unsigned char *p = alloca(64 + (n & 511));

	p[n & 63] = 1;
	return realigned_more(n, x, n + 1, n * 3, x >> 2) + p[2];
}

#define SHAPES "(around|(realigned|with_alloca|red_zone|around;realigned_more(;realigned)?)(;use(;leaf)?)?)"

FRAME unsigned long shape(unsigned long i);
FRAME unsigned long shape(unsigned long i)
{
	unsigned long x = realigned(i) + with_alloca(i * 7);

	return x + red_zone(i) * around(i, x);
}

static void shapes(void)
{
	right("@main;shapes(;shape(;" SHAPES ")?)?");
	seen(4, "shapes;shape;around;realigned_more;realigned;use;leaf");
	told();
	works = 1;
	for (unsigned long i = 0; running(); i++)
		turn_sink += shape(i);
}

static void shapes_fast(void)
{
	right("@main;shapes_fast(;shape(;" SHAPES ")?)?");
	seen(4, "shapes_fast;shape;red_zone\\|");
	told();
	for (unsigned long i = 0; running(); i++)
		for (int n = 0; n < 1000; n++)
			turn_sink += shape(i);
}

static void step_shapes(void)
{
	right("@main;step_shapes(;shape(;" SHAPES ")?)?@trap");
	seen(4, ";shape;around;realigned_more;@signal;on_trap");
	told();
	step_begin(0);
	step_us = 800;
	for (unsigned long i = 0; running(); i++) {
		step_on();
		turn_sink += shape(i);
		step_off();
	}
}

TURNS({ "context", context }, { "ctx_storm", ctx_storm }, { "step_ctx", step_ctx }, { "coro_cfi", coro_cfi },
      { "coro_bare", coro_bare }, { "coro_boost", coro_boost }, { "coro_storm", coro_storm }, { "step_coro", step_coro },
      { "jumps", jumps }, { "step_jump", step_jump }, { "shapes", shapes }, { "shapes_fast", shapes_fast },
      { "step_shapes", step_shapes })
