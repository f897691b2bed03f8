/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PLT stubs against objdump: programs linked in every way that lays stubs out differently, for both CPUs, and the C library.
 * Every stub that objdump shows has its name from its first byte to its last; what is no stub has none.
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

#include "base/cleanup.h"
#include "symbols/code/source.h"
#include "symbols/sources/symbol_image.h"

static char folder[] = "/tmp/test_source_plt.XXXXXX";

static void names_free(struct code_names **c)
{
	code_names_free(*c);
}

static bool has_command(const char *name)
{
	char command[256];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
	return system(command) == 0;
}

static void open_names(const char *path, const uint64_t *wanted, size_t count, struct code_names **ret)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symbol_files files = { 0 };

	assert_int_equal(symbol_image_map(fd, &files.program), 0);
	*ret = code_names_new(wanted, count);
	assert_non_null(*ret);
	assert_int_equal(source_plt(&files, *ret), 0);
	assert_int_equal(code_names_finish(*ret), 0);
	symbol_image_unmap(&files.program);
}

static void assert_name(const struct code_names *c, uint64_t addr, const char *name, uint64_t start)
{
	struct code_answer answer;
	const char *ours;
	size_t len;

	if (!name) {
		assert_int_equal(code_names_find(c, addr, &answer), -ENOENT);
		return;
	}
	assert_int_equal(code_names_find(c, addr, &answer), 0);
	assert_int_equal(answer.frame_count, 1);
	assert_int_equal(answer.source, CODE_SOURCE_PLT);
	assert_int_equal(answer.start, start);
	ours = code_names_name(c, answer.frames[0].function, &len);
	assert_int_equal(len, strlen(name));
	assert_memory_equal(ours, name, len);
}

/* Goes through what objdump says of the PLT sections: a line for the start of each stub, and one for each instruction.
 * Returns the number of stubs. */
static size_t check(const char *objdump, const char *path)
{
	AUTO(names_free) struct code_names *c = NULL;
	char command[512], line[4096], name[4096] = "", rest[4096];
	uint64_t start = 0, addr;
	size_t count = 0;
	FILE *f;

	open_names(path, NULL, 0, &c);
	snprintf(command, sizeof(command),
		 "LC_ALL=C %s -d --no-show-raw-insn -j .plt -j .plt.sec -j .plt.got -j .iplt %s 2>/dev/null", objdump, path);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx <%4095[^>]>:", &addr, rest) == 2) {
			size_t len = strlen(rest);
			bool is_stub = len > 4 && !strcmp(rest + len - 4, "@plt");

			start = addr;
			strcpy(name, is_stub ? rest : "");
			count += is_stub;
		} else if (sscanf(line, " %lx: %4095s", &addr, rest) == 2) {
			if (!name[0])
				assert_name(c, addr, NULL, 0);
			else if (addr < start + 16)
				assert_name(c, addr, name, start);
		}
	}
	assert_int_equal(pclose(f), 0);
	return count;
}

static FILE *popen_bash(const char *command)
{
	FILE *f;

	assert_int_equal(setenv("JUDGE", command, 1), 0);
	f = popen("bash -c \"$JUDGE\"", "r");
	assert_non_null(f);
	return f;
}

/* objdump leaves the stubs of static programs without names. There it shows which slot each jumps through, and readelf which
 * code tells at run time what to put there. */
static size_t check_static(const char *objdump, const char *path)
{
	AUTO(names_free) struct code_names *c = NULL;
	char command[1024], line[256], name[64];
	uint64_t addr, addend;
	size_t count = 0;
	FILE *f;

	open_names(path, NULL, 0, &c);
	snprintf(command, sizeof(command),
		 "export LC_ALL=C; join <(%s -d -j .plt %s | sed -En 's/^ *([0-9a-f]+):.*jmp.*# ([0-9a-f]+) .*/\\2 \\1/p' | "
		 "sort) "
		 "<(readelf -rW %s | sed -En 's/^0*([0-9a-f]+) .*IRELATIV[E]* *([0-9a-f]+)$/\\1 \\2/p' | sort)",
		 objdump, path, path);
	f = popen_bash(command);
	while (fgets(line, sizeof(line), f)) {
		assert_int_equal(sscanf(line, "%*s %lx %lx", &addr, &addend), 2);
		snprintf(name, sizeof(name), "*ABS*+0x%lx@plt", addend);
		assert_name(c, addr, name, addr);
		assert_name(c, addr + 7, name, addr);
		count++;
	}
	assert_int_equal(pclose(f), 0);
	return count;
}

