/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making indexes in a process of its own: the names of programs that gcc, objcopy and strip make here, whole, from a
 * separate debug file, and out of tables; then workers that do all the harm a hostile file could make them do. The caller's
 * loop is never held, and each next job gets its answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/names/index_helper.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/sanitizer.h"
#include "symbols/index/index.h"
#include "tests/unit/descriptors.h"

static char folder[] = "/tmp/hearth-test-XXXXXX";
static struct loop *loop;

static void run(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && %s", folder, command);
	assert_int_equal(system(line), 0);
}

static int make(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	run("printf '%s\\n' 'static inline int inner(int x)' '{' ' return x * x + 1;' '}' '__attribute__((noinline)) int "
	    "outer(int x)' "
	    "'{' ' volatile int y = inner(x);' ' return y;' '}' 'int main(int c, char **v)' '{' ' (void)v;' ' return "
	    "outer(c);' "
	    "'}' >a.c");
	run("gcc -O2 -g -Wl,--build-id=0xfeedc0de00000001 -o whole a.c");
	run("objcopy --only-keep-debug whole whole.debug && strip -o stripped whole && "
	    "objcopy --add-gnu-debuglink=whole.debug stripped linked && strip -g -o tables whole");
	run("mkdir alone && cp linked alone");
	run("mkdir -p other/.debug && cp linked other && cp /bin/true other/whole.debug && cp whole.debug other/.debug");
	return loop_new(&loop);
}

static int destroy(void **state)
{
	(void)state;
	loop_free(loop);
	run("rm -r $PWD");
	return 0;
}

/* --- one job --- */

static struct index_answer answer;
static bool is_answered;

static void on_answer(void *arg, const struct index_answer *a)
{
	(void)arg;
	answer = *a;
	is_answered = true;
}

enum { LOOP_MS = 50, GIVE_UP_MS = 60000 };

/* Has @helper make the index of @name; a memfd with it. */
static int job(struct index_helper *helper, const char *name, enum index_depth depth)
{
	int fd = memfd_create("index", MFD_CLOEXEC), program;
	uint64_t start_ns = clock_mono_ns();
	char path[64];
	struct index_job j = { .place = { .path = path, .pid = (uint32_t)getpid() },
			       .id = "feedc0de00000001",
			       .depth = depth,
			       .is_first = true };

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	program = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(program >= 0 && fd >= 0);
	j.place.fd = program;
	j.fd = fd;
	is_answered = false;
	assert_int_equal(index_helper_start(helper, &j), 0);
	while (!is_answered && clock_mono_ns() - start_ns < GIVE_UP_MS * NSEC_PER_MSEC)
		assert_int_equal(loop_step(loop, LOOP_MS), 0);
	assert_true(is_answered);
	assert_false(index_helper_is_busy(helper));
	close(program);
	return fd;
}

static struct index_helper *new_helper(const struct elf_worker_kind *kind)
{
	struct index_helper *helper;

	assert_int_equal(index_helper_new(kind, false, &helper), 0);
	assert_int_equal(index_helper_watch(helper, loop, NULL, on_answer, NULL), 0);
	return helper;
}

/* --- honest files --- */

static uint64_t address_of(const char *symbol)
{
	unsigned long addr = 0, found = 0;
	char line[128], name[64];
	FILE *nm;

	snprintf(line, sizeof(line), "nm %s/whole", folder);
	nm = popen(line, "re");
	assert_non_null(nm);
	while (fgets(line, sizeof(line), nm))
		if (sscanf(line, "%lx %*c %63s", &addr, name) == 2 && !strcmp(name, symbol))
			found = addr;
	pclose(nm);
	assert_true(found);
	return found;
}

/* The frames at any address of outer, all of them: "inner 3<outer 7 " ... */
static void describe(int fd, struct buf *out)
{
	uint64_t addr = address_of("outer");
	struct code_answer code;
	struct symbol_index *index;
	struct stat st;
	void *map;

	assert_int_equal(fstat(fd, &st), 0);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(symbol_index_open(map, (size_t)st.st_size, &index), 0);
	assert_string_equal(symbol_index_head(index)->build_id, "feedc0de00000001");
	for (uint64_t at = addr; at < addr + 4; at++) {
		if (symbol_index_find(index, at, &code))
			continue;
		for (uint32_t i = 0; i < code.frame_count; i++) {
			buf_puts(out, i ? "<" : "");
			assert_int_equal(symbol_index_name(index, code.frames[i].function, out), 0);
			buf_printf(out, " %u", code.frames[i].line);
		}
		buf_putc(out, ' ');
	}
	symbol_index_close(index);
	munmap(map, (size_t)st.st_size);
}

