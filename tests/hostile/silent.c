/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that keeps whoever looks into it: silent KIND SECONDS, as root. The server of a FUSE file system, mounted where
 * this program alone sees it, does not answer what KIND needs. Prints "ready" when all is so, and runs on a CPU then. Who
 * waits for it is let go when it is killed.
 *
 *   stack     a page in the stack of a thread that sleeps is of a file that READ never brings
 *   maps      a thread reads such a page and holds the lock of all mappings; who wants to map waits behind it
 *   exec      a child executes a program, which closes a file that never answers FLUSH; until then nobody may look into it
 *   code      code is mapped from a file whose first page never comes
 *   debug     below its root folder usr/lib/debug answers no LOOKUP, so debug files of its program are looked for in vain
 *   fault     the page of the environment is under a userfaultfd that nobody reads
 *
 * With "maps" environ and mem in /proc wait, and with older kernels maps. With "fault" the kernel tells readers in /proc of
 * an error at once.
 *
 * Never part of what is shipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, FILE_PAGES = 8, ROOT_NODE = 1, FILE_NODE = 2, STACK_BYTES = 256 << 10 };

#if defined(__x86_64__)
static const uint8_t loop[] = { 0xb8, 0x40, 0x0d, 0x03, 0, 0x83, 0xe8, 1, 0x75, 0xfb, 0xc3 }; /* count %eax down; ret */
#else
static const uint32_t loop[] = { 0x52a00060, 0x71000400, 0x54ffffe1, 0xd65f03c0 };
#endif

extern char **environ;

static int device, file;
static const char *kind;
static uint64_t end_s;
static char message[1 << 17];

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

/* --- the server --- */

static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr){ .ino = node,
				   .size = node == FILE_NODE ? FILE_PAGES * PAGE : 0,
				   .mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755,
				   .nlink = 1,
				   .blksize = PAGE };
}

static void answer(uint64_t unique, int error, const void *data, size_t bytes)
{
	static char reply[sizeof(struct fuse_out_header) + FILE_PAGES * PAGE];
	const struct fuse_out_header head = { .len = (uint32_t)(sizeof(head) + bytes), .error = error, .unique = unique };

	memcpy(reply, &head, sizeof(head));
	if (bytes)
		memcpy(reply + sizeof(head), data, bytes);
	(void)!write(device, reply, head.len); /* who asked may have gone */
}

static void answer_read(uint64_t unique, const struct fuse_read_in *in)
{
	static uint8_t page[PAGE];

	if (strcmp(kind, "code") != 0 || in->offset != PAGE)
		return; /* never */
	memcpy(page, loop, sizeof(loop));
	answer(unique, 0, page, sizeof(page));
}

