/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Separate debug files: what a reader asks for and believes, over programs that gcc, objcopy and strip make here; where the
 * agent looks and what it refuses to open; and a reader that asks for more than it may, or breaks over what it was given.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/helper/debug_files.h"
#include "agent/files/files.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "tests/unit/descriptors.h"

enum { F_BYTES = 16 }; /* of the function that is asked about; it is longer */

static char folder[] = "/tmp/hearth-test-XXXXXX";
static struct elf_service *service;
static struct buf reply, expected;

static void run(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && %s", folder, command);
	assert_int_equal(system(line), 0);
}

static int open_file(const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int make(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	run("echo 'int f(int); int main(int c, char **v) { (void)v; return f(c) + 1; }' >a.c && "
	    "echo '__attribute__((noinline)) int f(int x) { volatile int y[64]; y[x] = x; return y[0]; }' >>a.c");
	run("gcc -O1 -g -fomit-frame-pointer -fno-asynchronous-unwind-tables -Wl,--build-id=0xfeedc0de00000001 -o whole "
	    "a.c");
	run("objcopy --only-keep-debug whole whole.debug && strip -o stripped whole && "
	    "objcopy --add-gnu-debuglink=whole.debug stripped linked");
	run("gcc -O1 -g -fomit-frame-pointer -fno-asynchronous-unwind-tables -Wl,--build-id=none -o no_id a.c && objcopy "
	    "--only-keep-debug no_id no_id.debug && "
	    "objcopy --strip-all --add-gnu-debuglink=no_id.debug no_id link_only");
	run("strip -o nameless no_id");
	run("cp no_id.debug wrong && printf x >>wrong");
	return elf_service_new(&service);
}

static int destroy(void **state)
{
	(void)state;
	run("rm -r $PWD");
	elf_service_free(service);
	buf_fini(&reply);
	buf_fini(&expected);
	return 0;
}

/* --- the reader --- */

static int call(enum elf_op op, uint32_t file, int fd, uint64_t addr)
{
	struct elf_request request = { .op = op, .file = file, .addr = addr, .addr_end = addr + F_BYTES, .can_bring = true };

	return elf_service_call(service, &request, fd, NULL, 0, &reply);
}

static int give(uint32_t file, enum debug_need_kind need, int fd)
{
	return call(ELF_OP_GIVE, file, fd, need);
}

/* Its first address. */
static uint64_t address_of_f(void)
{
	unsigned long addr = 0;
	char line[64];
	FILE *nm;

	snprintf(line, sizeof(line), "nm %s/whole", folder);
	nm = popen(line, "re");
	assert_non_null(nm);
	while (fgets(line, sizeof(line), nm))
		if (strstr(line, " T f\n"))
			addr = strtoul(line, NULL, 16);
	assert_int_equal(pclose(nm), 0);
	assert_true(addr);
	return addr;
}

static void assert_needs(uint32_t file, int fd, enum debug_need_kind need, const char *name)
{
	static const enum elf_op ops[] = { ELF_OP_RETURN, ELF_OP_EVAL, ELF_OP_ROWS };
	const struct debug_need *needed;

	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		assert_int_equal(call(ops[i], file, fd, address_of_f()), ELF_STATUS_NEED);
		assert_int_equal(reply.len, sizeof(*needed));
		needed = (const void *)reply.data;
		assert_int_equal(needed->kind, need);
		assert_string_equal(needed->name, name);
	}
}

/* The rows of f: as those of the whole program, or guesses at best. */
static void assert_rows(uint32_t file, int fd, bool has_debug)
{
	const struct row *row;

	assert_int_equal(call(ELF_OP_ROWS, file, fd, address_of_f()), 0);
	if (has_debug) {
		assert_int_equal(reply.len, expected.len);
		assert_memory_equal(reply.data, expected.data, reply.len);
		return;
	}
	row = (const void *)reply.data;
	assert_true(reply.len == 0 || row->is_guess);
}

