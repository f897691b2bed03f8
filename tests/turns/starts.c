/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where stacks begin: threads of every way to start one, the children of vfork and posix_spawn before their exec, exec
 * itself, exits, another pid namespace, workers of io_uring.
 */
#include "turns.h"

#if __has_include(<linux/io_uring.h>) /* musl comes without the kernel's headers */
#include <linux/io_uring.h>
#endif
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>

enum { STACK_BYTES = 256 << 10 };

FRAME void leaf(void);
FRAME void leaf(void)
{
	burn(400);
	turn_sink++;
}

/* --- threads --- */

static void *worker(void *arg)
{
	while (running())
		leaf();
	return arg;
}

static void pthread(void)
{
	pthread_t thread;

	right("@thread;worker(;leaf)?");
	seen(10, "worker;leaf");
	told();
	pthread_create(&thread, NULL, worker, NULL);
	pthread_join(thread, NULL);
}

static void *brief(void *arg)
{
	turn_sink++;
	return arg;
}

/* Nothing but beginnings and ends. */
static void storm(void)
{
	right("@libs(;@libs)*(;brief)?");
	right("@main;storm(;@libs|;starts\\+)*");
	seen(1, "^@thread");
	printf("aside 60\nleast 10\n"); /* most of the time it waits, and on a busy machine for others */
	told();
	while (running()) {
		pthread_t thread;

		pthread_create(&thread, NULL, brief, NULL);
		pthread_join(thread, NULL);
	}
}

/* The same on stacks that nobody has touched: behind the system call a thread stands on a page that is not there yet. */
static void fresh(void)
{
	char *stack = must_map(STACK_BYTES, PROT_READ | PROT_WRITE, 0);
	pthread_attr_t attr;

	right("@libs(;@libs)*(;brief)?");
	right("@main;fresh(;@libs|;starts\\+)*");
	seen(1, "^libc:\\|"); /* nothing but where it begins */
	printf("aside 60\nleast 10\n");
	told();
	pthread_attr_init(&attr);
	while (running()) {
		pthread_t thread;

		pthread_attr_setstack(&attr, stack, STACK_BYTES);
		pthread_create(&thread, &attr, brief, NULL);
		pthread_join(thread, NULL);
		madvise(stack, STACK_BYTES, MADV_DONTNEED);
	}
}

static int cloned(void *arg)
{
	(void)arg;
	while (running())
		leaf();
	return 0;
}

/* A process of its own in our address space, started by clone(). */
static void clone_vm(void)
{
	char *stack = must_map(STACK_BYTES, PROT_READ | PROT_WRITE, 0);
	int pid;

	right("libc:(__)?clone;cloned(;leaf|;@libs)?");
	seen(10, "clone;cloned;leaf");
	told();
	pid = clone(cloned, stack + STACK_BYTES, CLONE_VM | CLONE_FILES | SIGCHLD, NULL);
	waitpid(pid, NULL, 0);
}

/* --- between fork and exec --- */

