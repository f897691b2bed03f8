/* SPDX-License-Identifier: Apache-2.0 */
/* ptrace. A timer interrupts waitpid, so that no wait is for ever. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/judge/judge.h"
#include "tests/judge/tracee.h"

enum {
	MAX_THREADS = 256,
	TICK_US = 5000,	   /* of the timer */
	BLOCKED_MS = 40,   /* a step that takes so long waits in the kernel */
	PICKS = 6,	   /* tries to find a thread that is running */
	DR7_LOCAL_BIT = 2, /* bits of the control register a breakpoint */
};

struct tracee {
	pid_t pid;
	pid_t threads[MAX_THREADS];
	uint32_t count;
	pid_t thread;	     /* the one looked at; 0: all run */
	int signal;	     /* to be handed to it when it goes on */
	uint64_t syscall_at; /* an address of that instruction */
	bool wants_newborn;
	bool has_ended;
};

static uint64_t random_state;

void random_seed(uint64_t seed)
{
	random_state = seed;
}

/* splitmix64 */
uint64_t random_below(uint64_t bound)
{
	uint64_t z = random_state += 0x9E3779B97F4A7C15ull;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return (z ^ z >> 31) % bound;
}

static void on_tick(int sig)
{
	(void)sig;
}

static void start_timer(void)
{
	struct sigaction act = { .sa_handler = on_tick };
	struct itimerval tick = { { 0, TICK_US }, { 0, TICK_US } };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &tick, NULL);
}

static bool knows(const struct tracee *t, pid_t tid)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->threads[i] == tid)
			return true;
	return false;
}

static void forget(struct tracee *t, pid_t tid)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->threads[i] == tid)
			t->threads[i--] = t->threads[--t->count];
	if (tid == t->thread)
		t->thread = 0;
	if (tid == t->pid)
		t->has_ended = true;
}

/* What happened to a thread that is not looked at. */
static void let_go_on(struct tracee *t, pid_t tid, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	if (!knows(t, tid)) {
		if (t->count < MAX_THREADS)
			t->threads[t->count++] = tid;
		if (t->wants_newborn && !t->thread) {
			t->thread = tid;
			return;
		}
	}
	ptrace(PTRACE_CONT, tid, 0, event || signal == SIGTRAP ? 0 : signal);
}

/* Waits for the next thing that happens to the thread, until @end_ns. 1 with its status, 0: the time is over, -1: it ended.
 */
static int wait_for_thread(struct tracee *t, uint64_t end_ns, int *status)
{
	pid_t thread = t->thread;

	for (;;) {
		pid_t tid = waitpid(-1, status, __WALL);

		if (tid < 0 && errno == EINTR) {
			if (clock_mono_ns() > end_ns)
				return 0;
			continue;
		}
		if (tid < 0) {
			t->has_ended = true;
			return -1;
		}
		if (WIFEXITED(*status) || WIFSIGNALED(*status)) {
			forget(t, tid);
			if (t->has_ended || tid == thread)
				return -1;
		} else if (tid == thread) {
			return 1;
		} else {
			let_go_on(t, tid, *status);
		}
	}
}

/* The thread runs: stops it wherever it is. False: it has ended. */
static bool interrupt(struct tracee *t)
{
	int status, r;

	if (ptrace(PTRACE_INTERRUPT, t->thread, 0, 0))
		return false;
	r = wait_for_thread(t, UINT64_MAX, &status);
	if (r < 0)
		return false;
	if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP)
		t->signal = WSTOPSIG(status);
	return true;
}

static void exec_program(char *const argv[], int ready)
{
	int null = open("/dev/null", O_RDWR);
	char byte;

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || read(ready, &byte, 1) != 1)
		_exit(127);
	personality(ADDR_NO_RANDOMIZE);
	execvp(argv[0], argv);
	_exit(127);
}

