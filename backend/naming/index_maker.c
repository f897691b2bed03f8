/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A forked child reads and ends; its exit status is an errno. The fork is of a process with threads, so the child does what
 * needs no lock that one of those may have held: it allocates, which the C library takes care of, and never logs. All
 * signals are blocked in it, so its limits of time are hard ones.
 */
#include "backend/naming/index_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/capabilities.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/sanitizer.h"
#include "symbols/elf_image.h"
#include "symbols/sources/symbol_image.h"
#include "symbols/index/index.h"

enum {
	CPU_SECONDS = 120,
	WALL_SECONDS = 300, /* at nice 19 on a busy machine */
	INDEX_MAX_BYTES = 512 << 20,
	NOBODY = 65534,
	ABOVE_OURS = 16, /* numbers of descriptors that are in nobody's way */
	NICE = 19,
	SLICE_MS = 100,
};

/* The memory that the child may have: names while they are put together (CODE_NAMES_MAX_BYTES), the index, unpacked
 * sections. The memory that it shares with the parent is counted, too. */
#define MEMORY_BYTES (2ull << 30)

/* --- the child --- */

static int limit(int resource, uint64_t value)
{
	const struct rlimit both = { value, value };

	return setrlimit((__rlimit_resource_t)resource, &both) ? -errno : 0;
}

/* Keeps @fd as 0 and @outs as the numbers behind it; closes all others. */
static int keep_files(int fd, const int *outs, size_t count)
{
	int moved[INDEX_MAKER_IDS + 1];

	for (size_t i = 0; i <= count; i++) {
		moved[i] = fcntl(i ? outs[i - 1] : fd, F_DUPFD, ABOVE_OURS);
		if (moved[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i <= count; i++)
		if (dup2(moved[i], (int)i) < 0)
			return -errno;
	return close_range((unsigned)count + 1, ~0u, 0) ? -errno : 0;
}

static int confine(pid_t parent)
{
	int error = limit(RLIMIT_CORE, 0);

	error = error ? error : limit(RLIMIT_CPU, CPU_SECONDS);
	error = error ? error : limit(RLIMIT_FSIZE, INDEX_MAX_BYTES);
	if (!error && !HAS_SANITIZER)
		error = limit(RLIMIT_DATA, MEMORY_BYTES);
	if (error)
		return error;
	if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		return -errno;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	if (getppid() != parent)
		return -ESRCH;
	(void)prctl(PR_SET_NAME, "hearth-names");
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	return 0;
}

static int write_indexes(const struct code_names *names, const struct symbol_sources_result *found, const char *const *ids,
			 size_t count)
{
	int error = 0;

	for (size_t i = 0; i < count && !error; i++) {
		struct symbol_index_head head = { .best = found->best, .is_broken = found->is_broken };
		struct buf out = BUF_EMPTY;

		if (strlen(ids[i]) > SYMBOL_INDEX_ID_BYTES)
			return -EINVAL;
		memcpy(head.build_id, ids[i], strlen(ids[i]) + 1);
		error = symbol_index_write(names, &head, &out);
		error = error ? error : io_write_all((int)i + 1, out.data, out.len);
		buf_fini(&out);
	}
	return error;
}

static int read_names(const char *const *ids, size_t count)
{
	struct symbol_files files = { 0 };
	struct symbol_sources_result found;
	struct elf_image elf;
	struct code_names *names;
	int error = symbol_image_map(0, &files.program);

	if (!error && elf_image_open(files.program.data, files.program.len_bytes, &elf))
		error = -ENOEXEC;
	if (error)
		return error;
	names = code_names_new(NULL, 0);
	if (!names)
		return -ENOMEM;
	error = symbol_sources_read(&files, names, &found);
	if (error == -ENOMEM || error == -E2BIG) { /* functions' names at least */
		code_names_free(names);
		names = code_names_new(NULL, 0);
		error = names ? symbol_sources_read_quick(&files, names, &found) : -ENOMEM;
	}
	error = error ? error : write_indexes(names, &found, ids, count);
	code_names_free(names);
	return error; /* the file stays mapped until the end, which is near */
}

_Noreturn static void child_main(pid_t parent, int fd, const char *const *ids, const int *outs, size_t count)
{
	int error = keep_files(fd, outs, count);

	error = error ? error : confine(parent);
	error = error ? error : read_names(ids, count);
	_exit(-error & 0xff);
}

/* --- the parent --- */

static int result_of(int status)
{
	if (WIFEXITED(status))
		return -WEXITSTATUS(status);
	return WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGXCPU ? -ETIMEDOUT : -EPROTO;
}

/* Waits until the child has ended: 0; or the reason why it must be killed. */
static int wait_for(pid_t pid, const _Atomic bool *abandon)
{
	uint64_t deadline_ns = clock_mono_ns() + WALL_SECONDS * NSEC_PER_SEC;
	struct pollfd ended = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int error = ended.fd < 0 ? -errno : -EINPROGRESS;

	while (error == -EINPROGRESS) {
		if (poll(&ended, 1, SLICE_MS) > 0)
			error = 0;
		else if (atomic_load(abandon))
			error = -ECANCELED;
		else if (clock_mono_ns() > deadline_ns)
			error = -ETIMEDOUT;
	}
	if (ended.fd >= 0)
		close(ended.fd);
	return error;
}

int index_make(int fd, const char *const *ids, const int *outs, size_t count, const _Atomic bool *abandon)
{
	pid_t parent = getpid(), pid;
	int status = 0, error;

	if (!count || count > INDEX_MAKER_IDS)
		return -EINVAL;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		child_main(parent, fd, ids, outs, count);
	error = wait_for(pid, abandon);
	if (error)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return error ? error : result_of(status);
}