/* vfork returns into this frame twice. */
static void vforked(void)
{
	right("@main;vforked(;leaf|(;@libs)*)");
	seen(10, "vforked;leaf");
	told();
	while (running()) {
		int pid = vfork();

		if (pid == 0) {
			leaf();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* The sample is in the system call, where the return address stands in a register. */
static void vfork_call(void)
{
	right("@main;vfork_call(;@libs)*");
	printf("aside 60\n");
	seen(4, "main;vfork_call;libc:(__)?vfork\\|.*(vfork|clone)");
	told();
	while (running()) {
		int pid = vfork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

/* Its child runs on a stack of its own until it executes something that is not there. */
static void spawned(void)
{
	static char *const argv[] = { "nothing", NULL };

	right("@main;spawned(;@libs|;starts\\+)*");
	right("@libs(;@libs)*");
	printf("aside 40\n");
	seen(4, "^libc:[^;]*;libc:");
	told();
	while (running()) {
		int pid;

		posix_spawn(&pid, "/nowhere/nothing", NULL, NULL, argv, NULL);
	}
}

static const char *own_file;

/* This program again and again, under a name of its own. A sample in exec_mmap or behind it must not show the old image. */
static void exec(void)
{
	right("@main;exec(;@libs|;starts\\+)*");
	right("@main(;@libs)*");
	right("(_start|@libs)(;@libs|;exec\\+|;_init|;_fini|;\\w+_dtors\\w*|;frame_dummy|;main)*");
	seen(2, "^\\|.*(begin_new_exec|exec_mmap|load_elf_binary|bprm_execve)");
	printf("aside 100\nleast 20\n");
	told();
	while (running()) {
		int pid = fork();

		if (pid == 0) {
			execl(own_file, "exec", "once", (char *)NULL);
			_exit(127);
		}
		waitpid(pid, NULL, 0);
	}
}

/* Children with much to give back. */
static void exits(void)
{
	enum { TOUCHED = 16 << 20 };
	char *memory = must_map(TOUCHED, PROT_READ | PROT_WRITE, 0);

	right("@main;exits(;@libs|;starts\\+)*");
	seen(5, "^\\|.*do_exit");
	printf("aside 100\nleast 20\n");
	told();
	while (running()) {
		int pid = fork();

		if (pid == 0) {
			for (int i = 0; i < TOUCHED; i += 4096)
				memory[i] = 1;
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void pidns(void)
{
	int pid;

	right("@main(;pidns(;leaf|(;@libs)*)|(;@libs)*)");
	seen(10, "main;pidns;leaf");
	told();
	if (unshare(CLONE_NEWPID))
		leave_out("no pid namespaces");
	pid = fork();
	if (pid == 0) {
		if (getpid() != 1)
			abort();
		while (running())
			leaf();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* --- io_uring: reads that a worker of the kernel must do --- */

#ifdef IORING_OFF_SQES
struct ring {
	int fd;
	unsigned *sq_head, *sq_tail, *sq_array, *cq_head, *cq_tail;
	unsigned mask;
	struct io_uring_sqe *sqes;
};

enum { RING_ENTRIES = 8, READ_BYTES = 1 << 20 };

static int ring_open(struct ring *r, unsigned flags)
{
	struct io_uring_params p = { .flags = flags, .sq_thread_idle = 1000 };
	char *sq, *cq;

	r->fd = (int)syscall(SYS_io_uring_setup, RING_ENTRIES, &p);
	if (r->fd < 0)
		return -1;
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * 16, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_CQ_RING);
	r->sqes = mmap(NULL, p.sq_entries * sizeof(*r->sqes), PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || r->sqes == MAP_FAILED)
		return -1;
	r->sq_head = (void *)(sq + p.sq_off.head);
	r->sq_tail = (void *)(sq + p.sq_off.tail);
	r->sq_array = (void *)(sq + p.sq_off.array);
	r->cq_head = (void *)(cq + p.cq_off.head);
	r->cq_tail = (void *)(cq + p.cq_off.tail);
	r->mask = p.sq_entries - 1;
	return 0;
}

/* One read, waited for in the kernel. */
static void ring_read(struct ring *r, int fd, void *buffer)
{
	unsigned tail = *r->sq_tail, at = tail & r->mask;

	r->sqes[at] = (struct io_uring_sqe){ .opcode = IORING_OP_READ,
					     .flags = IOSQE_ASYNC,
					     .fd = fd,
					     .addr = (uint64_t)(uintptr_t)buffer,
					     .len = READ_BYTES };
	r->sq_array[at] = at;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_SQ_WAKEUP, NULL, 0);
	__atomic_store_n(r->cq_head, __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

static void uring_run(const char *threads, const char *spot, unsigned flags)
{
	char *buffer = must_map(READ_BYTES, PROT_READ | PROT_WRITE, 0);
	FILE *file = tmpfile();
	struct ring r;

	if (!file || fwrite(buffer, 1, READ_BYTES, file) != READ_BYTES || fflush(file) || ring_open(&r, flags))
		leave_out("no io_uring");
	printf("threads %s\n", threads);
	right("@main(;uring_\\w+)?;uring_run(;ring_read)?(;@libs|;starts\\+)*");
	seen(4, spot);
	right("");
	told();
	while (running())
		ring_read(&r, fileno(file), buffer);
}

static void uring_work(void)
{
	uring_run("iou-wrk-\\d+", "^\\|.*io_wq_worker", 0);
}

static void uring_poll(void)
{
	uring_run("iou-(sqp|wrk)-\\d+", "^\\|.*(io_sq_thread|io_wq_worker)", IORING_SETUP_SQPOLL);
}
#else
static void uring_work(void)
{
	leave_out("no linux/io_uring.h");
}
#define uring_poll uring_work
#endif

int main(int argc, char **argv)
{
	static const struct turn turns[] = {
		{ "pthread", pthread },	      { "storm", storm },
		{ "fresh", fresh },	      { "clone_vm", clone_vm },
		{ "vforked", vforked },	      { "vfork_call", vfork_call },
		{ "spawned", spawned },	      { "exec", exec },
		{ "exits", exits },	      { "pidns", pidns },
		{ "uring_work", uring_work }, { "uring_poll", uring_poll },
	};

	if (argc > 1 && !strcmp(argv[1], "once"))
		return 0;
	own_file = argv[0];
	return turns_main(argc, argv, turns, sizeof(turns) / sizeof(*turns));
}
