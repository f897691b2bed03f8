/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of sources over an optimized C++ program with DWARF and symbols, against llvm-symbolizer: the outermost function
 * of every address is called by its symbol, also where compiler-made copies and cold parts share one description; what was
 * inlined stays. Whether all addresses are asked about or some, the answer is the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/code/source.h"
#include "symbols/sources/symbol_image.h"

enum { NAME_BYTES = 4096 };

static char folder[] = "/tmp/test_sources.XXXXXX";
static struct symbol_files files;
static uint64_t text_start, text_end;

static const char program[] =
	"#include <algorithm>\n#include <iostream>\n#include <map>\n#include <stdexcept>\n#include <vector>\n"
	"static __attribute__((noinline)) int copied(int a, int b, int unused) { return a * b + (int)std::cout.good(); }\n"
	"static int thrower(int x) { if (x < 0) throw std::runtime_error(\"negative\"); return x + 1; }\n"
	"int main(int c, char **v) { std::map<std::string, int> m; std::vector<int> q;\n"
	"for (int i = 0; i < c; i++) { m[v[i]] = thrower(i); q.push_back(i); }\n"
	"std::sort(q.begin(), q.end(), [](int a, int b) { return a > b; });\n"
	"for (auto &p : m) std::cout << p.first << copied(p.second, 3, 1); }\n";

static void run(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && %s", folder, command);
	assert_int_equal(system(line), 0);
}

static FILE *open_pipe(const char *command)
{
	char line[1024];
	FILE *f;

	snprintf(line, sizeof(line), "cd %s && %s", folder, command);
	f = popen(line, "r");
	assert_non_null(f);
	return f;
}

static int make(void **state)
{
	char path[64];
	uint64_t bytes;
	FILE *f;
	int fd;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/a.cc", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(program, f);
	fclose(f);
	run("g++ -g -O2 -o program a.cc");
	snprintf(path, sizeof(path), "%s/program", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(symbol_image_map(fd, &files.program), 0);
	close(fd);
	f = open_pipe(
		"readelf -SW program | sed -nE 's/.* \\.text +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) .*/\\1 \\2/p'");
	assert_int_equal(fscanf(f, "%lx %lx", &text_start, &bytes), 2);
	pclose(f);
	text_end = text_start + bytes;
	return 0;
}

static int destroy(void **state)
{
	(void)state;
	symbol_image_unmap(&files.program);
	run("rm -r \"$PWD\"");
	return 0;
}

static struct code_names *read_names(const uint64_t *wanted, size_t count)
{
	struct code_names *c = code_names_new(wanted, count);
	struct symbol_sources_result result;

	assert_non_null(c);
	assert_int_equal(symbol_sources_read(&files, c, &result), 0);
	assert_int_equal(result.best, CODE_SOURCE_DWARF);
	assert_false(result.is_broken);
	return c;
}

/* Does the program have a symbol called @name at the address of the one called @other? */
static bool are_aliases(const char *name, const char *other)
{
	char command[2 * NAME_BYTES + 256];
	int status;

	snprintf(command, sizeof(command),
		 "cd %s && nm program | awk -v a='%s' -v b='%s' '$3 == a { x = $1 } $3 == b { y = $1 } END { exit !(x && x "
		 "== y) }'",
		 folder, name, other);
	status = system(command);
	return status == 0;
}

/* Reads the judge's next answer; @outer_ret its outermost function. Returns the number of frames. */
static uint32_t read_answer(FILE *f, char *outer_ret)
{
	char line[NAME_BYTES];
	uint32_t count = 0;

	while (fgets(outer_ret, NAME_BYTES, f) && outer_ret[0] != '\n') {
		strcpy(line, outer_ret);
		assert_non_null(fgets(outer_ret, NAME_BYTES, f));
		count++;
	}
	line[strcspn(line, "\n")] = '\0';
	strcpy(outer_ret, line);
	return count;
}

static void test_outermost(void **state)
{
	struct code_names *c = read_names(NULL, 0);
	char command[256], outer[NAME_BYTES], name[NAME_BYTES];
	size_t cold = 0, copies = 0, inlined = 0;
	FILE *f;

	(void)state;
	if (system("command -v llvm-symbolizer >/dev/null"))
		skip();
	snprintf(command, sizeof(command),
		 "python3 -c 'for a in range(%lu, %lu): print(hex(a))' | llvm-symbolizer --no-demangle --obj=program",
		 text_start, text_end);
	f = open_pipe(command);
	for (uint64_t addr = text_start; addr < text_end; addr++) {
		struct code_answer answer;
		uint32_t count = read_answer(f, outer);
		const char *text;
		size_t len;

		if (code_names_find(c, addr, &answer)) {
			assert_string_equal(outer, "??");
			continue;
		}
		assert_int_equal(answer.frame_count, count);
		text = code_names_name(c, answer.frames[count - 1].function, &len);
		snprintf(name, sizeof(name), "%.*s", (int)len, text);
		if (strcmp(name, outer) != 0 && !are_aliases(name, outer))
			fail_msg("%lx: %s, not %s", addr, name, outer);
		cold += strstr(name, ".cold") != NULL;
		copies += strstr(name, ".constprop") || strstr(name, ".isra");
		inlined += count > 1;
	}
	assert_int_equal(pclose(f), 0);
	assert_true(cold && copies && inlined);
	code_names_free(c);
}

static void test_wanted(void **state)
{
	enum { STEP = 7, MAX = 4096 };
	static uint64_t wanted[MAX];
	struct code_names *all = read_names(NULL, 0), *some;
	size_t count = 0;

	(void)state;
	for (uint64_t addr = text_start; addr < text_end && count < MAX; addr += STEP)
		wanted[count++] = addr;
	some = read_names(wanted, count);
	for (size_t i = 0; i < count; i++) {
		struct code_answer a, b;
		int error = code_names_find(all, wanted[i], &a);

		assert_int_equal(code_names_find(some, wanted[i], &b), error);
		if (error)
			continue;
		assert_int_equal(a.start, b.start);
		assert_int_equal(a.source, b.source);
		assert_int_equal(a.frame_count, b.frame_count);
		for (uint32_t k = 0; k < a.frame_count; k++) {
			size_t a_len, b_len;
			const char *a_name = code_names_name(all, a.frames[k].function, &a_len);
			const char *b_name = code_names_name(some, b.frames[k].function, &b_len);

			assert_int_equal(a_len, b_len);
			assert_memory_equal(a_name, b_name, a_len);
			assert_int_equal(a.frames[k].line, b.frames[k].line);
		}
	}
	code_names_free(all);
	code_names_free(some);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outermost),
		cmocka_unit_test(test_wanted),
	};

	return cmocka_run_group_tests(tests, make, destroy);
}