static const char program[] =
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n"
	"int main(int c, char **v) { void (*volatile f)(void *) = free; void *p = malloc(c); f(p); free(p);\n"
	"printf(\"%s %f\", v[0], sqrt(c)); puts(v[0]); return (int)strlen(v[0]) + atoi(v[0]) + abs(c); }\n";

static void test_programs(void **state)
{
	static const struct {
		const char *compiler, *options, *objdump;
		size_t (*check)(const char *objdump, const char *path);
		size_t stubs; /* at least */
	} cases[] = {
		{ "gcc", "-Wl,-z,lazy -fcf-protection=none -Wl,-z,noibtplt", "objdump", check, 5 },
		{ "gcc", "-Wl,-z,now -fcf-protection=none", "objdump", check, 5 },
		{ "gcc", "-Wl,-z,lazy -Wl,-z,ibtplt -fcf-protection", "objdump", check, 5 },
		{ "gcc", "-Wl,-z,now -Wl,-z,ibtplt -fcf-protection", "objdump", check, 5 },
		{ "gcc", "-no-pie -Wl,-z,lazy", "objdump", check, 4 },
		{ "gcc", "-Wl,-z,lazy,-z,mark-plt", "objdump", check, 5 }, /* since binutils 2.42; Debian 13's libc has it */
		{ "gcc", "-static", "objdump", check_static, 10 },
		{ "gcc", "-static-pie", "objdump", check_static, 10 },
		{ "clang", "-Wl,-z,lazy -fuse-ld=lld", "objdump", check, 4 },
		{ "clang", "-Wl,-z,now -fuse-ld=lld", "objdump", check, 4 },
		{ "clang", "-Wl,-z,force-ibt -fcf-protection -fuse-ld=lld", "objdump", check, 4 },
		{ "aarch64-linux-gnu-gcc", "-Wl,-z,lazy,-z,max-page-size=4096", "aarch64-linux-gnu-objdump", check, 5 },
		{ "aarch64-linux-gnu-gcc", "-mbranch-protection=standard -Wl,-z,force-bti,-z,pac-plt",
		  "aarch64-linux-gnu-objdump", check, 5 },
	};
	char source[64], path[64], command[1024];
	size_t count;
	FILE *f;

	(void)state;
	snprintf(source, sizeof(source), "%s/program.c", folder);
	snprintf(path, sizeof(path), "%s/program", folder);
	f = fopen(source, "w");
	assert_non_null(f);
	fputs(program, f);
	fclose(f);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(command, sizeof(command), "%s -w -fno-builtin %s -o %s %s -lm 2>/dev/null", cases[i].compiler,
			 cases[i].options, path, source);
		if (!has_command(cases[i].compiler) || !has_command(cases[i].objdump) ||
		    (strstr(cases[i].options, "lld") && !has_command("ld.lld"))) {
			print_message("left out: %s %s\n", cases[i].compiler, cases[i].options);
			continue;
		}
		assert_int_equal(system(command), 0);
		count = cases[i].check(cases[i].objdump, path);
		print_message("%s %s: %zu\n", cases[i].compiler, cases[i].options, count);
		assert_true(count >= cases[i].stubs);
	}
	unlink(path);
	unlink(source);
}

/* The C library calls its own ifuncs by stubs, and others by name. */
static void test_libc(void **state)
{
	static const char path[] = "/lib/x86_64-linux-gnu/libc.so.6";

	(void)state;
	if (access(path, R_OK) || !has_command("objdump"))
		skip();
	assert_true(check("objdump", path) > 5);
}

/* Only what is asked for is named. */
static void test_wanted(void **state)
{
	static const char path[] = "/lib/x86_64-linux-gnu/libc.so.6";
	AUTO(names_free) struct code_names *all = NULL, *some = NULL;
	struct code_answer answer;
	uint64_t wanted;

	(void)state;
	if (access(path, R_OK))
		skip();
	open_names(path, NULL, 0, &all);
	for (wanted = 0; code_names_find(all, wanted, &answer); wanted++)
		assert_true(wanted < 1 << 24);
	open_names(path, &wanted, 1, &some);
	assert_int_equal(code_names_find(some, wanted, &answer), 0);
	assert_int_equal(code_names_find(some, wanted + 16, &answer), -ENOENT);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_wanted),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