static void test_reader(void **state)
{
	AUTO_CLOSE int whole = open_file("whole"), linked = open_file("linked"), debug = open_file("whole.debug");
	AUTO_CLOSE int link_only = open_file("link_only"), no_id = open_file("no_id.debug"), wrong = open_file("wrong");
	AUTO_CLOSE int nameless = open_file("nameless");

	(void)state;
	assert_int_equal(call(ELF_OP_ROWS, 1, whole, address_of_f()), 0); /* it has the tables itself */
	assert_true(reply.len >= 2 * sizeof(struct row));
	buf_append(&expected, reply.data, reply.len);
	assert_int_equal(give(1, DEBUG_NEED_BUILD_ID, debug), -ENOENT);

	assert_int_equal(give(2, DEBUG_NEED_BUILD_ID, debug), -ENOENT); /* nobody asked */
	assert_needs(2, linked, DEBUG_NEED_BUILD_ID, "feedc0de00000001");
	assert_int_equal(give(2, DEBUG_NEED_LINK, no_id), -ENOENT);
	assert_int_equal(give(2, DEBUG_NEED_BUILD_ID, no_id), -ENOENT);
	assert_int_equal(give(2, DEBUG_NEED_MAX, debug), -ENOENT);
	assert_int_equal(give(2, DEBUG_NEED_BUILD_ID, debug), 0);
	assert_rows(2, linked, true);
	assert_int_equal(give(2, DEBUG_NEED_LINK, debug), -ENOENT);
	assert_int_equal(call(ELF_OP_FORGET, 2, -1, 0), 0);
	assert_needs(2, linked, DEBUG_NEED_BUILD_ID, "feedc0de00000001");
	assert_int_equal(give(2, DEBUG_NEED_BUILD_ID, -1), 0); /* nothing by the id: by the link */
	assert_needs(2, linked, DEBUG_NEED_LINK, "whole.debug");
	assert_int_equal(give(2, DEBUG_NEED_LINK, -1), 0);
	assert_rows(2, linked, false);

	assert_needs(3, link_only, DEBUG_NEED_LINK, "no_id.debug");
	assert_int_equal(give(3, DEBUG_NEED_LINK, wrong), -ENOENT);
	assert_int_equal(give(3, DEBUG_NEED_LINK, no_id), 0);
	assert_rows(3, link_only, true);

	assert_rows(4, nameless, false);
}

/* --- opening --- */

static int open_place(const char *program, enum debug_need_kind need, const char *name, unsigned index)
{
	AUTO_CLOSE int fd = open_file(program);
	struct debug_need needed = { .kind = need };
	char path[64];
	struct debug_place place = { path, (uint32_t)getpid(), fd };

	snprintf(path, sizeof(path), "%s/%s", folder, program);
	snprintf(needed.name, sizeof(needed.name), "%s", name);
	return debug_file_open(&place, &needed, index);
}

static void test_opening(void **state)
{
	static const char *const not_names[] = { "../whole", "/etc/passwd", "..", ".", "" };
	static const char *const not_ids[] = { "", "fe", "../x", "FEEDC0", "fe/dc0de" };
	struct stat a, b;
	int fd;

	(void)state;
	fd = open_place("stripped", DEBUG_NEED_LINK, "whole.debug", 0);
	assert_true(fd >= 0 && fstat(fd, &a) == 0);
	assert_int_equal(close(fd), 0);
	run("mkdir .debug && mv whole.debug .debug/other");
	fd = open_place("stripped", DEBUG_NEED_LINK, "other", 1);
	assert_true(fd >= 0 && fstat(fd, &b) == 0 && a.st_ino == b.st_ino);
	assert_int_equal(close(fd), 0);
	run("mv .debug/other whole.debug");
	assert_int_equal(open_place("stripped", DEBUG_NEED_LINK, "stripped", 0), -ENOENT); /* itself */
	assert_int_equal(open_place("stripped", DEBUG_NEED_LINK, "nothing", 0), -ENOENT);
	assert_int_equal(open_place("stripped", DEBUG_NEED_LINK, "nothing", 4), -ERANGE);
	assert_int_equal(open_place("stripped", DEBUG_NEED_BUILD_ID, "feedc0de00000001", 2), -ERANGE);
	for (size_t i = 0; i < ARRAY_LEN(not_names); i++)
		assert_int_equal(open_place("stripped", DEBUG_NEED_LINK, not_names[i], 0), -EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(not_ids); i++)
		assert_int_equal(open_place("stripped", DEBUG_NEED_BUILD_ID, not_ids[i], 0), -EINVAL);

	run("mkfifo pipe && ln -s /proc/self/exe magic && ln -s /dev/zero device && mkdir dir");
	assert_int_equal(open_place("stripped", DEBUG_NEED_LINK, "pipe", 0), -EACCES); /* and does not wait */
	assert_int_equal(open_place("stripped", DEBUG_NEED_LINK, "dir", 0), -EACCES);
	assert_int_equal(open_place("stripped", DEBUG_NEED_LINK, "magic", 0), -ELOOP);
	assert_int_equal(open_place("stripped", DEBUG_NEED_LINK, "device", 0), -EACCES);
	if (geteuid())
		skip();
	run("cp stripped foreign && chown 65534 foreign && echo secret >secret && chmod 600 secret");
	assert_int_equal(open_place("foreign", DEBUG_NEED_LINK, "secret", 0), -EACCES);
	run("chown 65534 secret");
	fd = open_place("foreign", DEBUG_NEED_LINK, "secret", 0);
	assert_true(fd >= 0 && close(fd) == 0);
}