struct tracee *tracee_start(char *const argv[])
{
	struct tracee *t = calloc(1, sizeof(*t));
	int ready[2], status;
	long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;

	if (!t || pipe2(ready, O_CLOEXEC)) {
		free(t);
		return NULL;
	}
	start_timer();
	t->pid = t->thread = fork();
	if (t->pid == 0)
		exec_program(argv, ready[0]);
	t->threads[t->count++] = t->pid;
	if (ptrace(PTRACE_SEIZE, t->pid, 0, options) || write(ready[1], "", 1) != 1 ||
	    wait_for_thread(t, UINT64_MAX, &status) != 1 || status >> 16 != PTRACE_EVENT_EXEC) {
		fprintf(stderr, "judge: %s cannot be run under ptrace\n", argv[0]);
		tracee_free(t);
		t = NULL;
	}
	close(ready[0]);
	close(ready[1]);
	return t;
}

void tracee_free(struct tracee *t)
{
	int status;

	if (!t)
		return;
	kill(t->pid, SIGKILL);
	while (!t->has_ended && (waitpid(-1, &status, __WALL) > 0 || errno == EINTR))
		;
	free(t);
}

pid_t tracee_pid(const struct tracee *t)
{
	return t->pid;
}

static bool is_running(const struct tracee *t, pid_t tid)
{
	AUTO_FCLOSE FILE *f = NULL;
	char path[64], state = '?';

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", t->pid, tid);
	f = fopen(path, "re");
	return f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && state == 'R';
}

static void pick_thread(struct tracee *t)
{
	for (int i = 0; i < PICKS; i++) {
		t->thread = t->threads[random_below(t->count)];
		if (is_running(t, t->thread))
			return;
	}
}

bool tracee_run(struct tracee *t, uint64_t us, bool *is_new_ret)
{
	uint64_t end_ns = clock_mono_ns() + us * 1000;
	int status;

	if (t->thread)
		ptrace(PTRACE_CONT, t->thread, 0, t->signal);
	t->thread = 0;
	t->signal = 0;
	t->wants_newborn = random_below(2);
	while (!t->has_ended && !t->thread && clock_mono_ns() < end_ns) {
		pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

		if (tid <= 0)
			usleep(us < 500 ? (useconds_t)us : 500);
		else if (WIFEXITED(status) || WIFSIGNALED(status))
			forget(t, tid);
		else
			let_go_on(t, tid, status);
	}
	t->wants_newborn = false;
	*is_new_ret = t->thread != 0;
	if (t->has_ended || t->thread)
		return !t->has_ended;
	while (t->count && !t->has_ended) {
		pick_thread(t);
		if (interrupt(t))
			return true;
		forget(t, t->thread);
	}
	return false;
}

bool tracee_regs(struct tracee *t, struct user_regs_struct *regs)
{
	return t->thread && ptrace(PTRACE_GETREGS, t->thread, 0, regs) == 0;
}

enum stop_kind tracee_step(struct tracee *t, int *signal_ret)
{
	uint64_t end_ns = clock_mono_ns() + BLOCKED_MS * NSEC_PER_MSEC;

	*signal_ret = t->signal;
	for (;;) {
		int status, r;

		if (!t->thread || ptrace(PTRACE_SINGLESTEP, t->thread, 0, t->signal))
			return STOP_ENDED;
		t->signal = 0;
		r = wait_for_thread(t, end_ns, &status);
		if (r < 0)
			return STOP_ENDED;
		if (r == 0)
			return interrupt(t) ? STOP_BLOCKED : STOP_ENDED;
		if (status >> 16)
			continue; /* clone's event: the instruction is not over */
		if (WSTOPSIG(status) != SIGTRAP)
			t->signal = WSTOPSIG(status);
		return STOP_STEPPED;
	}
}