static void assert_names(struct index_helper *helper, const char *name, enum index_depth depth, enum code_source best,
			 const char *text)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	AUTO_CLOSE int fd = job(helper, name, depth);

	assert_int_equal(answer.status, 0);
	assert_int_equal(answer.made.best, best);
	assert_int_equal(answer.dwarf_bytes > 0, best == CODE_SOURCE_DWARF);
	describe(fd, &out);
	if (text && !strstr(buf_text(&out), text))
		fail_msg("%s: not '%s' but '%s'", name, text, buf_text(&out));
}

static void test_honest(void **state)
{
	struct index_helper *helper = new_helper(&index_first_kind);

	(void)state;
	assert_names(helper, "whole", INDEX_FULL, CODE_SOURCE_DWARF, "inner 3<outer 7 ");
	assert_names(helper, "linked", INDEX_FULL, CODE_SOURCE_DWARF, "inner 3<outer 7 ");
	assert_names(helper, "tables", INDEX_FULL, CODE_SOURCE_SYMTAB, "outer 0 ");
	assert_names(helper, "whole", INDEX_TABLES, CODE_SOURCE_SYMTAB, "outer 0 ");
	assert_names(helper, "alone/linked", INDEX_FULL, CODE_SOURCE_PLT, NULL);
	/* the file in the first place is another one, the second has the right one */
	assert_names(helper, "other/linked", INDEX_FULL, CODE_SOURCE_DWARF, "inner 3<outer 7 ");
	index_helper_free(helper);
}

/* --- harm --- */

enum harm {
	CRASH,
	SPIN,
	TAKE_MEMORY,
	CALL_FORBIDDEN,
	WRITE_TOO_MUCH,
	EXIT,
	NEED_TWICE,
	NEED_PATH,
	NEED_MORE,
	NEED_PART,
	MADE_PART,
	OPENED_PART,
	BAD_STATUS,
	HUGE_REPLY,
	NO_ELF,
	QUICK_FIRST, /* sound: there is much to read, and it is asked for tables */
	HARMS,
};

struct harmful {
	struct elf_service service;
};

static enum harm now; /* forked with its template */

static int do_harm(enum harm harm, int fd, struct buf *reply)
{
	static volatile uint64_t sink;
	static volatile int *volatile nowhere = (volatile int *)64;
	char block[4096] = { 0 };

	switch (harm) {
	case CRASH:
		return *nowhere;
	case SPIN:
		for (;;)
			sink++;
	case TAKE_MEMORY:
		for (int i = 0; i < 2048; i++)
			if (HAS_SANITIZER || !malloc(1 << 20))
				return -ENOMEM;
		return 0;
	case CALL_FORBIDDEN:
		return (int)syscall(SYS_socket, 0, 0, 0);
	case WRITE_TOO_MUCH:
		for (int i = 0; i < 1 << 20; i++)
			if (write(fd, block, sizeof(block)) < 0)
				return -errno;
		return 0;
	case EXIT:
		_exit(0);
	case MADE_PART:
		buf_append(reply, block, sizeof(struct index_made) - 1);
		return 0;
	case BAD_STATUS:
		return 7;
	case HUGE_REPLY:
		for (size_t i = 0; i < 256; i++)
			buf_append(reply, block, sizeof(block));
		return 0;
	default:
		buf_append(reply, block, sizeof(struct index_made));
		return 0;
	}
}

static int open_harm(enum harm harm, struct buf *reply)
{
	struct debug_need needed = { .kind = DEBUG_NEED_LINK, .name = "no.debug" };
	struct index_opened opened = { harm == QUICK_FIRST ? 1 << 30 : 0 };

	if (harm == NO_ELF)
		return -ENOEXEC;
	if (harm >= NEED_TWICE && harm <= NEED_PART) {
		if (harm == NEED_PATH)
			strcpy(needed.name, "../shadow");
		if (harm == NEED_MORE)
			needed.kind = DEBUG_NEED_MAX;
		buf_append(reply, &needed, sizeof(needed) - (harm == NEED_PART));
		return ELF_STATUS_NEED;
	}
	buf_append(reply, &opened, sizeof(opened) - (harm == OPENED_PART));
	return 0;
}

