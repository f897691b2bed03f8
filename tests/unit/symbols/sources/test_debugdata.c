/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Minidebuginfo made of this program as Fedora's packages make it (find-debuginfo: only the symbols that .dynsym has not):
 * stripped of everything else, it still has the names of its static functions. Then packed bytes that are broken, or stand
 * for far more than they should.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/code/source.h"
#include "symbols/sources/symbol_image.h"
#include "symbols/symbols.h"

static char folder[] = "/tmp/test_source_debugdata.XXXXXX";

static __attribute__((noinline, used)) int only_in_debugdata(int x)
{
	__asm__ volatile("");
	return x + 1;
}

/* In the folder; $self is this program. */
static void run(const char *command)
{
	char text[2048];

	snprintf(text, sizeof(text), "cd %s && self=/proc/%d/exe && %s", folder, getpid(), command);
	assert_int_equal(system(text), 0);
}

static int read_file(const char *name, struct code_names *names)
{
	struct symbol_files files = { 0 };
	AUTO_CLOSE int fd = -1;
	char path[128];
	int error;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(symbol_image_map(fd, &files.program), 0);
	error = source_debugdata(&files, names);
	symbol_image_unmap(&files.program);
	return error;
}

static uint64_t own_addr(void)
{
	extern const char __ehdr_start[];

	return (uintptr_t)only_in_debugdata - (uintptr_t)__ehdr_start;
}

static void test_minidebuginfo(void **state)
{
	struct symbol_query queries[] = { { .addr = own_addr() } };
	struct buf names = BUF_EMPTY;
	AUTO_CLOSE int fd = -1;
	char path[128];

	(void)state;
	if (system("command -v xz >/dev/null"))
		skip();
	run("cp $self whole && nm -D whole --format=posix --defined-only | cut -d' ' -f1 | sort > exported && "
	    "nm whole --format=posix --defined-only | awk '$2 ~ /[tT]/ { print $1 }' | sort > functions && "
	    "comm -13 exported functions > keep && objcopy --only-keep-debug whole debug && "
	    "objcopy -S --remove-section .comment --keep-symbols=keep debug mini && xz mini && "
	    "strip -o stripped whole && objcopy --add-section .gnu_debugdata=mini.xz stripped with");
	snprintf(path, sizeof(path), "%s/stripped", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(symbols_resolve_elf(fd, queries, 1, &names), 0);
	assert_int_equal(queries[0].name_len, 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/with", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(symbols_resolve_elf(fd, queries, 1, &names), 0);
	assert_int_equal(queries[0].name_len, strlen("only_in_debugdata"));
	assert_memory_equal(names.data + queries[0].name_off, "only_in_debugdata", queries[0].name_len);
	assert_int_equal(queries[0].sym_addr, own_addr());
	buf_fini(&names);
}

/* Puts what is in the file "packed" into a section of a copy of this program. */
static int read_packed(const char *shell)
{
	struct code_names *c = code_names_new(NULL, 0);
	int error;

	assert_non_null(c);
	run(shell);
	run("strip -o stripped $self && objcopy --add-section .gnu_debugdata=packed stripped with");
	error = read_file("with", c);
	code_names_free(c);
	return error;
}

static void test_broken(void **state)
{
	(void)state;
	if (system("command -v xz >/dev/null"))
		skip();
	assert_int_equal(read_packed("head -c 1000 /dev/urandom > packed"), -EBADMSG);
	assert_int_equal(read_packed("cp $self x && xz -c x | head -c 900 > packed"), -EBADMSG);
	assert_int_equal(read_packed("echo no ELF file | xz -c > packed"), -EBADMSG);
	/* this program, whose names would be found: packed for an unpacker with more memory than ours may have, ... */
	assert_int_equal(read_packed("xz -c --lzma2=dict=96MiB,mf=hc3,mode=fast <$self > packed"), -EBADMSG);
	/* ... and with 200 MB of zeroes behind it, which are 30 KB packed */
	assert_int_equal(read_packed("(cat $self && head -c 200000000 /dev/zero) | xz -0 -c > packed"), -EBADMSG);
	assert_int_equal(read_packed("(cat $self && head -c 2000000 /dev/zero) | xz -0 -c > packed"), 0);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	run("rm -r \"$PWD\"");
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_minidebuginfo),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