/* --- a reader that is not to be trusted --- */

static struct {
	struct elf_service service;
	struct debug_need needed;
	bool is_insatiable; /* asks whatever it gets; else breaks over any rows once it has taken a file */
	int calls, taken;
} fake;

static int fake_call(struct elf_service *s, const struct elf_request *request, int fd, const void *payload, size_t bytes,
		     struct buf *out)
{
	struct elf_info info = { 0 };

	(void)s, (void)payload, (void)bytes;
	buf_reset(out);
	fake.calls++;
	if (request->op == ELF_OP_INFO)
		buf_append(out, &info, sizeof(info));
	if (request->op == ELF_OP_GIVE) {
		fake.taken = fd >= 0 ? 1 : -1;
		return fake.is_insatiable ? -ENOENT : 0;
	}
	if (request->op != ELF_OP_ROWS)
		return 0;
	if (fake.is_insatiable || !fake.taken) {
		buf_append(out, &fake.needed, sizeof(fake.needed));
		return ELF_STATUS_NEED;
	}
	if (fake.taken < 0)
		return 0;
	fake.taken = 0; /* the worker dies, and the next one asks again */
	return -EPROTO;
}

static void fake_free(struct elf_service *s)
{
	(void)s;
}

static enum file_state ask_fake(bool is_insatiable, int *status_ret)
{
	static const struct elf_service_ops ops = { .call = fake_call, .free = fake_free };
	struct metrics *metrics = metrics_new();
	struct row row;
	const struct file_place at = { .pid = (uint32_t)getpid(), .start = 0x1000, .end = 0x2000 };
	struct file_key key = { .inode = 1 };
	struct file_opener *opener;
	struct files *files;
	struct file *file;
	char path[64];
	struct stat st;
	enum file_state result;

	memset(&fake, 0, sizeof(fake));
	fake.service.ops = &ops;
	fake.needed = (struct debug_need){ .kind = DEBUG_NEED_LINK, .name = "whole.debug" };
	fake.is_insatiable = is_insatiable;
	assert_int_equal(file_opener_new(metrics, &opener), 0);
	assert_int_equal(files_new(&fake.service, opener, metrics, &files), 0);
	snprintf(path, sizeof(path), "%s/stripped", folder);
	assert_int_equal(stat(path, &st), 0);
	key.inode = st.st_ino;
	file = files_see(files, &key, path, &at);
	assert_non_null(file);
	assert_int_equal(file->state, FILE_READABLE);
	*status_ret = files_row(files, file, 0x1000, &row);
	result = file->state;
	files_free(files);
	metrics_free(metrics);
	return result;
}

static void test_untrusted_reader(void **state)
{
	int status;

	(void)state;
	/* Asks for ever: bounded, and hostile in the end. */
	assert_int_equal(ask_fake(true, &status), FILE_HOSTILE);
	assert_int_equal(status, -EPROTO);
	assert_true(fake.calls < 40);
	/* Breaks over the debug file: the file goes on without it. */
	assert_int_equal(ask_fake(false, &status), FILE_READABLE);
	assert_int_equal(status, 1); /* an answer: no rule there */
	assert_int_equal(fake.taken, -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader),
		cmocka_unit_test(test_opening),
		cmocka_unit_test(test_untrusted_reader),
	};

	return run_group_of_descriptors(tests, make, destroy);
}