static int harmful_call(struct elf_service *service, const struct elf_request *request, int fd, const void *payload,
			size_t payload_bytes, struct buf *reply)
{
	(void)service, (void)payload_bytes, (void)payload;
	buf_reset(reply);
	if (now == QUICK_FIRST && request->op == INDEX_OP_MAKE && request->addr != INDEX_TABLES)
		return -EINVAL;
	if (request->op == INDEX_OP_OPEN)
		return open_harm(now, reply);
	if (request->op == INDEX_OP_GIVE)
		return 0;
	return do_harm(now, fd, reply);
}

static int harmful_new(struct elf_service **ret)
{
	static const struct elf_service_ops ops = { .call = harmful_call };
	static struct harmful h = { { .ops = &ops } };

	*ret = &h.service;
	return 0;
}

static void test_harm(void **state)
{
	static const int statuses[HARMS] = {
		[CRASH] = -EPROTO,	     [SPIN] = -ETIMEDOUT,    [TAKE_MEMORY] = -ENOBUFS, [CALL_FORBIDDEN] = -EPROTO,
		[WRITE_TOO_MUCH] = -ENOBUFS, [EXIT] = -EPROTO,	     [NEED_TWICE] = -EPROTO,   [NEED_PATH] = -EPROTO,
		[NEED_MORE] = -EPROTO,	     [NEED_PART] = -EPROTO,  [MADE_PART] = -EPROTO,    [OPENED_PART] = -EPROTO,
		[BAD_STATUS] = -EPROTO,	     [HUGE_REPLY] = -EPROTO, [NO_ELF] = -ENOEXEC,      [QUICK_FIRST] = 0,
	};
	struct elf_worker_kind kind = index_first_kind;

	(void)state;
	kind.make = harmful_new;
	kind.cpu_seconds = 1;
	kind.file_bytes = 1 << 20;
	for (now = 0; now < HARMS; now++) {
		struct index_helper *helper;

		if (HAS_SANITIZER && now == CALL_FORBIDDEN)
			continue;
		helper = new_helper(&kind);
		for (int i = 0; i < 2; i++) { /* the second job has a worker, too */
			close(job(helper, "whole", INDEX_FULL));
			if (answer.status != statuses[now])
				fail_msg("harm %d, job %d: status %d, not %d", now, i, answer.status, statuses[now]);
			if (now == SPIN)
				break; /* a second is enough */
		}
		assert_int_equal(answer.has_more, now == QUICK_FIRST);
		index_helper_free(helper);
	}
}

/* Until that child of ours is dead, if nobody has waited for it. */
static void wait_until_dead(pid_t pid)
{
	siginfo_t info = { 0 };

	assert_true(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) || errno == ECHILD);
}

/* Who kills the template is told so, and nobody waits for ever. */
static void test_lost(void **state)
{
	struct index_helper *helper = new_helper(&index_first_kind);
	struct index_job j = { .place = { .path = "/nowhere", .fd = -1 }, .id = "ab", .fd = -1 };
	char path[64], line[64];
	FILE *children;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)syscall(SYS_gettid));
	children = fopen(path, "re");
	assert_non_null(children);
	assert_non_null(fgets(line, sizeof(line), children));
	fclose(children);
	assert_int_equal(kill(atoi(line), SIGKILL), 0);
	wait_until_dead(atoi(line));
	is_answered = false;
	assert_int_equal(index_helper_start(helper, &j), -ECHILD);
	assert_int_equal(index_helper_start(helper, &j), -ECHILD);
	assert_false(is_answered || index_helper_is_busy(helper));
	index_helper_free(helper);
}

/* The same without a process. */
static void test_in_process(void **state)
{
	struct index_helper *helper;

	(void)state;
	assert_int_equal(index_helper_new(&index_first_kind, true, &helper), 0);
	assert_int_equal(index_helper_watch(helper, loop, NULL, on_answer, NULL), 0);
	assert_names(helper, "linked", INDEX_FULL, CODE_SOURCE_DWARF, "inner 3<outer 7 ");
	assert_names(helper, "tables", INDEX_FULL, CODE_SOURCE_SYMTAB, "outer 0 ");
	index_helper_free(helper);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_honest),
		cmocka_unit_test(test_harm),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_in_process),
	};

	return run_group_of_descriptors(tests, make, destroy);
}