/* The address of a syscall instruction: the vDSO has one. */
static uint64_t find_syscall(const struct tracee *t, struct memory *m)
{
	AUTO_FCLOSE FILE *f = NULL;
	AUTO_FREE char *line = NULL;
	uint64_t start, end;
	size_t room = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", t->pid);
	f = fopen(path, "re");
	while (f && getline(&line, &room, f) > 0) {
		if (!strstr(line, "[vdso]") || sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2)
			continue;
		for (uint8_t code[2]; start + sizeof(code) <= end; start++)
			if (!memory_read(m, start, code, sizeof(code)) && code[0] == 0x0f && code[1] == 0x05)
				return start;
	}
	return 0;
}

void tracee_alternate_stack(struct tracee *t, struct memory *m, uint64_t *sp_ret, uint64_t *bytes_ret)
{
	enum { BELOW = 512 /* the stack pointer and its red zone */, TRIES = 4 };
	struct user_regs_struct regs, call;
	stack_t stack;
	int status;

	*sp_ret = *bytes_ret = 0;
	if (!t->syscall_at)
		t->syscall_at = find_syscall(t, m);
	if (!t->syscall_at || !tracee_regs(t, &regs))
		return;
	call = regs;
	call.rax = SYS_sigaltstack;
	call.orig_rax = UINT64_MAX; /* no system call to be restarted */
	call.rdi = 0;
	call.rsi = (regs.rsp - BELOW) & ~15ull;
	call.rip = t->syscall_at;
	ptrace(PTRACE_SETREGS, t->thread, 0, &call);
	for (int i = 0; i < TRIES && call.rip == t->syscall_at; i++) { /* other things may want to be told first */
		ptrace(PTRACE_SINGLESTEP, t->thread, 0, 0);
		if (wait_for_thread(t, UINT64_MAX, &status) != 1 || !tracee_regs(t, &call))
			return;
		if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP)
			t->signal = WSTOPSIG(status);
	}
	memory_forget(m);
	if (call.rip == t->syscall_at + 2 && call.rax == 0 && !memory_read(m, call.rsi, &stack, sizeof(stack)) &&
	    !(stack.ss_flags & SS_DISABLE)) {
		*sp_ret = (uintptr_t)stack.ss_sp;
		*bytes_ret = stack.ss_size;
	}
	ptrace(PTRACE_SETREGS, t->thread, 0, &regs);
}

static void set_breaks(struct tracee *t, const uint64_t *addrs, uint32_t count)
{
	uint64_t control = 0;

	for (uint32_t i = 0; i < count && i < MAX_BREAKS; i++) {
		ptrace(PTRACE_POKEUSER, t->thread, offsetof(struct user, u_debugreg[i]), addrs[i]);
		control |= 1ull << DR7_LOCAL_BIT * i;
	}
	ptrace(PTRACE_POKEUSER, t->thread, offsetof(struct user, u_debugreg[7]), control);
}

enum stop_kind tracee_run_to(struct tracee *t, const uint64_t *addrs, uint32_t count, uint64_t ms)
{
	uint64_t end_ns = clock_mono_ns() + ms * NSEC_PER_MSEC;
	enum stop_kind kind = STOP_STEPPED;
	int status, r;

	if (!t->thread)
		return STOP_ENDED;
	set_breaks(t, addrs, count);
	while (kind == STOP_STEPPED) {
		ptrace(PTRACE_CONT, t->thread, 0, t->signal);
		t->signal = 0;
		r = wait_for_thread(t, end_ns, &status);
		if (r < 0)
			return STOP_ENDED;
		if (r == 0)
			kind = interrupt(t) ? STOP_BLOCKED : STOP_ENDED;
		else if (status >> 16 == 0 && WSTOPSIG(status) == SIGTRAP)
			kind = STOP_AT_BREAK;
		else if (status >> 16 == 0)
			t->signal = WSTOPSIG(status);
	}
	if (kind != STOP_ENDED)
		set_breaks(t, NULL, 0);
	return kind;
}