static void serve_one(const struct fuse_in_header *head)
{
	const void *body = head + 1;

	switch (head->opcode) {
	case FUSE_INIT: {
		const struct fuse_init_out out = { .major = 7, .minor = 31, .max_write = PAGE, .max_pages = 1 };

		answer(head->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_LOOKUP: {
		const struct fuse_entry_out out = {
			.nodeid = FILE_NODE, .entry_valid = 1000, .attr_valid = 1000, .attr = attr_of(FILE_NODE)
		};

		if (strcmp(kind, "debug") != 0)
			answer(head->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_GETATTR: {
		const struct fuse_attr_out out = { .attr_valid = 1000, .attr = attr_of(head->nodeid) };

		answer(head->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_OPEN: {
		const struct fuse_open_out out = { .fh = 1, .open_flags = FOPEN_KEEP_CACHE };

		answer(head->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_READ:
		answer_read(head->unique, body);
		break;
	case FUSE_FLUSH:
		if (strcmp(kind, "exec") != 0 || head->pid == (uint32_t)getppid())
			answer(head->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(head->unique, -ENOSYS, NULL, 0);
	}
}

static void serve(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NAME, "server");
	for (;;) {
		ssize_t n = read(device, message, sizeof(message));

		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			serve_one((const void *)message);
		else if (n < 0 && errno != EINTR && errno != EAGAIN && errno != ENOENT)
			_exit(0);
	}
}

/* The server is a process of its own, which ends with this thread: who waits for it is let go then. */
static void mount_server(const char *folder)
{
	char options[128];
	pid_t server;

	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	need(device >= 0, "/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
	need(!mount("silent", folder, "fuse.silent", MS_NOSUID | MS_NODEV, options), "mount");
	server = fork();
	need(server >= 0, "fork");
	if (!server) {
		if (!strcmp(kind, "debug")) /* or its root would be looked in: it maps the program, too */
			need(!chroot("."), "chroot");
		serve();
	}
	close(device);
}

static void own_mounts(void)
{
	need(!unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "unshare");
}

static void open_silent_file(void)
{
	char folder[] = "/tmp/silent-XXXXXX", path[64];

	need(mkdtemp(folder) != NULL, "mkdtemp");
	own_mounts();
	mount_server(folder);
	snprintf(path, sizeof(path), "%s/file", folder);
	file = open(path, O_RDONLY | O_CLOEXEC);
	need(file >= 0, path);
	need(!umount2(folder, MNT_DETACH) && !rmdir(folder), "umount");
}

/* Goes to a root folder of its own, made where it was started. */
static void change_root(void)
{
	char root[] = "silent-XXXXXX";

	need(mkdtemp(root) != NULL, "mkdtemp");
	own_mounts();
	need(!chdir(root) && !mkdir("usr", 0755) && !mkdir("usr/lib", 0755) && !mkdir("usr/lib/debug", 0755), "mkdir");
	mount_server("usr/lib/debug");
	need(!chroot("."), "chroot");
}

/* --- what keeps others --- */

static void *page_of(uintptr_t addr)
{
	return (void *)(addr & ~(uintptr_t)(PAGE - 1));
}

static void silence(void *page)
{
	need(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) == page, "mmap");
}

static void *sleeper(void *arg)
{
	char name[] = "sleeper";
	volatile char *deep = __builtin_alloca(4 * PAGE); /* where nothing is needed again until pause() is over */

	prctl(PR_SET_NAME, name);
	deep[2 * PAGE] = 1;
	*(void **)arg = page_of((uintptr_t)&deep[2 * PAGE]);
	for (;;)
		pause();
	return NULL;
}

static void sleep_on_silence(void)
{
	void *page = NULL;
	pthread_t thread;

	need(!pthread_create(&thread, NULL, sleeper, &page), "pthread_create");
	usleep(300000);
	silence(page);
}

static void *read_own(void *arg)
{
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char byte;

	prctl(PR_SET_NAME, "holder");
	usleep(300000);
	(void)!pread(memory, &byte, 1, (off_t)(uintptr_t)arg);
	return NULL;
}

static void *map_more(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "mapper");
	usleep(600000);
	(void)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return NULL;
}

static void hold_mappings(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0);
	pthread_t thread;

	need(page != MAP_FAILED, "mmap");
	need(!pthread_create(&thread, NULL, read_own, page) && !pthread_create(&thread, NULL, map_more, NULL),
	     "pthread_create");
	usleep(900000);
}

/* A child that runs the same code until it executes something, which never ends. */
static void execute(void)
{
	pid_t child = fork();

	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl("/bin/true", "true", NULL);
}

static void fault(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *page = page_of((uintptr_t)environ[0]);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	need(fd >= 0 && !ioctl(fd, UFFDIO_API, &api), "userfaultfd");
	need(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == page, "mmap");
	range.range.start = (uintptr_t)page;
	range.range.len = PAGE;
	need(!ioctl(fd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
}

/* --- the program --- */

static void spin_here(void)
{
	for (volatile int i = 0; i < 1 << 20; i++)
		;
}

static void *run(void *arg)
{
	void (*spin)(void) = spin_here;

	(void)arg;
	if (!strcmp(kind, "stack"))
		sleep_on_silence();
	else if (!strcmp(kind, "maps"))
		hold_mappings();
	else if (!strcmp(kind, "exec"))
		execute();
	else if (!strcmp(kind, "fault"))
		fault();
	else if (!strcmp(kind, "code"))
		spin = (void (*)(void))(uintptr_t)mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, PAGE);
	need((void *)(uintptr_t)spin != MAP_FAILED, "mmap");
	(void)!write(STDOUT_FILENO, "ready\n", 6);
	while (now_s() < end_s)
		spin();
	_exit(0);
}

/* All is done in a second thread: the page of the environment may be one of the first thread's stack too. */
int main(int argc, char **argv)
{
	pthread_t thread;

	errno = EINVAL;
	need(argc == 3, "usage: silent stack|maps|exec|code|debug|fault SECONDS");
	kind = strdup(argv[1]);
	end_s = now_s() + strtoul(argv[2], NULL, 10);
	if (kind && !strcmp(kind, "debug"))
		change_root();
	else if (kind && strcmp(kind, "fault") != 0)
		open_silent_file();
	need(kind && !pthread_create(&thread, NULL, run, NULL), "pthread_create");
	for (;;)
		pause();
}
