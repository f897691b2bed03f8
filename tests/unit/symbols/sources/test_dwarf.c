/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names out of DWARF against llvm-symbolizer: every address of the code of two programs, as gcc and clang build them with
 * each version of DWARF, packed, split, moved to other files. The symbol tables are taken out first, or LLVM would answer
 * from them. All frames, files, lines and columns must be the same, and the names; but what has no linkage name has its
 * scopes here and not there.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/find/symbol_files.h"
#include "tests/unit/symbols/dwarf_program.h"

enum { MAX_ADDRS = 1 << 16, STRIDE = 7 };

#define C_FILES	  "$D/dwarf_calls.c $D/dwarf_calls_far.c"
#define CXX_FILES "$D/dwarf_calls.cc"

/* How a program is built; what it is called is in $P. */
struct variant {
	const char *compiler, *files, *options;
	const char *after; /* what is done to it: files $P.debug, $P.common, $P.dwp become those of struct symbol_files */
};

static const struct variant variants[] = {
	{ "gcc", C_FILES, "-O2 -gdwarf-2", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-3", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-4", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-5", NULL },
	{ "gcc", C_FILES, "-O0 -gdwarf-5", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-5 -gdwarf64", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-4 -gdwarf64", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-5 -flto", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-4 -flto", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-5 -gz=zlib", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-4 -gz=zlib-gnu", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-5",
	  "objcopy --compress-debug-sections=zstd $P $P.debug && objcopy --strip-debug $P" },
	{ "gcc", C_FILES, "-O2 -gdwarf-4 -ffunction-sections -Wl,--gc-sections", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-5 -ffunction-sections -Wl,--gc-sections", NULL },
	{ "g++", CXX_FILES, "-O2 -gdwarf-4 -gsplit-dwarf", NULL },
	{ "g++", CXX_FILES, "-O2 -gdwarf-5 -gsplit-dwarf", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-4 -gsplit-dwarf", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-5 -gsplit-dwarf", NULL },
	{ "gcc", C_FILES, "-O2 -gdwarf-5", "objcopy --only-keep-debug $P $P.debug && strip $P" },
	{ "g++", CXX_FILES, "-O2 -gdwarf-4", NULL },
	{ "g++", CXX_FILES, "-O2 -gdwarf-5", NULL },
	{ "g++", CXX_FILES, "-O2 -gdwarf-4 -fdebug-types-section", NULL },
	{ "g++", CXX_FILES, "-O2 -gdwarf-5 -fdebug-types-section", NULL },
	{ "g++", CXX_FILES, "-O2 -gdwarf-5 -gsplit-dwarf -fdebug-types-section", NULL },
	{ "clang", C_FILES, "-O2 -gdwarf-2", NULL },
	{ "clang", C_FILES, "-O2 -gdwarf-3", NULL },
	{ "clang", C_FILES, "-O2 -gdwarf-4", NULL },
	{ "clang", C_FILES, "-O2 -gdwarf-5", NULL },
	{ "clang", C_FILES, "-O2 -gdwarf-5 -gdwarf64", NULL },
	{ "clang", C_FILES, "-O2 -gdwarf-5 -g1", NULL },
	{ "clang", C_FILES, "-O2 -gdwarf-5 -gz", NULL },
	{ "clang", C_FILES, "-O2 -gdwarf-4 -gsplit-dwarf", NULL },
	{ "clang", C_FILES, "-O2 -gdwarf-5 -gsplit-dwarf", NULL },
	{ "clang", C_FILES, "-O2 -gdwarf-4 -ffunction-sections -Wl,--gc-sections", NULL },
	{ "clang++", CXX_FILES, "-O2 -gdwarf-4", NULL },
	{ "clang++", CXX_FILES, "-O2 -gdwarf-5 -fdebug-types-section", NULL },
	/* Packages: the files they are made of are gone. */
	{ "clang++", CXX_FILES, "-O2 -gdwarf-5 -gsplit-dwarf",
	  "llvm-dwp -e $P -o $P.dwp && cp $P.dwp judged.dwp && rm *.dwo" },
	{ "clang", C_FILES, "-O2 -gdwarf-4 -gsplit-dwarf", "llvm-dwp -e $P -o $P.dwp && cp $P.dwp judged.dwp && rm *.dwo" },
	{ "g++", CXX_FILES, "-O2 -gdwarf-4 -gsplit-dwarf", "llvm-dwp -e $P -o $P.dwp && cp $P.dwp judged.dwp && rm *.dwo" },
	/* What two files have in common goes to a third. */
	{ "g++", CXX_FILES, "-O2 -gdwarf-4", "cp $P $P.2 && dwz -m $P.common $P $P.2" },
	{ "gcc", C_FILES, "-O2 -gdwarf-5", "cp $P $P.2 && dwz -5 -m $P.common $P $P.2" },
};

/* --- the programs --- */

/* The options of what LLVM sees: it takes 0 where gcc's lists in .dwo files count from the skeleton's low_pc, and prints no
 * names then. The code is the same without. */
static const char *judged_options(const struct variant *v)
{
	static char options[128];
	char *split;

	snprintf(options, sizeof(options), "%s", v->options);
	split = v->after ? NULL : strstr(options, "-gsplit-dwarf");
	if (split)
		memset(split, ' ', strlen("-gsplit-dwarf"));
	return options;
}

static int compile(const struct variant *v, const char *options, const char *name)
{
	return dwarf_run("%s %s -w %s -o linked", v->compiler, options, v->files) ||
	       dwarf_run("objcopy --strip-all --keep-section='.debug*' --keep-section='.zdebug*' linked %s", name);
}

/* Builds @v as "program", and "judged" as LLVM is to see it. False: a tool is missing here. */
static bool build(const struct variant *v)
{
	if (!dwarf_have(v->compiler) || (v->after && strstr(v->after, "dwz") && !dwarf_have("dwz"))) {
		printf("left out: %s not here\n", dwarf_have(v->compiler) ? "dwz" : v->compiler);
		return false;
	}
	dwarf_run("rm -f *");
	if ((strcmp(judged_options(v), v->options) && compile(v, judged_options(v), "judged")) ||
	    compile(v, v->options, "program") || dwarf_run("test -f judged || cp program judged") ||
	    dwarf_run("P=program && { %s; } >/dev/null", v->after ? v->after : ":"))
		fail_msg("cannot build %s %s", v->compiler, v->options);
	return true;
}

static struct symbol_image map_if_any(const char *name)
{
	return dwarf_run("test -f %s", name) ? (struct symbol_image){ 0 } : dwarf_map(name);
}

/* What is found beside the program: here for the way to its .dwo files. */
static struct symbol_files open_found(void)
{
	struct symbol_files found;
	char path[128];
	AUTO_CLOSE int fd = -1;

	snprintf(path, sizeof(path), "%s/program", dwarf_folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(symbol_files_open(fd, path, NULL, NULL, &found), 0);
	return found;
}

static struct code_names *read_names(const struct symbol_files *files, const uint64_t *wanted, size_t count)
{
	struct code_names *names = code_names_new(wanted, count);

	assert_non_null(names);
	assert_int_equal(source_dwarf(files, names), 0);
	assert_int_equal(code_names_finish(names), 0);
	return names;
}

/* --- the judge --- */

static bool ends_in(const char *text, size_t len, const char *end, size_t end_len)
{
	return len >= end_len && memcmp(text + len - end_len, end, end_len) == 0;
}

/* @theirs is the whole name, or what stands behind the scopes of ours. */
static bool is_same_name(const char *ours, size_t len, const char *theirs)
{
	size_t their_len = strlen(theirs);

	if (len == their_len)
		return memcmp(ours, theirs, len) == 0;
	return ends_in(ours, len, theirs, their_len) && ends_in(ours, len - their_len, "::", 2);
}

static void check_frame(const struct code_names *names, uint64_t addr, const struct code_frame *frame, const char *function,
			const char *place)
{
	char ours[4096];
	const char *text = "??";
	size_t len = 2;

	if (frame->function != CODE_NONE)
		text = code_names_name(names, frame->function, &len);
	if (!is_same_name(text, len, function))
		fail_msg("%#lx: %.*s, for LLVM %s", addr, (int)len, text, function);
	text = "??";
	len = 2;
	if (frame->file != CODE_NONE)
		text = code_names_path(names, frame->file, &len);
	snprintf(ours, sizeof(ours), "%.*s:%u:%u", (int)len, text, frame->line, frame->column);
	assert_string_equal(ours, place);
}

static bool take_line(FILE *f, char *line, int size)
{
	if (!fgets(line, size, f))
		return false;
	line[strcspn(line, "\n")] = 0;
	return true;
}

/* Compares all frames of @addr with the next answer of @judge. Returns how many there are. */
static uint32_t check_answer(const struct code_names *names, uint64_t addr, FILE *judge)
{
	static struct code_answer answer;
	char function[4096], place[4096];
	uint32_t n = 0;

	if (code_names_find(names, addr, &answer) && !answer.frame_count) {
		answer.frames[0] = (struct code_frame){ .function = CODE_NONE, .file = CODE_NONE };
		answer.frame_count = 1;
	}
	while (take_line(judge, function, sizeof(function)) && function[0]) {
		assert_true(take_line(judge, place, sizeof(place)));
		if (n == answer.frame_count)
			fail_msg("%#lx: LLVM has one more frame, %s", addr, function);
		check_frame(names, addr, &answer.frames[n++], function, place);
	}
	if (n != answer.frame_count)
		fail_msg("%#lx: %u frames, for LLVM %u", addr, answer.frame_count, n);
	return n;
}

/* Checks the addresses with @names. Returns how many lie in inlined code. */
static size_t judge(const struct code_names *names, const uint64_t *addrs, size_t count)
{
	char path[128];
	size_t inlined = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/addresses", dwarf_folder);
	f = fopen(path, "w");
	assert_non_null(f);
	for (size_t i = 0; i < count; i++)
		fprintf(f, "%#lx\n", addrs[i]);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(dwarf_run("llvm-symbolizer --no-demangle --inlines -e judged <addresses >answers"), 0);
	snprintf(path, sizeof(path), "%s/answers", dwarf_folder);
	f = fopen(path, "r");
	assert_non_null(f);
	for (size_t i = 0; i < count; i++)
		inlined += check_answer(names, addrs[i], f) > 1;
	fclose(f);
	return inlined;
}

static size_t list_addresses(const struct symbol_image *program, uint64_t *addrs)
{
	Elf64_Shdr text = dwarf_section_header(program, ".text");
	uint64_t step = text.sh_size / 4096 + 1; /* a static program's is large */
	size_t count = 0;

	for (uint64_t off = 0; off < text.sh_size && count < MAX_ADDRS; off += step)
		addrs[count++] = text.sh_addr + off;
	return count;
}

static void check_same(const struct code_names *a, const struct code_frame *x, const struct code_names *b,
		       const struct code_frame *y)
{
	size_t x_len = 0, y_len = 0;
	const char *x_text = code_names_name(a, x->function, &x_len), *y_text = code_names_name(b, y->function, &y_len);

	assert_int_equal(x_len, y_len);
	assert_memory_equal(x_text, y_text, x_len);
	assert_int_equal(x->line, y->line);
	assert_int_equal(x->column, y->column);
	assert_int_equal(x->file == CODE_NONE, y->file == CODE_NONE);
	if (x->file == CODE_NONE)
		return;
	x_text = code_names_path(a, x->file, &x_len);
	y_text = code_names_path(b, y->file, &y_len);
	assert_int_equal(x_len, y_len);
	assert_memory_equal(x_text, y_text, x_len);
}

/* Reads the names of some addresses alone, which must be those that @all has. */
static void check_wanted(const struct symbol_files *files, const struct code_names *all, const uint64_t *addrs, size_t count)
{
	static struct code_answer one, other;
	static uint64_t some[MAX_ADDRS];
	struct code_names *names;
	size_t some_count = 0;

	for (size_t i = 0; i < count; i += STRIDE)
		some[some_count++] = addrs[i];
	names = read_names(files, some, some_count);
	for (size_t i = 0; i < some_count; i++) {
		assert_int_equal(code_names_find(names, some[i], &one), code_names_find(all, some[i], &other));
		assert_int_equal(one.frame_count, other.frame_count);
		for (uint32_t k = 0; k < one.frame_count && one.frames[k].function != CODE_NONE; k++)
			check_same(names, &one.frames[k], all, &other.frames[k]);
	}
	code_names_free(names);
}

static void check_variant(const struct variant *v)
{
	static uint64_t addrs[MAX_ADDRS];
	struct symbol_files found = open_found();
	struct symbol_files files = { .program = dwarf_map("program"),
				      .debug = map_if_any("program.debug"),
				      .common = map_if_any("program.common"),
				      .package = map_if_any("program.dwp"),
				      .split = found.split };
	size_t count = list_addresses(&files.program, addrs);
	struct code_names *names = read_names(&files, NULL, 0);

	assert_true(!v->after || files.debug.data || files.common.data || files.package.data);
	printf("%s %s%s%s\n", v->compiler, v->options, v->after ? ": " : "", v->after ? v->after : "");
	/* At -O2 and at -O0 alike, as many calls are inlined always. */
	assert_true(judge(names, addrs, count) > 10);
	check_wanted(&files, names, addrs, count);
	code_names_free(names);
	symbol_image_unmap(&files.program);
	symbol_image_unmap(&files.debug);
	symbol_image_unmap(&files.common);
	symbol_image_unmap(&files.package);
	symbol_files_close(&found);
}

static void test_variants(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(variants); i++)
		if (build(&variants[i]))
			check_variant(&variants[i]);
}

/* --- names that LLVM does not tell --- */

static void check_has(const struct code_names *names, const uint64_t *addrs, size_t count, const char *want)
{
	static struct code_answer answer;
	size_t len;

	for (size_t i = 0; i < count; i++) {
		if (code_names_find(names, addrs[i], &answer))
			continue;
		for (uint32_t k = 0; k < answer.frame_count; k++) {
			const char *name = code_names_name(names, answer.frames[k].function, &len);

			if (len == strlen(want) && memcmp(name, want, len) == 0)
				return;
		}
	}
	fail_msg("nothing is called %s", want);
}

/* What gcc gives no linkage name, as the source has it. */
static void test_scopes(void **state)
{
	static const struct variant v = { "g++", CXX_FILES, "-O0 -gdwarf-5", NULL };
	static uint64_t addrs[MAX_ADDRS];
	struct symbol_files files = { 0 };
	struct code_names *names;
	size_t count;

	(void)state;
	if (!build(&v))
		skip();
	files.program = dwarf_map("program");
	count = list_addresses(&files.program, addrs);
	names = read_names(&files, NULL, 0);
	check_has(names, addrs, count, "outer::(anonymous namespace)::hidden::get");
	check_has(names, addrs, count, "outer::(anonymous namespace)::hidden::bump");
	check_has(names, addrs, count, "outer::(anonymous namespace)::anonymous");
	check_has(names, addrs, count, "outer::only_here");
	check_has(names, addrs, count, "as_in_c");
	check_has(names, addrs, count, "local_things");
	check_has(names, addrs, count, "local_things::local::go");
	check_has(names, addrs, count, "local_things::{lambda}::operator()");
	check_has(names, addrs, count, "main");
	code_names_free(names);
	symbol_image_unmap(&files.program);
}

/* A .dwo file that is not there: its names are missing, lines are not, and the source says so. */
static void test_no_split_file(void **state)
{
	static const struct variant v = { "gcc", C_FILES, "-O2 -gdwarf-5 -gsplit-dwarf", "rm *.dwo" };
	static struct code_answer answer;
	struct symbol_files found, files = { 0 };
	struct code_names *names = code_names_new(NULL, 0);
	Elf64_Shdr text;

	(void)state;
	if (!build(&v))
		skip();
	files.program = dwarf_map("program");
	found = open_found();
	files.split = found.split;
	text = dwarf_section_header(&files.program, ".text");
	assert_int_equal(source_dwarf(&files, names), -EBADMSG);
	assert_int_equal(code_names_finish(names), 0);
	assert_int_equal(code_names_find(names, text.sh_addr, &answer), -ENOENT);
	assert_int_equal(answer.frame_count, 1);
	assert_true(answer.frames[0].line > 0);
	code_names_free(names);
	symbol_files_close(&found);
	symbol_image_unmap(&files.program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variants),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_no_split_file),
	};

	return cmocka_run_group_tests(tests, dwarf_make_folder, dwarf_remove_folder);
}
