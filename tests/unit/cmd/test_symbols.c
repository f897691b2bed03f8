/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth symbols` on this program: what is an address and what is not, and the same answers with and without an index. */
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
#include "base/log.h"
#include "cmd/options/command.h"
#include "cmd/options/options.h"
#include "cmd/resolve.h"

static char folder[64], self[64];

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_symbols.XXXXXX");
	snprintf(self, sizeof(self), "/proc/%d/exe", getpid());
	log_set_level(LOG_ERROR);
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* Runs `hearth symbols WORDS...` over what @in gives; what it wrote. */
static const char *run_over(int wanted_status, const char *const *words, int in)
{
	static char text[256 << 10];
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO_FCLOSE FILE *out = tmpfile();
	int saved_in = dup(STDIN_FILENO), saved_out = dup(STDOUT_FILENO), argc = 0, status;
	char *argv[16];
	char cache[128];
	struct config config;
	size_t len;

	snprintf(cache, sizeof(cache), "--symbol-cache=%s/indexes", folder);
	argv[argc++] = (char *)"symbols";
	argv[argc++] = cache;
	while (*words)
		argv[argc++] = (char *)(uintptr_t)*words++;
	argv[argc] = NULL;
	assert_int_equal(options_parse(&cmd_symbols, argc, argv, &config, &error), 0);
	fflush(stdout);
	dup2(in, STDIN_FILENO);
	dup2(fileno(out), STDOUT_FILENO);
	status = cmd_symbols.run(&config);
	dup2(saved_in, STDIN_FILENO);
	dup2(saved_out, STDOUT_FILENO);
	close(saved_in);
	close(saved_out);
	config_fini(&config);
	assert_int_equal(status, wanted_status);
	rewind(out);
	len = fread(text, 1, sizeof(text) - 1, out);
	text[len] = '\0';
	return text;
}

/* The same over a file with @input. */
static const char *run(int wanted_status, const char *const *words, const char *input)
{
	AUTO_FCLOSE FILE *in = tmpfile();

	fputs(input, in);
	fflush(in);
	lseek(fileno(in), 0, SEEK_SET);
	return run_over(wanted_status, words, fileno(in));
}

#define RUN(status, input, ...) run(status, (const char *const[]){ __VA_ARGS__, NULL }, input)

/* Where a function of this program is in its file, in hex. */
static const char *hex_of(const void *function, const char *prefix)
{
	extern const char __ehdr_start[];
	static char text[2][32];
	static int turn;

	turn = !turn;
	snprintf(text[turn], sizeof(text[turn]), "%s%lx", prefix,
		 (unsigned long)((uintptr_t)function - (uintptr_t)__ehdr_start));
	return text[turn];
}

/* The first line of the answer is @name. */
static void assert_named(const char *answer, const char *name)
{
	assert_true(strncmp(answer, name, strlen(name)) == 0 && answer[strlen(name)] == '\n');
}

static void test_words(void **state)
{
	static const char *const not_addrs[] = { "nonsense", "0x", "", "12345678123456781", "12 34", "-1", "0xg" };
	const char *answer;

	(void)state;
	assert_named(RUN(STATUS_DONE, "", "resolve", self, hex_of((void *)resolve, "")), "resolve");
	assert_named(RUN(STATUS_DONE, "", "resolve", self, hex_of((void *)resolve_open_elf, "0x")), "resolve_open_elf");
	assert_named(RUN(STATUS_DONE, "", "resolve", self, hex_of((void *)resolve_open_elf, "0X000000")),
		     "resolve_open_elf");
	for (size_t i = 0; i < ARRAY_LEN(not_addrs); i++) {
		answer = RUN(STATUS_DONE, "", "resolve", "--", self, not_addrs[i]);
		assert_named(answer, not_addrs[i]);
		assert_int_equal(strlen(answer), strlen(not_addrs[i]) + 1);
	}
	assert_string_equal(RUN(STATUS_DONE, "", "resolve", self, "0", "ffffffffffffffff"), "??\n??:0:0\n\n??\n??:0:0\n\n");
}

static void test_input(void **state)
{
	const char *answer;
	char input[128];

	(void)state;
	snprintf(input, sizeof(input), "%s\r\n\nwhat\n  %s", hex_of((void *)resolve, ""),
		 hex_of((void *)resolve_open_elf, ""));
	answer = RUN(STATUS_DONE, input, "resolve", self);
	assert_named(answer, "resolve");
	answer = strstr(answer, "\n\n") + 2;
	assert_int_equal(strncmp(answer, "\nwhat\nresolve_open_elf\n", 23), 0);
	assert_named(RUN(STATUS_DONE, input, "resolve", self, "-"), "resolve");
	assert_string_equal(RUN(STATUS_DONE, "", "resolve", self, "-"), "");
}

/* A line that comes in parts is one, and each is answered once, whatever it came with: from a pipe that gives what was
 * written at once. */
static void test_parts(void **state)
{
	static const char *const parts[] = { "0\nwh", "at\n", "\n0", "\n", "end" };
	const char *const words[] = { "resolve", self, NULL };
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_DIRECT), 0);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		assert_int_equal(write(fds[1], parts[i], strlen(parts[i])), strlen(parts[i]));
	close(fds[1]);
	assert_string_equal(run_over(STATUS_DONE, words, fds[0]), "??\n??:0:0\n\nwhat\n\n??\n??:0:0\n\nend\n");
	close(fds[0]);
}

/* More than is read at a time, of a file, with and without a newline at the end. */
static void test_long_input(void **state)
{
	enum { LINES = 8000 };
	AUTO(buf_fini) struct buf input = BUF_EMPTY, wanted = BUF_EMPTY;

	(void)state;
	for (int i = 0; i < LINES; i++) {
		buf_printf(&input, "%snone-%d", i ? "\n" : "", i);
		buf_printf(&wanted, "none-%d\n", i);
	}
	assert_true(input.len > 64 << 10);
	assert_string_equal(RUN(STATUS_DONE, buf_text(&input), "resolve", self), buf_text(&wanted));
	buf_putc(&input, '\n');
	assert_string_equal(RUN(STATUS_DONE, buf_text(&input), "resolve", self), buf_text(&wanted));
}

/* A folder can be opened and not be read; a file may be shorter than a head; 32 bits are another machine's. */
static void test_files(void **state)
{
	static const char elf32[] = "\177ELF\1", other[] = "\177EL_\2";
	static const struct {
		const char *bytes;
		size_t len;
		int code;
	} cases[] = {
		{ "\177ELF\2", 5, 0 }, { "\177ELF\2more", 9, 0 }, { "\177ELF", 4, -ENOEXEC },
		{ "", 0, -ENOEXEC },   { elf32, 5, -ENOEXEC },	  { other, 5, -ENOEXEC },
	};
	char path[96];

	(void)state;
	assert_int_equal(resolve_open_elf(folder), -EISDIR);
	snprintf(path, sizeof(path), "%s/file", folder);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		FILE *f = fopen(path, "w");
		int fd;

		fwrite(cases[i].bytes, 1, cases[i].len, f);
		fclose(f);
		fd = resolve_open_elf(path);
		assert_int_equal(fd < 0 ? fd : 0, cases[i].code);
		if (fd >= 0) {
			assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
			close(fd);
		}
	}
}

static void test_index(void **state)
{
	const char *addr = hex_of((void *)resolve, "");
	AUTO_FREE char *cold = NULL;

	(void)state;
	cold = strdup(RUN(STATUS_DONE, "", "resolve", self, addr, "10"));
	assert_string_equal(RUN(STATUS_FAILED, "", "show", self), "");
	assert_string_equal(RUN(STATUS_DONE, "", "build", self), "");
	assert_non_null(strstr(RUN(STATUS_DONE, "", "show", self), "checksums right"));
	assert_string_equal(RUN(STATUS_DONE, "", "resolve", self, addr, "10"), cold);
	RUN(STATUS_DONE, "", "prune");
	RUN(STATUS_DONE, "", "show", self);
	RUN(STATUS_DONE, "", "prune", self);
	RUN(STATUS_FAILED, "", "show", self);
}

static void test_wrong(void **state)
{
	(void)state;
	log_set_level(LOG_ERROR);
	RUN(STATUS_USAGE, "", "understand");
	RUN(STATUS_USAGE, "", "resolve");
	RUN(STATUS_USAGE, "", "build");
	RUN(STATUS_FAILED, "", "build", "/nowhere", self);
	RUN(STATUS_FAILED, "", "resolve", "/proc/self/status", "1");
	assert_int_equal(resolve_open_elf("/proc/self/status"), -ENOEXEC);
	assert_int_equal(resolve_open_elf("/nowhere"), -ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),	   cmocka_unit_test(test_input), cmocka_unit_test(test_parts),
		cmocka_unit_test(test_long_input), cmocka_unit_test(test_files), cmocka_unit_test(test_index),
		cmocka_unit_test(test_wrong),
	};

	cmd_list(all_commands);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
